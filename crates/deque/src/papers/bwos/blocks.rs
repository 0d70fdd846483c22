//! The blocks of a queue by position, what thieves do with them, and the thieves' handle.

use core::cell::Cell as Private;
use core::fmt;
use core::ptr;
use std::sync::Arc;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Pointer, Word};

use super::BLOCK;
use super::block::{Attempt, Block, LARGEST, Stolen};
use crate::owned::Owned;
use crate::ring::{CapacityError, MAX_CAPACITY, NoMemory, check_capacity, drop_rest};
use crate::traits::{Owner, Steal};

/// Blocks whose tasks a length counts; all above are taken to be full.
const COUNTED: u64 = 32;

/// A place for each of a power of two of positions in a row.
struct Table<T, M: Memory> {
    blocks: Box<[M::Pointer<Block<T, M>>]>,
    /// The one before. Only the owner writes it, and only the last handle's drop reads it.
    older: *mut Table<T, M>,
}

/// Where the owner is. Written by the owner; thieves read the words for lengths.
pub(super) struct OwnersLine<T, M: Memory> {
    /// The index of the owner's oldest task in the block that it takes from.
    pub(super) head: M::Word,
    /// Above the youngest task, in the block that it fills.
    pub(super) tail: M::Word,
    /// The position of the block that it fills.
    pub(super) last: M::Word,
    /// The block that it fills.
    pub(super) block: Owned<Private<*const Block<T, M>>>,
    /// Blocks that had to be replaced, because thieves were at them.
    waiting: Owned<Private<Vec<*mut Block<T, M>>>>,
}

pub(super) struct Blocks<T, M: Memory, const FIFO: bool> {
    pub(super) owner: CachePadded<OwnersLine<T, M>>,
    /// All positions below have been emptied.
    start: CachePadded<M::Word>,
    table: M::Pointer<Table<T, M>>,
    size: u16,
}

// SAFETY: tasks move between threads as they may; the owner's part is used by the thread with the
// owner's handle alone.
unsafe impl<T: Send, M: Memory, const FIFO: bool> Sync for Blocks<T, M, FIFO> {}
// SAFETY: it owns the blocks and their tasks.
unsafe impl<T: Send, M: Memory, const FIFO: bool> Send for Blocks<T, M, FIFO> {}

impl<T, M: Memory, const FIFO: bool> Blocks<T, M, FIFO> {
    /// A queue whose first block is at `position`, entered and closed.
    pub(super) fn new(capacity: usize, position: u64) -> Result<Self, CapacityError> {
        check_capacity(capacity)?;
        let size = capacity.min(BLOCK);
        Self::with_blocks((capacity / size).max(2), size, position)
            .map_err(|NoMemory| CapacityError::OutOfMemory(capacity))
    }

    pub(super) fn with_blocks(blocks: usize, size: usize, position: u64) -> Result<Self, NoMemory> {
        debug_assert!(blocks.is_power_of_two() && (1..=LARGEST).contains(&size));
        let table = new_table::<T, M>(blocks, ptr::null_mut())?;
        let owner = OwnersLine {
            head: M::Word::new(0),
            tail: M::Word::new(0),
            last: M::Word::new(position),
            block: Owned::new(Private::new(ptr::null())),
            waiting: Owned::new(Private::new(Vec::new())),
        };
        let blocks = Blocks {
            owner: CachePadded::new(owner),
            start: CachePadded::new(M::Word::new(position)),
            table: M::Pointer::new(table),
            size: size as u16,
        };
        // SAFETY: no other thread has the queue yet.
        let first = ptr::from_ref(unsafe { blocks.enter(position) }?);
        // SAFETY: no other thread has the queue yet.
        unsafe { blocks.owner.block.get() }.set(first);
        Ok(blocks)
    }

    #[inline(always)]
    pub(super) fn size(&self) -> u16 {
        self.size
    }

    /// The index of the owner's oldest task in the block that it takes from.
    #[inline(always)]
    pub(super) fn head(&self) -> u16 {
        // Relaxed, here and below: only the owner writes it, and others use it for lengths.
        self.owner.head.load(Ordering::Relaxed) as u16
    }

    /// Above the youngest task, in the block that the owner fills.
    #[inline(always)]
    pub(super) fn tail(&self) -> u16 {
        self.owner.tail.load(Ordering::Relaxed) as u16
    }

