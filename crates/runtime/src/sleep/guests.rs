//! Guests: threads from outside that work for the pool in places of their own, and the workers that
//! stand aside meanwhile.
//!
//! One word has two bits for each place: whether it is *taken*, and whether its guest is *awake*:
//! it has not left, and does not sleep in a wait. One more bit says that work has been deferred to
//! guests. Another says that places are closed: an interrupt is under way, which has called the
//! guests that are in. Every change of the word is a read-modify-write.
//!
//! A place is the deques and all other data that its guest alone touches. One thread at a time has
//! it: it has set the place's bit by a read-modify-write that acquires the release of the last
//! thread that cleared it.
//!
//! Why a worker stands aside, and why no work is lost by it: "Guests" in the README.

use poach_memory::{Memory, Ordering, Word};

use super::states::SLEEPERS;
use super::{Parking, Sleep};

pub(crate) const MOST_PLACES: usize = 20;
const PLACES: u64 = (1 << MOST_PLACES) - 1;

/// Places are closed: no guest comes in.
const CLOSED: u64 = 1 << 63;
/// Work has been deferred to guests: set only while one is awake, and cleared by the first that
/// leaves or dozes.
const DEFERRED: u64 = 1 << 62;

const fn taken(place: usize) -> u64 {
    1 << place
}

const fn awake(place: usize) -> u64 {
    1 << (MOST_PLACES + place)
}

/// Why no guest comes in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    Taken,
    /// Until an interrupt has ended.
    Closed,
}

// Relaxed, unless a comment says otherwise: as in the parent.
impl<M: Memory, S: Parking> Sleep<M, S> {
    /// Takes a place, if one is free. G1.
    pub(crate) fn enter(&self) -> Result<usize, NoPlace> {
        let mut seen = self.guests.load(Ordering::Relaxed);
        loop {
            if seen & CLOSED != 0 {
                return Err(NoPlace::Closed);
            }
            let place = (!seen).trailing_zeros() as usize;
            if place >= self.places {
                return Err(NoPlace::Taken);
            }
            let new = seen | taken(place) | awake(place);
            // Acquire: pairs with the release in `leave`, and with the read of `is_another_awake`.
            match self.guests.compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(place),
                Err(now) => seen = now,
            }
        }
    }

    /// Gives the place back: G2 and G3. `look` is G4. Returns false while places are closed: then
    /// the guest has been called, or is about to be, and stays.
    #[must_use]
    pub(crate) fn leave(&self, place: usize, look: impl FnOnce()) -> bool {
        let mut seen = self.guests.load(Ordering::Relaxed);
        loop {
            if seen & CLOSED != 0 {
                return false;
            }
            let new = seen & !(taken(place) | awake(place) | DEFERRED);
            // Release: pairs with the acquire in `enter`.
            match self.guests.compare_exchange(seen, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        Self::look_if_deferred(seen, look);
        true
    }

    /// A guest goes to sleep in a wait: G2 and G3. `look` is G4. Returns whether it was awake.
    pub(crate) fn doze(&self, place: usize, look: impl FnOnce()) -> bool {
        let seen = self.guests.fetch_and(!(awake(place) | DEFERRED), Ordering::Relaxed);
        Self::look_if_deferred(seen, look);
        seen & awake(place) != 0
    }

    /// G3 and G4, of a guest that has just cleared its bits in the word `seen`.
    fn look_if_deferred(seen: u64, look: impl FnOnce()) {
        if seen & DEFERRED != 0 {
            // G3: pairs with P2, S3 and L2.
            M::full();
            look();
        }
    }

    /// The guest is awake again: G1.
    pub(crate) fn rouse(&self, place: usize) {
        self.guests.fetch_or(awake(place), Ordering::Relaxed);
    }

    /// Whether enough guests are awake that work is left to them: then the next guest that leaves or
    /// goes to sleep looks, at its G4. The caller has passed S3, P2 or L2.
    pub(crate) fn stands_aside_for_guests(&self) -> bool {
        // A1.
        let mut seen = self.guests.load(Ordering::Relaxed);
        loop {
            if !self.is_full_of(Self::guests_awake(seen)) {
                return false;
            }
            if seen & DEFERRED != 0 {
                return true;
            }
            // A2.
            let new = seen | DEFERRED;
            match self.guests.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Closes the places, and returns those that are taken.
    pub(crate) fn close_places(&self) -> impl Iterator<Item = usize> {
        // AcqRel. The places' bits and CLOSED are in one word, so a guest is either seen here or
        // turned away.
        let seen = self.guests.fetch_or(CLOSED, Ordering::AcqRel);
        (0..self.places).filter(move |&place| seen & taken(place) != 0)
    }

    pub(crate) fn open_places(&self) {
        self.guests.fetch_and(!CLOSED, Ordering::Release);
    }

    fn guests_awake(guests: u64) -> u32 {
        (guests >> MOST_PLACES & PLACES).count_ones()
    }

    fn is_full_of(&self, guests: u32) -> bool {
        guests != 0 && guests >= self.sleepers()
    }

    /// The number of workers that sleep, except in a restricted wait.
    pub(super) fn sleepers(&self) -> u32 {
        self.idle.count(SLEEPERS)
    }

    /// Whether guests are awake, and at least as many threads are at work as the pool has workers:
    /// then no owner calls a sleeper.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full_of(Self::guests_awake(self.guests.load(Ordering::Relaxed)))
    }

    /// Whether more threads are at work than the pool has workers: then a worker with nothing under
    /// way stands aside.
    pub(crate) fn is_crowded(&self) -> bool {
        let guests = Self::guests_awake(self.guests.load(Ordering::Relaxed));
        guests != 0 && guests > self.sleepers()
    }

    /// The number of places without a guest. An estimate.
    pub(crate) fn free_places(&self) -> usize {
        self.places - Self::taken_places(self.guests.load(Ordering::Relaxed))
    }

    pub(super) fn taken_places(guests: u64) -> usize {
        (guests & PLACES).count_ones() as usize
    }
}
