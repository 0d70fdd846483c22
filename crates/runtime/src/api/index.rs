//! What a parallel loop counts with.

use std::ops::Range;

/// Something that can be cut in two, down to single iterations.
pub(super) trait Piece: Sized + Send {
    fn length(&self) -> usize;
    /// Cuts after the first `at` iterations.
    fn cut(self, at: usize) -> (Self, Self);
}

/// An integer that [`par_for`](crate::par_for()) and its kin count with: all of the standard library's of up to 64 bits.
pub trait Index: sealed::Count {}

mod sealed {
    pub trait Count: Copy + Send {
        fn distance(from: Self, to: Self) -> usize;
        fn after(self, steps: usize) -> Self;
    }
}

macro_rules! indices {
    ($($integer:ty: $unsigned:ty)*) => {$(
        impl sealed::Count for $integer {
            #[inline]
            fn distance(from: Self, to: Self) -> usize {
                // Two's complement: right for either sign.
                if from < to { to.wrapping_sub(from) as $unsigned as usize } else { 0 }
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

impl<I: Index> Piece for Range<I> {
    #[inline]
    fn length(&self) -> usize {
        I::distance(self.start, self.end)
    }

    #[inline]
    fn cut(self, at: usize) -> (Self, Self) {
        let middle = self.start.after(at);
        (self.start..middle, middle..self.end)
    }
}

/// The indices of a range, in order.
#[inline]
pub(super) fn each<I: Index>(range: Range<I>) -> impl Iterator<Item = I> {
    let start = range.start;
    (0..range.length()).map(move |steps| start.after(steps))
}
