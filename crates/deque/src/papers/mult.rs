//! Work stealing with multiplicity: each operation is reads and writes alone, and each is
//! wait-free. **A task may come out more than once**, at most once by each handle.
//!
//! Source: Castañeda and Piña, *Fully Read/Write Fence-Free Work-Stealing with Multiplicity* (DISC
//! 2021; arXiv 2008.04424), the algorithm WS-WMULT, and the authors' programs (`wsncmult` there).
//! `push` and `pop` are `put` and `take` in the paper, which calls each handle a process.
//!
//! # How it works
//!
//! `head` is the paper's *range max register*: a word that anybody writes, beside a number of its
//! own that each handle keeps and that only rises, `reached`. A handle reads the register as the
//! larger of the two, and writes it by storing both.
//!
//! | | push | pop | thief |
//! |---|---|---|---|
//! | 1 | | `reached` = the larger of `reached` and `head` | the same |
//! | 2 | no free slot: reads `head` as a pop does, and grows the array if that is not enough | at `tail`: empty | reads `tail`; at it: empty |
//! | 3 | writes the slot at `tail` | reads the slot at `reached` | reads the slot at `reached` |
//! | 4 | | | reads `tail` again: if the slot may have been reused, raises `reached` past it and gives up |
//! | 5 | stores `tail + 1` | raises `reached` by one, stores it as `head` | the same |
//!
//! `head` may go back, when a handle stores what others have passed since it read the word. Handles
//! that have been further do not follow it.
//!
//! # Why it is correct
//!
//! *Every index below a `reached`, or below a value of `head`, has been taken.* A handle raises its
//! number by one when it takes the task there, to what another has stored, or past slots that the
//! owner has reused or not copied to a larger array. The owner does neither with a slot whose index
//! is not below its own `reached`. (A thief that computes which these are by the capacity of an
//! array reads that array after `tail`: it is that of this `tail`, or a larger one, which gives a
//! lower index.)
//!
//! *No task is lost.* So the owner never overwrites a task that nobody has taken, and no handle
//! passes over such a task.
//!
//! *A handle takes a task at most once*, because its number rises with each task and never goes
//! back. It returns the task of that index: the array keeps one slot free, so the owner writes
//! index `i + capacity` over `i` only after its store of a `tail` of `i + capacity`. A thief that
//! has read the new word sees that in step 4 (the write of the slot releases, the read of the slot
//! acquires). The array is read after `tail`, so it is the one to which the task was pushed, or a
//! larger array, which knows the first index that it has a copy of.
//!
//! *Nobody says empty of a queue that never is.* A handle that acquires `head` sees the `tail` that
//! the handle which stored it had seen.
//!
//! The owner's release of `tail` pairs with a thief's acquire: what the task names is seen.
//!
//! # Departures
//!
//! - The paper's array is infinite, and the authors' programs never reuse a slot: they need a word
//!   of memory for each task ever pushed. Here slots are reused, which is what step 4 is for. The
//!   programs mark the two slots above the youngest task as empty; here `tail` alone says so.
//! - The paper asks for no order at all beyond that of dependent accesses, for tasks that are
//!   numbers. Tasks that name other memory need release and acquire, and so does the reuse of
//!   slots. On x86-64 both are plain instructions.
//! - WS-MULT, in which two operations take one task only if they overlap, is not here: its `head`
//!   is a max register, whose number of reads and writes grows with the logarithm of the largest
//!   index. Nor is B-WS-WMULT, whose thieves exchange a flag for each task: with that it costs what
//!   [`IdempotentFifo`](crate::IdempotentFifo) does.

use core::cell::Cell;
use core::marker::PhantomData;
use std::sync::Arc;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use super::idempotent::{Repeatable, constructors, slots::Extent, slots::Slots};
use crate::handles::{owner_methods, shown, thief_methods};
use crate::owned::Owned;
use crate::ring::{CapacityError, MAX_CAPACITY, NoMemory};
use crate::traits::{OutOfMemory, Steal};

