//! Sleep and wake-up: the states of idle workers, and which thread wakes which worker.
#![doc = include_str!("README.md")]

use std::iter;
use std::time::Duration;

use poach_memory::{CachePadded, Memory, Ordering, Word};

use self::states::{ANY, ASLEEP, FOLLOWING, Idle, SLEEPERS, Set, States};

use crate::pace::{LONGEST_NAP, LONGEST_OWNERS_NAP};

pub(crate) mod clock;
pub(crate) mod guests;
pub(crate) mod parking;
mod states;
#[cfg(test)]
mod tests;
// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models;
pub(crate) mod wake_policy;

/// A place where one thread sleeps until it is called; a call that comes first is kept.
pub trait Parking: Send + Sync {
    /// Sleeps until called. Only the worker itself may call this.
    fn park(&self);
    /// As `park`, but at most for `time`. Returns whether it was called.
    fn park_for(&self, time: Duration) -> bool;
    /// Calls the sleeper, now or at its next `park`.
    fn unpark(&self, caller: Caller);
}

/// What the thread that calls a sleeper does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// It goes on, on its processor.
    GoesOn,
    /// It blocks, and leaves its processor to the sleeper.
    Blocks,
}

/// The sleepers and searchers of one pool.
pub struct Sleep<M: Memory, S> {
    /// The number of workers that look for work. A called worker counts from the decision to wake
    /// it.
    searching: CachePadded<M::Word>,
    /// The number of workers that sleep for [`LONGEST_OWNERS_NAP`] at most.
    napping: CachePadded<M::Word>,
    /// The state of each worker that neither works nor searches.
    idle: States<M>,
    /// The worker that each worker waits for: the thief's index plus one, or zero. Written by the
    /// waiting worker.
    thieves: Box<[CachePadded<M::Word>]>,
    /// How far along `thieves` a restricted wait takes work.
    reach: usize,
    parking: Box<[S]>,
    /// The places of guests: which are taken, and for which a worker stands aside: see `guests`.
    guests: CachePadded<M::Word>,
    places: usize,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// It has not begun: there was work after all.
    NotAtAll,
    /// Another thread has called.
    Called,
    /// Its time was over.
    ToTheEnd,
}

// Relaxed, throughout: the fences order these words against each other and against visible work.
// The work's own words and the call hand over data.
impl<M: Memory, S: Parking> Sleep<M, S> {
    /// For workers with these parkings, the last `places` of which are places of guests.
    ///
    /// # Panics
    ///
    /// If there are more places than a word has bits for.
    pub fn new(parking: Box<[S]>, places: usize, reach: usize) -> Self {
        let workers = parking.len();
        assert!(places <= guests::MOST_PLACES, "more places of guests than a word has bits for");
        Sleep {
            searching: CachePadded::new(M::Word::new(0)),
            napping: CachePadded::new(M::Word::new(0)),
            idle: States::new(workers),
            thieves: (0..workers).map(|_| CachePadded::new(M::Word::new(0))).collect(),
            reach,
            parking,
            guests: CachePadded::new(M::Word::new(0)),
            places,
        }
    }

    /// Lets these workers begin asleep: see "A pool begins asleep" in README.md. Called before
    /// other threads know the pool.
    pub fn begin_asleep(&self, workers: impl Iterator<Item = usize>) {
        workers.for_each(|worker| self.idle.enter(worker, Idle::Asleep));
    }

    /// S6 of a worker that begins asleep.
    pub(crate) fn sleep_on(&self, worker: usize) {
        self.parking[worker].park();
    }

    /// There is new work that every searcher can see. Wakes one worker, unless one searches already
    /// or none sleeps.
    #[cold]
    pub(crate) fn wake_one(&self, caller: Caller) {
        // P2: pairs with S3 and with L2.
        M::full();
        // P3.
        if self.searching.load(Ordering::Relaxed) == 0 {
            // P4.
            self.call_one(caller, SLEEPERS);
        }
    }

    /// As [`wake_one`](Sleep::wake_one), for work in the deque of `owner`. It does not wake resting
    /// workers; if no other worker sleeps, it wakes a follower of that owner. Returns whether it
    /// has woken a worker.
    #[cold]
    pub fn wake_for(&self, owner: usize) -> bool {
        // P2: pairs with S3, L2 and F2.
        M::full();
        // P3.
        if self.searching.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // P4. While guests are in, the same number of workers stand aside.
        let calls = !self.stands_aside_for_guests();
        calls && self.call_one(Caller::GoesOn, ASLEEP) || self.call_follower(owner)
    }