    /// The position of the block that the owner fills.
    #[inline(always)]
    pub(super) fn last(&self) -> u64 {
        self.owner.last.load(Ordering::Relaxed)
    }

    /// The block that the owner fills.
    ///
    /// # Safety
    ///
    /// The caller is the thread with the owner's handle.
    #[inline(always)]
    pub(super) unsafe fn filled(&self) -> &Block<T, M> {
        // SAFETY: by this function's contract.
        let block = unsafe { self.owner.block.get() };
        // SAFETY: a block lives as long as its `Blocks`.
        unsafe { &*block.get() }
    }

    #[inline(always)]
    fn table(&self) -> &Table<T, M> {
        // Acquire: pairs with the release in `grow`.
        let table = self.table.load(Ordering::Acquire);
        // SAFETY: tables live as long as `self`.
        unsafe { &*table }
    }

    /// The block at a place, which another position's may have been, or will be.
    #[inline(always)]
    pub(super) fn at(&self, position: u64) -> Option<&Block<T, M>> {
        let blocks = &self.table().blocks;
        // Acquire: pairs with the release in `enter`.
        let block = blocks[position as usize & (blocks.len() - 1)].load(Ordering::Acquire);
        // SAFETY: null, or a block that lives as long as `self`.
        unsafe { block.as_ref() }
    }

    /// The position up to which all have been emptied.
    #[inline(always)]
    pub(super) fn start(&self) -> u64 {
        // Relaxed: what it says stays true, and `reclaim` makes sure of the thieves.
        self.start.load(Ordering::Relaxed)
    }

    /// Whether there is no place in the table for the block at `position`.
    pub(super) fn is_full(&self, position: u64) -> bool {
        position.wrapping_sub(self.start()) >= self.table().blocks.len() as u64
    }

    /// Steps `start` up to `position`, below which all have been emptied.
    pub(super) fn pass(&self, position: u64) {
        let mut start = self.start();
        while position.wrapping_sub(start) as i64 > 0 {
            // Relaxed, both: as in `start`.
            let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            match self.start.compare_exchange(start, position, success, failure) {
                Ok(_) => return,
                Err(now) => start = now,
            }
        }
    }

