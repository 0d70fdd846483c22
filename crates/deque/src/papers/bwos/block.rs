//! A block: its words, and the steps of the owner and of thieves in it.

use core::cell::Cell as Private;
use core::mem::MaybeUninit;

use poach_memory::{CachePadded, Cell, Memory, Ordering, Word};

use crate::owned::Owned;
use crate::ring::drop_rest;

/// The most slots of a block: indices and ends have 16 bits.
pub(super) const LARGEST: usize = 1 << 15;

/// What thieves may take of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) round: u32,
    /// 0 if the block is closed.
    pub(super) end: u16,
    pub(super) next: u16,
}

const END: u64 = 0xFFFF << 16;

impl Open {
    #[inline(always)]
    pub(super) fn pack(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.end) << 16 | u64::from(self.next)
    }

    #[inline(always)]
    pub(super) fn unpack(word: u64) -> Self {
        Open { round: (word >> 32) as u32, end: (word >> 16) as u16, next: word as u16 }
    }

    /// Thieves have claimed all, and the block will not be granted again.
    #[inline(always)]
    pub(super) fn is_exhausted(self) -> bool {
        self.next == self.end && self.end != 0
    }

    #[inline(always)]
    pub(super) fn is_closed(self) -> bool {
        self.end == 0
    }
}

/// In one line.
struct ThievesLine<M: Memory> {
    open: M::Word,
    /// Tasks that thieves have claimed and read.
    stolen: M::Word,
}

/// The owner's, of which thieves read `committed`.
struct OwnersLine<M: Memory> {
    /// The round, and above the youngest task: of a FIFO queue.
    committed: M::Word,
    /// Indices below `next` that the owner took, and no thief.
    own: Owned<Private<u16>>,
}

pub(super) struct Block<T, M: Memory> {
    thieves: CachePadded<ThievesLine<M>>,
    owner: CachePadded<OwnersLine<M>>,
    slots: Box<[M::Cell<MaybeUninit<T>>]>,
}

/// What came of a thief's attempt on one block.
pub(super) enum Attempt<'a, T, M: Memory> {
    Claimed(Stolen<'a, T, M>),
    /// Nothing is left, for ever.
    Exhausted,
    /// The owner has it.
    Closed,
    /// There is no task yet.
    Empty,
    /// Another thief was faster, or the block has another round already.
    Lost,
}

impl<T, M: Memory> Block<T, M> {
    /// A block that [`reclaim`](Block::reclaim) may enter.
    pub(super) fn new(size: usize) -> Option<Self> {
        let thieves = ThievesLine { open: M::Word::new(0), stolen: M::Word::new(0) };
        let owner = OwnersLine { committed: M::Word::new(0), own: Owned::new(Private::new(0)) };
        let slots = M::cells(size)?;
        Some(Block { thieves: CachePadded::new(thieves), owner: CachePadded::new(owner), slots })
    }

    #[inline(always)]
    pub(super) fn open(&self) -> Open {
        // Relaxed: who acts on it makes sure by a read-modify-write, or it is final.
        Open::unpack(self.thieves.open.load(Ordering::Relaxed))
    }

    /// The number of tasks that have been put into the block in this round; 0 in another.
    #[inline(always)]
    pub(super) fn committed(&self, round: u32) -> u16 {
        // Acquire: pairs with the release in `commit`.
        let committed = self.owner.committed.load(Ordering::Acquire);
        if (committed >> 32) as u32 == round { committed as u16 } else { 0 }
    }

    /// The owner of a FIFO queue has put `tasks` tasks into the block.
    #[inline(always)]
    pub(super) fn commit(&self, round: u32, tasks: u16) {
        // Release: a thief that acquires it sees the tasks.
        self.owner.committed.store(u64::from(round) << 32 | u64::from(tasks), Ordering::Release);
    }

    /// Gives what stands from `next` to `end` to the thieves. The owner's step, on a block that is
    /// closed.
    #[inline(always)]
    pub(super) fn grant(&self, round: u32, next: u16, end: u16) {
        // Release: a thief whose exchange acquires it sees the tasks.
        self.thieves.open.store(Open { round, end, next }.pack(), Ordering::Release);
    }

    /// Takes back what thieves have not claimed. The owner's step, on a block that it has granted.
    #[inline(always)]
    pub(super) fn takeover(&self) -> Open {
        // Relaxed: the tasks are what this thread wrote, and thieves claim nothing of a closed
        // block.
        Open::unpack(self.thieves.open.fetch_and(!END, Ordering::Relaxed))
    }

    /// Enters the block anew, closed, if all that it had is claimed and the thieves have finished.
    /// The owner's step.
    ///
    /// # Safety
    ///
    /// The caller is the thread with the owner's handle.
    pub(super) unsafe fn reclaim(&self, round: u32) -> bool {
        let open = self.open();
        // SAFETY: by this function's contract.
        let own = unsafe { self.owner.own.get() };
        // Acquire: pairs with the thieves' releases; they no longer read the slots.
        let stolen = self.thieves.stolen.load(Ordering::Acquire);
        let known = open.is_closed() || open.is_exhausted();
        if !known || stolen != u64::from(open.next - own.get()) {
            return false;
        }
        own.set(0);
        // Relaxed, both: no thief adds or claims before the block is granted, which releases them.
        // Until then `open` is closed, or has an older round, in which nothing is left.
        self.thieves.stolen.store(0, Ordering::Relaxed);
        self.thieves.open.store(Open { round, end: 0, next: 0 }.pack(), Ordering::Relaxed);
        true
    }

