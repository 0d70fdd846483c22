//! What Chase-Lev, THE and THEP have in common: the line that their owner writes, its pushes, its
//! end, and the handles.
//!
//! The three differ in how a pop and a steal compete for the task at `head`; each file has that,
//! and the words that thieves write for it. What a push does is the same in all: it writes the task
//! to the slot at `tail`, then stores `tail + 1`.
//!
//! | store | load | what the reader then has |
//! |---|---|---|
//! | `push`: `tail`, release | a thief's load of `tail`, acquire | the task in the slot below `tail` |
//! | [`OwnerLine::close`]: `closed`, release | a thief's load of `closed`, acquire | the last `tail` of the owner |

use core::ops::Deref;

use poach_memory::{CachePadded, Memory, Ordering, StoreLoad, Word};

use crate::owned::Owned;
use crate::ring::{Buffer, CapacityError, NoMemory, Rings};
use crate::traits::OutOfMemory;

/// What the handles of one queue point to. `W` is what thieves write.
pub(crate) struct Shared<T, P, M: Memory, W: Thieves> {
    pub(crate) owner: CachePadded<OwnerLine<T, M, P>>,
    pub(crate) thieves: CachePadded<ThievesLine<T, M, W>>,
}

/// What thieves write, on a line of its own: the queue's words, and what `rings` has.
pub(crate) struct ThievesLine<T, M: Memory, W> {
    words: W,
    pub(crate) rings: Rings<T, M>,
}

impl<T, M: Memory, W> Deref for ThievesLine<T, M, W> {
    type Target = W;

    #[inline(always)]
    fn deref(&self) -> &W {
        &self.words
    }
}

/// The words that thieves write.
pub(crate) trait Thieves: Sized {
    /// Of an empty queue, the next task at `index`.
    fn new(index: u64) -> Self;

    /// All tasks below this index are gone. Once no handle is left it is the index of the oldest
    /// task, if there is one.
    fn gone(&self) -> u64;

    /// How far `tail` is ahead of what [`gone`](Thieves::gone) says; negative if it is behind.
    #[inline(always)]
    fn ahead(tail: u64, gone: u64) -> i64 {
        tail.wrapping_sub(gone) as i64
    }

    /// The owner has perhaps left a ring.
    fn release_left<T, M: Memory>(&self, buffer: &Buffer<T, M>, rings: &Rings<T, M>);
}

impl<T, P: StoreLoad<M>, M: Memory, W: Thieves> Shared<T, P, M, W> {
    /// An empty queue, the next task at `index`.
    pub(crate) fn new(policy: P, capacity: usize, index: u64) -> Result<Self, CapacityError> {
        let (rings, buffer) = Rings::new(capacity, index)?;
        Ok(Shared {
            owner: CachePadded::new(OwnerLine::new(index, buffer, policy)),
            thieves: CachePadded::new(ThievesLine { words: W::new(index), rings }),
        })
    }

    /// Finds or makes a free slot at `tail`.
    ///
    /// # Safety
    ///
    /// As [`Owned::get`].
    #[inline(always)]
    pub(crate) unsafe fn reserve(&self, tail: u64) -> Result<(), NoMemory> {
        // SAFETY: by this function's contract.
        let buffer = unsafe { self.owner.buffer() };
        let rings = &self.thieves.rings;
        buffer.reserve(rings, tail, || self.len())?;
        self.thieves.release_left(buffer, rings);
        Ok(())
    }
}

impl<T, P, M: Memory, W: Thieves> Shared<T, P, M, W> {
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        let gone = self.thieves.gone();
        // Relaxed: nothing is read on the strength of it.
        let tail = self.owner.tail.load(Ordering::Relaxed);
        usize::try_from(W::ahead(tail, gone)).unwrap_or(0)
    }
}

impl<T, P, M: Memory, W: Thieves> Drop for Shared<T, P, M, W> {
    fn drop(&mut self) {
        // Relaxed: the last handle's going synchronised with all others'.
        let tail = self.owner.tail.load(Ordering::Relaxed);
        let first = tail.wrapping_sub(W::ahead(tail, self.thieves.gone()) as u64);
        // SAFETY: no handle is left, so no thief is between its claim and its end, and between its
        // methods the owner leaves `tail` at or above `head`: all of `first..tail` are tasks.
        unsafe { self.thieves.rings.drop_tasks(first, tail) };
    }
}

/// What the owner writes. The policy stands here since only who reads `tail` consults it.
pub(crate) struct OwnerLine<T, M: Memory, P> {
    pub(crate) tail: M::Word,
    /// 1 once the owner is gone.
    closed: M::Word,
    buffer: Owned<Buffer<T, M>>,
    pub(crate) policy: P,
}

impl<T, M: Memory, P: StoreLoad<M>> OwnerLine<T, M, P> {
    /// The line of a queue whose first task is at `index`.
    pub(crate) fn new(index: u64, buffer: Buffer<T, M>, policy: P) -> Self {
        OwnerLine {
            tail: M::Word::new(index),
            closed: M::Word::new(0),
            buffer: Owned::new(buffer),
            policy,
        }
    }

    /// # Safety
    ///
    /// As [`Owned::get`].
    #[inline(always)]
    pub(crate) unsafe fn buffer(&self) -> &Buffer<T, M> {
        // SAFETY: by this function's contract.
        unsafe { self.buffer.get() }
    }