    /// The block for the owner to fill at `position`, the one after its last, or its first: closed
    /// and without a task.
    ///
    /// # Safety
    ///
    /// The caller is the thread with the owner's handle.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn enter(&self, position: u64) -> Result<&Block<T, M>, NoMemory> {
        let round = position as u32;
        let start = self.start();
        while position.wrapping_sub(start) >= self.table().blocks.len() as u64 {
            self.grow(start, position)?;
        }
        let blocks = &self.table().blocks;
        let place = &blocks[position as usize & (blocks.len() - 1)];
        // Relaxed: only the owner writes it.
        let there = place.load(Ordering::Relaxed);
        // SAFETY: null, or a block that lives as long as `self`.
        if let Some(block) = unsafe { there.as_ref() } {
            // SAFETY: by this function's contract.
            if unsafe { block.reclaim(round) } {
                return Ok(block);
            }
        }
        // SAFETY: by this function's contract.
        let waiting = unsafe { self.owner.waiting.get() };
        let mut list = waiting.take();
        let reserved = list.try_reserve(1).map_err(|_| NoMemory);
        let usable = list.iter().position(|&block| {
            // SAFETY: blocks live as long as `self`.
            let block = unsafe { &*block };
            // SAFETY: by this function's contract.
            unsafe { block.reclaim(round) }
        });
        let found = match usable {
            Some(index) => Ok(list.swap_remove(index)),
            None => reserved.and_then(|()| allocate(Block::new(self.size.into()).ok_or(NoMemory)?)),
        };
        if found.is_ok() && !there.is_null() {
            list.push(there);
        }
        waiting.set(list);
        let found = found?;
        // SAFETY: just allocated, or from the list, whose blocks live as long as `self`.
        let block = unsafe { &*found };
        if usable.is_none() {
            // SAFETY: by this function's contract.
            let entered = unsafe { block.reclaim(round) };
            debug_assert!(entered, "a new block has no thieves");
        }
        // Release: pairs with the acquire in `at`.
        place.store(found, Ordering::Release);
        Ok(block)
    }

    /// Doubles the table. The owner's.
    fn grow(&self, start: u64, end: u64) -> Result<(), NoMemory> {
        let old = self.table();
        let doubled = old.blocks.len() * 2;
        if doubled > MAX_CAPACITY / usize::from(self.size) {
            return Err(NoMemory);
        }
        // Relaxed: only the owner writes it.
        let table = new_table(doubled, self.table.load(Ordering::Relaxed))?;
        // SAFETY: just allocated, and not yet known to anyone.
        let new = unsafe { &*table };
        let mut position = start;
        while position != end {
            let block =
                old.blocks[position as usize & (old.blocks.len() - 1)].load(Ordering::Relaxed);
            // Relaxed, both: the owner wrote the old ones, and the release below publishes the new
            // ones.
            new.blocks[position as usize & (doubled - 1)].store(block, Ordering::Relaxed);
            position = position.wrapping_add(1);
        }
        // Release: pairs with the acquire in `table`.
        self.table.store(table, Ordering::Release);
        Ok(())
    }

    /// Claims up to `most` of the oldest tasks.
    #[inline(always)]
    fn claim(&self, most: usize) -> Steal<Stolen<'_, T, M>> {
        // The second: whether all blocks below are exhausted.
        let (mut position, mut passes) = (self.start(), true);
        loop {
            let Some(block) = self.at(position) else { return Steal::Empty };
            match block.steal::<FIFO>(position as u32, most) {
                Attempt::Claimed(stolen) => return Steal::Success(stolen),
                Attempt::Lost => return Steal::Retry,
                Attempt::Exhausted if passes => self.pass(position.wrapping_add(1)),
                Attempt::Exhausted => {}
                // The owner's: it takes from there, and thieves behind it.
                Attempt::Closed if FIFO => passes = false,
                Attempt::Closed | Attempt::Empty => return Steal::Empty,
            }
            position = position.wrapping_add(1);
        }
    }

    /// The tasks of a block that thieves may take, and the owner's part of a closed block.
    fn tasks(&self, position: u64, last: u64) -> usize {
        let Some(block) = self.at(position) else { return 0 };
        let open = block.open();
        let round = position as u32;
        if open.round != round {
            return 0;
        }
        let (from, to) = match (FIFO, open.is_closed()) {
            (true, closed) => {
                (if closed { self.head() } else { open.next }, block.committed(round))
            }
            (false, true) if position == last => (self.head(), self.tail()),
            (false, true) => return 0,
            (false, false) => (open.next, open.end),
        };
        usize::from(to.saturating_sub(from))
    }

    pub(super) fn len(&self) -> usize {
        let (start, last) = (self.start(), self.last());
        let blocks = last.wrapping_sub(start).wrapping_add(1);
        // The thieves may have passed all.
        if blocks as i64 <= 0 {
            return 0;
        }
        let counted = (0..blocks.min(COUNTED)).map(|n| self.tasks(start.wrapping_add(n), last));
        let counted: usize = counted.sum();
        if blocks <= COUNTED {
            return counted;
        }
        let full = (blocks - COUNTED - 1) as usize * usize::from(self.size);
        counted + full + self.tasks(last, last)
    }
}

fn allocate<T>(value: T) -> Result<*mut T, NoMemory> {
    // A boxed slice of one, which has the layout of a box: `Box::new` would end the program.
    let mut one = Vec::new();
    one.try_reserve_exact(1).map_err(|_| NoMemory)?;
    one.push(value);
    Ok(Box::into_raw(one.into_boxed_slice()).cast())
}

fn new_table<T, M: Memory>(
    length: usize,
    older: *mut Table<T, M>,
) -> Result<*mut Table<T, M>, NoMemory> {
    let mut blocks = Vec::new();
    blocks.try_reserve_exact(length).map_err(|_| NoMemory)?;
    blocks.extend((0..length).map(|_| M::Pointer::new(ptr::null_mut())));
    allocate(Table { blocks: blocks.into_boxed_slice(), older })
}

/// The tasks that are left when the last handle goes.
struct Left<'a, T, M: Memory> {
    block: &'a Block<T, M>,
    next: u16,
    end: u16,
}

impl<T, M: Memory> Iterator for Left<'_, T, M> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        (self.next < self.end).then(|| {
            let index = self.next;
            self.next += 1;
            // SAFETY: the owner has granted it, and no thief has claimed it or is left to do so.
            unsafe { self.block.read(index) }
        })
    }
}

