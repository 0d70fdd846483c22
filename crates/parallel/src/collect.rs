//! Loops that collect, stop at the first error, or keep a state for each run, and a loop over an
//! iterator.

use std::iter::Fuse;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use poach_runtime::Scope;

use crate::items::Items;
use crate::items::sealed::Piece;
use crate::loops::{Loop, enter, par_reduce};

/// Calls `f` with each of `items`, perhaps in parallel, and collects the results in order. See
/// [`Items`] for the types of `items`.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let lengths = poach::par_map(&["to", "be", "or", "not"], |word| word.len());
/// assert_eq!(lengths, [2, 2, 2, 3]);
/// assert_eq!(poach::par_map(1..=4, |n| n * n), [1, 4, 9, 16]);
/// ```
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
#[doc(alias = "collect")]
#[doc(alias = "map")]
pub fn par_map<I: Items, R: Send>(items: I, f: impl Fn(I::Item) -> R + Sync) -> Vec<R> {
    par_map_init(items, || (), |(), item| f(item))
}

/// As [`par_map`], with a state that `init` makes for each run of neighbouring items: a buffer, a
/// random generator, a connection.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
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
#[doc(alias = "map_init")]
pub fn par_map_init<I: Items, S: Send, R: Send>(
    items: I,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I::Item) -> R + Sync,
) -> Vec<R> {
    let step = |(mut state, mut results): (Option<S>, Vec<R>), piece: I::Piece| {
        let each = |item| f(state.get_or_insert_with(&init), item);
        results.extend(piece.each().map(each));
        (state, results)
    };
    let identity = || (None, Vec::new());
    enter(items.into_piece(), &Loop { identity, step, combine: append }).1
}

/// Joins the results of two neighbouring runs. Keeps the state of the first, which goes on.
fn append<S, R>(mut first: (S, Vec<R>), mut second: (S, Vec<R>)) -> (S, Vec<R>) {
    if first.1.is_empty() {
        return second;
    }
    first.1.append(&mut second.1);
    first
}

/// As [`par_for`](crate::par_for()), with a state that `init` makes for each run of neighbouring
/// items.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
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
#[doc(alias = "for_each_init")]
pub fn par_for_init<I: Items, S: Send>(
    items: I,
    init: impl Fn() -> S + Sync,
    f: impl Fn(&mut S, I::Item) + Sync,
) {
    let fold = |mut state: Option<S>, item| {
        f(state.get_or_insert_with(&init), item);
        state
    };
    par_reduce(items, || None, fold, |first, _| first);
}

/// [`par_for`](crate::par_for()), until one of the calls returns an error. No worker begins another
/// call then, and the error is returned; of several errors, that of the first item.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
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
#[doc(alias = "try_for_each")]
#[doc(alias = "find_any")]
pub fn try_par_for<I: Items, E: Send>(
    items: I,
    f: impl Fn(I::Item) -> Result<(), E> + Sync,
) -> Result<(), E> {
    try_par_reduce(items, || (), |(), item| f(item), |(), ()| Ok(()))
}

/// [`par_map`], until one of the calls returns an error, as [`try_par_for`].
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
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
pub fn try_par_map<I: Items, R: Send, E: Send>(
    items: I,
    f: impl Fn(I::Item) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let fold = |mut results: Vec<R>, item| {
        results.push(f(item)?);
        Ok(results)
    };
    let combine = |first, second| Ok(append(((), first), ((), second)).1);
    try_par_reduce(items, Vec::new, fold, combine)
}

/// [`par_reduce`], until `fold` or `combine` returns an error, as [`try_par_for`].
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let add = |a: u8, b: u8| a.checked_add(b).ok_or("too much");
/// assert_eq!(poach::try_par_reduce(0..20, || 0, add, add), Ok(190));
/// assert_eq!(poach::try_par_reduce(0..40, || 0, add, add), Err("too much"));
/// ```
///
/// # Errors
///
/// That of `fold` or `combine`.
///
/// # Panics
///
/// As [`par_for`](crate::par_for()).
pub fn try_par_reduce<I: Items, R: Send, E: Send>(
    items: I,
    identity: impl Fn() -> R + Sync,
    fold: impl Fn(R, I::Item) -> Result<R, E> + Sync,
    combine: impl Fn(R, R) -> Result<R, E> + Sync,
) -> Result<R, E> {
    let failed = AtomicBool::new(false);
    let checked = |result: Result<R, E>| {
        if result.is_err() {
            // Relaxed, both: no data depends on the flag. If it is seen late, one more call is
            // made.
            failed.store(true, Ordering::Relaxed);
        }
        result
    };
    let step = |result: Result<R, E>, piece: I::Piece| {
        let mut result = result?;
        for item in piece.each() {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            result = checked(fold(result, item))?;
        }
        Ok(result)
    };
    let combine = |first: Result<R, E>, second: Result<R, E>| checked(combine(first?, second?));
    enter(items.into_piece(), &Loop { identity: || Ok(identity()), step, combine })
}

/// Calls `f` with each item of an iterator, on all workers of the pool, in no particular order. It
/// suits a source that gives one item after the other, such as a reader's lines or a channel's
/// messages.
///
/// One worker at a time calls `next`, and the others do not wait for it. Each item is a task of a
/// [scope](poach_runtime::scope()), so a call of `f` should take some microseconds at least. For
/// slices and ranges [`par_for`](crate::par_for()) is faster. `next` may fork and wait for tasks of
/// the pool.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
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
/// With the payload of a call of `f` or of `next` that panicked. The loop first goes on until as
/// many have panicked as the pool has workers.
pub fn par_bridge<I>(items: I, f: impl Fn(I::Item) + Sync)
where
    I: Iterator + Send,
{
    let bridge = Bridge {
        items: Mutex::new(items.fuse()),
        f,
        panics: AtomicUsize::new(0),
        most_panics: poach_runtime::current_num_threads(),
    };
    poach_runtime::scope(|s| bridge.take_one(s));
}

/// An iterator, shared by the task that calls `next` and the tasks that have items.
struct Bridge<I: Iterator, F> {
    /// No task ever waits for the lock: a task spawns the next after it has released the lock.
    items: Mutex<Fuse<I>>,
    f: F,
    panics: AtomicUsize,
    most_panics: usize,
}

impl<I: Iterator + Send, F: Fn(I::Item) + Sync> Bridge<I, F> {
    /// Takes an item, leaves the iterator to another task, and calls `f`.
    fn take_one<'b>(&'b self, s: &Scope<'b>) {
        // Relaxed: no data depends on the count, and a late value costs some more calls.
        if self.panics.load(Ordering::Relaxed) >= self.most_panics {
            return;
        }
        let next = catch_unwind(AssertUnwindSafe(|| {
            self.items.lock().unwrap_or_else(PoisonError::into_inner).next()
        }));
        if next.is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
        if !matches!(next, Ok(None)) {
            s.spawn(|s| self.take_one(s));
        }
        let called = next.and_then(|item| {
            catch_unwind(AssertUnwindSafe(|| _ = item.map(&self.f))).inspect_err(|_| {
                self.panics.fetch_add(1, Ordering::Relaxed);
            })
        });
        if let Err(payload) = called {
            panic::resume_unwind(payload);
        }
    }
}