    /// The owner has taken all from the `next` of its takeover up to `head`, and no thief has.
    ///
    /// # Safety
    ///
    /// The caller is the thread with the owner's handle, and has the block closed.
    pub(super) unsafe fn took_up_to(&self, head: u16) {
        // SAFETY: by this function's contract.
        let own = unsafe { self.owner.own.get() };
        own.set(own.get() + (head - self.open().next));
    }

    /// A thief's step: claims a task of the block at `round`, or up to `most`.
    #[inline(always)]
    pub(super) fn steal<const FIFO: bool>(&self, round: u32, most: usize) -> Attempt<'_, T, M> {
        let open = self.open();
        if open.round != round {
            let newer = open.round.wrapping_sub(round) as i32 > 0;
            return if newer { Attempt::Lost } else { Attempt::Empty };
        }
        if open.is_closed() {
            return Attempt::Closed;
        }
        if open.is_exhausted() {
            return Attempt::Exhausted;
        }
        let end = if FIFO { self.committed(round) } else { open.end };
        if end <= open.next {
            return Attempt::Empty;
        }
        let count = most.min(usize::from(end - open.next)) as u16;
        let claimed = Open { next: open.next + count, ..open };
        // Acquire: pairs with the release in `grant`.
        let exchange = self.thieves.open.compare_exchange(
            open.pack(),
            claimed.pack(),
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        match exchange {
            Ok(_) => {
                Attempt::Claimed(Stolen { block: self, next: open.next, end: claimed.next, count })
            }
            Err(_) => Attempt::Lost,
        }
    }

    /// # Safety
    ///
    /// The slot is the caller's and free.
    #[inline(always)]
    pub(super) unsafe fn write(&self, index: u16, task: T) {
        self.slots[usize::from(index)].with_mut(|slot| {
            // SAFETY: by this function's contract.
            unsafe { slot.write(MaybeUninit::new(task)) };
        });
    }

    /// # Safety
    ///
    /// A task stands in the slot that the caller alone may take, it sees the writing of it, and it
    /// takes it once.
    #[inline(always)]
    pub(super) unsafe fn read(&self, index: u16) -> T {
        self.slots[usize::from(index)].with(|slot| {
            // SAFETY: by this function's contract.
            unsafe { slot.cast::<T>().read() }
        })
    }
}

/// Tasks that a thief has claimed, in order. The drop drops those that are left, and finishes all.
pub(super) struct Stolen<'a, T, M: Memory> {
    block: &'a Block<T, M>,
    next: u16,
    end: u16,
    count: u16,
}

impl<T, M: Memory> Iterator for Stolen<'_, T, M> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        (self.next != self.end).then(|| {
            let index = self.next;
            self.next += 1;
            // SAFETY: the claim acquired the task, no other thread has claimed it, and `next` has
            // passed it.
            unsafe { self.block.read(index) }
        })
    }
}

impl<T, M: Memory> Drop for Stolen<'_, T, M> {
    #[inline(always)]
    fn drop(&mut self) {
        /// Finishes, even if a destructor panics.
        struct Finish<'a, W: Word>(&'a W, u16);
        impl<W: Word> Drop for Finish<'_, W> {
            #[inline(always)]
            fn drop(&mut self) {
                // Release: pairs with the acquire in `reclaim`; this thief has read the slots.
                self.0.fetch_add(u64::from(self.1), Ordering::Release);
            }
        }
        let _finish = Finish(&self.block.thieves.stolen, self.count);
        drop_rest(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn a_block_is_entered_anew_when_its_thieves_have_finished() {
        let block = Block::<Box<u32>, Machine>::new(4).unwrap();
        // SAFETY: this thread alone has it.
        assert!(unsafe { block.reclaim(7) });
        for index in 0..4 {
            // SAFETY: as above, and the slot is free.
            unsafe { block.write(index, Box::new(index.into())) };
        }
        block.grant(7, 0, 4);
        let Attempt::Claimed(mut stolen) = block.steal::<false>(7, 2) else { panic!("granted") };
        assert_eq!(stolen.next().as_deref(), Some(&0));
        let left = block.takeover();
        assert_eq!((left.next, left.end), (2, 4));
        assert!(matches!(block.steal::<false>(7, 1), Attempt::Closed));
        for index in 2..4 {
            // SAFETY: taken over.
            assert_eq!(*unsafe { block.read(index) }, u32::from(index));
        }
        // SAFETY: as above.
        assert!(!unsafe { block.reclaim(8) }, "a thief still reads");
        drop(stolen);
        // SAFETY: as above.
        assert!(unsafe { block.reclaim(8) });
        assert!(matches!(block.steal::<false>(7, 1), Attempt::Lost));
        assert!(matches!(block.steal::<false>(9, 1), Attempt::Empty));
    }
}
