//! How many pools anybody need look at: up to the last that has a consumer or may get tasks.
//!
//! Pools are numbered, and a consumer that comes takes the first that is free. When those with the greatest
//! numbers have been left, and hold no chunk, they are *closed*, so that an empty `get` does not look at as
//! many pools as there ever were. A pool that was left in the middle is looked at until those behind it
//! are left as well, and one whose chunk a producer has begun until that chunk is full and its tasks are taken.
//!
//! # Why no task is behind the extent
//!
//! The extent is one word: how many pools are open, whether the last of them is just being closed, and a version
//! that every change makes another.
//!
//! | | who uses pool p | | who closes it, the last |
//! |---|---|---|---|
//! | u1 | sits down at it, or names a chunk in one of its lists | x1 | marks it as being closed, by compare-and-swap |
//! | u2 | a full fence | x2 | a full fence |
//! | u3 | reads the extent; opens p if it is closed or being closed, by compare-and-swap | x3 | looks whether anybody sits at p, and for chunks that are p's |
//! | u4 | puts tasks there | x4 | if not, closes it, by compare-and-swap from what x1 wrote |
//!
//! Either u3 reads what x1 wrote or something later, and opens the pool, which makes x4 fail, or does so after
//! x4; or x3 sees what u1 did, by the fences, and does not close it. In both cases the pool is open at u4.
//!
//! A consumer that looks whether all pools are empty compares [`Mechanism::changes`], of which the version is a
//! part, before and after.
//!
//! [`Mechanism::changes`]: crate::mechanism::Mechanism::changes

use poach_memory::{CachePadded, Memory, Ordering, Word};

use super::core::Core;

/// Bits of the number of pools.
const COUNT: u64 = (1 << 12) - 1;
/// Set while the last is being closed.
const CLOSING: u64 = 1 << 12;
/// Above them the version: 2^51 of them do not come round.
const VERSION: u64 = 1 << 13;

/// The word after `now`.
fn changed(now: u64, count: u64, closing: u64) -> u64 {
    (now & !(VERSION - 1)).wrapping_add(VERSION) | closing | count
}

impl<T, M: Memory, F> Core<T, M, F> {
    /// One pool, open.
    pub(super) fn first_extent() -> CachePadded<M::Word> {
        CachePadded::new(M::Word::new(1))
    }

    /// How many pools there are that may hold tasks.
    pub(super) fn pools(&self) -> usize {
        // Acquire: who sees a pool open sees why.
        (self.extent.load(Ordering::Acquire) & COUNT) as usize
    }

    /// [`Mechanism::changes`](crate::mechanism::Mechanism::changes): the sum of two numbers that never fall.
    pub(super) fn changes(&self) -> u64 {
        self.consumers.changes().wrapping_add(self.extent.load(Ordering::Acquire) / VERSION)
    }

    /// u2, u3. Sees to it that `pool`, which the caller has begun to use, is looked at.
    pub(super) fn open(&self, pool: usize) {
        M::full();
        // Acquire, here and below, as in `pools`.
        let mut now = self.extent.load(Ordering::Acquire);
        let least = pool as u64 + 1;
        loop {
            let count = now & COUNT;
            let closing = now & CLOSING != 0 && count == least;
            if count >= least && !closing {
                return;
            }
            let new = changed(now, count.max(least), 0);
            match self.extent.compare_exchange(now, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(later) => now = later,
            }
        }
    }
}

impl<T: Send, M: Memory, F: Send + Sync> Core<T, M, F> {
    /// Closes pools that nobody uses, from the last on. Lock-free; gives up where another changes the extent.
    #[cold]
    pub(super) fn close_unused(&self) {
        loop {
            let now = self.extent.load(Ordering::Acquire);
            let count = now & COUNT;
            // The first is always open: producers may begin before any consumer comes.
            let Some(last) = count.checked_sub(1).filter(|last| *last > 0) else { return };
            if self.is_in_use(last as usize) {
                return;
            }
            let closing = changed(now, count, CLOSING);
            if self.try_change(now, closing).is_err() {
                return;
            }
            M::full();
            let new = if self.is_in_use(last as usize) {
                changed(closing, count, 0)
            } else {
                changed(closing, count - 1, 0)
            };
            if self.try_change(closing, new).is_err() {
                return;
            }
        }
    }

    fn try_change(&self, from: u64, to: u64) -> Result<u64, u64> {
        // AcqRel: releases what was seen of the pool; acquires who opened it.
        self.extent.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }

    /// x3. Whether a consumer sits at `pool`, or a chunk in its lists is its own.
    fn is_in_use(&self, pool: usize) -> bool {
        self.consumers.is_occupied(pool)
            || self
                .consumers
                .get(pool)
                .is_none_or(|record| record.chunks().any(|chunk| chunk.is_owned_by(pool)))
    }
}
