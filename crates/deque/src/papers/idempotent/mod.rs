//! Idempotent work stealing: queues whose owner pays no fence and no compare-and-swap, because a
//! task may come out **more than once**.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing* (2009), Figures 1-3; Morrison
//! and Afek measure against them in *Fence-Free Work Stealing on Bounded TSO Processors*, section
//! 8.2. `push` and `pop` are `put` and `take` there.
//!
//! The owner takes a task by a plain store, and a thief that read the state before that store takes
//! the same task. Each task comes out at least once (but see [`IdempotentDeque`] for a thief that
//! sleeps). They are for work that can be done again without harm, such as marking the nodes of a
//! graph. The types say so twice: tasks are [`Repeatable`], and the owners are not
//! [`ExactlyOnce`](crate::ExactlyOnce).
//!
//! A thief reads the slot before it knows whether the task is its own, and the owner may be writing
//! it at that moment. So a slot is one word of shared memory, and a task must fit it.

mod anchor;
mod deque;
mod fifo;
mod lifo;
pub(crate) mod slots;

pub use deque::{IdempotentDeque, Thief as DequeThief};
pub use fifo::{IdempotentFifo, Thief as FifoThief};
pub use lifo::{IdempotentLifo, Thief as LifoThief};

/// A task that fits a word and that may be done more than once.
pub trait Repeatable: Copy + Send + 'static {
    /// The task as a word.
    fn into_word(self) -> u64;
    /// The task that [`into_word`](Repeatable::into_word) made `word` of.
    fn from_word(word: u64) -> Self;
}

#[expect(clippy::cast_lossless, reason = "one macro for integers of all widths and signs")]
mod integers {
    use super::Repeatable;

    macro_rules! repeatable {
        ($($integer:ty)*) => {$(
            impl Repeatable for $integer {
                #[inline(always)]
                fn into_word(self) -> u64 {
                    self as u64
                }

                #[inline(always)]
                fn from_word(word: u64) -> Self {
                    word as $integer
                }
            }
        )*};
    }

    repeatable!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);
}

impl Repeatable for (u32, u32) {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.1)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        ((word >> 32) as u32, word as u32)
    }
}