impl<T, M: Memory, const FIFO: bool> Drop for Blocks<T, M, FIFO> {
    fn drop(&mut self) {
        /// Frees, even if a destructor panics.
        struct Free<T, M: Memory>(*mut Table<T, M>, Vec<*mut Block<T, M>>);
        impl<T, M: Memory> Drop for Free<T, M> {
            fn drop(&mut self) {
                let mut table = self.0;
                let mut blocks = core::mem::take(&mut self.1);
                while !table.is_null() {
                    // SAFETY: `new_table` made it, and nobody has freed it or uses it any more.
                    let owned = unsafe { Box::from_raw(table) };
                    if ptr::eq(table, self.0) {
                        // Relaxed: no other handle is left.
                        let there = owned.blocks.iter().map(|block| block.load(Ordering::Relaxed));
                        blocks.extend(there.filter(|block| !block.is_null()));
                    }
                    table = owned.older;
                }
                for block in blocks {
                    // SAFETY: `allocate` made it, and it is in the newest table or in the list,
                    // once.
                    drop(unsafe { Box::from_raw(block) });
                }
            }
        }
        // SAFETY: no other handle is left.
        let waiting = unsafe { self.owner.waiting.get() }.take();
        // Relaxed: no other handle is left.
        let _free = Free(self.table.load(Ordering::Relaxed), waiting);
        let (start, last) = (self.start(), self.last());
        let blocks = last.wrapping_sub(start).wrapping_add(1);
        let positions = if blocks as i64 <= 0 { 0 } else { blocks };
        let mut left = (0..positions).flat_map(|n| {
            let position = start.wrapping_add(n);
            self.at(position).into_iter().flat_map(move |block| {
                let (open, round) = (block.open(), position as u32);
                let end = match FIFO {
                    _ if open.round != round || open.is_closed() => 0,
                    true => block.committed(round),
                    false => open.end,
                };
                Left { block, next: open.next, end }
            })
        });
        drop_rest(&mut left);
    }
}

/// A thief's handle to a [`BwosLifo`](super::BwosLifo) or [`BwosFifo`](super::BwosFifo) queue. It
/// may outlive the owner.
pub struct Thief<T, const FIFO: bool, M: Memory = Machine> {
    shared: Arc<Blocks<T, M, FIFO>>,
}

impl<T, const FIFO: bool, M: Memory> Thief<T, FIFO, M> {
    pub(super) fn new(shared: &Arc<Blocks<T, M, FIFO>>) -> Self {
        Thief { shared: Arc::clone(shared) }
    }
}

impl<T: Send, const FIFO: bool, M: Memory> Thief<T, FIFO, M> {
    /// Takes a task of the oldest block that has any for thieves.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        match self.shared.claim(1).map(|mut stolen| stolen.next()) {
            Steal::Success(Some(task)) => Steal::Success(task),
            Steal::Success(None) | Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
            Steal::Abort => Steal::Abort,
        }
    }

    /// Half of [`len`](crate::Thief::len), or what thieves can reach if that is less, by one
    /// exchange for the tasks of each block.
    fn half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        let half = self.shared.len().div_ceil(2).max(1);
        let mut stolen = match self.shared.claim(half) {
            Steal::Success(stolen) => stolen,
            Steal::Retry => return Steal::Retry,
            Steal::Empty | Steal::Abort => return Steal::Empty,
        };
        let Some(first) = stolen.next() else { return Steal::Empty };
        let mut moved = 1;
        loop {
            for task in &mut stolen {
                into.push(task);
                moved += 1;
            }
            drop(stolen);
            if moved >= half {
                break;
            }
            let Steal::Success(more) = self.shared.claim(half - moved) else { break };
            stolen = more;
        }
        Steal::Success(first)
    }

    /// The number of tasks that this thief sees: [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.len()
    }
}

crate::handles::thief_methods!(
    [T: Send, const FIFO: bool, M: Memory] Thief<T, FIFO, M>;
    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        self.half(into)
    }
);

impl<T, const FIFO: bool, M: Memory> Clone for Thief<T, FIFO, M> {
    fn clone(&self) -> Self {
        Thief::new(&self.shared)
    }
}

impl<T, const FIFO: bool, M: Memory> fmt::Debug for Thief<T, FIFO, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thief").field("len", &self.shared.len()).finish_non_exhaustive()
    }
}
