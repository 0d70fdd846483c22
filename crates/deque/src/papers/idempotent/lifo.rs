//! The idempotent LIFO queue: owner and thieves take the youngest task.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing*, Figure 1.
//!
//! # How it works, and why no task is lost
//!
//! One word, the anchor, holds the number of tasks and a tag. The owner pushes by writing the slot
//! above and storing the anchor with both stepped up; it pops by storing the number one lower. A
//! thief reads the anchor, reads the top slot, and swaps the number down if the anchor is still
//! what it read.
//!
//! The owner's stores may undo a thief's step down that came between its load and its store: then
//! the task is there once more. They never step over a task that the owner has not taken itself. A
//! thief's exchange could step over one only if the slot had changed under it: a slot changes by a
//! push, which steps up the tag, so that the exchange fails. The tag has 32 bits. A thief is
//! deceived, and a task lost, if it sleeps in the midst of a steal through an exact multiple of
//! 2^32 pushes and wakes to the same number of tasks. That takes six seconds at least. The chance
//! is at most 2^-32 each time that it is descheduled there for so long.
//!
//! The owner's release of the anchor pairs with a thief's acquire: the slots below are seen.

use std::sync::Arc;

use core::cell::Cell;
use core::marker::PhantomData;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::{Repeatable, anchor::Top, slots::Slots};
use crate::handles::{handles, methods};
use crate::ring::{CapacityError, DEFAULT_CAPACITY, MAX_CAPACITY};
use crate::traits::{OutOfMemory, Owner, Steal};

struct Shared<M: Memory> {
    anchor: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        Top::unpack(self.anchor.load(Ordering::Relaxed)).tail as usize
    }
}

/// The owner of an idempotent LIFO queue. **A task may come out more than once.**
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | wait-free, amortised constant | no fence |
/// | [`pop`](Owner::pop) | wait-free | no fence, no compare-and-swap |
/// | [`steal`](Thief::steal) | lock-free | one compare-and-swap |
pub struct IdempotentLifo<T: Repeatable, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    /// The owner's end: one thread at a time.
    tasks: PhantomData<Cell<T>>,
}

/// A thief's handle to an [`IdempotentLifo`] queue. It may outlive the owner.
pub struct Thief<T, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    tasks: PhantomData<fn() -> T>,
}

impl<T: Repeatable> IdempotentLifo<T> {
    /// An empty queue with room for 64 tasks before it grows.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Repeatable, M: Memory> IdempotentLifo<T, M> {
    /// An empty queue with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, too large, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        let anchor = CachePadded::new(M::Word::new(Top { tail: 0, tag: 0 }.pack()));
        let shared = Arc::new(Shared { anchor, slots: Slots::new(capacity)? });
        Ok(IdempotentLifo { shared, tasks: PhantomData })
    }
}

impl<T: Repeatable, M: Memory> Default for IdempotentLifo<T, M> {
    fn default() -> Self {
        match Self::with_capacity(DEFAULT_CAPACITY) {
            Ok(queue) => queue,
            Err(_) => crate::traits::out_of_memory::<T>(),
        }
    }
}

impl<T: Repeatable, M: Memory> Owner<T> for IdempotentLifo<T, M> {
    type Thief = Thief<T, M>;

    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let shared = &*self.shared;
        // Relaxed: thieves only step the number down, and what they do to it may be undone.
        let Top { tail, tag } = Top::unpack(shared.anchor.load(Ordering::Relaxed));
        if u64::from(tail) == shared.slots.capacity()
            && shared.slots.grow(0, u64::from(tail), MAX_CAPACITY).is_err()
        {
            return Err(OutOfMemory(task));
        }
        shared.slots.write(u64::from(tail), word);
        // Release: the slot is seen by who acquires this.
        let next = Top { tail: tail + 1, tag: tag.wrapping_add(1) };
        shared.anchor.store(next.pack(), Ordering::Release);
        Ok(())
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed: as in `try_push`, and the owner wrote the slots itself.
        let Top { tail, tag } = Top::unpack(shared.anchor.load(Ordering::Relaxed));
        let top = tail.checked_sub(1)?;
        let word = shared.slots.read(u64::from(top));
        // Release: who acquires it still sees the slots below.
        shared.anchor.store(Top { tail: top, tag }.pack(), Ordering::Release);
        Some(T::from_word(word))
    }

    fn thief(&self) -> Thief<T, M> {
        Thief { shared: Arc::clone(&self.shared), tasks: PhantomData }
    }

    fn len(&self) -> usize {
        self.shared.len()
    }
}

impl<T: Repeatable, M: Memory> crate::traits::Thief<T> for Thief<T, M> {
    /// Takes the youngest task.
    #[inline]
    fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        // Acquire: pairs with the owner's releases.
        let seen = shared.anchor.load(Ordering::Acquire);
        let Top { tail, tag } = Top::unpack(seen);
        let Some(top) = tail.checked_sub(1) else { return Steal::Empty };
        let word = shared.slots.read(u64::from(top));
        let next = Top { tail: top, tag }.pack();
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

handles!([T: Repeatable, M: Memory] IdempotentLifo<T, M>; [T, M: Memory] Thief<T, M>; tasks: PhantomData);
methods!(T; [T: Repeatable, M: Memory] IdempotentLifo<T, M>; [T: Repeatable, M: Memory] Thief<T, M>);
