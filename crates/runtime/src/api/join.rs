//! `join` for code that holds no worker token.

use std::marker::PhantomData;

use crate::job::current::Local;
use crate::job::fork::{fits_registers, fork};
use crate::job::token::Worker;
use crate::pool::{ThreadPool, global};

/// Runs `a` and `b`, perhaps in parallel, and returns both results.
///
/// On a worker's thread it is [`Worker::join`] with the token looked up in a thread-local variable. On
/// any other thread it uses the global pool: `a` runs on the calling thread, always, and `b` may be stolen by a worker (see
/// [`Builder::callers_work`](crate::Builder::callers_work)). What a worker does while a thief runs `b`: see [`Waiting`](crate::Waiting).
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

/// [`join`], with `pool`'s pool in the place of the global one: for a library that has a pool of its own, and joins
/// wherever it is called.
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
    /// It speaks of the thread that it was made on.
    not_send: PhantomData<*mut ()>,
}

impl FnContext {
    fn new(migrated: bool) -> FnContext {
        FnContext { migrated, not_send: PhantomData }
    }

    /// Whether the half runs on another thread than the one that called [`join_context`].
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// [`join`], whose halves are told whether they have come to another thread than this one. A half that
/// has been stolen knows that somebody is idle: a reason to split further.
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

/// [`join_context`], with `pool`'s pool in the place of the global one: see [`join_or`].
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

/// Calls `f` with the token of this thread's worker; on any other thread as [`ThreadPool::run`](crate::ThreadPool::run) of
/// the global pool: `f` runs on the calling thread.
pub fn worker<R: Send>(f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
    Local::with(|local| match local {
        Some(local) => f(local.token()),
        None => global().run(f),
    })
}