    /// Adds a task. `reserve` finds or makes a free slot for the tail: a function that is not
    /// inlined, with as few arguments as can be.
    ///
    /// # Safety
    ///
    /// The caller has the owner's handle, and the rings that were made with this line's buffer
    /// live.
    #[inline(always)]
    pub(crate) unsafe fn push(
        &self,
        task: T,
        reserve: impl FnOnce(u64) -> Result<(), NoMemory>,
    ) -> Result<(), OutOfMemory<T>> {
        // Relaxed: only the owner stores it.
        let tail = self.tail.load(Ordering::Relaxed);
        // SAFETY: the caller has the owner's handle, and the reference does not leave this
        // function.
        let buffer = unsafe { self.buffer() };
        if !buffer.has(tail) && reserve(tail).is_err() {
            return Err(OutOfMemory(task));
        }
        // SAFETY: there is a free slot at `tail`, which is the owner's, and the rings live.
        unsafe { buffer.write(tail, task) };
        // Release: pairs with a thief's acquire of `tail`, which then sees the task.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }
}

impl<T, M: Memory, P> OwnerLine<T, M, P> {
    /// Says that the owner has made its last store of `tail`.
    pub(crate) fn close(&self) {
        // Release: pairs with the acquire in `is_closed`.
        self.closed.store(1, Ordering::Release);
    }

    /// Whether the owner is gone. A thread that sees this sees its last `tail`.
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with the release in `close`.
        self.closed.load(Ordering::Acquire) != 0
    }
}

/// The handles of a queue whose thieves write `Words`.
macro_rules! fenced {
    ($(#[$about:meta])* $owner:ident $(; owner { $($of_owner:tt)* } thief { $($of_thief:tt)* })?) => {
        crate::handles::handles! {
            $(#[$about])*
            $owner [T, P: StoreLoad<M> = ::poach_memory::Full, M: Memory = Machine]
            [T, P: StoreLoad<M>, M: Memory] <T, P, M> of Shared<T, P, M, Words<M>>
        }

        impl<T: Send> $owner<T> {
            /// An empty queue with a full fence on both sides, and 64 slots at first.
            pub fn new() -> Self {
                Self::with_policy(::poach_memory::Full)
            }
        }

        impl<T: Send, P: StoreLoad<Machine>> $owner<T, P> {
            /// An empty queue with a fence policy, and 64 slots at first.
            pub fn with_policy(policy: P) -> Self {
                crate::traits::made::<T, _, _>(Self::with_capacity(policy, crate::ring::DEFAULT_CAPACITY))
            }

            /// An empty queue with a fence policy, and `capacity` slots at first.
            ///
            /// # Errors
            ///
            /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
            pub fn with_capacity(policy: P, capacity: usize) -> Result<Self, CapacityError> {
                Self::starting_at(policy, capacity, 0)
            }
        }

        impl<T: Send, P: StoreLoad<Machine> + Default> Default for $owner<T, P> {
            fn default() -> Self {
                Self::with_policy(P::default())
            }
        }

        impl<T: Send, P: StoreLoad<M>, M: Memory> $owner<T, P, M> {
            /// As [`with_capacity`](Self::with_capacity), in any memory, with the first task at
            /// `index`: for models, and for tests of indices that wrap around.
            ///
            /// # Errors
            ///
            /// As [`with_capacity`](Self::with_capacity).
            #[doc(hidden)]
            pub fn starting_at(policy: P, capacity: usize, index: u64) -> Result<Self, CapacityError> {
                let shared = ::std::sync::Arc::new(Shared::new(policy, capacity, index)?);
                Ok($owner { shared, not_sync: ::core::marker::PhantomData })
            }

            /// Slots in the ring now: see [`Fifo::capacity`](crate::Fifo::capacity).
            pub fn capacity(&self) -> usize {
                self.buffer().capacity()
            }

            /// The policy that this queue was made with.
            pub fn policy(&self) -> &P {
                &self.shared.owner.policy
            }

            #[inline(always)]
            fn buffer(&self) -> &Buffer<T, M> {
                // SAFETY: this is the owner's handle, and the returned reference borrows it.
                unsafe { self.shared.owner.buffer() }
            }

            /// Adds a task (`put`).
            ///
            /// # Errors
            ///
            /// [`OutOfMemory`](crate::OutOfMemory), with the task, if the queue had to grow and
            /// could not.
            #[inline(always)]
            pub fn try_push(&self, task: T) -> Result<(), crate::traits::OutOfMemory<T>> {
                let shared = &*self.shared;
                // SAFETY: this is the owner's handle, and both lines were made together.
                unsafe { shared.owner.push(task, |tail| self.reserve(tail)) }
            }

            #[cold]
            #[inline(never)]
            fn reserve(&self, tail: u64) -> Result<(), crate::ring::NoMemory> {
                // SAFETY: this is the owner's handle.
                unsafe { self.shared.reserve(tail) }
            }
        }

        impl<T, P: StoreLoad<M>, M: Memory> Drop for $owner<T, P, M> {
            fn drop(&mut self) {
                self.shared.owner.close();
            }
        }

        impl<T: Send, P: StoreLoad<M>, M: Memory> crate::traits::ExactlyOnce<T> for $owner<T, P, M> {}

        crate::handles::lengths!([T, P: StoreLoad<M>, M: Memory] $owner<T, P, M>);
        crate::handles::owner_methods!(
            [T: Send, P: StoreLoad<M>, M: Memory] [T: Send, P: StoreLoad<M>, M: Memory]
            $owner<T, P, M>, Thief<T, P, M> $(; $($of_owner)*)?
        );
        crate::handles::thief_methods!(
            [T: Send, P: StoreLoad<M>, M: Memory] Thief<T, P, M> $(; $($of_thief)*)?
        );
    };
}

pub(crate) use fenced;