    /// Wakes the first worker, by number, in one of these states. Returns whether there was one.
    fn call_one(&self, caller: Caller, sleepers: Set) -> bool {
        while let Some(worker) = self.idle.first(sleepers) {
            if self.call(worker, caller) {
                return true;
            }
        }
        false
    }

    /// The event that `worker` waits for has happened: wakes it, if it sleeps.
    #[inline]
    pub fn wake(&self, worker: usize) {
        // P2: pairs with S3 and F2.
        M::full();
        if self.idle.is(worker, SLEEPERS) {
            self.call(worker, Caller::GoesOn);
        } else if self.idle.is(worker, FOLLOWING) {
            self.call_following(worker);
        }
    }

    /// Wakes every worker.
    pub fn wake_all(&self) {
        for worker in 0..self.parking.len() {
            self.wake(worker);
        }
    }

    /// P5: wakes this sleeper, unless another thread has.
    #[cold]
    fn call(&self, worker: usize, caller: Caller) -> bool {
        if !self.take_out(worker) {
            return false;
        }
        self.parking[worker].unpark(caller);
        true
    }

    /// Makes a sleeper a searcher, unless another thread has.
    fn take_out(&self, worker: usize) -> bool {
        let taken = self.idle.take_out(worker, SLEEPERS);
        if taken {
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Whether some worker looks for work, or sleeps for want of it. Any thread; wait-free; an
    /// estimate.
    #[inline]
    pub(crate) fn is_anybody_hungry(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
            || (!self.is_full() && self.sleepers() != 0)
            || self.idle.any(FOLLOWING)
    }

    /// Whether some worker looks for work, or has been called to. Any thread; an estimate.
    pub(crate) fn is_anybody_searching(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
    }

    /// Whether an owner may put a request off: no worker searches, and one naps, and so soon looks
    /// again without being called. An estimate. A worker that is called out of its nap is a
    /// searcher from then on, and looks at private tasks when it has found something (L3).
    pub(crate) fn may_put_off(&self) -> bool {
        !self.is_anybody_searching() && self.is_anybody_napping()
    }

    /// Whether some worker sleeps for [`LONGEST_OWNERS_NAP`] at most. An estimate.
    pub(crate) fn is_anybody_napping(&self) -> bool {
        self.napping.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// A searcher has found something. Returns true if it was the last and others sleep, so that no
    /// searcher is left for them: then the caller must do line L3.
    pub(crate) fn stop_search(&self) -> bool {
        // L1.
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        // L2: pairs with P2.
        M::full();
        last && self.idle.any(ASLEEP.and(FOLLOWING)) && !self.stands_aside_for_guests()
    }

    /// A searcher has found nothing and goes to sleep, unless `look_again` finds something. It
    /// sleeps at most for what `time`, which is called last, returns; without that, until it is
    /// called. It is a searcher still, or again, when this returns.
    ///
    /// `look_again` first leaves a request with every victim, and then looks at all that another
    /// thread would wake it for.
    pub(crate) fn sleep(
        &self,
        worker: usize,
        look_again: impl FnOnce() -> bool,
        time: impl FnOnce() -> Option<Duration>,
    ) -> Slept {
        if !self.lie_down(worker, Idle::Asleep, look_again) {
            return Slept::NotAtAll;
        }
        if let Some(time) = time() {
            let over = self.nap(worker, time);
            return if over { Slept::ToTheEnd } else { Slept::Called };
        }
        // S6. If another thread has taken it out, that thread calls, and this returns at once.
        self.parking[worker].park();
        Slept::Called
    }

    /// As [`sleep`](Sleep::sleep), for a worker with nothing under way that has left no request and
    /// wants none answered. It sleeps at most for `time`, and work in a deque does not wake it.
    /// `look_again` looks at everything else.
    pub(crate) fn rest(&self, worker: usize, time: Duration, look_again: impl FnOnce() -> bool) {
        if self.lie_down(worker, Idle::Resting, look_again) {
            self.nap(worker, time);
        }
    }

    /// Lines R6 and R7. Returns whether the time was over before a call.
    fn nap(&self, worker: usize, time: Duration) -> bool {
        if time > LONGEST_OWNERS_NAP {
            return self.nap_for(worker, time);
        }
        self.napping.fetch_add(1, Ordering::Relaxed);
        let over = self.nap_for(worker, time);
        self.napping.fetch_sub(1, Ordering::Relaxed);
        over
    }

    fn nap_for(&self, worker: usize, mut time: Duration) -> bool {
        while !self.parking[worker].park_for(time) {
            if self.take_out(worker) {
                return true;
            }
            // Another thread is about to call.
            time = (time * 2).min(LONGEST_NAP);
        }
        false
    }

    /// Lines S1 to S5. Returns whether the worker is to sleep.
    fn lie_down(&self, worker: usize, state: Idle, look_again: impl FnOnce() -> bool) -> bool {
        // S1.
        self.idle.enter(worker, state);
        // S2.
        self.searching.fetch_sub(1, Ordering::Relaxed);
        // S3: pairs with P2.
        M::full();
        // S4 and S5.
        !(look_again() && self.take_out(worker))
    }

    /// Whether no worker searches or sleeps, and no guest is in, as at the beginning.
    pub(crate) fn is_deserted(&self) -> bool {
        let count = |word: &M::Word| word.load(Ordering::Relaxed);
        count(&self.searching) == 0
            && count(&self.napping) == 0
            && count(&self.guests) == 0
            && !self.idle.any(ANY)
    }

    /// Whether any worker but `me` is awake, if `away` workers are idle spares. Exact for a worker
    /// that has left its requests before it asks: a worker that was seen asleep sees them before it
    /// pushes.
    #[cold]
    pub fn is_another_awake(&self, me: usize, away: impl FnOnce() -> usize) -> bool {
        let asleep = self.idle.count_others(me);
        // AcqRel, as in `count_others`, for the places: a guest that comes acquires this.
        let free = self.places - Self::taken_places(self.guests.fetch_or(0, Ordering::AcqRel));
        1 + asleep + away() + free < self.parking.len()
    }

    /// Whether any worker neither sleeps nor searches, apart from `away` idle spares and places
    /// without a guest. An estimate.
    #[cold]
    pub fn does_anybody_run(&self, away: usize) -> bool {
        let idle = self.idle.count(ANY) + self.searching.load(Ordering::Relaxed) as u32;
        idle as usize + away < self.parking.len()
    }
}

// Workers that sleep in a restricted wait: for the end of a stolen half, or for a part of it.

/// The record of what a worker waits for. Its drop restores the outer wait.
pub(crate) struct Following<'s, M: Memory, S> {
    sleep: &'s Sleep<M, S>,
    worker: usize,
    outer: u64,
}

impl<M: Memory, S> Following<'_, M, S> {
    /// Sets the worker that runs what this one waits for.
    #[inline]
    pub(crate) fn set(&self, thief: Option<usize>) {
        let word = &self.sleep.thieves[self.worker];
        let value = thief.map_or(0, |thief| thief as u64 + 1);
        // Relaxed, both: a hint; F2 orders it before the looks that need it. Stored only if it
        // changes, so that readers keep their copy of the line.
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

// Relaxed, unless a comment says otherwise: as in the parent.
impl<M: Memory, S: Parking> Sleep<M, S> {
    pub(crate) fn follow(&self, worker: usize) -> Following<'_, M, S> {
        Following { sleep: self, worker, outer: self.thieves[worker].load(Ordering::Relaxed) }
    }

    /// The workers from which a wait for `thief` takes, nearest first: the thief, the worker that
    /// the thief waits for, and so on. A chain that changes meanwhile may name a worker twice.
    pub(crate) fn chain(&self, thief: Option<usize>) -> impl Iterator<Item = usize> {
        let next = |&worker: &usize| {
            (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1)
        };
        iter::successors(thief, next).take(self.reach)
    }

    /// A worker in a restricted wait has found nothing and goes to sleep, unless `look_again` finds
    /// something. It is no searcher, before or after. `look_again` looks at what the worker waits
    /// for, at what only it may take, and at the deques of its chain, on which it has left
    /// requests. Returns whether it has slept for `time`, if that is given, without being called.
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

    /// There is something to steal from `owner`: wakes a follower whose chain includes it. Returns
    /// whether there was one.
    #[cold]
    pub(crate) fn call_follower(&self, owner: usize) -> bool {
        self.idle.each(FOLLOWING).any(|worker| {
            let thief = (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1);
            self.chain(thief).any(|link| link == owner) && self.call_following(worker)
        })
    }

    /// Wakes a follower, unless another thread has.
    fn call_following(&self, worker: usize) -> bool {
        let taken = self.idle.take_out(worker, FOLLOWING);
        if taken {
            self.parking[worker].unpark(Caller::GoesOn);
        }
        taken
    }
}
