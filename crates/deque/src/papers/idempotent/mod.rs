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

/// The constructors of an owner's handle whose `shared` part is made of a capacity and the first
/// index.
macro_rules! constructors {
    ($owner:ident, $visible:vis $starting_at:ident) => {
        impl<T: Repeatable> $owner<T> {
            /// An empty queue with 64 slots at first.
            pub fn new() -> Self {
                Self::default()
            }
        }

        impl<T: Repeatable, M: Memory> $owner<T, M> {
            /// An empty queue with `capacity` slots at first.
            ///
            /// # Errors
            ///
            /// [`CapacityError`] if `capacity` is 0, no power of two, too large, or cannot be had.
            pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
                Self::$starting_at(capacity, 0)
            }

            /// As [`with_capacity`](Self::with_capacity), with the first task at `index`: for tests
            /// of indices that wrap around.
            ///
            /// # Errors
            ///
            /// As [`with_capacity`](Self::with_capacity).
            #[doc(hidden)]
            $visible fn $starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
                let shared = ::std::sync::Arc::new(Shared::new(capacity, index)?);
                Ok($owner { shared, not_sync: ::core::marker::PhantomData })
            }
        }

        impl<T: Repeatable, M: Memory> Default for $owner<T, M> {
            fn default() -> Self {
                crate::traits::made::<T, _, _>(Self::with_capacity(crate::ring::DEFAULT_CAPACITY))
            }
        }
    };
}

/// The handles of a queue whose tasks may come out more than once.
macro_rules! repeating {
    ($(#[$about:meta])* $owner:ident, $visible:vis $starting_at:ident) => {
        crate::handles::handles! {
            $(#[$about])*
            /// | operation | progress | cost |
            /// |---|---|---|
            /// | [`push`](crate::Owner::push) | wait-free, amortised constant | no fence |
            /// | [`pop`](crate::Owner::pop) | wait-free | no fence, no compare-and-swap |
            /// | [`steal`](crate::Thief::steal) | lock-free | one compare-and-swap |
            $owner [T: Repeatable, M: Memory = Machine]
            [T: Repeatable, M: Memory] <T, M> of Shared<M>
        }

        super::constructors!($owner, $visible $starting_at);
        crate::handles::lengths!([T: Repeatable, M: Memory] $owner<T, M>);
        crate::handles::owner_methods!(
            [T: Repeatable, M: Memory] [T: Repeatable, M: Memory] $owner<T, M>, Thief<T, M>
        );
        crate::handles::thief_methods!([T: Repeatable, M: Memory] Thief<T, M>);
    };
}

pub(crate) use constructors;

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
