//! The two sides of a pool, its producers and its consumers: counts of their handles.
//!
//! A [`TaskPool`](crate::TaskPool) can make handles of both sides. It counts as a handle of both if
//! the pool [stays open](crate::Builder::stays_open). Otherwise a side is gone with its last
//! handle, and a side that has never had a handle is gone with the last `TaskPool`.

use poach_memory::{Memory, Ordering, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Puts,
    Takes,
}

/// Set when the last handle that could take is gone.
const ABANDONED: u64 = 1;
/// Set if that closed the pool.
const UNTAKEN: u64 = 2;

pub(crate) struct Sides<M: Memory> {
    handles: [M::Word; 2],
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

    pub(crate) fn join(&self, side: Side) {
        // Relaxed: the thread that makes a handle has another of that side, so the count is not 0
        // meanwhile; or it has a `TaskPool`, and `leave_pool` releases this to the last `TaskPool`.
        self.handles[side as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self, side: Side) -> bool {
        // AcqRel: the last thread sees what the others did, and whether one has closed the pool.
        self.handles[side as usize].fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn join_pool(&self) {
        if self.stays_open {
            self.join(Side::Puts);
            self.join(Side::Takes);
        } else {
            // Relaxed: the thread that makes a `TaskPool` has another, or makes the first.
            self.pools.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes a `TaskPool`. Returns which sides have no handle left.
    pub(crate) fn leave_pool(&self) -> [bool; 2] {
        let sides = [Side::Puts, Side::Takes];
        if self.stays_open {
            return sides.map(|side| self.leave(side));
        }
        // AcqRel: the last thread sees all handles made from the others.
        if self.pools.fetch_sub(1, Ordering::AcqRel) > 1 {
            return [false; 2];
        }
        // Acquire, as in `leave`. A side without a handle stays without: only a `TaskPool` or a
        // handle of that side makes one.
        sides.map(|side| self.handles[side as usize].load(Ordering::Acquire) == 0)
    }

    /// No handle is left that can take, which closes the pool unless it `was_closed`. A full fence
    /// follows.
    pub(crate) fn abandon(&self, was_closed: bool) {
        let closes = if was_closed { 0 } else { UNTAKEN };
        // Relaxed: released by the close that follows.
        self.untaken.fetch_or(ABANDONED | closes, Ordering::Relaxed);
    }

    /// Whether the pool is closed because no handle is left that can take. Only after the pool was
    /// found closed.
    pub(crate) fn is_untaken(&self) -> bool {
        // Relaxed: read after an Acquire that found the pool closed.
        self.untaken.load(Ordering::Relaxed) & UNTAKEN != 0
    }

    /// Only for a finished put that found the pool closed.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Relaxed: ordered by the fence of p5 (`admission`).
        self.untaken.load(Ordering::Relaxed) & ABANDONED != 0
    }
}