/// What the owner writes, or has for itself.
struct OwnersLine<M: Memory> {
    /// Above the youngest task.
    tail: M::Word,
    reached: Owned<Cell<u64>>,
    /// The `tail` at which a push must look for free slots.
    limit: Owned<Cell<u64>>,
}

struct Shared<M: Memory> {
    owner: CachePadded<OwnersLine<M>>,
    head: CachePadded<M::Word>,
    slots: Slots<M>,
}

/// The larger of two indices, which may have wrapped around.
#[inline(always)]
fn larger(one: u64, other: u64) -> u64 {
    if (one.wrapping_sub(other) as i64) < 0 { other } else { one }
}

/// How many indices there are from `reached` to `tail`.
#[inline(always)]
fn between(reached: u64, tail: u64) -> usize {
    usize::try_from(tail.wrapping_sub(reached) as i64).unwrap_or(0)
}

impl<M: Memory> Shared<M> {
    fn new(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        crate::ring::check_capacity(capacity)?;
        // One slot stays free, and the number is a power of two.
        let slots = Slots::starting_at(capacity * 2, index).map_err(|error| match error {
            CapacityError::OutOfMemory(_) => CapacityError::OutOfMemory(capacity),
            _ => CapacityError::TooLarge(capacity),
        })?;
        let room = slots.capacity() - 1;
        let owner = OwnersLine {
            tail: M::Word::new(index),
            reached: Owned::new(Cell::new(index)),
            limit: Owned::new(Cell::new(index.wrapping_add(room))),
        };
        let head = CachePadded::new(M::Word::new(index));
        Ok(Shared { owner: CachePadded::new(owner), head, slots })
    }

    /// Step 1.
    #[inline(always)]
    fn read_head(&self, reached: u64) -> u64 {
        // Acquire: who stored it had seen a `tail` above it, or at it.
        larger(reached, self.head.load(Ordering::Acquire))
    }

    fn len(&self, reached: u64) -> usize {
        // Relaxed: lengths are estimates.
        let head = self.head.load(Ordering::Relaxed);
        between(larger(reached, head), self.owner.tail.load(Ordering::Relaxed))
    }
}

/// The owner of a queue with multiplicity: it and its thieves take the oldest task. **A task may
/// come out more than once**, at most once by each handle that one thread at a time uses.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](crate::Owner::push) | wait-free, amortised constant | no fence |
/// | [`pop`](crate::Owner::pop) | wait-free | no fence, no compare-and-swap |
/// | [`steal`](Thief::steal) | wait-free | no fence, no compare-and-swap |
///
/// ```
/// use poach_deque::{Multiplicity, Steal};
///
/// let owner: Multiplicity<u32> = Multiplicity::new();
/// let thief = owner.thief();
/// owner.push(1);
/// owner.push(2);
/// assert_eq!(thief.steal(), Steal::Success(1));
/// assert_eq!(owner.pop(), Some(2));
/// ```
pub struct Multiplicity<T: Repeatable, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    /// The owner's end: one thread at a time.
    not_sync: PhantomData<Cell<T>>,
}

/// A thief's handle to a [`Multiplicity`] queue. It may outlive the owner.
///
/// A clone begins where its original is: the two may take the same task. Of a handle that two
/// threads share, each of them may take a task more than once.
pub struct Thief<T, M: Memory = Machine> {
    shared: Arc<Shared<M>>,
    /// Relaxed, all accesses: it is one thread's at a time.
    reached: M::Word,
    tasks: PhantomData<fn() -> T>,
}

constructors!(Multiplicity, pub starting_at);

