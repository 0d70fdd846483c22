//! The thieves' side: the right column of the table in the module comment.

use poach_memory::{Memory, Ordering, Pointer, Word};

use super::{Batch, Block, Chain, Injector, Place, skipped, written};
use crate::{Owner, Steal};

/// A thief that keeps its distance knows of this many tickets above the head, or waits: two cache lines of small tasks.
const NEAR: u64 = 8;

/// How many tasks are to come in while a thief waits.
const ENOUGH: u64 = 32;

/// The first and the longest wait, in pauses: a microsecond or a few.
const FIRST_PACE: u32 = 4;
const LONGEST_PACE: u64 = 64;

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let (index, block) = match self.front() {
            Steal::Success(front) => front,
            Steal::Empty => return Steal::Empty,
            Steal::Retry | Steal::Abort => return Steal::Retry,
        };
        if !self.move_head(index, 1) {
            return Steal::Retry;
        }
        // SAFETY: the state was *written*, and acquired; the exchange gave `index` to this call alone.
        let task = unsafe { block.take(index) };
        self.finish(block, index, 1);
        Steal::Success(task)
    }

    /// Takes half of the tasks, at least one, but none beyond the end of a block: returns the oldest and
    /// pushes the others to `into`.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(usize::MAX) {
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

    /// Claims half of the tasks, at least one and at most `limit`, but none beyond the end of the block.
    #[inline]
    pub(crate) fn claim(&self, limit: usize) -> Steal<Batch<'_, T, M, SLOTS>> {
        let (index, block) = match self.front() {
            Steal::Success(front) => front,
            Steal::Empty => return Steal::Empty,
            Steal::Retry | Steal::Abort => return Steal::Retry,
        };
        let most = limit.min(SLOTS - index as usize % SLOTS) as u64;
        let most = self.estimate(index, 2 * most).div_ceil(2).min(most);
        let mut count = 1;
        while count < most {
            let next = index.wrapping_add(count);
            // Acquire: as in `front`.
            if block.slot(next).state.load(Ordering::Acquire) != written(next) {
                break;
            }
            count += 1;
        }
        if self.move_head(index, count) {
            Steal::Success(Batch::new(self, block, index, count))
        } else {
            Steal::Retry
        }
    }

    /// Steps 1, 2, 5 and 6: the head, and the block in which it is *written*.
    #[inline(always)]
    fn front(&self) -> Steal<(u64, &Block<T, M, SLOTS>)> {
        loop {
            // Acquire: whoever moved the head here had seen a ticket above it; so must this thread, in step 5.
            let index = self.head.index.load(Ordering::Acquire);
            // Relaxed: a hint.
            let pace = self.head.pace.load(Ordering::Relaxed);
            if pace > 0 && self.known_from(index) < NEAR {
                self.keep_distance(index, pace);
            }
            // Acquire: pairs with the release in `lead`.
            let block = self.head.block.load(Ordering::Acquire);
            // SAFETY: it was had from `block_at`, and the chain's memory stays.
            let block = unsafe { &*block };
            // Acquire: pairs with the release in `put`.
            if block.slot(index).state.load(Ordering::Acquire) == written(index) {
                return Steal::Success((index, block));
            }
            if self.nothing_from(index) {
                return Steal::Empty;
            }
            if !self.wait(index) {
                return Steal::Retry;
            }
        }
    }

    /// How many tickets from `index` on are known of.
    #[inline(always)]
    fn known_from(&self, index: u64) -> u64 {
        // Relaxed: a number that was right once, and tickets only become more.
        let known = self.head.known.load(Ordering::Relaxed);
        u64::try_from(known.wrapping_sub(index) as i64).unwrap_or(0)
    }

    /// Lets the pushers get ahead of the head.
    #[cold]
    #[inline(never)]
    fn keep_distance(&self, index: u64, pace: u64) {
        for _ in 0..pace {
            M::pause();
        }
        // Relaxed, all: numbers that nothing but the wait depends on.
        let tickets = self.tickets.load(Ordering::Relaxed);
        let pace = match tickets.wrapping_sub(index) {
            _ if tickets == self.head.known.load(Ordering::Relaxed) => 0,
            0..ENOUGH => (2 * pace).min(LONGEST_PACE),
            ahead if ahead > 4 * ENOUGH => (pace / 2).max(1),
            _ => pace,
        };
        self.head.pace.store(pace, Ordering::Relaxed);
        self.head.known.store(tickets, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn move_head(&self, index: u64, count: u64) -> bool {
        // SeqCst: `is_empty` has its place in one order with it. Release: as in `front`.
        self.head
            .index
            .compare_exchange(index, index.wrapping_add(count), Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Step 5: whether there was no ticket for `index` or above. Only for an index at which the head has been.
    #[inline(always)]
    fn nothing_from(&self, index: u64) -> bool {
        // Relaxed, both: a number alone.
        if self.tickets.load(Ordering::Relaxed) != index {
            return false;
        }
        // Pairs with step 1 of the push, or a fence after it: see "Emptiness".
        M::full();
        self.tickets.load(Ordering::Relaxed) == index
    }

    /// There was a ticket for `index`, and its slot was not *written*: whether it may be now, or in another block than where this
    /// thread has looked.
    #[cold]
    #[inline(never)]
    fn wait(&self, index: u64) -> bool {
        // Acquire: pairs with the release in `lead`.
        let hint = Place::from(self.head.hint.load(Ordering::Acquire));
        match hint.distance_to(Chain::<T, M, SLOTS>::number(index)) {
            0 => self.wait_at(index, self.chain.block(hint), hint),
            // None: the hint was stale.
            ahead if ahead > 0 => match self.chain.next(hint, false) {
                Ok(Some(next)) => {
                    self.lead(hint, next);
                    true
                }
                _ => false,
            },
            // The head was read before it moved on.
            _ => false,
        }
    }

    /// Step 6, in the block of `index`.
    fn wait_at(&self, index: u64, block: &Block<T, M, SLOTS>, place: Place) -> bool {
        let here = self.chain.block_at(place);
        // Relaxed: it is not followed.
        if self.head.block.load(Ordering::Relaxed) != here {
            // Release: as in `lead`.
            self.head.block.store(here, Ordering::Release);
        }
        let state = &block.slot(index).state;
        let older = |state: u64| (state.wrapping_sub(written(index)) as i64) < 0;
        // Relaxed, here and below: the caller looks again.
        let mut seen = state.load(Ordering::Relaxed);
        if older(seen) && self.head.pace.load(Ordering::Relaxed) == 0 {
            // Relaxed: a hint.
            self.head.pace.store(self.patience.min(FIRST_PACE).into(), Ordering::Relaxed);
        }
        let (mut waited, mut pauses) = (0, 1);
        while older(seen) {
            if waited >= self.patience {
                // Relaxed, both: nothing is handed over. If the exchange fails the push was faster.
                let skip = skipped(index);
                match state.compare_exchange(seen, skip, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => seen = skip,
                    Err(_) => return true,
                }
                break;
            }
            // Longer each time: a look takes the cache line from the thread that is about to write it.
            for _ in 0..pauses {
                M::pause();
            }
            waited += pauses;
            pauses *= 2;
            seen = state.load(Ordering::Relaxed);
        }
        if seen == skipped(index) {
            // If this fails another thread has stepped over it.
            let _ = self.move_head(index, 1);
        }
        seen == written(index)
    }

    /// Moves the thieves' hint on to the next block.
    pub(super) fn lead(&self, hint: Place, next: Place) {
        // Release: as in `walk`. If the exchange fails another thread has moved the hint on.
        let moved = self.head.hint.compare_exchange(
            hint.word(),
            next.word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if moved.is_ok() {
            // Release: whoever looks there sees its memory made. A slow store of an older block costs time alone.
            self.head.block.store(self.chain.block_at(next), Ordering::Release);
        }
    }

    /// About how many tasks there are from `head` on, or at least whether there are `enough`.
    #[inline]
    fn estimate(&self, head: u64, enough: u64) -> u64 {
        let known = self.known_from(head);
        if known >= enough.min(2 * NEAR) {
            return known;
        }
        // Relaxed, both: as in `known_from`.
        self.head.known.store(self.tickets.load(Ordering::Relaxed), Ordering::Relaxed);
        self.known_from(head)
    }

    pub(super) fn drop_all(&self) {
        while let Steal::Success(task) = self.steal() {
            drop(task);
        }
    }
}
