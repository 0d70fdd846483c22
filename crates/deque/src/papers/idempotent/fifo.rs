//! The idempotent FIFO queue: owner and thieves take the oldest task.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing*, Figure 2.
//!
//! # How it works, and why no task is lost
//!
//! The owner pushes at `tail`. It pops by reading `head` and storing it one higher; a thief steps
//! `head` up by a compare-and-swap. The owner's store may put `head` back behind what thieves have
//! taken since its load: those tasks then come out again. It never puts `head` beyond the task that
//! it takes itself, and an exchange moves `head` over the one task that its thief has read.
//!
//! A thief's slot holds that task. The owner reuses a slot only when `head` is past its index.
//! `head` comes back by a pop alone, to one above the index that the pop took, with no push in
//! between. So wherever `head` points, the slot is whole. An exchange that succeeds finds `head`
//! where the thief read it; if it had been away and back meanwhile, the slot had not been reused.
//!
//! The owner's release of `tail` pairs with a thief's acquire: the slots below are seen.

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::{Repeatable, slots::Slots};
use crate::ring::{CapacityError, MAX_CAPACITY};
use crate::traits::{OutOfMemory, Steal};

struct Shared<M: Memory> {
    tail: CachePadded<M::Word>,
    head: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn new(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        Ok(Shared {
            tail: CachePadded::new(M::Word::new(index)),
            head: CachePadded::new(M::Word::new(index)),
            slots: Slots::new(capacity)?,
        })
    }

    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed);
        usize::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0)
    }
}

repeating! {
    /// The owner of an idempotent FIFO queue. **A task may come out more than once.**
    ///
    IdempotentFifo, pub starting_at
}

impl<T: Repeatable, M: Memory> IdempotentFifo<T, M> {
    /// Adds a task (`put` of Figure 2).
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let shared = &*self.shared;
        // Acquire: pairs with the thieves' exchanges; their reads of the slots below are over. (A
        // thief that reads one later fails its exchange.)
        let head = shared.head.load(Ordering::Acquire);
        // Relaxed: only the owner writes it.
        let tail = shared.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(head) == shared.slots.capacity()
            && shared.slots.grow(head, tail, MAX_CAPACITY).is_err()
        {
            return Err(OutOfMemory(task));
        }
        shared.slots.write(tail, word);
        // Release: the slot is seen by who acquires this.
        shared.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the oldest task (`take` of Figure 2).
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed, both: the owner wrote `tail` and the slots itself, and what thieves do to `head`
        // meanwhile may be undone.
        let head = shared.head.load(Ordering::Relaxed);
        if head == shared.tail.load(Ordering::Relaxed) {
            return None;
        }
        let word = shared.slots.read(head);
        // Release: who acquires it sees the tail that the owner had stored.
        shared.head.store(head.wrapping_add(1), Ordering::Release);
        Some(T::from_word(word))
    }
}

impl<T: Repeatable, M: Memory> Thief<T, M> {
    /// Takes the oldest task (`steal` of Figure 2).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        // Acquire: this thief must see a `tail` no older than who put `head` here.
        let head = shared.head.load(Ordering::Acquire);
        // Acquire: pairs with the owner's release.
        let tail = shared.tail.load(Ordering::Acquire);
        if tail.wrapping_sub(head) as i64 <= 0 {
            return Steal::Empty;
        }
        let word = shared.slots.read(head);
        let next = head.wrapping_add(1);
        // AcqRel: pairs with the acquires of `head` in `steal` and `try_push`.
        match shared.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Steal::Success(T::from_word(word)),
            Err(_) => Steal::Retry,
        }
    }
}
