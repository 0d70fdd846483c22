//! The idempotent double-ended queue: the owner takes the youngest task, thieves the oldest.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing*, Figure 3.
//!
//! # How it works, and why no task is lost
//!
//! One word, the anchor, holds the place of the oldest task (`head`), the number of tasks, and a tag. The
//! owner pushes and pops by plain stores of the anchor, which may undo what thieves did since its load:
//! those tasks then come out again. A thief reads the anchor, reads the slot at `head`, and swaps the
//! anchor for one with `head` stepped up and the number down.
//!
//! As in [`lifo`](super::lifo), a slot changes only by a push, which steps up the tag, so that a thief's
//! exchange fails if its slot was written under it.
//!
//! # How likely it is that a task is lost all the same
//!
//! The fields have 22, 22 and 20 bits, so a queue holds at most 2^21 tasks, and a tag comes back after 2^20 pushes. A
//! thief is deceived if between its load of the anchor and its exchange the owner makes an exact multiple of 2^20
//! pushes, and the place of the oldest task and the number of tasks are what they were: the thief then returns a task that
//! has come out before, and the task that stands there now is lost. An owner takes about 1.5 ms for so many pushes,
//! so the thief must lose its processor between the two accesses. When it runs again, one push in 2^20 has left its tag:
//! the chance is at most 2^-20 each time. A thief that spends a hundredth of its time between the two, and is
//! descheduled a hundred times a second, loses at most one task in 2^20 seconds, 12 days.
//!
//! Where that is too much, [`IdempotentFifo`](super::IdempotentFifo) has indices of 64 bits and no tag, and in
//! [`IdempotentLifo`](super::IdempotentLifo) the same thief loses one task in 136 years.
//!
//! The owner's release of the anchor pairs with a thief's acquire: the slots are seen.

use std::sync::Arc;

use core::cell::Cell;
use core::marker::PhantomData;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::anchor::{MOST, Span};
use super::{Repeatable, slots::Slots};
use crate::handles::{handles, methods};
use crate::ring::{CapacityError, DEFAULT_CAPACITY, NoMemory};
use crate::{OutOfMemory, Owner, Steal, Thief};

struct Shared<M: Memory> {
    anchor: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn len(&self) -> usize {
        // Relaxed: an estimate, out of date at once.
        Span::unpack(self.anchor.load(Ordering::Relaxed)).size as usize
    }
}

/// The owner of an idempotent double-ended queue. **A task may come out more than once**, and a thief that is descheduled in
/// the midst of a steal may lose one: see the module for how rarely.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | wait-free, amortised constant | no fence |
/// | [`pop`](Owner::pop) | wait-free | no fence, no compare-and-swap |
/// | [`steal`](Thief::steal) | lock-free | one compare-and-swap |
pub struct IdempotentDeque<T: Repeatable, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    /// The owner's end: one thread at a time.
    tasks: PhantomData<Cell<T>>,
}

/// A thief's handle to an [`IdempotentDeque`] queue. It may outlive the owner.
pub struct Stealer<T, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    tasks: PhantomData<fn() -> T>,
}

impl<T: Repeatable> IdempotentDeque<T> {
    /// An empty queue with room for 64 tasks before it grows.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Repeatable, M: Memory> IdempotentDeque<T, M> {
    /// An empty queue with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, too large, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }

    /// As [`with_capacity`](IdempotentDeque::with_capacity), with the first task at `index`: for tests
    /// of indices that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](IdempotentDeque::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        if capacity.is_power_of_two() && capacity > MOST {
            return Err(CapacityError::TooLarge(capacity));
        }
        let first = Span { head: index, size: 0, tag: 0 };
        let anchor = CachePadded::new(M::Word::new(first.pack()));
        let shared = Arc::new(Shared { anchor, slots: Slots::new(capacity)? });
        Ok(IdempotentDeque { shared, tasks: PhantomData })
    }
}

impl<T: Repeatable, M: Memory> Default for IdempotentDeque<T, M> {
    fn default() -> Self {
        match Self::with_capacity(DEFAULT_CAPACITY) {
            Ok(queue) => queue,
            Err(_) => crate::out_of_memory::<T>(),
        }
    }
}

impl<T: Repeatable, M: Memory> Owner<T> for IdempotentDeque<T, M> {
    type Thief = Stealer<T, M>;

    /// # Errors
    ///
    /// [`OutOfMemory`] also if the queue holds 2^21 tasks.
    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let shared = &*self.shared;
        // Relaxed: what thieves do to it meanwhile may be undone.
        let Span { head, size, tag } = Span::unpack(shared.anchor.load(Ordering::Relaxed));
        if size == shared.slots.capacity()
            && let Err(NoMemory) = shared.slots.grow(head, head + size, MOST)
        {
            return Err(OutOfMemory(task));
        }
        shared.slots.write(head + size, word);
        // Release: the slot is seen by who acquires this.
        let next = Span { head, size: size + 1, tag: tag + 1 };
        shared.anchor.store(next.pack(), Ordering::Release);
        Ok(())
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed: as in `try_push`, and the owner wrote the slots itself.
        let Span { head, size, tag } = Span::unpack(shared.anchor.load(Ordering::Relaxed));
        let size = size.checked_sub(1)?;
        let word = shared.slots.read(head + size);
        // Release: who acquires it still sees the other slots.
        shared.anchor.store(Span { head, size, tag }.pack(), Ordering::Release);
        Some(T::from_word(word))
    }

    fn thief(&self) -> Stealer<T, M> {
        Stealer { shared: Arc::clone(&self.shared), tasks: PhantomData }
    }

    fn len(&self) -> usize {
        self.shared.len()
    }
}

impl<T: Repeatable, M: Memory> Thief<T> for Stealer<T, M> {
    #[inline]
    fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        // Acquire: pairs with the owner's releases.
        let seen = shared.anchor.load(Ordering::Acquire);
        let Span { head, size, tag } = Span::unpack(seen);
        let Some(size) = size.checked_sub(1) else { return Steal::Empty };
        let word = shared.slots.read(head);
        let next = Span { head: head + 1, size, tag }.pack();
        // AcqRel: the next thief that acquires this sees what this one had acquired.
        match shared.anchor.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Steal::Success(T::from_word(word)),
            Err(_) => Steal::Retry,
        }
    }

    fn len(&self) -> usize {
        self.shared.len()
    }
}

handles!([T: Repeatable, M: Memory] IdempotentDeque<T, M>; [T, M: Memory] Stealer<T, M>; tasks: PhantomData);
methods!(T; [T: Repeatable, M: Memory] IdempotentDeque<T, M>; [T: Repeatable, M: Memory] Stealer<T, M>);
