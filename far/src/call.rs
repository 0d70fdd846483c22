//! Calls that wait: a function that calls itself on values, in pairs of which either may run on
//! another rank.
//!
//! A *half* is a value, and the place that waits for its result: a rank, and the number of the call
//! there. [`join`] puts the second half into its worker's bag, where it can be stolen like any
//! task, and runs the first. If the second is still there then, it runs it, too. If not, another
//! worker or rank has it, and the call waits: it runs what its worker has, steals, and reads what
//! arrives, until the result of the half does.
//!
//! # Why no call waits for ever
//!
//! A worker's stack holds calls. Each call was begun by the call below it, or while that call
//! waited. So of two calls on a stack the upper call was begun later. A call waits only for its own
//! second half, which is begun later than the call, too.
//!
//! Follow a waiting call at the top of its stack to the half that it waits for, then to the top of
//! the stack on which that half is, and so on. Each of these calls was begun later than the last,
//! and there are finitely many. So the chain ends at a call that does not wait, or at a half that
//! no worker has begun. Such a half is in the bag of a worker, or it is put aside or on its way and
//! comes into a bag. A worker runs everything in its bag, waiting or not. Source: the argument for
//! depth-restricted stealing in Cilk and its kin; see Wagner and Calder, *Leapfrogging* (1993).
//!
//! While a result is on its way a call waits for it, and its rank is not idle. So the end is found
//! as for any job.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bag::Bag;
use crate::job::{Job, Runner, Value};
use crate::message::Failure;
use crate::world::{Asked, Error, Nested, Outcome, World};

/// A running call of a function that [`World::call`] runs.
pub struct Call<'c, T, R>(&'c mut (dyn Forks<T, R> + 'c));

impl<T, R> Call<'_, T, R> {
    /// The rank that the call runs on.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }
}

impl<T, R> fmt::Debug for Call<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("rank", &self.rank()).finish_non_exhaustive()
    }
}

/// The results of the function for two values, either of which may run on another rank. Returns
/// when both are there.
///
/// The first is run by this worker, at once. While the call waits for the second, this worker runs
/// other tasks, above it on the stack.
///
/// # Panics
///
/// If the worker holds as many halves as it [may](crate::Builder::tasks_at_most), and if the job
/// fails elsewhere: then it unwinds, without a message. A caller that catches that panic does not
/// keep the job going.
pub fn join<T, R>(call: &mut Call<'_, T, R>, first: T, second: T) -> (R, R) {
    call.0.join(first, second)
}

/// What is behind a [`Call`].
trait Forks<T, R> {
    fn join(&mut self, first: T, second: T) -> (R, R);
    fn rank(&self) -> usize;
}

/// A value, and the place that waits for its result.
#[derive(Serialize, Deserialize)]
struct Half<T> {
    value: T,
    rank: u32,
    call: u64,
}

/// The number of the call for which only [`World::call`] waits.
const FIRST: u64 = 0;

/// The job of a function that calls itself.
struct Calls<T, R, F> {
    function: F,
    /// The number of the next call that waits on this rank.
    next: AtomicU64,
    /// What has arrived, and was not taken up.
    arrived: Mutex<HashMap<u64, Arrived<R>>>,
    kind: PhantomData<fn(T)>,
}

/// What a call came to.
enum Arrived<R> {
    /// On its own rank.
    Here(R),
    /// On this rank; not decoded.
    There(usize, Vec<u8>),
}

impl<R: Value> Arrived<R> {
    /// Decodes it, by the user's code, which may run other tasks meanwhile: no lock is held. `rank`
    /// is this rank.
    fn open(self, rank: usize) -> Result<R, Failure> {
        match self {
            Arrived::Here(result) => Ok(result),
            Arrived::There(from, bytes) => postcard::from_bytes(&bytes).map_err(|error| {
                let message = error.to_string();
                Failure::Unreadable { rank, from, message }
            }),
        }
    }
}

impl<T, R, F> Calls<T, R, F> {
    fn keep(&self, call: u64, result: Arrived<R>) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.insert(call, result);
    }

    #[cold]
    fn take(&self, call: u64) -> Option<Arrived<R>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).remove(&call)
    }
}

