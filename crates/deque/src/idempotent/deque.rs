//! The idempotent double-ended queue: the owner takes the youngest task, thieves the oldest.
//!
//! Source: Michael, Vechev and Saraswat, *Idempotent Work Stealing*, Figure 3.
//!
//! # How it works
//!
//! One word, the anchor, holds the place of the oldest task (`head`) and a tag; another, `tail`, the place above the
//! youngest, which only the owner writes.
//!
//! | | push | pop | thief |
//! |---|---|---|---|
//! | 1 | reads the anchor `(head, tag)` | reads the anchor | reads the anchor `(head, tag)` |
//! | 2 | stores the anchor `(head, tag + 1)` | no task below `tail`: empty | reads `tail`: no task below it: empty |
//! | 3 | writes the slot at `tail` | reads the slot at `tail - 1` | reads the slot at `head` |
//! | 4 | stores `tail + 1` | stores `tail - 1` | compares and swaps the anchor for `(head + 1, tag)` |
//!
//! A push's step 2 may undo what thieves did since its step 1: those tasks then come out again. (In the paper the anchor holds
//! the number of tasks as well, and pops store it, too. A tag beside that has 20 bits, which wrap within 1.5 ms.)
//!
//! The owner may pop a task that thieves take at the same time, so that `head` comes to stand above `tail`. Such a queue is
//! empty, and a push first puts `head` back to `tail`, or its task would stand below `head`.
//!
//! # Why no task is lost
//!
//! *A thief takes what it has read.* Its exchange succeeds if the tag is still `g`, that is, if no push has come to its step 2 since
//! the thief's step 1. Only pushes write slots. Those with tags below `g` were over when the anchor with `g` was stored
//! (release; the thief acquires). So only the push with tag `g` itself may write a slot while the thief reads, and it matters
//! only if that slot is at `head`, so that `tail` was `head` when the push stored the anchor. A thief that then reads `tail`
//! sees that or a later value: `head`, and it finds nothing; or the push's own, and sees the slot (release and acquire of `tail`);
//! or one of after a further push, whose tag is another.
//!
//! *No push overwrites a task.* One overwrites the slot of an index that is at least a capacity below its `tail`, and `head`, as it
//! has read and stored it, is no more than a capacity below. What a later push reads is at or above that: thieves only
//! step `head` up, and it is put back to a `tail` only from above.
//!
//! # How likely it is that a task is lost all the same
//!
//! The tag has 41 bits, so it comes back after 2^41 pushes: an hour of nothing else, at 1.5 ns each. A thief that
//! lost its processor between its steps 1 and 4 for so long is deceived if it then runs again at the one push of 2^41
//! that has left its tag, with `head` where it was.
//!
//! # What it costs
//!
//! Instructions of a push and a pop by turns, in batches of 64, of a push and a steal, and of a pop of nothing: 56, 58, 59 and 12; with
//! the number of tasks in the anchor they were 65, 69, 65 and 10 (`examples/queue_instructions.rs`, callgrind, 2026-11-22).

use std::sync::Arc;

use core::cell::Cell;
use core::marker::PhantomData;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::anchor::{Front, MOST};
use super::{Repeatable, slots::Slots};
use crate::handles::{handles, methods};
use crate::ring::{CapacityError, DEFAULT_CAPACITY, NoMemory};
use crate::{OutOfMemory, Owner, Steal};

struct Shared<M: Memory> {
    anchor: CachePadded<M::Word>,
    /// Above the youngest task. Written by the owner alone.
    tail: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        let front = Front::unpack(self.anchor.load(Ordering::Relaxed));
        usize::try_from(front.tasks(self.tail.load(Ordering::Relaxed))).unwrap_or(0)
    }
}

/// The owner of an idempotent double-ended queue. **A task may come out more than once.** The module says what a thief would have
/// to sleep through for one to be lost.
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
pub struct Thief<T, M: Memory = Machine> {
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
        let anchor = CachePadded::new(M::Word::new(Front { head: index, tag: 0 }.pack()));
        let tail = CachePadded::new(M::Word::new(index));
        let shared = Arc::new(Shared { anchor, tail, slots: Slots::new(capacity)? });
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
    type Thief = Thief<T, M>;

    /// # Errors
    ///
    /// [`OutOfMemory`] also if the queue holds 2^21 tasks.
    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let shared = &*self.shared;
        // Relaxed: only the owner writes it.
        let tail = shared.tail.load(Ordering::Relaxed);
        // Relaxed: what thieves do to it meanwhile may be undone.
        let mut front = Front::unpack(shared.anchor.load(Ordering::Relaxed));
        let tasks = front.tasks(tail);
        if tasks < 0 {
            front.head = tail;
        } else if tasks as u64 == shared.slots.capacity()
            && let Err(NoMemory) = shared.slots.grow(tail.wrapping_sub(tasks as u64), tail, MOST)
        {
            return Err(OutOfMemory(task));
        }
        // Release: the slots of the pushes before are seen by who acquires it. And the stores below release, so that whoever
        // sees one of them sees this.
        shared.anchor.store(Front { tag: front.tag + 1, ..front }.pack(), Ordering::Release);
        shared.slots.write(tail, word);
        // Release: the slot is seen by who acquires this.
        shared.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        // Relaxed, both: as in `try_push`, and the owner wrote the slots itself.
        let tail = shared.tail.load(Ordering::Relaxed);
        let front = Front::unpack(shared.anchor.load(Ordering::Relaxed));
        if front.tasks(tail) <= 0 {
            return None;
        }
        let tail = tail.wrapping_sub(1);
        let word = shared.slots.read(tail);
        // Release: who acquires it still sees the other slots.
        shared.tail.store(tail, Ordering::Release);
        Some(T::from_word(word))
    }

    fn thief(&self) -> Thief<T, M> {
        Thief { shared: Arc::clone(&self.shared), tasks: PhantomData }
    }

    fn len(&self) -> usize {
        self.shared.len()
    }
}

impl<T: Repeatable, M: Memory> crate::Thief<T> for Thief<T, M> {
    #[inline]
    fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        // Acquire: pairs with the release of a push, which then shows the slots and the `tail` of those before.
        let seen = shared.anchor.load(Ordering::Acquire);
        let front = Front::unpack(seen);
        // Acquire: pairs with the release of a push, whose slot is then seen.
        if front.tasks(shared.tail.load(Ordering::Acquire)) <= 0 {
            return Steal::Empty;
        }
        let word = shared.slots.read(front.head);
        let next = Front { head: front.head + 1, ..front }.pack();
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

handles!([T: Repeatable, M: Memory] IdempotentDeque<T, M>; [T, M: Memory] Thief<T, M>; tasks: PhantomData);
methods!(T; [T: Repeatable, M: Memory] IdempotentDeque<T, M>; [T: Repeatable, M: Memory] Thief<T, M>);
