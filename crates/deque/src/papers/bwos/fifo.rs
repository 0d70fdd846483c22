//! The owner of the FIFO form: it takes the oldest task, and thieves the oldest that is not in the
//! owner's block.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;
use std::sync::Arc;

use poach_memory::{Machine, Memory, Ordering, Word};

use super::block::Block;
use super::blocks::{Blocks, Thief};
use crate::ring::{CapacityError, NoMemory};
use crate::traits::OutOfMemory;

/// The owner of a block-based queue: it takes the oldest task, and thieves the oldest that is not
/// in the owner's block.
///
/// The block that the owner takes from, of at most 64 tasks, is out of the thieves' reach until it
/// is empty, [`share`](BwosFifo::share) grants it or the owner goes. So tasks that thieves take may
/// be younger than those that the owner takes later.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](crate::Owner::push) | wait-free, amortised constant | no fence, no compare-and-swap |
/// | [`pop`](crate::Owner::pop) | lock-free | the same; at a block's border two read-modify-writes |
/// | [`steal`](crate::Thief::steal) | lock-free | one compare-and-swap and one addition for a task, or for several of a block; loads of each emptied block above a closed one |
///
/// ```
/// use poach_deque::{BwosFifo, Steal};
///
/// let owner: BwosFifo<u32> = BwosFifo::new();
/// let thief = owner.thief();
/// (0..4).for_each(|task| owner.push(task));
/// assert_eq!(thief.steal(), Steal::Success(0));
/// assert_eq!(owner.pop(), Some(1));
/// assert_eq!(thief.steal(), Steal::Empty); // the block is the owner's
/// owner.share();
/// assert_eq!(thief.steal(), Steal::Success(2));
/// ```
pub struct BwosFifo<T: Send, M: Memory = Machine> {
    shared: Arc<Blocks<T, M, true>>,
    /// The block that the owner takes from: its position, and where it is once the owner has taken
    /// it over.
    position: Cell<u64>,
    from: Cell<*const Block<T, M>>,
    is_ours: Cell<bool>,
    /// Above the youngest task that is known to be there for the owner. The head, while the block
    /// is not the owner's.
    limit: Cell<u16>,
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: it points into `shared`, which may be sent as its tasks may.
unsafe impl<T: Send, M: Memory> Send for BwosFifo<T, M> {}

impl<T: Send, M: Memory> BwosFifo<T, M> {
    /// As [`with_capacity`](BwosFifo::with_capacity), with the first block at `position`: for tests
    /// of positions that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](BwosFifo::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, position: u64) -> Result<Self, CapacityError> {
        let shared = Arc::new(Blocks::<T, M, true>::new(capacity, position)?);
        let queue = BwosFifo {
            shared,
            position: Cell::new(position),
            from: Cell::new(ptr::null()),
            is_ours: Cell::new(false),
            limit: Cell::new(0),
            not_sync: PhantomData,
        };
        queue.fill(queue.filled(), position);
        Ok(queue)
    }

    /// Lets thieves have what is in the owner's block.
    pub fn share(&self) {
        if self.is_ours.get() {
            self.give_back();
        }
    }

    /// The block that the owner fills.
    #[inline(always)]
    fn filled(&self) -> &Block<T, M> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.filled() }
    }

    /// Makes a block, closed and empty, the one that the owner fills, and thieves take from.
    fn fill(&self, block: &Block<T, M>, position: u64) {
        let owner = &self.shared.owner;
        // SAFETY: this is the owner's handle.
        unsafe { owner.block.get() }.set(ptr::from_ref(block));
        block.commit(position as u32, 0);
        block.grant(position as u32, 0, self.shared.size());
        // Relaxed: thieves read them for lengths, which are estimates.
        owner.last.store(position, Ordering::Relaxed);
        owner.tail.store(0, Ordering::Relaxed);
    }

    /// Goes on to the next block.
    #[cold]
    #[inline(never)]
    fn advance(&self) -> Result<(), NoMemory> {
        let next = self.shared.last().wrapping_add(1);
        if self.is_ours.get() && self.shared.is_full(next) {
            // An owner that does not pop does not hold up the thieves, who pass no block that is
            // closed.
            self.give_back();
        }
        // SAFETY: this is the owner's handle.
        let entered = unsafe { self.shared.enter(next) }?;
        self.fill(entered, next);
        Ok(())
    }

    /// Grants the block that the owner takes from.
    fn give_back(&self) {
        let head = self.shared.head();
        // SAFETY: the owner has taken this block over, and blocks live as long as `shared`.
        let block = unsafe { &*self.from.get() };
        // SAFETY: this is the owner's handle, and the block is closed.
        unsafe { block.took_up_to(head) };
        block.grant(self.position.get() as u32, head, self.shared.size());
        self.is_ours.set(false);
        self.limit.set(head);
    }

    /// Whether there is a task at `head` for the owner, which may have gone on to another block for
    /// it.
    #[cold]
    #[inline(never)]
    fn find(&self) -> bool {
        let shared = &*self.shared;
        let (last, size) = (self.shared.last(), shared.size());
        loop {
            let mut position = self.position.get();
            let there = |position| if position == last { self.shared.tail() } else { size };
            if self.is_ours.get() {
                let there = there(position);
                if self.shared.head() < there {
                    self.limit.set(there);
                    return true;
                }
                if position == last {
                    self.give_back();
                    return false;
                }
                self.is_ours.set(false);
                position = position.wrapping_add(1);
                shared.pass(position);
            }
            let passed = shared.start();
            if passed.wrapping_sub(position) as i64 > 0 {
                position = passed;
            }
            self.position.set(position);
            if (last.wrapping_sub(position) as i64) < 0 {
                return false;
            }
            let Some(block) = shared.at(position) else { return false };
            let there = there(position);
            if block.open().next != there {
                let left = block.takeover();
                if left.next != there {
                    self.from.set(ptr::from_ref(block));
                    self.is_ours.set(true);
                    // Relaxed: thieves read it for lengths.
                    shared.owner.head.store(left.next.into(), Ordering::Relaxed);
                    self.limit.set(there);
                    return true;
                }
                block.grant(position as u32, left.next, size);
            }
            if position == last {
                return false;
            }
            // Thieves have taken all.
            shared.pass(position.wrapping_add(1));
        }
    }
}

impl<T: Send, M: Memory> BwosFifo<T, M> {
    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let mut tail = self.shared.tail();
        if tail == self.shared.size() {
            if let Err(NoMemory) = self.advance() {
                return Err(OutOfMemory(task));
            }
            tail = 0;
        }
        let block = self.filled();
        // SAFETY: above `tail` there is nothing, and thieves read what is committed.
        unsafe { block.write(tail, task) };
        block.commit(self.shared.last() as u32, tail + 1);
        // Relaxed: thieves do not take by it.
        self.shared.owner.tail.store(u64::from(tail) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the oldest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut head = self.shared.head();
        if head == self.limit.get() {
            if !self.find() {
                return None;
            }
            head = self.shared.head();
        }
        // Relaxed: thieves do not take by it.
        self.shared.owner.head.store(u64::from(head) + 1, Ordering::Relaxed);
        // SAFETY: the owner has taken the block over, and blocks live as long as `shared`.
        let block = unsafe { &*self.from.get() };
        // SAFETY: the block is the owner's from `head` on, and the task is taken once, since `head`
        // is above it now.
        Some(unsafe { block.read(head) })
    }
}

impl<T: Send, M: Memory> Drop for BwosFifo<T, M> {
    fn drop(&mut self) {
        self.share();
    }
}

owner_of_blocks!(BwosFifo, true);
