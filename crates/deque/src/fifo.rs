//! A queue in which the owner, too, takes the oldest task: no end of it is the owner's alone, and no
//! fence policy is needed.
//!
//! Source: the FIFO flavour of crossbeam-deque; on the ring of `ring`.
//!
//! # How it works, and why it is correct
//!
//! The owner pushes at `tail`, which only it moves, and only up. Everyone, the owner included, takes
//! by moving `head` up with a compare-and-swap, over one task or over several at once. A task is taken
//! by the one exchange that steps over its index; `tail` never comes down, so a thief's idea of `tail`
//! is at worst too low, and there is nothing that two loads and stores could miss.
//!
//! A thief's acquire of `tail` pairs with the owner's release: it sees the tasks below.
//!
//! # Emptiness
//!
//! A thief says `Empty` after a full fence and a load of `tail`, as [`len`](Thief::len) answers. So an owner that pushes,
//! executes a full fence and looks for sleepers, and a sleeper that announces itself, executes one and looks for tasks, do not
//! both see nothing.

use std::sync::Arc;

use core::cell::Cell;
use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::handles::handles;
use crate::ring::{CapacityError, Claimed, DEFAULT_CAPACITY, NoMemory, Rings, Room};
use crate::{ExactlyOnce, OutOfMemory, Owner, Steal, Thief};

pub(crate) struct Shared<T, M: Memory> {
    tail: CachePadded<M::Word>,
    thieves: CachePadded<ThievesLine<T, M>>,
}

/// What everyone who takes a task writes.
struct ThievesLine<T, M: Memory> {
    head: M::Word,
    rings: Rings<T, M>,
}

impl<T, M: Memory> Shared<T, M> {
    /// Claims as many of the oldest tasks as `want` says of their number; `Empty` if it wants none.
    #[inline]
    pub(crate) fn claim(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: `move_head` claimed these indices for this call alone, and a tail above them was acquired.
        self.move_head(want).map(|(head, count)| unsafe { self.thieves.rings.claimed(head, count) })
    }

    /// Takes the oldest task.
    #[inline]
    pub(crate) fn steal(&self) -> Steal<T> {
        // SAFETY: as in `claim`.
        self.move_head(|_| 1).map(|(head, _)| unsafe { self.thieves.rings.take(head) })
    }

    /// The first of the indices that were claimed, and how many.
    #[inline(always)]
    fn move_head(&self, want: impl FnOnce(u64) -> u64) -> Steal<(u64, u32)> {
        // Acquire: whoever moved `head` here had seen a tail at or above it; this one must not see an
        // older.
        let head = self.thieves.head.load(Ordering::Acquire);
        // Acquire: pairs with the release in `try_push`.
        let mut tail = self.tail.load(Ordering::Acquire);
        if tail.wrapping_sub(head) as i64 <= 0 {
            // See "Emptiness".
            M::full();
            // Acquire: as above.
            tail = self.tail.load(Ordering::Acquire);
        }
        let length = tail.wrapping_sub(head) as i64;
        if length <= 0 {
            return Steal::Empty;
        }
        let count = want(length as u64).min(length as u64) as u32;
        if count == 0 {
            return Steal::Empty;
        }
        let end = head.wrapping_add(u64::from(count));
        // Release: keeps the next thief's acquire of `head` good for what this one had seen.
        match self.thieves.head.compare_exchange(head, end, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Steal::Success((head, count)),
            Err(_) => Steal::Retry,
        }
    }

    pub(crate) fn len(&self) -> usize {
        // Acquire: as in `claim`.
        let head = self.thieves.head.load(Ordering::Acquire);
        // Pairs with a fence of who has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: as in `claim`.
        let tail = self.tail.load(Ordering::Acquire);
        usize::try_from(tail.wrapping_sub(head) as i64).unwrap_or(0)
    }
}

impl<T, M: Memory> Drop for Shared<T, M> {
    fn drop(&mut self) {
        // Relaxed, both: the last handle's going synchronised with all others'.
        let head = self.thieves.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed);
        // SAFETY: no handle is left, so nobody is between claim and mark, and all of `head..tail` are
        // tasks.
        unsafe { self.thieves.rings.drop_tasks(head, tail) };
    }
}

/// The owner of a first-in, first-out queue.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Owner::push) | lock-free, amortised constant | no fence |
/// | [`pop`](Owner::pop) | lock-free | one compare-and-swap |
/// | [`steal`](Thief::steal), [`steal_half`](Thief::steal_half) | lock-free: `Retry` means that another thread got a task | one compare-and-swap |
///
/// ```
/// use poach_deque::{Fifo, Steal};
///
/// let owner = Fifo::new();
/// let thief = owner.thief();
/// (0..8).for_each(|task| owner.push(task));
/// assert_eq!((thief.steal(), owner.pop()), (Steal::Success(0), Some(1)));
/// ```
pub struct Fifo<T, M: Memory = Machine> {
    tail: Cell<u64>,
    room: Room<T, M>,
    shared: Arc<Shared<T, M>>,
}

/// A thief's handle to a [`Fifo`] queue. It may outlive the owner.
pub struct Stealer<T, M: Memory = Machine> {
    shared: Arc<Shared<T, M>>,
}

