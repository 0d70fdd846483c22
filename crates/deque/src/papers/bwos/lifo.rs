//! The owner of the LIFO form: it takes the youngest task, thieves the oldest.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;
use std::sync::Arc;

use poach_memory::{Machine, Memory, Ordering, Word};

use super::block::Block;
use super::blocks::{Blocks, Thief};
use crate::ring::{CapacityError, NoMemory};
use crate::traits::OutOfMemory;

/// The owner of a block-based deque: it takes the youngest task, thieves the oldest.
///
/// Tasks in the owner's block, at most 64, are out of the thieves' reach until the block is full,
/// [`share`](BwosLifo::share) grants it or the owner goes.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](crate::Owner::push) | wait-free, amortised constant | no fence, no compare-and-swap |
/// | [`pop`](crate::Owner::pop) | wait-free | the same; at a block's border a read-modify-write |
/// | [`steal`](crate::Thief::steal) | lock-free | one compare-and-swap and one addition for a task, or for several of a block |
///
/// ```
/// use poach_deque::{BwosLifo, Steal};
///
/// let owner: BwosLifo<u32> = BwosLifo::new();
/// let thief = owner.thief();
/// (0..3).for_each(|task| owner.push(task));
/// assert_eq!(thief.steal(), Steal::Empty);
/// owner.share();
/// assert_eq!(thief.steal(), Steal::Success(0));
/// assert_eq!(owner.pop(), Some(2));
/// ```
pub struct BwosLifo<T: Send, M: Memory = Machine> {
    shared: Arc<Blocks<T, M, false>>,
    not_sync: PhantomData<Cell<()>>,
}

impl<T: Send, M: Memory> BwosLifo<T, M> {
    /// As [`with_capacity`](BwosLifo::with_capacity), with the first block at `position`: for tests
    /// of positions that wrap around.
    ///
    /// # Errors
    ///
    /// As [`with_capacity`](BwosLifo::with_capacity).
    #[doc(hidden)]
    pub fn starting_at(capacity: usize, position: u64) -> Result<Self, CapacityError> {
        let shared = Arc::new(Blocks::new(capacity, position)?);
        Ok(BwosLifo { shared, not_sync: PhantomData })
    }

    /// Lets thieves have what is in the owner's block. Nothing happens if that needs memory which
    /// cannot be had.
    pub fn share(&self) {
        if self.shared.head() < self.shared.tail() {
            let _ = self.advance();
        }
    }

    #[inline(always)]
    fn block(&self) -> &Block<T, M> {
        // SAFETY: this is the owner's handle, and the returned reference borrows it.
        unsafe { self.shared.filled() }
    }

    /// Makes a block, closed, the one that the owner works in.
    fn work_in(&self, block: &Block<T, M>, position: u64, head: u16, tail: u16) {
        let owner = &self.shared.owner;
        // SAFETY: this is the owner's handle.
        unsafe { owner.block.get() }.set(ptr::from_ref(block));
        // Relaxed: thieves read them for lengths, which are estimates.
        owner.last.store(position, Ordering::Relaxed);
        owner.head.store(head.into(), Ordering::Relaxed);
        owner.tail.store(tail.into(), Ordering::Relaxed);
    }

    /// Grants the owner's block, and goes on to the next.
    #[cold]
    #[inline(never)]
    fn advance(&self) -> Result<(), NoMemory> {
        let shared = &*self.shared;
        let position = shared.last();
        let next = position.wrapping_add(1);
        // SAFETY: this is the owner's handle.
        let entered = unsafe { shared.enter(next) }?;
        self.block().grant(position as u32, self.shared.head(), self.shared.tail());
        self.work_in(entered, next, 0, 0);
        Ok(())
    }

    /// Goes back to the block before, if thieves have left something there.
    #[cold]
    #[inline(never)]
    fn retreat(&self) -> bool {
        let shared = &*self.shared;
        let position = shared.last();
        if position.wrapping_sub(shared.start()) as i64 <= 0 {
            return false;
        }
        let before = position.wrapping_sub(1);
        let Some(block) = shared.at(before) else { return false };
        if block.open().is_exhausted() {
            return false;
        }
        let left = block.takeover();
        if left.next == left.end {
            // So it stays: thieves pass it.
            block.grant(before as u32, left.next, left.end);
            return false;
        }
        self.work_in(block, before, left.next, left.end);
        true
    }
}

impl<T: Send, M: Memory> BwosLifo<T, M> {
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
        // SAFETY: the block is the owner's, and above `tail` there is nothing.
        unsafe { self.block().write(tail, task) };
        // Relaxed: thieves do not take by it.
        self.shared.owner.tail.store(u64::from(tail) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the youngest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut tail = self.shared.tail();
        if tail == self.shared.head() {
            if !self.retreat() {
                return None;
            }
            tail = self.shared.tail();
        }
        tail -= 1;
        // Relaxed: as in `try_push`.
        self.shared.owner.tail.store(tail.into(), Ordering::Relaxed);
        // SAFETY: the block is the owner's from `head` on, and the task is taken once, since `tail`
        // is below it now.
        Some(unsafe { self.block().read(tail) })
    }
}

impl<T: Send, M: Memory> Drop for BwosLifo<T, M> {
    fn drop(&mut self) {
        let (head, tail) = (self.shared.head(), self.shared.tail());
        if head < tail {
            let position = self.shared.last();
            self.block().grant(position as u32, head, tail);
        }
    }
}

owner_of_blocks!(BwosLifo, false);
