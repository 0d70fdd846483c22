//! Who sleeps, who searches, and who wakes whom.
//!
#![doc = include_str!("README.md")]

use std::time::Duration;

use poach_memory::{CachePadded, Memory, Ordering, Word};

mod follow;
pub(crate) mod parking;
// loom brings its own threads, which Miri cannot run.
mod guests;
#[cfg(all(test, not(miri)))]
mod model;
pub(crate) mod wake_policy;

/// A place where one thread sleeps until it is called; a call that comes first is kept.
pub(crate) trait Parking: Send + Sync {
    fn new() -> Self;
    /// Sleeps until called. Only the worker itself.
    fn park(&self);
    /// As `park`, but at most for so long. Returns whether it was called.
    fn park_for(&self, time: Duration) -> bool;
    /// Calls the sleeper, now or at its next `park`.
    fn unpark(&self, caller: Caller);
}

/// What the thread that calls a sleeper does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It goes on, on its processor.
    GoesOn,
    /// It blocks, and leaves its processor to the sleeper.
    Blocks,
}

/// The sleepers and searchers of one pool.
pub(crate) struct Sleep<M: Memory, S> {
    /// How many workers are looking for work. Those that were woken count from the moment at which
    /// somebody decided to wake them.
    searching: CachePadded<M::Word>,
    /// One bit a worker: set by the worker when it goes to sleep, cleared by whoever wakes it.
    asleep: CachePadded<Box<[M::Word]>>,
    /// One bit a worker, meaningful while it sleeps: whether it has left no request and sleeps for a
    /// bounded time, so that owners need not call it. Written by the worker while it is awake.
    resting: CachePadded<Box<[M::Word]>>,
    /// One bit a worker: as `asleep`, for those in a restricted wait.
    following: CachePadded<Box<[M::Word]>>,
    /// Whom each worker waits for: the thief's index plus one, or zero. Written by the worker.
    thieves: Box<[CachePadded<M::Word>]>,
    /// How far along `thieves` a restricted wait takes work.
    reach: usize,
    /// Where each worker parks.
    parking: Box<[S]>,
    /// Which places of guests are taken, and for which of them a worker is to stand aside: see `guests`.
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

const BITS: usize = 64;

/// The longest nap.
pub(crate) const LONGEST: Duration = Duration::from_secs(1);

// Relaxed, throughout: the fences order these words against each other and against visible work, and
// what is handed over is handed over by the work's own words and by the call.
impl<M: Memory, S: Parking> Sleep<M, S> {
    pub(crate) fn new(workers: usize, places: usize, reach: usize) -> Self {
        assert!(places <= guests::MOST, "more places of guests than a word has bits for");
        Sleep {
            searching: CachePadded::new(M::Word::new(0)),
            asleep: CachePadded::new(bits::<M>(workers)),
            resting: CachePadded::new(bits::<M>(workers)),
            following: CachePadded::new(bits::<M>(workers)),
            thieves: (0..workers).map(|_| CachePadded::new(M::Word::new(0))).collect(),
            reach,
            parking: (0..workers).map(|_| S::new()).collect(),
            guests: CachePadded::new(M::Word::new(0)),
            places,
        }
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
            self.call_one(caller, |_| 0);
        }
    }

    /// As [`wake_one`](Sleep::wake_one), for work in the deque of `owner`: those who rest are left
    /// alone, and if nobody else is there, one who follows that owner may have it. Returns whether it has woken one.
    #[cold]
    pub(crate) fn wake_for(&self, owner: usize) -> bool {
        // P2: pairs with S3, L2 and F2.
        M::full();
        // P3.
        if self.searching.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // P4. While guests are in, as many workers stand aside.
        let calls = !self.leaves_it_to_guests();
        calls && self.call_one(Caller::GoesOn, |group| self.rests(group))
            || self.call_follower(owner)
    }

    fn rests(&self, group: usize) -> u64 {
        self.resting[group].load(Ordering::Relaxed)
    }

    /// Wakes one of those who sleep, but for those that `except` names in each group. Returns whether
    /// there was one.
    fn call_one(&self, caller: Caller, except: impl Fn(usize) -> u64) -> bool {
        for (group, word) in self.asleep.iter().enumerate() {
            loop {
                let sleepers = word.load(Ordering::Relaxed) & !except(group);
                if sleepers == 0 {
                    break;
                }
                if self.call(group * BITS + sleepers.trailing_zeros() as usize, caller) {
                    return true;
                }
            }
        }
        false
    }

