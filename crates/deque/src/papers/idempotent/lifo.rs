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

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::{Repeatable, anchor::Top, slots::Slots};
use crate::ring::{CapacityError, MAX_CAPACITY};
use crate::traits::{OutOfMemory, Steal};

struct Shared<M: Memory> {
    anchor: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    /// Its first task is at 0.
    fn new(capacity: usize, _: u64) -> Result<Self, CapacityError> {
        let anchor = CachePadded::new(M::Word::new(Top { tail: 0, tag: 0 }.pack()));
        Ok(Shared { anchor, slots: Slots::new(capacity)? })
    }

    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        Top::unpack(self.anchor.load(Ordering::Relaxed)).tail as usize
    }
}

repeating! {
    /// The owner of an idempotent LIFO queue. **A task may come out more than once.**
    ///
    IdempotentLifo, of
}

impl<T: Repeatable, M: Memory> IdempotentLifo<T, M> {
    /// Adds a task (`put` of Figure 1).
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
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

    /// Takes the youngest task (`take` of Figure 1).
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed: as in `try_push`, and the owner wrote the slots itself.
        let Top { tail, tag } = Top::unpack(shared.anchor.load(Ordering::Relaxed));
        let top = tail.checked_sub(1)?;
        let word = shared.slots.read(u64::from(top));
        // Release: who acquires it still sees the slots below.
        shared.anchor.store(Top { tail: top, tag }.pack(), Ordering::Release);
        Some(T::from_word(word))
    }
}

impl<T: Repeatable, M: Memory> Thief<T, M> {
    /// Takes the youngest task (`steal` of Figure 1).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
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
}
