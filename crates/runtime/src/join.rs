//! `join` for code that holds no worker token.

use crate::job::current::Local;
use crate::job::fork::Worker;
use crate::pool::global;

/// Runs `a` and `b`, perhaps in parallel, and returns both results.
///
/// On a worker's thread it is [`Worker::join`] with the token looked up in a thread-local variable; on
/// any other thread both run in the global pool.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() <= 1000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (a, b) = poach_runtime::join(|| sum(left), || sum(right));
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
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Local::with(|local| match local {
        Some(local) => {
            let mut token = local.token();
            let top = token.head();
            let results = token.fork(
                |above| {
                    local.hint.set(above.head());
                    a()
                },
                |_| b(),
            );
            local.hint.set(top);
            results
        }
        None => global().install(|| join(a, b)),
    })
}

/// Calls `f` with the token of this thread's worker; on any other thread, on a worker of the global
/// pool.
pub fn worker<R: Send>(f: impl FnOnce(Worker<'_>) -> R + Send) -> R {
    Local::with(|local| match local {
        Some(local) => f(local.token()),
        None => global().run(f),
    })
}