    /// What `worker` waits for has happened: wakes it, if it sleeps.
    #[inline]
    pub(crate) fn wake(&self, worker: usize) {
        // P2: pairs with S3 and F2.
        M::full();
        let (group, bit) = (worker / BITS, Self::bit(worker));
        if self.asleep[group].load(Ordering::Relaxed) & bit != 0 {
            self.call(worker, Caller::GoesOn);
        } else if self.following[group].load(Ordering::Relaxed) & bit != 0 {
            self.call_from(&self.following, worker);
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        for worker in 0..self.parking.len() {
            self.wake(worker);
        }
    }

    /// P5: wakes this sleeper, unless another has.
    #[cold]
    fn call(&self, worker: usize, caller: Caller) -> bool {
        if !self.take_bit(worker) {
            return false;
        }
        self.parking[worker].unpark(caller);
        true
    }

    /// Makes a sleeper a searcher. Whoever clears the bit, and nobody else, must see that it runs.
    fn take_bit(&self, worker: usize) -> bool {
        let taken = self.clear_bit(worker);
        if taken {
            self.searching.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    fn clear_bit(&self, worker: usize) -> bool {
        let bit = Self::bit(worker);
        // AcqRel: as in `set_bit`.
        self.asleep[worker / BITS].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    fn set_bit(&self, worker: usize) {
        // AcqRel: pairs with `clear_bit`. Whoever calls a worker sees why it sleeps (`resting`).
        self.asleep[worker / BITS].fetch_or(Self::bit(worker), Ordering::AcqRel);
    }

    fn bit(worker: usize) -> u64 {
        1 << (worker % BITS)
    }

    /// Whether some worker is looking for work, or sleeps for want of it. Any thread; wait-free; out of
    /// date at once.
    #[inline]
    pub(crate) fn is_anybody_hungry(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
            || (!self.is_full() && self.sleepers() != 0)
            || self.following.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Whether anybody is looking for work, or has been called to. Any thread; out of date at once.
    pub(crate) fn is_anybody_searching(&self) -> bool {
        self.searching.load(Ordering::Relaxed) != 0
    }

    /// A worker begins to search.
    pub(crate) fn search(&self) {
        self.searching.fetch_add(1, Ordering::Relaxed);
    }

    /// A searcher has found something. If it was the last and others sleep, they have lost their
    /// lookout: then `true`, and the caller must see to them as line L3 says.
    pub(crate) fn found(&self) -> bool {
        // L1.
        let last = self.searching.fetch_sub(1, Ordering::Relaxed) == 1;
        // L2: pairs with P2.
        M::full();
        let sleeps = |(group, word): (usize, &M::Word)| {
            (word.load(Ordering::Relaxed) & !self.rests(group)) != 0
                || self.following[group].load(Ordering::Relaxed) != 0
        };
        last && self.asleep.iter().enumerate().any(sleeps) && !self.leaves_it_to_guests()
    }

    /// A searcher has found nothing and goes to sleep, unless `look_again` says that there is
    /// something after all; if `time` is given, at most for so long. It is a searcher still, or again, when
    /// this returns.
    ///
    /// `look_again` first leaves a request with every victim, and then looks at everything that
    /// anybody would wake it for.
    pub(crate) fn sleep(
        &self,
        worker: usize,
        time: Option<Duration>,
        look_again: impl FnOnce() -> bool,
    ) -> Slept {
        self.resting[worker / BITS].fetch_and(!Self::bit(worker), Ordering::Relaxed);
        if !self.lie_down(worker, look_again) {
            return Slept::NotAtAll;
        }
        if let Some(time) = time {
            let over = self.nap(worker, time);
            return if over { Slept::ToTheEnd } else { Slept::Called };
        }
        // S6. If the bit was gone, somebody has called already, and this returns at once.
        self.parking[worker].park();
        Slept::Called
    }

    /// As [`sleep`](Sleep::sleep), for a worker with nothing under way that has left no request and
    /// wants none answered: at most for so long, and work in somebody's deque does not wake it.
    /// `look_again` looks at everything else.
    pub(crate) fn rest(&self, worker: usize, time: Duration, look_again: impl FnOnce() -> bool) {
        self.resting[worker / BITS].fetch_or(Self::bit(worker), Ordering::Relaxed);
        if self.lie_down(worker, look_again) {
            self.nap(worker, time);
        }
    }

    /// Lines R6 and R7. Returns whether the time was over before anybody called.
    fn nap(&self, worker: usize, mut time: Duration) -> bool {
        while !self.parking[worker].park_for(time) {
            if self.take_bit(worker) {
                return true;
            }
            // Somebody calls just now.
            time = (time * 2).min(LONGEST);
        }
        false
    }

    /// Lines S1 to S5. Returns whether the worker is to sleep.
    fn lie_down(&self, worker: usize, look_again: impl FnOnce() -> bool) -> bool {
        // S1.
        self.set_bit(worker);
        // S2.
        self.searching.fetch_sub(1, Ordering::Relaxed);
        // S3: pairs with P2.
        M::full();
        // S4 and S5.
        !(look_again() && self.take_bit(worker))
    }

    /// Whether any worker but `me` is awake, if so many are `away`: idle spares. Exact for a worker that has left its
    /// requests before it asks: one that was seen asleep sees them before it pushes.
    #[cold]
    pub(crate) fn is_another_awake(&self, me: usize, away: impl FnOnce() -> usize) -> bool {
        // AcqRel: a read that is a write, so that whoever clears one of these bits afterwards acquires what this
        // worker has written before.
        let bits = |word: &M::Word| word.fetch_or(0, Ordering::AcqRel);
        let (mut asleep, mut i_am_awake) = (0, 0);
        for (group, (sleeping, following)) in self.asleep.iter().zip(&*self.following).enumerate() {
            let bits = bits(sleeping) | bits(following);
            asleep += bits.count_ones() as usize;
            if group == me / BITS {
                i_am_awake = usize::from(bits & Self::bit(me) == 0);
            }
        }
        // Of the places, too: a guest that comes acquires it.
        let free = self.places - Self::taken_places(self.guests.fetch_or(0, Ordering::AcqRel));
        asleep + i_am_awake + away() + free < self.parking.len()
    }

    /// Whether any worker neither sleeps nor searches, of those that are not `away`: idle spares,
    /// and places without a guest. Out of date at once.
    #[cold]
    pub(crate) fn does_anybody_run(&self, away: usize) -> bool {
        let sleepers = |(asleep, following): (&M::Word, &M::Word)| {
            (asleep.load(Ordering::Relaxed) | following.load(Ordering::Relaxed)).count_ones()
                as usize
        };
        let asleep: usize = self.asleep.iter().zip(self.following.iter()).map(sleepers).sum();
        asleep + away + (self.searching.load(Ordering::Relaxed) as usize) < self.parking.len()
    }
}

fn bits<M: Memory>(workers: usize) -> Box<[M::Word]> {
    (0..workers.div_ceil(BITS)).map(|_| M::Word::new(0)).collect()
}
