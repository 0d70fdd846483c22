//! The thieves' side: the right column of the table in the module comment.

use std::sync::Arc;

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{Biased, RAISED, Stealer, opened, pack, unpack};
use crate::ring::Claimed;
use crate::{Owner, Steal, Thief};

/// Why a thief found nothing open.
enum Shut {
    /// Something may be open now.
    Again,
    Empty,
    Abort,
}

impl<T, P: StoreLoad<M>, M: Memory> Stealer<T, P, M> {
    /// Claims as many of the oldest tasks as `want` says of the number that are open (one at least).
    #[inline]
    pub(crate) fn claim(&self, want: impl FnOnce(u32) -> u32) -> Steal<Claimed<'_, T, M>> {
        let thieves = &self.shared.thieves;
        // Acquire: pairs with the release of a close; see "Opened by a thief".
        let mut head = thieves.head.load(Ordering::Acquire);
        // Acquire, here and below: pairs with the releases of who opens.
        let mut count = opened(head, thieves.open.load(Ordering::Acquire));
        if count == 0 {
            match self.pry(head) {
                Shut::Empty => return Steal::Empty,
                Shut::Abort => return Steal::Abort,
                Shut::Again => {}
            }
            // Acquire: as above.
            head = thieves.head.load(Ordering::Acquire);
            count = opened(head, thieves.open.load(Ordering::Acquire));
            if count == 0 {
                return Steal::Retry;
            }
        }
        let (tag, top) = unpack(head);
        let count = want(count).clamp(1, count);
        let next = pack(tag, u64::from(top.wrapping_add(count)));
        // Release: keeps the next thief's acquire of `head` good for what this one had seen.
        match thieves.head.compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed) {
            // SAFETY: the exchange claimed these indices for this call alone, and `open` was acquired, which somebody
            // released who had seen or stored a tail above them.
            Ok(_) => Steal::Success(unsafe { thieves.rings.claimed(u64::from(top), count) }),
            Err(_) => Steal::Retry,
        }
    }

    /// Nothing is open: asks the owner, and opens what there is if it does not answer. `head` was read before.
    #[cold]
    #[inline(never)]
    fn pry(&self, head: u64) -> Shut {
        let shared = &*self.shared;
        let (tag, top) = unpack(head);
        let tasks = |tail: u64| (tail as u32).wrapping_sub(top) as i32;
        // Pairs with a fence of who has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: the tail of the owner's that follows this head.
        if tasks(shared.owner.tail.load(Ordering::Acquire)) <= 0 {
            // Acquire: as in `claim`. If another thread has come first the thief looks again.
            let now = shared.thieves.head.load(Ordering::Acquire);
            let open = opened(now, shared.thieves.open.load(Ordering::Acquire));
            return if now == head && open == 0 { Shut::Empty } else { Shut::Again };
        }
        // Relaxed: if it is raised, that was after the lowering that came before `head` was closed.
        if shared.alarm.load(Ordering::Relaxed) != RAISED {
            // A read-modify-write, as the policy asks of an announcement.
            shared.alarm.swap(RAISED, Ordering::SeqCst);
        }
        for _ in 0..shared.looks {
            M::pause();
            // Relaxed, both: the caller looks again.
            let now = shared.thieves.head.load(Ordering::Relaxed);
            if now != head || opened(now, shared.thieves.open.load(Ordering::Relaxed)) > 0 {
                return Shut::Again;
            }
        }
        // Relaxed: what is exchanged below, if nobody has opened anything meanwhile.
        let open = shared.thieves.open.load(Ordering::Relaxed);
        shared.owner.policy.thief();
        if shared.owner.policy.margin() > 0 && !shared.owner.policy.resolve() {
            return Shut::Abort;
        }
        // Acquire: pairs with the owner's releases; sees the tasks below.
        let tail = shared.owner.tail.load(Ordering::Acquire);
        if tasks(tail) > 0 {
            // Release: pairs with the acquire in `claim`.
            let _ = shared.thieves.open.compare_exchange(
                open,
                pack(tag, tail),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
        Shut::Again
    }

    /// Whether `owner` owns this queue.
    pub(crate) fn belongs_to(&self, owner: &Biased<T, P, M>) -> bool {
        Arc::ptr_eq(&self.shared, &owner.shared)
    }
}

impl<T, P: StoreLoad<M>, M: Memory> Stealer<T, P, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        match self.claim(|_| 1) {
            Steal::Success(mut claimed) => claimed.next().map_or(Steal::Empty, Steal::Success),
            Steal::Empty => Steal::Empty,
            Steal::Abort => Steal::Abort,
            Steal::Retry => Steal::Retry,
        }
    }

    /// Takes the older half of the open tasks by one compare-and-swap.
    #[inline]
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(|open| open.div_ceil(2)) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            Steal::Empty => Steal::Empty,
            Steal::Abort => Steal::Abort,
            Steal::Retry => Steal::Retry,
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

impl<T: Send, P: StoreLoad<M>, M: Memory> Thief<T> for Stealer<T, P, M> {
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
