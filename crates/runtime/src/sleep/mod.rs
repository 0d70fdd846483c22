//! Who sleeps, who searches, and who wakes whom.
#![doc = include_str!("README.md")]

use std::iter;
use std::time::Duration;

use poach_memory::{CachePadded, Memory, Ordering, Word};

use self::states::{ANY, ASLEEP, FOLLOWING, Idle, SLEEPERS, Set, States};

use crate::pace::{LONGEST_NAP, LONGEST_OWNERS_NAP};

pub(crate) mod clock;
#[cfg(test)]
mod decisions;
pub(crate) mod guests;
pub(crate) mod parking;
mod states;
// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models;
pub(crate) mod wake_policy;

/// A place where one thread sleeps until it is called; a call that comes first is kept.
pub trait Parking: Send + Sync {
    /// Sleeps until called. Only the worker itself.
    fn park(&self);
    /// As `park`, but at most for so long. Returns whether it was called.
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
    /// How many workers are looking for work. Those that were woken count from the moment at which
    /// somebody decided to wake them.
    searching: CachePadded<M::Word>,
    /// How many workers sleep for [`LONGEST_OWNERS_NAP`] at most.
    napping: CachePadded<M::Word>,
    /// What each worker does that neither works nor searches.
    idle: States<M>,
    /// Whom each worker waits for: the thief's index plus one, or zero. Written by the worker.
    thieves: Box<[CachePadded<M::Word>]>,
    /// How far along `thieves` a restricted wait takes work.
    reach: usize,
    /// Where each worker parks.
    parking: Box<[S]>,
    /// Which places of guests are taken, and for which of them a worker is to stand aside: see
    /// `guests`.
    guests: CachePadded<M::Word>,
    /// How many places there are.
    places: usize,
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// It has not begun: there was something after all.
    NotAtAll,
    /// Somebody has called.
    Called,
    /// Its time was over.
    ToTheEnd,
}

// Relaxed, throughout: the fences order these words against each other and against visible work,
// and what is handed over is handed over by the work's own words and by the call.
impl<M: Memory, S: Parking> Sleep<M, S> {
    /// Of workers that sleep in these, the last of which are `places` of guests.
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

    /// These workers are asleep from the beginning: see "A pool begins asleep" in README.md. Before
    /// any other thread knows this.
    pub fn begin_asleep(&self, workers: impl Iterator<Item = usize>) {
        workers.for_each(|worker| self.idle.enter(worker, Idle::Asleep));
    }

    /// One that is asleep from the beginning sleeps until it is called: S6.
    pub(crate) fn sleep_on(&self, worker: usize) {
        self.parking[worker].park();
    }

    /// There is new work that every searcher can see. Wakes one worker, unless one is searching
    /// already or none sleeps.
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

    /// As [`wake_one`](Sleep::wake_one), for work in the deque of `owner`: resting workers are left
    /// alone, and if no other worker sleeps, a follower of that owner is woken. Returns whether it
    /// has woken one.
    #[cold]
    pub fn wake_for(&self, owner: usize) -> bool {
        // P2: pairs with S3, L2 and F2.
        M::full();
        // P3.
        if self.searching.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // P4. While guests are in, as many workers stand aside.
        let calls = !self.stands_aside_for_guests();
        calls && self.call_one(Caller::GoesOn, ASLEEP) || self.call_follower(owner)
    }

    /// Wakes one of those in these states of sleepers. Returns whether there was one.
    fn call_one(&self, caller: Caller, sleepers: Set) -> bool {
        while let Some(worker) = self.idle.first(sleepers) {
            if self.call(worker, caller) {
                return true;
            }
        }
        false
    }

    /// What `worker` waits for has happened: wakes it, if it sleeps.
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

    /// Wakes everybody.
    pub fn wake_all(&self) {
        for worker in 0..self.parking.len() {
            self.wake(worker);
        }
    }

    /// P5: wakes this sleeper, unless another has.
    #[cold]
    fn call(&self, worker: usize, caller: Caller) -> bool {
        if !self.take_out(worker) {
            return false;
        }
        self.parking[worker].unpark(caller);
        true
    }

