//! `join` for code that holds no worker token.

use std::marker::PhantomData;

use crate::pool::{ThreadPool, global};
use crate::task::fork::{fits_registers, fork};
use crate::task::token::Worker;
use crate::worker::current::Local;

/// Runs `a` and `b`, perhaps in parallel, and returns both results.
///
/// On a worker `a` always runs on the calling thread. `b` runs there after it, unless another worker of the pool has stolen it meanwhile. What the caller
/// does until a thief has finished `b` is up to the pool's [`Waiting`](crate::Waiting).
///
/// The pool is that of the calling worker. On a thread that is no worker it is the global one, for which the thread works until the join ends (see
/// [`Builder::callers`](crate::Builder::callers)). [`Worker::join`] is faster, because it need not look for the worker in a thread-local
/// variable.
///
/// ```
/// # use poach_runtime as poach;
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() <= 1000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (a, b) = poach::join(|| sum(left), || sum(right));
///     a + b
/// }
///
/// let numbers: Vec<u64> = (0..100_000).collect();
/// assert_eq!(sum(&numbers), 4_999_950_000);
/// ```
///
/// # Panics
///
/// As [`Worker::join`].
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_or(global, a, b)
}

/// [`join`], but on a thread that is no worker it uses the pool that `pool` returns instead of the global one: for a library that has a
/// pool of its own and is called on any thread.
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::LazyLock;
/// use poach::{ThreadPool, join_or};
///
/// static SOLVER: LazyLock<ThreadPool> =
///     LazyLock::new(|| ThreadPool::builder().threads(2).build().unwrap());
///
/// fn fib(n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     let (a, b) = join_or(|| &*SOLVER, || fib(n - 1), || fib(n - 2));
///     a + b
/// }
/// assert_eq!(fib(10), 55);
/// ```
///
/// # Panics
///
/// As [`Worker::join`].
#[inline]
pub fn join_or<'p, A, B, RA, RB>(pool: impl FnOnce() -> &'p ThreadPool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Local::with(|local| match local {
        Some(local) if const { fits_registers::<A, B, RA, RB>() } => outlined(local, a, b),
        Some(local) => fork_here(local, a, b),
        None => pool().enter(|| join(a, b)),
    })
}

/// [`fork_here`] as a function of its own, so that the compiler inlines the program into it: see `outlined`
/// in `job/fork.rs`.
#[inline(never)]
fn outlined<A, B, RA, RB>(local: &Local, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    fork_here(local, a, b)
}

/// [`join`] on a worker.
#[inline(always)]
fn fork_here<A, B, RA, RB>(local: &Local, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let token = local.token();
    let top = token.head();
    fork(
        token,
        move |above| {
            local.hint.set(above.head());
            let result = a();
            // For `b`, which stands where this fork stood, and for what comes after it.
            local.hint.set(top);
            result
        },
        move |_| b(),
    )
}

/// Where a half of a [`join_context`] runs.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// It is true of the thread that it was made on.
    not_send: PhantomData<*mut ()>,
}

impl FnContext {
    fn new(migrated: bool) -> FnContext {
        FnContext { migrated, not_send: PhantomData }
    }

    /// Whether the half runs on a thread other than the one that called [`join_context`].
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// [`join`] with closures that are told whether they have moved to another thread. A half that
/// has been stolen knows that a worker was idle, which is a reason to split further.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().threads(1).build()?;
/// let migrated = pool.install(|| poach::join_context(|a| a.migrated(), |b| b.migrated()));
/// assert_eq!(migrated, (false, false)); // there is nobody to steal
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// As [`join`].
pub fn join_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    join_context_or(global, a, b)
}

/// [`join_context`], with the pool that `pool` returns instead of the global one: see [`join_or`].
///
/// # Panics
///
/// As [`join`].
#[inline]
pub fn join_context_or<'p, A, B, RA, RB>(
    pool: impl FnOnce() -> &'p ThreadPool,
    a: A,
    b: B,
) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    Local::with(|local| match local {
        Some(local) => {
            let caller = address(Some(local));
            let migrated = move || Local::with(address) != caller;
            fork_here(local, || a(FnContext::new(false)), move || b(FnContext::new(migrated())))
        }
        None => pool().join_context(a, b),
    })
}

/// Tells the workers that there are at a time apart.
fn address(local: Option<&Local>) -> usize {
    local.map_or(0, |local| std::ptr::from_ref(local).addr())
}

/// [`join_context`] on a worker, to which both halves have `migrated` already, or not.
pub(crate) fn join_context_from<A, B, RA, RB>(migrated: bool, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let here = || Local::with(|local| local.map(|local| local.index));
    // Both halves run in one pool, so the index says which thread it is.
    let caller = here();
    join(|| a(FnContext::new(migrated)), || b(FnContext::new(migrated || here() != caller)))
}

/// Calls `f` with a [`Worker`] for its thread: the entry to the fast [`Worker::join`].
///
/// On a worker's thread it is that worker. Any other thread becomes a worker of the global pool until `f` returns, or hands `f` over, as by
/// [`ThreadPool::run`](crate::ThreadPool::run).
///
/// ```
/// # use poach_runtime as poach;
/// let (a, b) = poach::worker(|mut w| w.join(|_| 6 * 7, |_| "answers"));
/// assert_eq!((a, b), (42, "answers"));
/// ```
pub fn worker<R: Send>(f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
    Local::with(|local| match local {
        Some(local) => f(local.token()),
        None => global().run(f),
    })
}
