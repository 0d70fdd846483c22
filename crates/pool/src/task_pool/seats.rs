//! Seats: a *seat* is a single-consumer pool that one consumer holds.
//!
//! A get that finds nothing has looked at the pool of every seat. So a waiting future keeps no
//! seat. It takes a seat for each poll and gives it back, so the cost of a poll depends on the
//! number of consumers that look at one time, not on the number that wait. A consumer that threads
//! wait with keeps its seat, and so do the first few whose futures were ready.
//!
//! Free seats are kept here, so that producers still serve their pools and the next consumer finds
//! its first chunk. The lowest number is taken first. A seat that stays here while [`WINDOW`]
//! others are given back is released, which shortens the pool's searches.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::mechanism::{Mechanism as _, NoHandle};
use crate::policy::{Policy, Taker};
use crate::registry::each;
use crate::salsa::{Found, Salsa, SalsaConsumer};

/// A new consumer with this seat number or a higher one takes no seat before its first get.
const EAGER: usize = 64;
/// A seat with a lower number may be kept by a consumer whose future was ready.
pub(crate) const KEPT: usize = 8;
/// A seat with this number or a higher one is held for one look, so that consumers take turns.
pub(crate) const OWNED: usize = 512;
/// How many seats are given back before the seats that stayed unused meanwhile are released.
const WINDOW: u32 = 64;

type Seat<T> = Taker<T, Salsa<T>>;

impl<T: Send> Seat<T> {
    /// As [`get`](Taker::get), for a large task. Read it before this taker is used otherwise.
    #[inline(always)]
    pub(crate) fn find(&mut self, place: &mut MaybeUninit<T>) -> Option<Found<T>> {
        match self.end.find(place) {
            Some(task) => Some(task),
            None => self.look_further(place, SalsaConsumer::find, |end, place, from| {
                end.find_in(from, place)
            }),
        }
    }

    /// Drops all tasks in place, and calls `dropped` before each. Asks no distance, which is
    /// foreign code. If a task's drop panics the others are dropped while that unwinds.
    pub(crate) fn discard(&mut self, dropped: impl Fn()) {
        let mut place = MaybeUninit::uninit();
        each(|| {
            // `place` is borrowed again only when it holds no task.
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
    /// The least number of free seats since the window began.
    least: usize,
    /// The number of seats given back since then.
    given: u32,
}

impl<T: Send> Seats<T> {
    pub(crate) fn new() -> Self {
        Seats(Mutex::new(Idle { seats: Vec::new(), least: 0, given: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, Idle<T>> {
        // No code under the lock can panic and leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a new consumer. `None` if it takes its first seat at its first get: a seat is
    /// free, or the number of another one may be [`EAGER`] or higher.
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
            // Other consumers came meanwhile.
            Ok(seat) => {
                self.give(seat);
                Ok(None)
            }
            Err(NoHandle::TooMany { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits while all seats are taken; those from [`OWNED`] on are held for one look. Panics if no
    /// seat was given back and there is no memory for another.
    pub(crate) fn take(&self, pools: &Arc<Salsa<T>>, policy: &Policy, home: usize) -> Seat<T> {
        self.try_take(pools, policy, home).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`take`](Seats::take), with [`NoHandle::OutOfMemory`] where that panics.
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
