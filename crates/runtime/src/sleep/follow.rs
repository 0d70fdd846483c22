//! Those who sleep in a restricted wait: for the end of a stolen half, or for a part of it.

use std::iter;
use std::time::Duration;

use poach_memory::{Memory, Ordering, Word};

use super::states::{FOLLOWING, Idle};
use super::{Caller, Parking, Sleep};

/// What a worker waits for, until the value is dropped; then it is what it was before.
pub(crate) struct Following<'s, M: Memory, S> {
    sleep: &'s Sleep<M, S>,
    worker: usize,
    outer: u64,
}

impl<M: Memory, S> Following<'_, M, S> {
    /// Says which worker runs what this one waits for.
    #[inline]
    pub(crate) fn set(&self, thief: Option<usize>) {
        let word = &self.sleep.thieves[self.worker];
        let value = thief.map_or(0, |thief| thief as u64 + 1);
        // Relaxed, both: a hint; F2 orders it before the looks that need it. Written only if it changes, so
        // that its readers keep their copy of the line.
        if word.load(Ordering::Relaxed) != value {
            word.store(value, Ordering::Relaxed);
        }
    }
}

impl<M: Memory, S> Drop for Following<'_, M, S> {
    fn drop(&mut self) {
        // Relaxed: as in `set`.
        self.sleep.thieves[self.worker].store(self.outer, Ordering::Relaxed);
    }
}

// Relaxed, where nothing else is said: as in the parent.
impl<M: Memory, S: Parking> Sleep<M, S> {
    /// This worker begins to wait for a stolen half.
    pub(crate) fn follow(&self, worker: usize) -> Following<'_, M, S> {
        Following { sleep: self, worker, outer: self.thieves[worker].load(Ordering::Relaxed) }
    }

    /// The workers from which a wait for `thief` takes, nearest first: the thief, the worker that the thief waits
    /// for, and so on. A chain that changes meanwhile may name a worker twice.
    pub(crate) fn chain(&self, thief: Option<usize>) -> impl Iterator<Item = usize> {
        let next = |&worker: &usize| {
            (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1)
        };
        iter::successors(thief, next).take(self.reach)
    }

    /// A worker in a restricted wait has found nothing and goes to sleep, unless `look_again` says that
    /// there is something after all. It is no searcher, before or after. `look_again` looks at what the
    /// worker waits for, at what only it may take, and at the deques of its chain, on which it has left
    /// requests. Returns whether it has slept for so long as `time` says, if it says so, without being called.
    pub(crate) fn sleep_following(
        &self,
        worker: usize,
        time: Option<Duration>,
        look_again: impl FnOnce() -> bool,
    ) -> bool {
        let parking = &self.parking[worker];
        // F1.
        self.idle.enter(worker, Idle::Following);
        // F2: pairs with P2.
        M::full();
        // F3. If another thread has taken it out, that thread calls, and F4 returns at once.
        if look_again() && self.idle.take_out(worker, FOLLOWING) {
            return false;
        }
        // F4.
        let called = time.is_some_and(|time| parking.park_for(time));
        if called {
            return false;
        }
        if time.is_some() && self.idle.take_out(worker, FOLLOWING) {
            return true;
        }
        // F5. If another thread has taken it out, that thread is about to call.
        parking.park();
        false
    }

    /// There is something to steal from `owner`: wakes a follower whose chain comes to it. Returns whether there was one.
    #[cold]
    pub(crate) fn call_follower(&self, owner: usize) -> bool {
        self.idle.each(FOLLOWING).any(|worker| {
            let thief = (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1);
            self.chain(thief).any(|link| link == owner) && self.call_following(worker)
        })
    }

    /// Wakes a follower, unless another has.
    pub(super) fn call_following(&self, worker: usize) -> bool {
        let taken = self.idle.take_out(worker, FOLLOWING);
        if taken {
            self.parking[worker].unpark(Caller::GoesOn);
        }
        taken
    }
}
