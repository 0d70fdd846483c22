//! Guests: threads from outside that work for the pool in places of their own, and the workers that stand aside
//! meanwhile.
//!
//! One word has two bits for each place: whether it is taken, and whether its guest is *awake*, that is whether it neither has
//! left nor sleeps in a wait. Another bit says that no more come: an interrupt is under way, which has called those that are
//! in. A place is the deques and whatever else its guest alone touches. One thread at a time
//! has it: it has set the place's bit by a read-modify-write that acquires what the last one released who cleared it.
//!
//! Why a worker stands aside, and why nothing is lost by it: "Guests" in the README.

use poach_memory::{Memory, Ordering, Word};

use super::{Seat, Sleep};

/// The most places.
pub(super) const MOST: usize = 31;

/// No guest comes in.
const CLOSED: u64 = 1 << 63;

const fn taken(place: usize) -> u64 {
    1 << place
}

const fn awake(place: usize) -> u64 {
    1 << (MOST + place)
}

// Relaxed, where nothing else is said: as in the parent.
impl<M: Memory, S: Seat> Sleep<M, S> {
    /// Takes a place, if one is free. G1.
    pub(crate) fn enter(&self) -> Option<usize> {
        let mut seen = self.guests.load(Ordering::Relaxed);
        loop {
            let place = (!seen).trailing_zeros() as usize;
            if place >= self.places || seen & CLOSED != 0 {
                return None;
            }
            let new = seen | taken(place) | awake(place);
            // Acquire: pairs with the release in `leave`. Release: pairs with the acquire in `guests_awake`; the guest has
            // looked how much had been left to others before.
            match self.guests.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Some(place),
                Err(now) => seen = now,
            }
        }
    }

    /// Gives the place back; `look` is G4. G2 and G3. False while places are closed: then the guest has been called, or is about
    /// to be, and stays.
    #[must_use]
    pub(crate) fn leave(&self, place: usize, look: impl FnOnce()) -> bool {
        let mut seen = self.guests.load(Ordering::Relaxed);
        loop {
            if seen & CLOSED != 0 {
                return false;
            }
            let new = seen & !(taken(place) | awake(place));
            // Release: pairs with the acquire in `enter`.
            match self.guests.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        // G3: pairs with P2 and S3.
        M::full();
        look();
        true
    }

    /// A guest goes to sleep in a wait; `look` is G4. G2 and G3.
    pub(crate) fn doze(&self, place: usize, look: impl FnOnce()) {
        self.guests.fetch_and(!awake(place), Ordering::Relaxed);
        // G3: pairs with P2 and S3.
        M::full();
        look();
    }

    /// It is awake again. G1.
    pub(crate) fn rouse(&self, place: usize) {
        // Release: as in `enter`.
        self.guests.fetch_or(awake(place), Ordering::Release);
    }

    /// How often something has been left to guests so far. A guest asks before G1.
    pub(crate) fn left_to_guests(&self) -> u64 {
        self.left_to_guests.load(Ordering::Relaxed)
    }

    /// Whether nobody is called, or looks, because guests are at work: then each of them sees at its G4 that something
    /// was left to it. S3, P2 or L2 precedes.
    pub(crate) fn leaves_it_to_guests(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        self.left_to_guests.fetch_add(1, Ordering::Relaxed);
        // Pairs with G3: either a guest that leaves sees the count, or it is seen that it has left.
        M::full();
        self.is_full()
    }

    /// Lets no guest in any more, and says which places are taken.
    pub(crate) fn close_places(&self) -> impl Iterator<Item = usize> {
        // AcqRel: what is taken and what is closed is one word, so a guest is either seen here or turned away.
        let seen = self.guests.fetch_or(CLOSED, Ordering::AcqRel);
        (0..self.places).filter(move |&place| seen & taken(place) != 0)
    }

    /// Lets guests in again.
    pub(crate) fn open_places(&self) {
        self.guests.fetch_and(!CLOSED, Ordering::Release);
    }

    /// The guests that are awake.
    fn guests_awake(&self) -> u32 {
        // Acquire: pairs with the release in `enter` and `rouse`.
        ((self.guests.load(Ordering::Acquire) & !CLOSED) >> MOST).count_ones()
    }

    /// The workers that sleep, but for those in a restricted wait.
    pub(super) fn sleepers(&self) -> u32 {
        self.asleep.iter().map(|word| word.load(Ordering::Relaxed).count_ones()).sum()
    }

    /// Whether as many threads are at work as the pool has workers, some of which stand aside for guests: then no owner
    /// calls a sleeper.
    pub(crate) fn is_full(&self) -> bool {
        let guests = self.guests_awake();
        guests != 0 && guests >= self.sleepers()
    }

    /// Whether more threads are at work than that: then a worker with nothing under way stands aside.
    pub(crate) fn is_crowded(&self) -> bool {
        let guests = self.guests_awake();
        guests != 0 && guests > self.sleepers()
    }

    /// How many places have no guest. Out of date at once.
    pub(crate) fn free_places(&self) -> usize {
        self.places - Self::taken_places(self.guests.load(Ordering::Relaxed))
    }

    pub(super) fn taken_places(guests: u64) -> usize {
        (guests & (awake(0) - 1)).count_ones() as usize
    }
}
