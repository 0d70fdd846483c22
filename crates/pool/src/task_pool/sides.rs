//! Who is left: how many handles could put, how many could take, and whether the last of those has
//! gone.
//!
//! Producers are counted, and consumers. A [`TaskPool`](crate::TaskPool) could make either. It
//! counts as one of both sides if the pool [stays open](crate::Builder::stays_open). If not, a side
//! is gone with its last handle, and one that has never had a handle with the last `TaskPool`.

use poach_memory::{Memory, Ordering, Word};

/// What a handle can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Puts,
    Takes,
}

/// Set when the last that could take has gone.
const ABANDONED: u64 = 1;
/// Set if that closed the pool.
const UNTAKEN: u64 = 2;

pub(crate) struct Sides<M: Memory> {
    handles: [M::Word; 2],
    /// How many `TaskPool`s there are.
    pools: M::Word,
    /// Whether a `TaskPool` counts as a handle of both sides.
    stays_open: bool,
    /// [`ABANDONED`], [`UNTAKEN`].
    untaken: M::Word,
}

impl<M: Memory> Sides<M> {
    pub(crate) fn new(stays_open: bool) -> Self {
        Sides {
            handles: [M::Word::new(0), M::Word::new(0)],
            pools: M::Word::new(0),
            stays_open,
            untaken: M::Word::new(0),
        }
    }

    /// One handle more, made by one that is there, or the first.
    pub(crate) fn join(&self, side: Side) {
        // Relaxed: whoever makes a handle has one, so that the count is not 0 meanwhile.
        self.handles[side as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// One handle less. Whether it was the last.
    pub(crate) fn leave(&self, side: Side) -> bool {
        // AcqRel: the last comes after all that the others did, and sees whether one of them has
        // closed the pool.
        self.handles[side as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// One `TaskPool` more.
    pub(crate) fn join_pool(&self) {
        if self.stays_open {
            self.join(Side::Puts);
            self.join(Side::Takes);
        } else {
            // Relaxed, as in `join`.
            self.pools.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One `TaskPool` less. Which sides nobody is left of.
    pub(crate) fn leave_pool(&self) -> [bool; 2] {
        let sides = [Side::Puts, Side::Takes];
        if self.stays_open {
            return sides.map(|side| self.leave(side));
        }
        // AcqRel: the last sees all handles that were made of the others.
        if self.pools.fetch_sub(1, Ordering::AcqRel) > 1 {
            return [false; 2];
        }
        // Acquire, as in `leave`. A side without a handle stays so: only a `TaskPool` or a handle
        // of that side makes one.
        sides.map(|side| self.handles[side as usize].load(Ordering::Acquire) == 0)
    }

    /// Nobody is left to take, which closes the pool unless it `was_closed`. A full fence follows.
    pub(crate) fn abandon(&self, was_closed: bool) {
        let closes = if was_closed { 0 } else { UNTAKEN };
        // Relaxed: released by the close that follows.
        self.untaken.fetch_or(ABANDONED | closes, Ordering::Relaxed);
    }

    /// Whether the pool is closed because nobody is left to take. For who has found it closed.
    pub(crate) fn is_untaken(&self) -> bool {
        // Relaxed: read behind a look that found the pool closed, and acquired that.
        self.untaken.load(Ordering::Relaxed) & UNTAKEN != 0
    }

    /// Whether the last that could take has gone. For a put that is over, and found the pool
    /// closed.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Relaxed: ordered by the fence of p5 (`admission`).
        self.untaken.load(Ordering::Relaxed) & ABANDONED != 0
    }
}