impl<T> Fifo<T> {
    /// An empty queue with room for 64 tasks before it grows.
    pub fn new() -> Self {
        match Self::with_capacity(DEFAULT_CAPACITY) {
            Ok(queue) => queue,
            Err(_) => crate::out_of_memory::<T>(),
        }
    }

    /// An empty queue with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Self::starting_at(capacity, 0)
    }
}

impl<T, M: Memory> Fifo<T, M> {
    /// As [`with_capacity`](Fifo::with_capacity), with the first task at `index`: for tests of indices
    /// that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](Fifo::with_capacity).
    pub fn starting_at(capacity: usize, index: u64) -> Result<Self, CapacityError> {
        let (rings, room) = Rings::new(capacity, index)?;
        let shared = Arc::new(Shared {
            tail: CachePadded::new(M::Word::new(index)),
            thieves: CachePadded::new(ThievesLine { head: M::Word::new(index), rings }),
        });
        Ok(Fifo { tail: Cell::new(index), room, shared })
    }
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, M: Memory> Fifo<T, M> {
    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let tail = self.tail.get();
        if !self.room.has(tail)
            && let Err(NoMemory) = self.room.make(&self.shared.thieves.rings, tail)
        {
            return Err(OutOfMemory(task));
        }
        // SAFETY: there is room at `tail`, which is the owner's, and `shared` keeps the rings.
        unsafe { self.room.write(tail, task) };
        let next = tail.wrapping_add(1);
        // Release: pairs with the acquire of `tail` in `claim`, which then sees the task.
        self.shared.tail.store(next, Ordering::Release);
        self.tail.set(next);
        Ok(())
    }

    /// Adds a task if there is a free slot in the ring as it is.
    #[inline]
    pub(crate) fn push_within(&self, task: T) -> Result<(), T> {
        let tail = self.tail.get();
        if !self.room.has(tail) && !self.room.find(&self.shared.thieves.rings, tail) {
            return Err(task);
        }
        self.try_push(task).map_err(|OutOfMemory(task)| task)
    }

    /// Free slots in the ring as it is.
    pub(crate) fn free(&self) -> usize {
        self.room.free(&self.shared.thieves.rings, self.tail.get())
    }

    /// Slots in the ring now. It doubles when it is full and never shrinks.
    pub fn capacity(&self) -> usize {
        self.room.capacity()
    }

    /// Takes the oldest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let tail = self.tail.get();
        // Relaxed: the exchange validates it, and the owner wrote the tasks itself.
        let mut head = self.shared.thieves.head.load(Ordering::Relaxed);
        while head != tail {
            let next = head.wrapping_add(1);
            // Release: as in `claim`.
            match self.shared.thieves.head.compare_exchange(
                head,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    // SAFETY: the exchange gave `head` to this call alone.
                    let task = unsafe { self.room.read(head) };
                    // SAFETY: as above; its task has been read.
                    unsafe { self.room.finish(&self.shared.thieves.rings, head) };
                    return Some(task);
                }
                Err(now) => head = now,
            }
        }
        None
    }

    /// A handle for thieves.
    pub fn thief(&self) -> Stealer<T, M> {
        Stealer { shared: Arc::clone(&self.shared) }
    }

    /// Adds a task. Ends the program if the queue has to grow and cannot, as `Vec` does.
    #[inline]
    pub fn push(&self, task: T) {
        if self.try_push(task).is_err() {
            crate::out_of_memory::<T>();
        }
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        // Relaxed, both: the owner knows its own index, and a thief may change the other at once.
        let head = self.shared.thieves.head.load(Ordering::Relaxed);
        self.tail.get().wrapping_sub(head) as usize
    }

    /// Whether there is no task; see [`len`](Fifo::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send, M: Memory> Owner<T> for Fifo<T, M> {
    type Thief = Stealer<T, M>;

    #[inline]
    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        Fifo::try_push(self, task)
    }

    #[inline]
    fn pop(&self) -> Option<T> {
        Fifo::pop(self)
    }

    fn thief(&self) -> Stealer<T, M> {
        Fifo::thief(self)
    }

    fn len(&self) -> usize {
        Fifo::len(self)
    }
}

impl<T: Send, M: Memory> ExactlyOnce<T> for Fifo<T, M> {}

impl<T, M: Memory> Stealer<T, M> {
    pub(crate) fn shared(&self) -> &Shared<T, M> {
        &self.shared
    }

    /// Whether `owner` owns this queue.
    pub(crate) fn belongs_to(&self, owner: &Fifo<T, M>) -> bool {
        Arc::ptr_eq(&self.shared, &owner.shared)
    }
}

impl<T, M: Memory> Stealer<T, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.shared.steal()
    }

    /// Takes the older half by one compare-and-swap.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.shared.claim(|length| length.div_ceil(2)) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }

    /// The number of tasks that this thief sees.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether this thief sees no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send, M: Memory> Thief<T> for Stealer<T, M> {
    #[inline]
    fn steal(&self) -> Steal<T> {
        Stealer::steal(self)
    }

    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        Stealer::steal_half(self, into)
    }

    fn len(&self) -> usize {
        Stealer::len(self)
    }
}

handles!([T, M: Memory] Fifo<T, M>; [T, M: Memory] Stealer<T, M>);
