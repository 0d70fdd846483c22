//! Loops that collect, that stop at the first error, that keep a state for each run, and one over an iterator.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use super::index::{Index, each};
use super::parallel::{Loop, enter, par_reduce};

/// Calls `f` with each item of `items`, perhaps in parallel, and collects the results in order.
///
/// Each run of neighbouring items that one worker takes fills a vector, and these are joined.
///
/// ```
/// # use poach_runtime as poach;
/// let lengths = poach::par_map(&["to", "be", "or", "not"], |word| word.len());
/// assert_eq!(lengths, [2, 2, 2, 3]);
/// ```
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn par_map<T: Sync, R: Send>(items: &[T], f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    par_map_init(items, || (), |(), item| f(item))
}

/// [`par_map`], with a state for each run of neighbouring items, made by `init`: a buffer, a random generator, a connection.
///
/// ```
/// # use poach_runtime as poach;
/// let texts = poach::par_map_init(&[1, 2, 3], String::new, |buffer, n| {
///     buffer.clear();
///     (0..*n).for_each(|_| buffer.push('x'));
///     buffer.len()
/// });
/// assert_eq!(texts, [1, 2, 3]);
/// ```
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn par_map_init<T: Sync, S: Send, R: Send>(
    items: &[T],
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let fold = |(mut state, mut results): (Option<S>, Vec<R>), index: usize| {
        results.push(f(state.get_or_insert_with(&init), &items[index]));
        (state, results)
    };
    par_reduce(0..items.len(), || (None, Vec::new()), fold, append).1
}

fn append<S, R>(mut first: (S, Vec<R>), mut second: (S, Vec<R>)) -> (S, Vec<R>) {
    if first.1.is_empty() {
        return second;
    }
    first.1.append(&mut second.1);
    first
}

/// [`par_for`](crate::par_for()), with a state for each run of neighbouring indices, made by `init`.
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let sum = AtomicU64::new(0);
/// poach::par_for_init(0..100_u64, Vec::new, |seen, i| {
///     seen.push(i);
///     sum.fetch_add(i, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 4950);
/// ```
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn par_for_init<I: Index, S: Send>(
    range: Range<I>,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I) + Sync,
) {
    let fold = |mut state: Option<S>, index| {
        f(state.get_or_insert_with(&init), index);
        state
    };
    par_reduce(range, || None, fold, |first, _| first);
}

/// [`par_for`](crate::par_for()), until one of the calls returns an error: then no worker begins another call, and the error is returned, the one of the
/// lowest index if there are several.
///
/// ```
/// # use poach_runtime as poach;
/// let result = poach::try_par_for(0..1000, |i| if i == 700 { Err(i) } else { Ok(()) });
/// assert_eq!(result, Err(700));
/// ```
///
/// # Errors
///
/// That of `f`.
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn try_par_for<I: Index, E: Send>(
    range: Range<I>,
    f: impl Fn(I) -> Result<(), E> + Sync,
) -> Result<(), E> {
    try_par_reduce(range, || (), |(), index| f(index), |(), ()| Ok(()))
}

/// [`par_map`], until one of the calls returns an error, as [`try_par_for`].
///
/// ```
/// # use poach_runtime as poach;
/// let numbers = poach::try_par_map(&["1", "2", "x"], |text| text.parse::<u32>());
/// assert!(numbers.is_err());
/// ```
///
/// # Errors
///
/// That of `f`.
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn try_par_map<T: Sync, R: Send, E: Send>(
    items: &[T],
    f: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let fold = |mut results: Vec<R>, index: usize| {
        results.push(f(&items[index])?);
        Ok(results)
    };
    let combine = |first, second| Ok(append(((), first), ((), second)).1);
    try_par_reduce(0..items.len(), Vec::new, fold, combine)
}

/// [`par_reduce`], until `fold` or `combine` returns an error, as [`try_par_for`].
///
/// ```
/// # use poach_runtime as poach;
/// let sum = |range| {
///     let add = |a: u8, b: u8| a.checked_add(b).ok_or("too much");
///     poach::try_par_reduce(range, || 0, add, add)
/// };
/// assert_eq!(sum(0..20), Ok(190));
/// assert_eq!(sum(0..40), Err("too much"));
/// ```
///
/// # Errors
///
/// That of `fold` or `combine`.
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn try_par_reduce<I: Index, R: Send, E: Send>(
    range: Range<I>,
    identity: impl Fn() -> R + Sync,
    fold: impl Fn(R, I) -> Result<R, E> + Sync,
    combine: impl Fn(R, R) -> Result<R, E> + Sync,
) -> Result<R, E> {
    let failed: <Machine as Memory>::Word = Word::new(0);
    let checked = |result: Result<R, E>| {
        if result.is_err() {
            // Relaxed, both: nothing is handed over with it, and seen late it costs a call too many.
            failed.store(1, Ordering::Relaxed);
        }
        result
    };
    let step = |result: Result<R, E>, range: Range<I>| {
        let mut result = result?;
        for index in each(range) {
            if failed.load(Ordering::Relaxed) != 0 {
                break;
            }
            result = checked(fold(result, index))?;
        }
        Ok(result)
    };
    let combine = |first: Result<R, E>, second: Result<R, E>| checked(combine(first?, second?));
    enter(range, &Loop { identity: || Ok(identity()), step, combine })
}

/// Calls `f` with each item of an iterator, on all workers of the pool: for what can only be asked for one after the other, a reader's
/// lines, a channel's messages.
///
/// The iterator is asked under a lock, for one item at a time, so the items should take microseconds; a slice is better
/// looped over with [`par_map`] or [`par_chunks`](crate::par_chunks). Its `next` must not wait for tasks of the pool. In no order.
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let words = AtomicUsize::new(0);
/// let text = "to be\nor not\nto be";
/// poach::par_bridge(text.lines(), |line| {
///     words.fetch_add(line.split_whitespace().count(), Ordering::Relaxed);
/// });
/// assert_eq!(words.into_inner(), 6);
/// ```
///
/// # Panics
///
/// With the payload of a call of `f`, or of the iterator's, that panicked; other workers go on with the rest before.
pub fn par_bridge<I>(items: I, f: impl Fn(I::Item) + Sync)
where
    I: Iterator + Send,
{
    let items = Mutex::new(items.fuse());
    let work = || {
        loop {
            // A panic of the iterator's leaves it to the others.
            let item = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = item else { break };
            f(item);
        }
    };
    crate::scope(|s| {
        for _ in 1..crate::current_num_threads() {
            s.spawn(|_| work());
        }
        work();
    });
}
