//! Which consumers have a single-consumer pool of their own, a *seat*.
//!
//! A get that finds nothing has looked at the pool of every seat. So a future that waits keeps
//! none: it takes a seat for each poll and gives it back, and what a poll costs depends on how many
//! consumers look at one time, not on how many wait. A consumer that threads wait with keeps its
//! seat, and so do the first few that futures were ready with.
//!
//! Seats that nobody has are kept here, so that producers still serve their pools and the next
//! consumer finds the chunk that it begins with. The lowest number is taken first. A seat that
//! stays here while [`WINDOW`] others are given back is released: the pool's searches then no
//! longer go that far.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::mechanism::{Mechanism as _, NoHandle};
use crate::policy::{Policy, Taker};
use crate::registry::each;
use crate::salsa::{Found, Salsa, SalsaConsumer};

/// From this number of seats on a new consumer has none before its first get.
const EAGER: usize = 64;
/// A seat with a lower number may be kept by a consumer whose future was ready.
pub(crate) const KEPT: usize = 8;
/// A seat with this number or a higher one is kept for no longer than a look, so that consumers
/// beyond it take turns.
pub(crate) const OWNED: usize = 512;
/// How many seats are given back before those are given up that nobody needed meanwhile.
const WINDOW: u32 = 64;

type Seat<T> = Taker<T, Salsa<T>>;

impl<T: Send> Seat<T> {
    /// As [`get`](Taker::get), of a task that may be large: it is where it lay, or at `place`, and
    /// is to be read before anything else is done with this taker.
    #[inline(always)]
    pub(crate) fn find(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        match self.end.find(place) {
            Some(task) => Some(task),
            None => self.look_further(place, SalsaConsumer::find, |end, place, from| {
                end.find_in(from, place)
            }),
        }
    }

    /// Drops all tasks that there are, where they lie, and calls `dropped` before each. Asks no
    /// distance, which is foreign code. If a task's drop panics the others are dropped while
    /// that unwinds.
    pub(crate) fn discard(&mut self, dropped: impl Fn()) {
        let mut place = MaybeUninit::uninit();
        each(|| {
            // The place is lent again only where nothing lies there.
            let mut task = self.end.find(&mut place);
            if task.is_none() {
                let mut pools = 0..self.pools.pools();
                task = pools.find_map(|pool| self.end.find_in(pool, &mut place));
            }
            if task.is_none() {
                return !self.check_empty();
            }
            dropped();
            true
        });
    }
}

pub(crate) struct Seats<T: Send>(Mutex<Idle<T>>);

struct Idle<T: Send> {
    /// The lowest number last.
    seats: Vec<Seat<T>>,
    /// How few there were since the window began.
    least: usize,
    /// How many were given back since then.
    given: u32,
}

impl<T: Send> Seats<T> {
    pub(crate) fn new() -> Self {
        Seats(Mutex::new(Idle { seats: Vec::new(), least: 0, given: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, Idle<T>> {
        // Nothing that runs under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a new consumer, unless it shall have none before its first get: where others take
    /// turns.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub(crate) fn begin(
        &self,
        pools: &Arc<Salsa<T>>,
        policy: &Policy,
        home: usize,
    ) -> Result<Option<Seat<T>>, NoHandle> {
        if pools.pools() >= EAGER || !self.lock().seats.is_empty() {
            return Ok(None);
        }
        match Taker::at(pools, policy.clone(), home) {
            Ok(seat) if seat.number() < EAGER => Ok(Some(seat)),
            // Others came meanwhile.
            Ok(seat) => {
                self.give(seat);
                Ok(None)
            }
            Err(NoHandle::TooMany { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A seat for a consumer whose home is `home`. Waits while all are taken, which then are taken
    /// for a look alone.
    ///
    /// # Panics
    ///
    /// If none was given back and there is no memory for another.
    pub(crate) fn take(&self, pools: &Arc<Salsa<T>>, policy: &Policy, home: usize) -> Seat<T> {
        self.try_take(pools, policy, home).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`take`](Seats::take).
    ///
    /// # Errors
    ///
    /// [`NoHandle::OutOfMemory`], where that panics.
    pub(crate) fn try_take(
        &self,
        pools: &Arc<Salsa<T>>,
        policy: &Policy,
        home: usize,
    ) -> Result<Seat<T>, NoHandle> {
        loop {
            let mut idle = self.lock();
            let seat = idle.seats.pop();
            idle.least = idle.least.min(idle.seats.len());
            drop(idle);
            if let Some(mut seat) = seat {
                seat.settle(home);
                return Ok(seat);
            }
            match Taker::at(pools, policy.clone(), home) {
                Err(NoHandle::TooMany { .. }) => thread::yield_now(),
                taken => return taken,
            }
        }
    }

    /// Takes a seat back.
    pub(crate) fn give(&self, seat: Seat<T>) {
        let mut idle = self.lock();
        let place = idle.seats.partition_point(|other| other.number() > seat.number());
        idle.seats.insert(place, seat);
        idle.given += 1;
        if idle.given == WINDOW {
            let unused = idle.least.min(idle.seats.len() - 1);
            let unused: Vec<_> = idle.seats.drain(..unused).collect();
            (idle.least, idle.given) = (idle.seats.len(), 0);
            drop(idle);
            drop(unused);
        }
    }
}
