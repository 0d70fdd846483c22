//! Callers from outside in the places of workers that have nothing under way.
//!
//! A place is the worker's deques and whatever else it alone touches. One thread at a time has it: the worker's
//! own, or a caller that has taken the bit of the worker asleep (B1), or its offer (O3). Each is taken by a
//! read-modify-write that acquires what the last one released who set it, and one alone succeeds. So the worker's
//! thread, which has set both with nothing under way, touches nothing of its own until it has taken back what it
//! has set, or has been called.

use std::time::Duration;

use poach_memory::{Memory, Ordering, Word};

use super::{BITS, Seat, Sleep};

// Relaxed, where nothing else is said: as in the parent.
impl<M: Memory, S: Seat> Sleep<M, S> {
    /// Takes the place of a worker that sleeps with nothing under way: the caller is that worker until
    /// it [gives the place back](Sleep::give_back). B1.
    pub(crate) fn take_place(&self) -> Option<usize> {
        for (group, (asleep, vacant)) in self.asleep.iter().zip(self.vacant.iter()).enumerate() {
            loop {
                let places = asleep.load(Ordering::Relaxed) & vacant.load(Ordering::Relaxed);
                if places == 0 {
                    break;
                }
                let worker = group * BITS + places.trailing_zeros() as usize;
                if !self.clear_bit(worker) {
                    continue;
                }
                if vacant.load(Ordering::Relaxed) & Self::bit(worker) != 0 {
                    self.move_in(worker);
                    return Some(worker);
                }
                // It has woken meanwhile and sleeps again, waiting for something: this is a wake-up
                // that it did not need.
                self.searching.fetch_add(1, Ordering::Relaxed);
                self.seat(worker).unpark();
            }
        }
        None
    }

    fn move_in(&self, worker: usize) {
        self.guest[worker].store(1, Ordering::Relaxed);
        // Whoever gives the place back leaves requests.
        self.resting[worker / BITS].fetch_and(!Self::bit(worker), Ordering::Relaxed);
    }

    /// Lets a caller take the place of `worker`, a searcher with nothing under way, for as long as `meanwhile`
    /// runs, unless another's is on offer. If one has, the worker has then slept until it was called, or for
    /// about so long, and is a searcher again; this returns whether that time was over, as
    /// [`sleep`](Sleep::sleep) does.
    pub(crate) fn offer(
        &self,
        worker: usize,
        time: Duration,
        meanwhile: impl FnOnce(),
    ) -> Option<bool> {
        // Asked before O1: from then on another thread may be in this place.
        let actor = self.guest[worker].load(Ordering::Relaxed);
        let mine = worker as u64 + 1;
        // O1. Looked at first, so that those whose place is not wanted leave the line alone. Release: pairs
        // with the acquire in `take_offer`; who takes the place sees all that was done there.
        let mine_is_up = self.offered.load(Ordering::Relaxed) == 0
            && self.offered.compare_exchange(0, mine, Ordering::Release, Ordering::Relaxed).is_ok();
        meanwhile();
        // O2. Nobody has acted here if it succeeds.
        if !mine_is_up
            || self.offered.compare_exchange(mine, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return None;
        }
        // R6 and R7, of a sleep whose S1 to S5 are the caller's.
        Some(self.nap(worker, actor, time))
    }

    /// Takes the place of a worker that offers it: the caller is that worker until it
    /// [gives the place back](Sleep::give_back), and a searcher that has [found](Sleep::found) something,
    /// which it must say first. O3.
    pub(crate) fn take_offer(&self) -> Option<usize> {
        let seen = self.offered.load(Ordering::Relaxed);
        let worker = (seen as usize).checked_sub(1)?;
        // Acquire: pairs with O1.
        self.offered.compare_exchange(seen, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
        self.move_in(worker);
        Some(worker)
    }

    /// Whether a caller acts in the place of `worker`. Asked by the thread that acts as that worker.
    pub(crate) fn is_lent(&self, worker: usize) -> bool {
        self.guest[worker].load(Ordering::Relaxed) != 0
    }

    /// The worker in whose place the caller was sleeps on, unless `look_again` says that there is
    /// something for it.
    pub(crate) fn give_back(&self, worker: usize, look_again: impl FnOnce() -> bool) {
        let (vacant, bit) = (&self.vacant[worker / BITS], Self::bit(worker));
        // It says otherwise if the caller has slept here, or the worker has not done so idly before.
        if vacant.load(Ordering::Relaxed) & bit == 0 {
            vacant.fetch_or(bit, Ordering::Relaxed);
        }
        self.guest[worker].store(0, Ordering::Relaxed);
        // B2.
        self.set_bit(worker);
        // B3: pairs with P2.
        M::full();
        // B4 and B5.
        if look_again() {
            self.call(worker);
        }
    }
}