    /// Makes a sleeper a searcher, unless another has.
    fn take_out(&self, worker: usize) -> bool {
        let taken = self.idle.take_out(worker, SLEEPERS);
        if taken {
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// Whether some worker is looking for work, or sleeps for want of it. Any thread; wait-free;
    /// out of date at once.
    #[inline]
    pub(crate) fn is_anybody_hungry(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
            || (!self.is_full() && self.sleepers() != 0)
            || self.idle.any(FOLLOWING)
    }

    /// Whether anybody is looking for work, or has been called to. Any thread; out of date at once.
    pub(crate) fn is_anybody_searching(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
    }

    /// Whether an owner may put a request off: nobody searches, and somebody naps, and so looks
    /// again before long without being called. Out of date at once: a worker that was called
    /// out of its nap is a searcher from then on, and looks at what owners keep private when it
    /// has found something (L3).
    pub(crate) fn may_put_off(&self) -> bool {
        !self.is_anybody_searching() && self.napping.load(Ordering::Relaxed) != 0
    }

    /// A worker begins to search.
    pub(crate) fn search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// A searcher has found something. If it was the last and others sleep, they have lost their
    /// lookout: then `true`, and the caller must see to them as line L3 says.
    pub(crate) fn stop_search(&self) -> bool {
        // L1.
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        // L2: pairs with P2.
        M::full();
        last && self.idle.any(ASLEEP.and(FOLLOWING)) && !self.stands_aside_for_guests()
    }

    /// A searcher has found nothing and goes to sleep, unless `look_again` says that there is
    /// something after all; at most for so long as `time` says, which is asked last, if it says so.
    /// It is a searcher still, or again, when this returns.
    ///
    /// `look_again` first leaves a request with every victim, and then looks at everything that
    /// anybody would wake it for.
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
        // S6. If another has taken it out, somebody has called already, and this returns at once.
        self.parking[worker].park();
        Slept::Called
    }

    /// As [`sleep`](Sleep::sleep), for a worker with nothing under way that has left no request and
    /// wants none answered: at most for so long, and work in somebody's deque does not wake it.
    /// `look_again` looks at everything else.
    pub(crate) fn rest(&self, worker: usize, time: Duration, look_again: impl FnOnce() -> bool) {
        if self.lie_down(worker, Idle::Resting, look_again) {
            self.nap(worker, time);
        }
    }

    /// Lines R6 and R7. Returns whether the time was over before anybody called.
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
            // Somebody calls just now.
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

    /// Whether no worker searches or sleeps, and no guest is in: as at the beginning.
    pub(crate) fn is_deserted(&self) -> bool {
        let count = |word: &M::Word| word.load(Ordering::Relaxed);
        count(&self.searching) == 0
            && count(&self.napping) == 0
            && count(&self.guests) == 0
            && !self.idle.any(ANY)
    }

    /// Whether any worker but `me` is awake, if so many are `away`: idle spares. Exact for a worker
    /// that has left its requests before it asks: one that was seen asleep sees them before it
    /// pushes.
    #[cold]
    pub fn is_another_awake(&self, me: usize, away: impl FnOnce() -> usize) -> bool {
        let asleep = self.idle.count_others(me);
        // AcqRel: as there, of the places: a guest that comes acquires it.
        let free = self.places - Self::taken_places(self.guests.fetch_or(0, Ordering::AcqRel));
        1 + asleep + away() + free < self.parking.len()
    }

    /// Whether any worker neither sleeps nor searches, of those that are not `away`: idle spares,
    /// and places without a guest. Out of date at once.
    #[cold]
    pub fn does_anybody_run(&self, away: usize) -> bool {
        let idle = self.idle.count(ANY) + self.searching.load(Ordering::Relaxed) as u32;
        idle as usize + away < self.parking.len()
    }
}

// Those who sleep in a restricted wait: for the end of a stolen half, or for a part of it.

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
        // Relaxed, both: a hint; F2 orders it before the looks that need it. Written only if it
        // changes, so that its readers keep their copy of the line.
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

    /// The workers from which a wait for `thief` takes, nearest first: the thief, the worker that
    /// the thief waits for, and so on. A chain that changes meanwhile may name a worker twice.
    pub(crate) fn chain(&self, thief: Option<usize>) -> impl Iterator<Item = usize> {
        let next = |&worker: &usize| {
            (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1)
        };
        iter::successors(thief, next).take(self.reach)
    }

    /// A worker in a restricted wait has found nothing and goes to sleep, unless `look_again` says
    /// that there is something after all. It is no searcher, before or after. `look_again`
    /// looks at what the worker waits for, at what only it may take, and at the deques of its
    /// chain, on which it has left requests. Returns whether it has slept for so long as `time`
    /// says, if it says so, without being called.
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

    /// There is something to steal from `owner`: wakes a follower whose chain comes to it. Returns
    /// whether there was one.
    #[cold]
    pub(crate) fn call_follower(&self, owner: usize) -> bool {
        self.idle.each(FOLLOWING).any(|worker| {
            let thief = (self.thieves[worker].load(Ordering::Relaxed) as usize).checked_sub(1);
            self.chain(thief).any(|link| link == owner) && self.call_following(worker)
        })
    }

    /// Wakes a follower, unless another has.
    fn call_following(&self, worker: usize) -> bool {
        let taken = self.idle.take_out(worker, FOLLOWING);
        if taken {
            self.parking[worker].unpark(Caller::GoesOn);
        }
        taken
    }
}
