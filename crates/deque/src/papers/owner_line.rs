//! What Chase-Lev, THE and THEP have in common: the line that their owner writes, its pushes, and
//! its end.
//!
//! The three differ in how a pop and a steal compete for the task at `head`; each file has that.
//! What a push does is the same in all: it writes the task to the slot at `tail`, then stores
//! `tail + 1`.
//!
//! | store | load | what the reader then has |
//! |---|---|---|
//! | `push`: `tail`, release | a thief's load of `tail`, acquire | the task in the slot below `tail` |
//! | [`OwnerLine::close`]: `closed`, release | a thief's load of `closed`, acquire | the last `tail` of the owner |

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use crate::owned::Owned;
use crate::ring::{Buffer, NoMemory};
use crate::traits::OutOfMemory;

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
