//! The items of a parallel loop, and the pieces into which it cuts them.

use std::ops::{Range, RangeInclusive};
use std::vec;

use crate::index::{Counted, Index};
use sealed::Piece;

/// The items of a parallel loop such as [`par_for`](crate::par_for()).
///
/// | a loop over | calls its closure with |
/// |---|---|
/// | `a..b` or `a..=b`, a range of integers of up to 64 bits | each integer |
/// | `&items`, where `items` is a slice, a vector or an array | each `&T` |
/// | `&mut items`, of the same | each `&mut T` |
/// | `items`, a vector | each `T` |
/// | `(a, b)` or `(a, b, c)`, where each is one of these | an item of each, until the shortest ends |
///
/// So `(0..items.len(), &items)` gives the index with each item. If `items` is another type that
/// dereferences to a slice, write `&items[..]`. For an iterator there is
/// [`par_bridge`](crate::par_bridge).
///
/// ```
/// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
/// let factors = vec![1, 2, 3];
/// let mut values = [10, 20, 30];
/// poach::par_for((&factors, &mut values), |(factor, value)| *value *= factor);
/// assert_eq!(values, [10, 40, 90]);
/// ```
#[diagnostic::on_unimplemented(
    message = "a parallel loop cannot go over `{Self}`",
    label = "neither a range of integers, nor `&` or `&mut` of a slice, a vector or an array",
    note = "write `&items[..]` for a type that dereferences to a slice, and `(a, b)` to go over two at once",
    note = "for an iterator use `par_bridge`, or collect it into a vector first"
)]
pub trait Items: sealed::Sealed {
    /// The argument of the loop's closure.
    type Item;
    #[doc(hidden)]
    type Piece: Piece<Item = Self::Item>;
    #[doc(hidden)]
    fn into_piece(self) -> Self::Piece;

    /// The same items, of which no run is shorter than `min`, unless all are fewer. A
    /// run goes on from one `identity` or `init`, on one worker. The loop is not split below that.
    /// Of several such numbers the largest counts, as for the items of a pair.
    ///
    /// ```
    /// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
    /// use poach::Items as _;
    ///
    /// let count = |run, _| run + 1;
    /// let shortest = |a: usize, b: usize| if a == 0 { b } else { a.min(b) };
    /// assert!(poach::par_reduce((0..10_000).with_min_len(100), || 0, count, shortest) >= 100);
    /// ```
    fn with_min_len(self, min: usize) -> Limited<Self>
    where
        Self: Sized,
    {
        Limited { items: self, min, max: usize::MAX }
    }

    /// The same items, of which no run is longer than `max`, or 1 if that is 0: the loop is split
    /// so far beforehand, though no worker is idle, unless a part were shorter than [the
    /// least](Items::with_min_len). Of several such numbers the smallest counts.
    ///
    /// A worker that comes later finds each part by itself. So `with_max_len(1)` suits a few items
    /// of a second each.
    ///
    /// ```
    /// # mod poach { pub use {poach_parallel::*, poach_runtime::*}; }
    /// use poach::Items as _;
    ///
    /// let count = |run, _| run + 1;
    /// assert!(poach::par_reduce((0..10_000).with_max_len(10), || 0, count, usize::max) <= 10);
    /// ```
    fn with_max_len(self, max: usize) -> Limited<Self>
    where
        Self: Sized,
    {
        Limited { items: self, min: 1, max }
    }
}

/// Items with a limit to the runs in which a loop goes over them: [`Items::with_min_len`],
/// [`Items::with_max_len`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop goes over it"]
pub struct Limited<I> {
    items: I,
    min: usize,
    max: usize,
}

impl<I: Items> sealed::Sealed for Limited<I> {}

impl<I: Items> Items for Limited<I> {
    type Item = I::Item;
    type Piece = Limited<I::Piece>;

    fn into_piece(self) -> Limited<I::Piece> {
        let Limited { items, min, max } = self;
        Limited { items: items.into_piece(), min, max }
    }
}

impl<P: Piece> Piece for Limited<P> {
    type Item = P::Item;

    #[inline]
    fn length(&self) -> usize {
        self.items.length()
    }

    #[inline]
    fn limits(&self) -> (usize, usize) {
        stricter(self.items.limits(), (self.min, self.max))
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let Limited { items, min, max } = self;
        let (first, second) = items.cut(at);
        (Limited { items: first, min, max }, Limited { items: second, min, max })
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = P::Item> {
        self.items.each()
    }
}

fn stricter(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0.max(b.0), a.1.min(b.1))
}

