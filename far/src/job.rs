//! What a user's job is made of: tasks, what they may do, and how results are put together.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bag::Bag;
use crate::message::Failure;

/// Something that can be sent to another rank: implemented for all that it can be.
pub trait Value: Serialize + DeserializeOwned + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Send + 'static> Value for T {}

/// What a running task may do.
pub struct Context<'c, T, R> {
    bag: &'c mut Bag<T>,
    result: &'c mut R,
    rank: usize,
    limit: usize,
}

impl<'c, T, R> Context<'c, T, R> {
    pub(crate) fn new(bag: &'c mut Bag<T>, result: &'c mut R, rank: usize, limit: usize) -> Self {
        Context { bag, result, rank, limit }
    }

    /// Makes another task, which is run on this rank or another. Amortised constant time.
    ///
    /// A worker runs the youngest of its tasks first, and gives the oldest away.
    ///
    /// # Panics
    ///
    /// If the worker holds as many tasks as it may. The job then ends with [`Failure::BagFull`].
    #[inline]
    pub fn push(&mut self, task: T) {
        if self.bag.len() >= self.limit {
            self.full();
        }
        self.bag.push(task);
    }

    #[cold]
    fn full(&self) -> ! {
        let (rank, tasks, limit) = (self.rank, self.bag.len(), self.limit);
        // Without the message of a panic: the job tells of it.
        std::panic::resume_unwind(Box::new(Failure::BagFull { rank, tasks, limit }))
    }

    /// What this worker's tasks have found so far, to be added to.
    #[inline]
    pub fn result(&mut self) -> &mut R {
        self.result
    }

    /// The rank that the task runs on.
    pub fn rank(&self) -> usize {
        self.rank
    }
}

impl<T, R> fmt::Debug for Context<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("rank", &self.rank).field("tasks", &self.bag.len()).finish()
    }
}

/// How the results of workers and ranks are put together: in any order and grouping, so it must not
/// matter.
pub struct Reduction<R, C> {
    pub(crate) identity: R,
    pub(crate) combine: C,
}

/// A commutative reduction: `combine(a, b)` adds `b` to `a`, and adding `identity` changes nothing.
pub fn reduction<R: Clone, C: Fn(&mut R, R)>(identity: R, combine: C) -> Reduction<R, C> {
    Reduction { identity, combine }
}

/// The sum of numbers.
pub fn sum<R: Clone + Default + std::ops::AddAssign>() -> Reduction<R, impl Fn(&mut R, R)> {
    reduction(R::default(), |a: &mut R, b| *a += b)
}

impl<R, C> fmt::Debug for Reduction<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduction").finish_non_exhaustive()
    }
}

/// The worker that runs a task, as the job sees it.
pub(crate) trait Runner<J: Job> {
    /// What a task may do.
    fn context(&mut self) -> Context<'_, J::Task, J::Result>;

    /// This rank.
    fn rank(&self) -> usize;

    /// The youngest of this worker's tasks.
    fn pop(&mut self) -> Option<J::Task>;

    /// Counts a task that the job has run by itself.
    fn ran(&mut self);

    /// Between two tasks that the job runs by itself: talks to the other ranks, and shares with
    /// them, if it is time.
    fn pass(&mut self);

    /// While a call waits and the worker has no task: looks for some. It unwinds if the job has
    /// ended.
    fn wait(&mut self);

    /// Sends what a call came to, to the rank that waits for it.
    fn give_back(&mut self, to: usize, call: u64, result: Vec<u8>);

    /// Ends the job.
    fn fail(&mut self, failure: Failure) -> !;
}

/// A job, as its ranks run it.
pub(crate) trait Job: Sized + Sync {
    type Task: Value;
    type Result: Value;

    fn identity(&self) -> Self::Result;
    fn combine(&self, into: &mut Self::Result, other: Self::Result);
    fn run<S: Runner<Self>>(&self, task: Self::Task, runner: &mut S);

    /// The result of a call on another rank, which is `from`: encoded, and decoded by the call that
    /// waits for it.
    ///
    /// # Errors
    ///
    /// Always, of a job without calls.
    fn returned(&self, _from: usize, _call: u64, _result: &[u8]) -> Result<(), String> {
        Err("a job without calls got what one came to".to_owned())
    }
}

/// The job of a closure.
pub(crate) struct Closures<T, R, C, F> {
    pub(crate) reduction: Reduction<R, C>,
    pub(crate) task: F,
    pub(crate) kind: std::marker::PhantomData<fn(T)>,
}

impl<T, R, C, F> Job for Closures<T, R, C, F>
where
    T: Value,
    R: Value + Clone + Sync,
    C: Fn(&mut R, R) + Sync,
    F: Fn(T, &mut Context<'_, T, R>) + Sync,
{
    type Task = T;
    type Result = R;

    fn identity(&self) -> R {
        self.reduction.identity.clone()
    }

    fn combine(&self, into: &mut R, other: R) {
        (self.reduction.combine)(into, other);
    }

    #[inline]
    fn run<S: Runner<Self>>(&self, task: T, runner: &mut S) {
        (self.task)(task, &mut runner.context());
    }
}
