//! The thieves' side: the right column of the table in the module comment.

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{RAISED, Thief, opened, pack, unpack};
use crate::ring::Claimed;
use crate::traits::Steal;

/// How far the tail is above the index of `head`.
#[inline(always)]
fn tasks(tail: u64, head: u64) -> i32 {
    (tail as u32).wrapping_sub(unpack(head).1) as i32
}

impl<T, P: StoreLoad<M>, M: Memory> Thief<T, P, M> {
    /// Claims as many of the oldest tasks as `want` says of the number that are open (one at
    /// least).
    #[inline]
    pub(crate) fn claim(&self, want: impl FnOnce(u32) -> u32) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: `move_top` claimed these indices for this call alone, and `open` was acquired,
        // which somebody released who had seen or stored a tail above them.
        self.move_top(want)
            .map(|(top, count)| unsafe { self.shared.thieves.rings.claimed(u64::from(top), count) })
    }

    /// As [`claim`](Thief::claim): what `one` makes of a single task, for which no claim is put
    /// together, or `several` of more.
    #[inline(always)]
    pub(crate) fn claim_for<R>(
        &self,
        want: impl FnOnce(u32) -> u32,
        one: impl FnOnce(T) -> R,
        several: impl FnOnce(Claimed<'_, T, M>) -> R,
    ) -> Steal<R> {
        let rings = &self.shared.thieves.rings;
        self.move_top(want).map(|(top, count)| {
            let top = u64::from(top);
            if count == 1 {
                // SAFETY: as in `claim`.
                one(unsafe { rings.take(top) })
            } else {
                // SAFETY: as in `claim`.
                several(unsafe { rings.claimed(top, count) })
            }
        })
    }

    /// Whether there is a task: `Empty` is said without a fence, so nobody who pushes and then
    /// looks for sleepers may count on it.
    #[inline]
    pub(crate) fn look(&self) -> Steal<()> {
        // Acquire, both: as in `move_top`.
        let head = self.shared.thieves.head.load(Ordering::Acquire);
        match tasks(self.shared.owner.tail.load(Ordering::Acquire), head) {
            1.. => Steal::Success(()),
            _ => self.none_above(head),
        }
    }

    /// `Empty`, if the owner is not just popping a task that is open: that may go to a thief.
    ///
    /// The head was read first, then a tail at or below it, and then this reads what is open. Only
    /// the owner's pop of the last task could have stored that tail while the task was still
    /// there, and if the task was open then, it was so under the head's tag. If it no longer
    /// is, the pop is over, and between its end and the owner's next push there was nothing.
    #[inline(always)]
    fn none_above<R>(&self, head: u64) -> Steal<R> {
        // Acquire: as in `move_top`.
        let open = self.shared.thieves.open.load(Ordering::Acquire);
        // The first says the same as the second where thieves have taken all that was open, and an
        // idle thief asks again and again there.
        if open == head || opened(head, open) == 0 { Steal::Empty } else { Steal::Retry }
    }

    /// As [`claim`](Thief::claim), but `want` is told of all the tasks there are, and what it wants
    /// is opened if less is. It may want none. `Empty` is said as by [`look`](Thief::look).
    #[inline]
    pub(crate) fn claim_of_all(&self, want: impl FnOnce(u32) -> u32) -> Steal<Claimed<'_, T, M>> {
        let thieves = &self.shared.thieves;
        // Acquire, here and below: as in `move_top`.
        let head = thieves.head.load(Ordering::Acquire);
        let all = tasks(self.shared.owner.tail.load(Ordering::Acquire), head);
        if all <= 0 {
            return self.none_above(head);
        }
        let wanted = want(all as u32).min(all as u32);
        if wanted == 0 {
            return Steal::Empty;
        }
        if opened(head, thieves.open.load(Ordering::Acquire)) < wanted
            && self.request_or_open(head, wanted)
        {
            return Steal::Abort;
        }
        let head = thieves.head.load(Ordering::Acquire);
        match opened(head, thieves.open.load(Ordering::Acquire)) {
            0 => Steal::Retry,
            open => self.take_from(head, wanted.min(open)),
        }
        // SAFETY: as in `claim`.
        .map(|(top, count)| unsafe { thieves.rings.claimed(u64::from(top), count) })
    }

    /// The first of the indices that were claimed, and how many.
    #[inline(always)]
    fn move_top(&self, want: impl FnOnce(u32) -> u32) -> Steal<(u32, u32)> {
        let thieves = &self.shared.thieves;
        // Acquire: pairs with the release of a close; see "Opened by a thief".
        let mut head = thieves.head.load(Ordering::Acquire);
        // Acquire, here and below: pairs with the releases of who opens.
        let mut count = opened(head, thieves.open.load(Ordering::Acquire));
        if count == 0 {
            if self.nothing_above(head) {
                return Steal::Empty;
            }
            if self.request_or_open(head, 1) {
                return Steal::Abort;
            }
            // Acquire: as above.
            head = thieves.head.load(Ordering::Acquire);
            count = opened(head, thieves.open.load(Ordering::Acquire));
            if count == 0 {
                return Steal::Retry;
            }
        }
        self.take_from(head, want(count).clamp(1, count))
    }

    /// Step over `count` indices, which are open under the tag of `head`.
    #[inline(always)]
    fn take_from(&self, head: u64, count: u32) -> Steal<(u32, u32)> {
        let (tag, top) = unpack(head);
        let next = pack(tag, u64::from(top.wrapping_add(count)));
        // Release: keeps the next thief's acquire of `head` good for what this one had seen. What
        // this one reads it has acquired with `open`, but for the ring: Acquire pairs with
        // the owner that leaves a ring.
        match self.shared.thieves.head.compare_exchange(
            head,
            next,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(_) => Steal::Success((top, count)),
            Err(_) => Steal::Retry,
        }
    }

    /// Whether there was no task, nor anything open, when the head was `head`.
    #[inline(always)]
    fn nothing_above(&self, head: u64) -> bool {
        let shared = &*self.shared;
        // Pairs with the fence of a thread that has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: the tail of the owner's that follows this head.
        if tasks(shared.owner.tail.load(Ordering::Acquire), head) > 0 {
            return false;
        }
        // Acquire: as in `move_top`. If another thread has come first the thief looks again.
        let now = shared.thieves.head.load(Ordering::Acquire);
        now == head && opened(now, shared.thieves.open.load(Ordering::Acquire)) == 0
    }

    /// Less than `enough` is open: asks the owner, and opens what there is if it does not answer.
    /// `head` was read before. Whether the policy aborts, and nothing is open.
    #[cold]
    #[inline(never)]
    fn request_or_open(&self, head: u64, enough: u32) -> bool {
        let shared = &*self.shared;
        let (tag, _) = unpack(head);
        // Acquire: as in `nothing_above`.
        if tasks(shared.owner.tail.load(Ordering::Acquire), head) <= 0 {
            return false;
        }
        // Relaxed: if it is raised, that was after the lowering that came before `head` was closed.
        if shared.request.load(Ordering::Relaxed) != RAISED {
            // A read-modify-write, as the policy asks of an announcement.
            shared.request.swap(RAISED, Ordering::SeqCst);
        }
        for _ in 0..shared.looks {
            M::pause();
            // Relaxed, both: the caller looks again.
            let now = shared.thieves.head.load(Ordering::Relaxed);
            if now != head || opened(now, shared.thieves.open.load(Ordering::Relaxed)) >= enough {
                return false;
            }
        }
        // Relaxed: what is exchanged below, if nobody has opened anything meanwhile, and else a
        // hint.
        let open = shared.thieves.open.load(Ordering::Relaxed);
        let certain = shared.owner.policy.try_thief() && shared.owner.policy.delta() == 0;
        if !certain && !shared.owner.policy.resolve() {
            // The request stays: the owner answers at its next push or pop. The caller takes what
            // is open.
            return opened(head, open) == 0;
        }
        // Acquire: pairs with the owner's releases; sees the tasks below.
        let tail = shared.owner.tail.load(Ordering::Acquire);
        if tasks(tail, head) > 0 {
            // Release: pairs with the acquire in `claim`.
            let _ = shared.thieves.open.compare_exchange(
                open,
                pack(tag, tail),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        false
    }
}

impl<T, P: StoreLoad<M>, M: Memory> Thief<T, P, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        // SAFETY: as in `claim`.
        self.move_top(|_| 1)
            .map(|(top, _)| unsafe { self.shared.thieves.rings.take(u64::from(top)) })
    }
}

// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;

#[cfg(test)]
mod tests {
    mod steps;

    use super::super::Biased;
    use poach_memory::{Full, Machine};

    #[test]
    fn a_thief_sees_no_task_where_it_counts_none() {
        for start in [0, (1 << 31) - 3, u64::from(u32::MAX) - 2] {
            let owner = Biased::<usize, Full, Machine>::starting_at(Full, 4, start, 0).unwrap();
            crate::ring::sees_no_task_where_it_counts_none(&owner, &format!("from {start} on"));
        }
    }
}
