//! Loops over ranges and slices, which split themselves while workers are idle.
//!
//! Source: Tzannes, Caragea, Barua and Vishkin, *Lazy binary splitting* (`PPoPP` 2010). A loop is
//! not cut into pieces beforehand:
//!
//! 1. The worker that runs a piece runs a few iterations, then checks for idle workers.
//! 2. If another worker is idle and can steal nothing from this one, the worker halves the piece
//!    and forks the second half. A stolen half starts from small steps again.
//! 3. Else it runs the next iterations, twice as many, and checks again.
//!
//! A caller may set the least and the greatest length of a run: a piece is not halved into parts
//! that are shorter, and is halved while it is longer.
//!
//! So a loop on a busy pool is a plain loop, and the checks hardly interrupt cheap iterations. A
//! long piece is halved again whenever a thief has taken the last half and another is idle. So
//! there is no grain size to choose. The iterations between two checks, an eighth of what was left
//! at most, are not shared: iterations must not wait for each other.

use poach_runtime::Worker;

use crate::items::Items;
use crate::items::sealed::Piece;

/// The iterations between two checks are at most this part of the remaining iterations.
const PART: usize = 8;

/// Calls `f` with each of `items`, perhaps in parallel: the integers of a range, or the items of a
/// slice or a vector (see [`Items`]).
///
/// The loop starts on the calling thread and splits itself whenever another worker is idle. So a
/// call of `f` may take a nanosecond or a second, and there is no grain size to choose. One worker
/// may make several calls in a row, so no call must wait for another. A caller that is no worker
/// of a pool works for the global pool until the loop ends (see
/// [`ThreadPoolBuilder::callers`](poach_runtime::ThreadPoolBuilder::callers)). The pool's
/// [`Waiting`](poach_runtime::config::Waiting) decides what a worker does while it waits for a stolen part.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let mut numbers = [1, 2, 3];
/// poach::par_for(&mut numbers, |number| *number *= 2);
/// assert_eq!(numbers, [2, 4, 6]);
/// ```
///
/// # Panics
///
/// With the payload of one of the calls that panicked. It is not specified which of the other calls
/// were made. Also panics if a range has more than `usize::MAX` integers.
#[doc(alias = "for_each")]
#[doc(alias = "into_par_iter")]
#[doc(alias = "par_iter")]
#[doc(alias = "par_iter_mut")]
pub fn par_for<I: Items>(items: I, f: impl Fn(I::Item) + Sync) {
    par_reduce(items, || (), |(), item| f(item), |(), ()| ());
}

/// Folds `items`, perhaps in parallel. Each run of neighbouring items starts from `identity` and
/// goes on with `fold`; `combine` joins the results of neighbouring runs, in order.
///
/// The result is that of the sequential fold if `combine` is associative, `identity` is neutral to
/// it, and folding a run and combining agree.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let numbers: Vec<u64> = (1..=1000).collect();
/// let sum = poach::par_reduce(&numbers, || 0, |sum, number| sum + number, |a, b| a + b);
/// assert_eq!(sum, 500_500);
/// ```
///
/// # Panics
///
/// As [`par_for`].
#[doc(alias = "fold")]
#[doc(alias = "reduce")]
#[doc(alias = "sum")]
pub fn par_reduce<I: Items, R: Send>(
    items: I,
    identity: impl Fn() -> R + Sync,
    fold: impl Fn(R, I::Item) -> R + Sync,
    combine: impl Fn(R, R) -> R + Sync,
) -> R {
    let step = |result, piece: I::Piece| piece.each().fold(result, &fold);
    enter(items.into_piece(), &Loop { identity, step, combine })
}

/// Calls `f` with each chunk of `size` items of `items` and its number, perhaps in parallel. The
/// last chunk may be shorter.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let text = b"to be or not to be".as_slice();
/// poach::par_chunks(text, 3, |number, chunk| {
///     assert_eq!(chunk, &text[3 * number..][..3]);
/// });
/// ```
///
/// # Panics
///
/// If `size` is zero. Otherwise as [`par_for`].
pub fn par_chunks<T: Sync>(items: &[T], size: usize, f: impl Fn(usize, &[T]) + Sync) {
    assert!(size > 0, "chunks of no items: give a size of at least 1");
    par_for(0..items.len().div_ceil(size), |number| {
        let rest = &items[number * size..];
        f(number, &rest[..size.min(rest.len())]);
    });
}

