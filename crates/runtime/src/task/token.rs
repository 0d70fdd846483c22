//! A worker as a value: the topmost head of its thread's stack of forks.

use std::marker::PhantomData;

use poach_deque::split;
use poach_memory::Machine;

use crate::sleep::events::DequeEvents;

pub(crate) type Head = split::Head<Machine, DequeEvents>;

/// A worker of a pool, as a value: with it a fork need not look for its worker in a thread-local variable.
///
/// [`worker`](crate::worker()) and [`ThreadPool::run`](crate::ThreadPool::run) call a closure with one. Pass it on by value, it is one machine word;
/// [`join`](Worker::join) gives each half a `Worker` of its own.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::Worker;
///
/// fn fib(mut worker: Worker<'_>, n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
///     a + b
/// }
///
/// let pool = poach::ThreadPool::builder().threads(2).build()?;
/// assert_eq!(pool.run(|worker| fib(worker, 20)), 6765);
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// A `Worker` belongs to its thread, and to the innermost join. These do not compile:
///
/// ```compile_fail,E0499
/// # use poach_runtime as poach;
/// # fn f(mut outer: poach::Worker<'_>) {
/// outer.join(|_| outer.join(|_| (), |_| ()), |_| ());
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use poach_runtime as poach;
/// # fn f(worker: poach::Worker<'_>) {
/// std::thread::scope(|s| s.spawn(move || worker));
/// # }
/// ```
#[repr(transparent)]
pub struct Worker<'w> {
    head: Head,
    life: PhantomData<(&'w (), *mut ())>,
}

/// What no token has: its name and message are what the compiler says where a half captures a token.
#[diagnostic::on_unimplemented(
    message = "a `Worker` belongs to its own thread and cannot be captured by a half of a join, or sent elsewhere",
    label = "uses a `Worker` from outside of this closure",
    note = "each half of a join is given a `Worker` of its own: name it, as in `w.join(|w| f(w, 1), |w| f(w, 2))`",
    note = "in a task of a scope, or on another thread, call `worker(|w| ..)` there"
)]
pub trait UsesTheWorkerItIsGiven {}

/// A token's.
pub struct OuterWorker<'w>(PhantomData<&'w ()>);

// SAFETY: there is no such implementation: nothing implements the trait. It stands here for its message alone.
unsafe impl<'w> Send for Worker<'w> where OuterWorker<'w>: UsesTheWorkerItIsGiven {}

impl Worker<'_> {
    /// The token for the stack of this thread's worker.
    ///
    /// # Safety
    ///
    /// `head` is the topmost head of the stack that the calling thread owns, and the token is not used
    /// while that stack has another top.
    #[inline(always)]
    pub(crate) unsafe fn new<'w>(head: Head) -> Worker<'w> {
        Worker { head, life: PhantomData }
    }

    /// The same token, for as long as this one is not used.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Worker<'_> {
        Worker { head: self.head, life: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// This worker's index in its pool, from 0.
    pub fn index(&self) -> usize {
        // SAFETY: the stack lives as long as the token.
        unsafe { self.head.context() }.index
    }
}