impl<T, R, F> Job for Calls<T, R, F>
where
    T: Value,
    R: Value,
    F: Fn(T, &mut Call<'_, T, R>) -> R + Sync,
{
    type Task = Half<T>;
    type Result = ();

    fn identity(&self) {}

    fn combine(&self, (): &mut (), (): ()) {}

    fn run<S: Runner<Self>>(&self, half: Half<T>, runner: &mut S) {
        let Half { value, rank, call } = half;
        let result = (self.function)(value, &mut Call(&mut Running { job: self, runner }));
        let (own, to) = (runner.rank(), rank as usize);
        if to == own {
            self.keep(call, Arrived::Here(result));
            return;
        }
        match postcard::to_allocvec(&result) {
            Ok(bytes) => runner.give_back(to, call, bytes),
            Err(error) => {
                let message = format!("cannot encode a result: {error}");
                runner.fail(Failure::Other { rank: own, message });
            }
        }
    }

    fn returned(&self, from: usize, call: u64, result: &[u8]) -> Result<(), String> {
        self.keep(call, Arrived::There(from, result.to_vec()));
        Ok(())
    }
}

/// A call at work.
struct Running<'r, J, S> {
    job: &'r J,
    runner: &'r mut S,
}

impl<T, R, F, S> Forks<T, R> for Running<'_, Calls<T, R, F>, S>
where
    T: Value,
    R: Value,
    F: Fn(T, &mut Call<'_, T, R>) -> R + Sync,
    S: Runner<Calls<T, R, F>>,
{
    fn join(&mut self, first: T, second: T) -> (R, R) {
        let job = self.job;
        // Relaxed: the number need only be unique.
        let call = job.next.fetch_add(1, Ordering::Relaxed);
        let rank = self.runner.rank() as u32;
        self.runner.context().push(Half { value: second, rank, call });
        self.runner.pass();
        self.runner.ran();
        let left = (job.function)(first, &mut Call(self));
        loop {
            match self.runner.pop() {
                Some(half) if half.call == call && half.rank == rank => {
                    self.runner.ran();
                    let right = (job.function)(half.value, &mut Call(self));
                    return (left, right);
                }
                other => {
                    if let Some(right) = job.take(call) {
                        if let Some(other) = other {
                            self.runner.context().push(other);
                        }
                        match right.open(self.runner.rank()) {
                            Ok(right) => return (left, right),
                            Err(failure) => self.runner.fail(failure),
                        }
                    }
                    match other {
                        Some(other) => {
                            self.runner.ran();
                            let _nested = Nested::begin();
                            job.run(other, self.runner);
                        }
                        None => self.runner.wait(),
                    }
                }
            }
        }
    }

    fn rank(&self) -> usize {
        self.runner.rank()
    }
}

impl World {
    /// Calls a function that calls itself by [`join`], on this and other ranks. Collective; rank
    /// 0's `value` counts, and the outcome is there.
    ///
    /// ```no_run
    /// use poach_far::{World, join};
    ///
    /// let mut world = World::init()?;
    /// let outcome = world.call(40u32, |n, call| {
    ///     if n < 20 {
    ///         return (0..n).fold((0u64, 1), |(a, b), _| (b, a + b)).0;
    ///     }
    ///     let (a, b) = join(call, n - 1, n - 2);
    ///     a + b
    /// })?;
    /// # drop(outcome);
    /// # Ok::<(), poach_far::Error>(())
    /// ```
    ///
    /// A worker's stack grows as deep as the calls, and by the same depth for each task that it
    /// runs while calls wait. It runs up to sixteen such tasks, and the tasks that were sent with
    /// them. It runs more only if all workers of the rank wait at that depth, or if nothing happens
    /// for some time. A pair of calls costs about a hundred nanoseconds if no rank steals. There
    /// are no checkpoints, because a stack cannot be saved. [`divide`](World::divide) never waits
    /// and takes less memory, but needs a separate join.
    ///
    /// # Errors
    ///
    /// As [`World::run`].
    ///
    /// # Panics
    ///
    /// Never: the first call has a result.
    pub fn call<T, R, F>(&mut self, value: T, function: F) -> Result<Option<Outcome<R>>, Error>
    where
        T: Value,
        R: Value,
        F: Fn(T, &mut Call<'_, T, R>) -> R + Sync,
    {
        let job = Calls {
            function,
            next: AtomicU64::new(FIRST + 1),
            arrived: Mutex::default(),
            kind: PhantomData,
        };
        let seed = (self.rank() == 0).then_some(Half { value, rank: 0, call: FIRST });
        let outcome =
            self.run_job(&job, seed.into_iter().collect::<Bag<_>>(), &Asked::default())?;
        let opened = outcome.map(|Outcome { result: (), elapsed, ranks }| {
            let result = job.take(FIRST).expect("the first call has a result").open(0)?;
            Ok(Outcome { result, elapsed, ranks })
        });
        opened.transpose().map_err(|failure: Failure| self.broke(failure))
    }
}
