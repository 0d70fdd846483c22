//! Fork-join on a queue of the caller's choice, so that queues can be compared with nothing else
//! changed: [`QueuePool`].
//!
//! This is the plain scheduler of the papers (Lace, Figure 1, with random stealing; the fence-free paper's
//! `CilkPlus`), the same lines for every queue: a join pushes its second half, runs the first, pops. Where
//! the pop finds that the half was stolen, the worker takes other work until it is done. Workers that
//! find none give their processor away, and sleep only while the pool has nothing to run at all.
//! [`ThreadPool`](crate::ThreadPool) is what programs should use: it keeps the half in the deque's own
//! slot, and sleeps.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use poach_deque::{ChaseLev, Owner, Private, Split, Steal, The, Thep, Thief};
use poach_memory::{
    Asymmetric, Bounded, CachePadded, Full, Machine, Memory, Ordering, Resolved, Unbounded,
    Unfenced, Word,
};

use crate::job::forked::ForkGuard;
use crate::job::queued;
pub use crate::job::queued::Job;

/// Fruitless looks at all victims after which a worker gives its processor away.
const LOOKS: u32 = 32;

mod sealed {
    /// Queues that are known to hand out each job exactly once.
    pub trait Sealed {}
}

/// A queue that a [`QueuePool`] can run on: one of `poach-deque`'s that hand out each task once.
pub trait Queue: Owner<Job> + sealed::Sealed + 'static {}

impl<Q: Owner<Job> + sealed::Sealed + 'static> Queue for Q {}

/// Names the policies under which a queue is exact; `Unfenced` is exact if its maker's promise holds, given by `unsafe`, that no thief
/// looks while the owner pops: a pool of one worker.
macro_rules! exact {
    ($($queue:ident: $($policy:ty),*;)*) => {
        $($(impl sealed::Sealed for $queue<Job, $policy> {})*)*
    };
}

exact! {
    ChaseLev: Full, Asymmetric, Bounded, Resolved;
    The: Full, Asymmetric, Bounded, Resolved, Unfenced;
    Thep: Full, Bounded, Resolved, Unbounded;
}
impl sealed::Sealed for poach_deque::Mutex<Job, Machine> {}
impl sealed::Sealed for Private<Job, Machine> {}
impl sealed::Sealed for Split<Job, Machine> {}

/// What the workers share.
struct Shared<T> {
    thieves: Box<[T]>,
    /// Programs that were handed in and have not ended. Workers look for work while it is not zero.
    running: CachePadded<<Machine as Memory>::Word>,
    stolen: CachePadded<<Machine as Memory>::Word>,
    aborted: CachePadded<<Machine as Memory>::Word>,
    state: Mutex<State>,
    /// Told of a new program, of the end of one, and of the pool's.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    programs: VecDeque<Job>,
    closing: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        // Relaxed: a hint to go on looking; what is found is handed over by its queue.
        self.running.load(Ordering::Relaxed) != 0
    }
}

/// What thieves have done in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Steals {
    /// Jobs that were stolen.
    pub stolen: u64,
    /// Steals that were given up because the thief could not tell whether the owner had the job.
    pub aborted: u64,
}

/// Workers that run fork-join programs, each with a queue of type `Q`.
///
/// ```
/// use poach_deque::ChaseLev;
/// use poach_runtime::on_queue::{QueuePool, QueueWorker, Queue};
///
/// fn fib<Q: Queue>(worker: &QueueWorker<Q>, n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
///     a + b
/// }
///
/// let pool: QueuePool<ChaseLev<_>> = QueuePool::new(2, ChaseLev::default)?;
/// assert_eq!(pool.run(|worker| fib(worker, 16)), 987);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct QueuePool<Q: Queue> {
    shared: Arc<Shared<Q::Thief>>,
    threads: Vec<JoinHandle<()>>,
    fork_guard: ForkGuard,
}

impl<Q: Queue> fmt::Debug for QueuePool<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuePool").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

/// A worker of a [`QueuePool`], as the halves of a join see it.
pub struct QueueWorker<Q: Queue> {
    queue: Q,
    index: usize,
    shared: Arc<Shared<Q::Thief>>,
    random: Cell<u64>,
    /// Fruitless looks since there was work.
    looks: Cell<u32>,
}

impl<Q: Queue> fmt::Debug for QueueWorker<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueWorker").field("index", &self.index).finish_non_exhaustive()
    }
}

impl<Q: Queue> QueueWorker<Q> {
    /// Runs `a` and `b`, perhaps in parallel, and returns both results.
    ///
    /// # Panics
    ///
    /// If either half panics, after both have ended, with the payload of `a` if both have.
    #[inline]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Self) -> RA,
        B: FnOnce(&Self) -> RB + Send,
        RB: Send,
    {
        queued::fork(self, a, b)
    }

