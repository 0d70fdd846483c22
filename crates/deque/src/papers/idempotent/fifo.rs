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

use std::sync::Arc;

use core::cell::Cell;
use core::marker::PhantomData;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::{Repeatable, slots::Slots};
use crate::handles::{handles, methods};
use crate::ring::{CapacityError, DEFAULT_CAPACITY, MAX_CAPACITY};
use crate::traits::{OutOfMemory, Owner, Steal};

struct Shared<M: Memory> {
    tail: CachePadded<M::Word>,
    head: CachePadded<M::Word>,
    slots: Slots<M>,
}

impl<M: Memory> Shared<M> {
    fn len(&self) -> usize {
        // Relaxed: lengths are estimates.
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed);
        usize::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0)
    }
}

/// The owner of an idempotent FIFO queue. **A task may come out more than once.**
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | wait-free, amortised constant | no fence |
/// | [`pop`](Owner::pop) | wait-free | no fence, no compare-and-swap |
/// | [`steal`](Thief::steal) | lock-free | one compare-and-swap |
pub struct IdempotentFifo<T: Repeatable, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    /// The owner's end: one thread at a time.
    tasks: PhantomData<Cell<T>>,
}

/// A thief's handle to an [`IdempotentFifo`] queue. It may outlive the owner.
pub struct Thief<T, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    tasks: PhantomData<fn() -> T>,
}

impl<T: Repeatable> IdempotentFifo<T> {
    /// An empty queue with room for 64 tasks before it grows.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Repeatable, M: Memory> IdempotentFifo<T, M> {
    /// An empty queue with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, too large, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }

    /// As [`with_capacity`](IdempotentFifo::with_capacity), with the first task at `index`: for
    /// tests of indices that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](IdempotentFifo::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        let shared = Arc::new(Shared {
            tail: CachePadded::new(M::Word::new(index)),
            head: CachePadded::new(M::Word::new(index)),
            slots: Slots::new(capacity)?,
        });
        Ok(IdempotentFifo { shared, tasks: PhantomData })
    }
}

impl<T: Repeatable, M: Memory> Default for IdempotentFifo<T, M> {
    fn default() -> Self {
        match Self::with_capacity(DEFAULT_CAPACITY) {
            Ok(queue) => queue,
            Err(_) => crate::traits::out_of_memory::<T>(),
        }
    }
}

impl<T: Repeatable, M: Memory> Owner<T> for IdempotentFifo<T, M> {
    type Thief = Thief<T, M>;

    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
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

    /// Takes the oldest task.
    #[inline]
    fn pop(&self) -> Option<T> {
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

    fn thief(&self) -> Thief<T, M> {
        Thief { shared: Arc::clone(&self.shared), tasks: PhantomData }
    }

    fn len(&self) -> usize {
        self.shared.len()
    }
}

impl<T: Repeatable, M: Memory> crate::traits::Thief<T> for Thief<T, M> {
    #[inline]
    fn steal(&self) -> Steal<T> {
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

    fn len(&self) -> usize {
        self.shared.len()
    }
}

handles!([T: Repeatable, M: Memory] IdempotentFifo<T, M>; [T, M: Memory] Thief<T, M>; tasks: PhantomData);
methods!(T; [T: Repeatable, M: Memory] IdempotentFifo<T, M>; [T: Repeatable, M: Memory] Thief<T, M>);
