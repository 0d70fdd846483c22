//! The integers of parallel loops over ranges.

use std::ops::{Range, RangeInclusive};

use crate::items::sealed::Piece;

/// An integer type of ranges in [`par_for`](crate::par_for()) and the other loops: the standard
/// library's integers of up to 64 bits.
pub trait Index: sealed::Count {}

mod sealed {
    pub trait Count: Copy + PartialOrd + Send {
        /// From here to `end`, which is no less. `None` if a `usize` cannot count so far.
        fn steps_to(self, end: Self) -> Option<usize>;
        fn after(self, steps: usize) -> Self;
    }
}

macro_rules! indices {
    ($($integer:ty: $unsigned:ty)*) => {$(
        impl sealed::Count for $integer {
            #[inline]
            fn steps_to(self, end: Self) -> Option<usize> {
                // Two's complement: right for either sign.
                usize::try_from(end.wrapping_sub(self) as $unsigned).ok()
            }

            #[inline]
            fn after(self, steps: usize) -> Self {
                self.wrapping_add(steps as Self)
            }
        }

        impl Index for $integer {}
    )*};
}

indices! { u8: u8 u16: u16 u32: u32 u64: u64 usize: usize i8: u8 i16: u16 i32: u32 i64: u64 isize: usize }

/// A run of consecutive integers: the first, and their number.
pub struct Counted<I> {
    first: I,
    length: usize,
}

impl<I: Index> Counted<I> {
    #[inline]
    pub(super) fn range(range: Range<I>) -> Counted<I> {
        let Range { start, end } = range;
        let length = if start < end { start.steps_to(end) } else { Some(0) };
        Counted::new(start, length)
    }

    #[inline]
    pub(super) fn inclusive(range: RangeInclusive<I>) -> Counted<I> {
        let (start, end) = (*range.start(), *range.end());
        let length = if range.is_empty() {
            Some(0)
        } else {
            start.steps_to(end).and_then(|steps| steps.checked_add(1))
        };
        Counted::new(start, length)
    }

    #[inline]
    fn new(first: I, length: Option<usize>) -> Counted<I> {
        Counted { first, length: length.expect("a loop has at most usize::MAX iterations") }
    }
}

impl<I: Index> Piece for Counted<I> {
    type Item = I;

    #[inline]
    fn length(&self) -> usize {
        self.length
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let Counted { first, length } = self;
        (Counted { first, length: at }, Counted { first: first.after(at), length: length - at })
    }

    #[inline]
    fn each(self) -> impl Iterator<Item = I> {
        let first = self.first;
        (0..self.length).map(move |steps| first.after(steps))
    }
}