pub(super) mod sealed {
    pub trait Sealed {}

    /// Consecutive iterations, which can be cut in two.
    pub trait Piece: Sized + Send {
        type Item;

        fn length(&self) -> usize;

        /// The least and the greatest length of a run.
        #[inline]
        fn limits(&self) -> (usize, usize) {
            (1, usize::MAX)
        }

        /// Cuts after the first `at` iterations; there are no fewer.
        fn cut(self, at: usize) -> (Self, Self);

        /// The items, in order.
        fn each(self) -> impl Iterator<Item = Self::Item>;
    }
}

macro_rules! items {
    ($([$($generics:tt)*] $items:ty: $item:ty, $piece:ty, |$it:pat_param| $into:expr;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $items {}

        impl<$($generics)*> Items for $items {
            type Item = $item;
            type Piece = $piece;

            #[inline]
            fn into_piece(self) -> $piece {
                let $it = self;
                $into
            }
        }
    )*};
}

items! {
    [I: Index] Range<I>: I, Counted<I>, |range| Counted::range(range);
    [I: Index] RangeInclusive<I>: I, Counted<I>, |range| Counted::inclusive(range);
    ['s, T: Sync] &'s [T]: &'s T, &'s [T], |items| items;
    ['s, T: Sync] &'s Vec<T>: &'s T, &'s [T], |items| items;
    ['s, T: Sync, const N: usize] &'s [T; N]: &'s T, &'s [T], |items| items;
    ['s, T: Send] &'s mut [T]: &'s mut T, &'s mut [T], |items| items;
    ['s, T: Send] &'s mut Vec<T>: &'s mut T, &'s mut [T], |items| items;
    ['s, T: Send, const N: usize] &'s mut [T; N]: &'s mut T, &'s mut [T], |items| items;
    [T: Send] Vec<T>: T, vec::IntoIter<T>, |items| items.into_iter();
    [A: Items, B: Items] (A, B): (A::Item, B::Item), (A::Piece, B::Piece),
        |(a, b)| (a.into_piece(), b.into_piece());
    [A: Items, B: Items, C: Items] (A, B, C): (A::Item, B::Item, C::Item),
        (A::Piece, B::Piece, C::Piece), |(a, b, c)| (a.into_piece(), b.into_piece(), c.into_piece());
}

impl<'s, T: Sync> Piece for &'s [T] {
    type Item = &'s T;

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'s T> {
        self.iter()
    }
}

impl<'s, T: Send> Piece for &'s mut [T] {
    type Item = &'s mut T;

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = &'s mut T> {
        self.iter_mut()
    }
}

/// Each cut moves the items before it to a new vector. In all each item is moved once, and once
/// more for each time that its piece is shared with a thief.
impl<T: Send> Piece for vec::IntoIter<T> {
    type Item = T;

    #[inline]
    fn length(&self) -> usize {
        self.len()
    }

    fn cut(mut self, at: usize) -> (Self, Self) {
        let first: Vec<T> = self.by_ref().take(at).collect();
        (first.into_iter(), self)
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = T> {
        self
    }
}

impl<A: Piece, B: Piece> Piece for (A, B) {
    type Item = (A::Item, B::Item);

    #[inline]
    fn length(&self) -> usize {
        self.0.length().min(self.1.length())
    }

    #[inline]
    fn limits(&self) -> (usize, usize) {
        stricter(self.0.limits(), self.1.limits())
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let (a, b) = (self.0.cut(at), self.1.cut(at));
        ((a.0, b.0), (a.1, b.1))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = Self::Item> {
        self.0.each().zip(self.1.each())
    }
}

impl<A: Piece, B: Piece, C: Piece> Piece for (A, B, C) {
    type Item = (A::Item, B::Item, C::Item);

    #[inline]
    fn length(&self) -> usize {
        self.0.length().min(self.1.length()).min(self.2.length())
    }

    #[inline]
    fn limits(&self) -> (usize, usize) {
        stricter(stricter(self.0.limits(), self.1.limits()), self.2.limits())
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let (a, b, c) = (self.0.cut(at), self.1.cut(at), self.2.cut(at));
        ((a.0, b.0, c.0), (a.1, b.1, c.1))
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = Self::Item> {
        let (a, b, c) = self;
        a.each().zip(b.each()).zip(c.each()).map(|((a, b), c)| (a, b, c))
    }
}