impl<T: Repeatable, M: Memory> Multiplicity<T, M> {
    /// Adds a task (`put`).
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        // Before anything of the queue is read: it is the client's code, which may use this queue.
        let word = task.into_word();
        let shared = &*self.shared;
        // Relaxed: only the owner writes it.
        let tail = shared.owner.tail.load(Ordering::Relaxed);
        if tail == self.limit().get() && self.find_room(tail).is_err() {
            return Err(OutOfMemory(task));
        }
        shared.slots.write(tail, word);
        // Release: the slot, and what the task names, are seen by who acquires this.
        shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Takes the oldest task (`take`).
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let shared = &*self.shared;
        let reached = shared.read_head(self.reached().get());
        // Relaxed: only the owner writes it.
        if reached == shared.owner.tail.load(Ordering::Relaxed) {
            self.reached().set(reached);
            return None;
        }
        let word = shared.slots.read(reached);
        let next = reached.wrapping_add(1);
        self.reached().set(next);
        // Release: who acquires it sees the tail that the owner had stored.
        shared.head.store(next, Ordering::Release);
        Some(T::from_word(word))
    }

    /// A handle for thieves, which begins where the owner is.
    pub fn thief(&self) -> Thief<T, M> {
        let reached = M::Word::new(self.reached().get());
        Thief { shared: Arc::clone(&self.shared), reached, tasks: PhantomData }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.len(self.reached().get())
    }

    #[inline(always)]
    fn reached(&self) -> &Cell<u64> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.owner.reached.get() }
    }

    #[inline(always)]
    fn limit(&self) -> &Cell<u64> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.owner.limit.get() }
    }

    /// Step 2 of a push.
    #[cold]
    #[inline(never)]
    fn find_room(&self, tail: u64) -> Result<(), NoMemory> {
        let Shared { slots, .. } = &*self.shared;
        let reached = self.shared.read_head(self.reached().get());
        self.reached().set(reached);
        if tail.wrapping_sub(reached) >= slots.capacity() - 1 {
            slots.grow(reached, tail, MAX_CAPACITY)?;
        }
        self.limit().set(reached.wrapping_add(slots.capacity() - 1));
        Ok(())
    }
}

impl<T: Repeatable, M: Memory> Thief<T, M> {
    /// Takes the oldest task that it has not passed (`steal`).
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let shared = &*self.shared;
        let reached = shared.read_head(self.reached.load(Ordering::Relaxed));
        // Acquire: pairs with the owner's release.
        let tail = shared.owner.tail.load(Ordering::Acquire);
        if tail.wrapping_sub(reached) as i64 <= 0 {
            self.reached.store(reached, Ordering::Relaxed);
            return Steal::Empty;
        }
        let (word, Extent { first, capacity }) = shared.slots.read_of(reached);
        // Relaxed: if the word is too new, its acquire has brought a `tail` that says so.
        let tail = shared.owner.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(reached) >= capacity || (reached.wrapping_sub(first) as i64) < 0 {
            self.pass(reached);
            return Steal::Retry;
        }
        let next = reached.wrapping_add(1);
        self.reached.store(next, Ordering::Relaxed);
        // Release: who acquires it sees the tail that this thief has seen.
        shared.head.store(next, Ordering::Release);
        Steal::Success(T::from_word(word))
    }

    /// The number of tasks that this thief sees: [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.len(self.reached.load(Ordering::Relaxed))
    }

    /// Raises `reached` past the indices whose slots have been reused, or have not been copied.
    #[cold]
    #[inline(never)]
    fn pass(&self, reached: u64) {
        // Acquire: the array that is read next is that of this `tail`, or a larger one, so that the
        // index below is at most the owner's.
        let tail = self.shared.owner.tail.load(Ordering::Acquire);
        let Extent { first, capacity } = self.shared.slots.extent();
        let reused = tail.wrapping_sub(capacity).wrapping_add(1);
        self.reached.store(larger(reached, larger(first, reused)), Ordering::Relaxed);
    }
}

impl<T, M: Memory> Clone for Thief<T, M> {
    fn clone(&self) -> Self {
        let reached = M::Word::new(self.reached.load(Ordering::Relaxed));
        Thief { shared: Arc::clone(&self.shared), reached, tasks: PhantomData }
    }
}

shown!([T: Repeatable, M: Memory] Multiplicity<T, M>, Thief<T, M>; len);
owner_methods!(
    [T: Repeatable, M: Memory] [T: Repeatable, M: Memory] Multiplicity<T, M>, Thief<T, M>
);
thief_methods!([T: Repeatable, M: Memory] Thief<T, M>);