    /// Works until the pool closes.
    fn work(&self) {
        let mut state = self.shared.lock();
        while !state.closing {
            if let Some(program) = state.programs.pop_front() {
                drop(state);
                queued::run(program, self);
                // Relaxed: only a hint; the program's outcome is handed over by its frame.
                self.shared.running.fetch_sub(1, Ordering::Relaxed);
                state = self.shared.lock();
                self.shared.changed.notify_all();
            } else if self.shared.is_running() {
                drop(state);
                while self.shared.is_running() {
                    if let Some(job) = self.queue.pop() {
                        queued::run(job, self);
                    }
                    self.help_others();
                }
                state = self.shared.lock();
            } else {
                state = self.shared.wait(state);
            }
        }
    }

    fn steal(&self) -> Option<Job> {
        let thieves = &self.shared.thieves;
        let start = self.next_random() as usize % thieves.len();
        for victim in (start..thieves.len()).chain(0..start) {
            if victim == self.index {
                continue;
            }
            match thieves[victim].steal() {
                Steal::Success(job) => {
                    // Relaxed: a count.
                    self.shared.stolen.fetch_add(1, Ordering::Relaxed);
                    return Some(job);
                }
                Steal::Abort => {
                    // Relaxed: a count.
                    self.shared.aborted.fetch_add(1, Ordering::Relaxed);
                }
                Steal::Empty | Steal::Retry => {}
            }
        }
        None
    }

    /// Xorshift: which victim comes first.
    fn next_random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }
}

impl<Q: Queue> QueueWorker<Q> {
    #[inline]
    pub(crate) fn push_job(&self, job: Job) {
        self.queue.push(job);
    }

    #[inline]
    pub(crate) fn pop_job(&self) -> Option<Job> {
        self.queue.pop()
    }

    /// Steals a job and runs it; with none, waits a moment.
    #[cold]
    pub(crate) fn help_others(&self) {
        if let Some(job) = self.steal() {
            self.looks.set(0);
            queued::run(job, self);
        } else if self.looks.get() < LOOKS {
            self.looks.set(self.looks.get() + 1);
            Machine::pause();
        } else {
            thread::yield_now();
        }
    }
}

impl<Q: Queue> QueuePool<Q> {
    /// Starts `threads` workers, each with a queue that `make` makes.
    ///
    /// # Errors
    ///
    /// If `threads` is 0, or the system refuses a thread; those already started end.
    pub fn new(threads: usize, make: impl Fn() -> Q) -> io::Result<Self> {
        if threads == 0 {
            let message = "a pool of 0 threads cannot be made: use 1 or more";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let queues: Vec<Q> = (0..threads).map(|_| make()).collect();
        let shared = Arc::new(Shared {
            thieves: queues.iter().map(Owner::thief).collect(),
            running: CachePadded::new(Word::new(0)),
            stolen: CachePadded::new(Word::new(0)),
            aborted: CachePadded::new(Word::new(0)),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let threads = Vec::with_capacity(threads);
        let mut pool = QueuePool { shared, threads, fork_guard: ForkGuard::here() };
        for (index, queue) in queues.into_iter().enumerate() {
            let shared = Arc::clone(&pool.shared);
            // Any odd number does; they only must differ.
            let random = Cell::new((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let looks = Cell::new(0);
            let thread = thread::Builder::new()
                .name(format!("on-queue-{index}"))
                .stack_size(256 << 20)
                .spawn(move || QueueWorker { queue, index, shared, random, looks }.work())?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs `f` on a worker and waits for its result.
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics; in a process forked since the pool was made.
    pub fn run<R: Send>(&self, f: impl FnOnce(&QueueWorker<Q>) -> R + Send) -> R {
        self.fork_guard.check();
        let outcome = queued::lend(f, |program, done| {
            let mut state = self.shared.lock();
            // Relaxed: the workers read it after they have had the lock, or as a hint.
            self.shared.running.fetch_add(1, Ordering::Relaxed);
            state.programs.push_back(program);
            self.shared.changed.notify_all();
            while !done() {
                state = self.shared.wait(state);
            }
        });
        outcome.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// What thieves have done since the pool was made.
    pub fn steals(&self) -> Steals {
        // Relaxed, both: counts.
        let stolen = self.shared.stolen.load(Ordering::Relaxed);
        let aborted = self.shared.aborted.load(Ordering::Relaxed);
        Steals { stolen, aborted }
    }
}

impl<Q: Queue> Drop for QueuePool<Q> {
    fn drop(&mut self) {
        if self.fork_guard.is_elsewhere() {
            // The threads are in another process; nobody here must touch their handles or locks.
            std::mem::forget(std::mem::take(&mut self.threads));
            return;
        }
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // Workers catch the panics of what they run; there is nobody to tell of another.
            let _ = thread.join();
        }
    }
}