/// Calls `f` with each mutable chunk of `size` items of `items` and its number, perhaps in
/// parallel. The last chunk may be shorter.
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let mut numbers = vec![0; 1000];
/// poach::par_chunks_mut(&mut numbers, 64, |number, chunk| chunk.fill(number));
/// assert_eq!((numbers[63], numbers[64], numbers[999]), (0, 1, 15));
/// ```
///
/// # Panics
///
/// If `size` is zero. Otherwise as [`par_for`].
pub fn par_chunks_mut<T: Send>(items: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    assert!(size > 0, "chunks of no items: give a size of at least 1");
    let step =
        |(), chunks: Chunks<'_, T>| chunks.each().for_each(|(number, chunk)| f(number, chunk));
    enter(Chunks { items, size, first: 0 }, &Loop { identity: || (), step, combine: |(), ()| () });
}

/// A kind of loop: what it does with each run of iterations and with their results.
pub(crate) struct Loop<I, S, C> {
    pub(crate) identity: I,
    /// Goes on with a run of iterations.
    pub(crate) step: S,
    pub(crate) combine: C,
}

pub(crate) fn enter<P, R, I, S, C>(piece: P, it: &Loop<I, S, C>) -> R
where
    P: Piece,
    R: Send,
    I: Fn() -> R + Sync,
    S: Fn(R, P) -> R + Sync,
    C: Fn(R, R) -> R + Sync,
{
    poach_runtime::worker(|mut worker| run(&mut worker, piece, it))
}

fn run<P, R, I, S, C>(worker: &mut Worker<'_>, mut piece: P, it: &Loop<I, S, C>) -> R
where
    P: Piece,
    R: Send,
    I: Fn() -> R + Sync,
    S: Fn(R, P) -> R + Sync,
    C: Fn(R, R) -> R + Sync,
{
    let mut result = (it.identity)();
    let (min, max) = piece.limits();
    let (min, max) = (min.max(1), max.max(1));
    let mut grain = min;
    loop {
        let length = piece.length();
        if length / 2 >= min && (length > max || worker.should_fork()) {
            let (first, second) = piece.cut(length / 2);
            let (a, b) =
                worker.join(|mut w| run(&mut w, first, it), |mut w| run(&mut w, second, it));
            return (it.combine)((it.combine)(result, a), b);
        }
        if grain >= length {
            return (it.step)(result, piece);
        }
        let (now, rest) = piece.cut(grain);
        result = (it.step)(result, now);
        piece = rest;
        grain = grain.saturating_mul(2).min((length - grain).div_ceil(PART));
    }
}

/// Loops as methods of a [`Worker`], which alone implements this trait.
pub trait WorkerLoops: sealed::Sealed {
    /// [`par_for`] from this worker.
    ///
    /// ```
    /// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
    /// use poach::WorkerLoops as _;
    ///
    /// let squares: Vec<_> = (0..100).map(|_| std::sync::atomic::AtomicU32::new(0)).collect();
    /// poach::worker(|mut w| {
    ///     w.par_for(0..100_u32, |i| squares[i as usize].store(i * i, std::sync::atomic::Ordering::Relaxed));
    /// });
    /// assert_eq!(squares.into_iter().map(|square| square.into_inner()).sum::<u32>(), 328_350);
    /// ```
    ///
    /// # Panics
    ///
    /// As it does.
    fn par_for<I: Items>(&mut self, items: I, f: impl Fn(I::Item) + Sync);

    /// [`par_reduce`] from this worker.
    ///
    /// # Panics
    ///
    /// As it does.
    fn par_reduce<I: Items, R: Send>(
        &mut self,
        items: I,
        identity: impl Fn() -> R + Sync,
        fold: impl Fn(R, I::Item) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> R;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for poach_runtime::Worker<'_> {}
}

impl WorkerLoops for Worker<'_> {
    fn par_for<I: Items>(&mut self, items: I, f: impl Fn(I::Item) + Sync) {
        self.par_reduce(items, || (), |(), item| f(item), |(), ()| ());
    }

    fn par_reduce<I: Items, R: Send>(
        &mut self,
        items: I,
        identity: impl Fn() -> R + Sync,
        fold: impl Fn(R, I::Item) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> R {
        let step = |result, piece: I::Piece| piece.each().fold(result, &fold);
        run(self, items.into_piece(), &Loop { identity, step, combine })
    }
}

/// Chunks of a slice, of which the last may be shorter.
struct Chunks<'s, T> {
    items: &'s mut [T],
    size: usize,
    first: usize,
}

impl<'s, T: Send> Piece for Chunks<'s, T> {
    type Item = (usize, &'s mut [T]);

    fn length(&self) -> usize {
        self.items.len().div_ceil(self.size)
    }

    fn cut(self, at: usize) -> (Self, Self) {
        let Chunks { items, size, first } = self;
        let (left, right) = items.split_at_mut(at * size);
        (Chunks { items: left, size, first }, Chunks { items: right, size, first: first + at })
    }

    fn each(self) -> impl Iterator<Item = Self::Item> {
        (self.first..).zip(self.items.chunks_mut(self.size))
    }
}
