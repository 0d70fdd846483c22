//! `tail` and `split` in one word, and every way it may change.
//!
//! # Why one word
//!
//! A thief must take the task at `tail` only while that task is below `split`. If it looked at
//! `split` first and then moved `tail`, the owner could pull `split` down in between and pop the
//! same task. So the two are compared and swapped together (Figure 4, line 5).
//!
//! The paper lets the owner store `split` alone, fence, and read `tail` again (lines 41-57): half
//! of the word by a plain store, all of it by the thieves' compare-and-swap. Languages with a
//! memory model have no such access. Here the owner, too, changes the word by one compare-and-swap.
//! It costs what the paper's fence costs, since a locked instruction is a fence on x86-64, and it
//! leaves nothing to repair afterwards: `tail` cannot have moved beyond the new `split`.
//!
//! # Why it is correct
//!
//! All changes of the word are read-modify-writes or, in [`reset`](Bounds::reset), a store in a
//! state in which no thief's can succeed. So its values form one sequence, and each task is claimed
//! by the one change that takes it out of `tail..split`: a thief's, which steps `tail` over it, or
//! the owner's, which pulls `split` below it. That holds in any memory model with coherent words.
//!
//! *Handing over.* What the owner wrote to a slot must be seen by the thief that claims it. The
//! owner's [`share`](Bounds::share) releases. A thief's [`claim`](Bounds::claim) acquires, from
//! that very change or from a change that continues its release sequence: every later change but
//! `reset` is a read-modify-write, and `reset` is followed by a `share` before anything can be
//! claimed.
//!
//! # Exposure
//!
//! A thief, too, may move `split` up, over private tasks of an owner that does not come back to its
//! deque (see [`Stack::expose`](super::Stack::expose) for how it knows which). That takes a while,
//! so it has a beginning, which is a state of the word: `split` one *below* `tail`, which means
//! nothing else. The owner's next cold path [settles](Bounds::settle) it: it either finds the new
//! split, or takes the word out of that state and so makes the thief's last step fail. One thief at
//! a time exposes, by a lock that the owner never waits for; hence nobody but the thief that began
//! can have brought about the state that its last step replaces.
//!
//! *ABA.* The word can come back to a value a thief has read long ago. That does no harm: a claim
//! means "the task at `tail` of the state I replaced", and the thief reads the slot only
//! afterwards.

use core::marker::PhantomData;

use poach_memory::{Memory, Ordering, Word};

/// The shared word of a split deque: indices `tail` and `split`, 32 bits each, wrapping.
pub struct Bounds<M: Memory> {
    word: M::Word,
    memory: PhantomData<M>,
}

/// What came of a thief's attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The thief owns the tasks from index `first`, `count` of them, wrapping.
    Taken {
        /// Index of the oldest task claimed.
        first: u32,
        /// How many were claimed, at least one.
        count: u32,
    },
    /// There was no shared task.
    Empty,
    /// Another thief, or the owner, changed the word first.
    Lost,
}

#[inline(always)]
fn pack(tail: u32, split: u32) -> u64 {
    u64::from(split) << 32 | u64::from(tail)
}

#[inline(always)]
fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// The number of shared tasks; none while an exposure is under way.
#[inline(always)]
fn count(tail: u32, split: u32) -> u32 {
    (split.wrapping_sub(tail) as i32).max(0) as u32
}

impl<M: Memory> Bounds<M> {
    /// No task, the next one at `index`.
    pub fn new(index: u32) -> Self {
        Bounds { word: M::Word::new(pack(index, index)), memory: PhantomData }
    }

    /// A thief takes the oldest shared tasks: as many as `want` says of the number there are (at
    /// least one, at most all).
    ///
    /// Lock-free; one locked instruction if there is a task, none if not. Figure 4, lines 3 to 7:
    /// line 3 is the load, 4 the comparison, 5 the compare-and-swap, 6 and 7 what comes of it.
    #[inline]
    pub fn claim(&self, want: impl FnOnce(u32) -> u32) -> Claim {
        // Acquire: a thief that finds nothing sees the request as the owner had it when it moved
        // the split there, and so knows whether to raise it. (It claims by the compare-and-swap
        // below.)
        let seen = self.word.load(Ordering::Acquire);
        let (tail, split) = unpack(seen);
        let shared = count(tail, split);
        if shared == 0 {
            return Claim::Empty;
        }
        let count = want(shared);
        debug_assert!(count >= 1 && count <= shared, "a thief claims 1..=shared tasks");
        let new = pack(tail.wrapping_add(count), split);
        // Acquire: pairs with the release in `share`; see "Handing over".
        match self.word.compare_exchange(seen, new, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Claim::Taken { first: tail, count },
            Err(_) => Claim::Lost,
        }
    }

    /// The number of shared tasks that nobody has claimed. Any thread; wait-free; out of date at
    /// once.
    #[inline]
    pub fn shared(&self) -> u32 {
        // Relaxed: a count, not a claim. A thread that sleeps on it has a fence of its own.
        let (tail, split) = unpack(self.word.load(Ordering::Relaxed));
        count(tail, split)
    }

    /// The index of the next task that a thief would take. Any thread; wait-free.
    #[inline]
    pub fn tail(&self) -> u32 {
        // Acquire: who sees a claim here sees what the claiming thief had done before.
        unpack(self.word.load(Ordering::Acquire)).0
    }

    /// The index of the next task that a thief would take. A claim that comes later sees all that
    /// the owner, which calls, has done. Wait-free; one locked instruction.
    pub(super) fn claimed(&self) -> u32 {
        // AcqRel: pairs with the acquires of claims; the word is changed by read-modify-writes
        // alone.
        unpack(self.word.fetch_add(0, Ordering::AcqRel)).0
    }

    /// The owner takes shared tasks back, the younger half of them (at least one), and returns the
    /// new `split`; `None` if thieves have claimed them all.
    ///
    /// Lock-free: it starts again only if a thief claimed a task meanwhile. Figure 4, lines 41 to
    /// 57: line 42 is the load, 43 the comparison, 44 the half, 45 and 47 to 53 the
    /// compare-and-swap and its loop, 54 to 57 what comes of it. The caller does line 46.
    #[inline]
    pub fn take_back(&self) -> Option<u32> {
        // Relaxed: the compare-and-swap validates it, and if all is claimed, the answer "all" can
        // only become truer.
        let mut seen = self.word.load(Ordering::Relaxed);
        loop {
            let (tail, split) = unpack(seen);
            let shared = count(tail, split);
            if shared == 0 {
                return None;
            }
            let new = tail.wrapping_add(shared / 2);
            // Relaxed: the tasks taken back are the owner's own writes, and a thief learns nothing
            // from a smaller split that it would have to see. It keeps the release sequence of the
            // last `share` going, being a read-modify-write.
            match self.word.compare_exchange(
                seen,
                pack(tail, new),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(new),
                Err(now) => seen = now,
            }
        }
    }

    /// The owner declares everything below `index` gone and `index` free: only while all shared
    /// tasks are claimed, that is after [`take_back`](Bounds::take_back) has answered `None`.
    ///
    /// In that state `tail` equals `split`, so every thief's compare-and-swap expects another
    /// value, and this store overwrites nobody's claim.
    #[inline]
    pub fn reset(&self, index: u32) {
        debug_assert_eq!(self.shared(), 0, "a reset while tasks could still be claimed");
        // Release: pairs with the exchange and the fence of an exposure (E1, E2), which then sees
        // `index` without the task that was there (`retire`). Where owners fence, nothing
        // else orders the two stores.
        self.word.store(pack(index, index), Ordering::Release);
    }
}

impl<M: Memory> Bounds<M> {
    /// A thief begins to expose private tasks, if nothing is shared: the index of the first, if
    /// there is one. One thief at a time.
    pub(super) fn begin_exposure(&self) -> Option<u32> {
        // Relaxed, both: nothing has been written that others must see; the exposure's fences
        // follow.
        let seen = self.word.load(Ordering::Relaxed);
        let (tail, split) = unpack(seen);
        if tail != split {
            return None;
        }
        let begun = pack(tail, tail.wrapping_sub(1));
        self.word
            .compare_exchange(seen, begun, Ordering::Relaxed, Ordering::Relaxed)
            .ok()
            .map(|_| tail)
    }

    /// The thief that has begun at `tail` shares the first `tasks` private ones, or none, unless
    /// the owner has been at its deque meanwhile.
    pub(super) fn end_exposure(&self, tail: u32, tasks: u32) -> bool {
        let begun = pack(tail, tail.wrapping_sub(1));
        let new = pack(tail, tail.wrapping_add(tasks));
        // Release: as `share`; the thief has acquired the slots that it hands on.
        self.word.compare_exchange(begun, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The owner asks where `split` is, and ends an exposure that is under way.
    ///
    /// Lock-free; one load if there is none.
    pub(super) fn settle(&self) -> u32 {
        // Acquire: what an exposing thief did is over.
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let (tail, split) = unpack(seen);
            if split != tail.wrapping_sub(1) {
                return split;
            }
            match self.word.compare_exchange(
                seen,
                pack(tail, tail),
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return tail,
                Err(now) => seen = now,
            }
        }
    }

    /// The owner moves `split` from `from` up to `to`: tasks below `to` are now shared. Whether it
    /// did: a thief that has exposed tasks has moved the split. Figure 4, line 38.
    ///
    /// `tail` is what the owner takes for the tail. An owner that was asked says `from`, since the
    /// asking thief has found nothing shared. It does not look at the word first, which would fetch
    /// it from the thieves' cache to be read, and once more to be written.
    ///
    /// Lock-free.
    pub fn share(&self, tail: u32, from: u32, to: u32) -> bool {
        let mut seen = pack(tail, from);
        loop {
            let (tail, split) = unpack(seen);
            if split != from {
                return false;
            }
            // Release: hands the slots below `to` over to the claims that follow.
            match self.word.compare_exchange(
                seen,
                pack(tail, to),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_memory::Machine;

    #[test]
    fn claims_run_from_the_oldest_to_the_split() {
        let bounds = Bounds::<Machine>::new(0);
        assert_eq!(bounds.claim(|_| 1), Claim::Empty);
        assert!(bounds.share(0, 0, 3));
        assert_eq!(bounds.claim(|_| 1), Claim::Taken { first: 0, count: 1 });
        assert_eq!(bounds.claim(|shared| shared), Claim::Taken { first: 1, count: 2 });
        assert_eq!(bounds.claim(|_| 1), Claim::Empty);
    }

    #[test]
    fn the_owner_takes_back_the_younger_half_and_never_less_than_one() {
        let bounds = Bounds::<Machine>::new(0);
        assert!(bounds.share(0, 0, 5));
        assert_eq!(bounds.take_back(), Some(2));
        assert_eq!(bounds.take_back(), Some(1));
        assert_eq!(bounds.take_back(), Some(0));
        assert_eq!(bounds.take_back(), None);
    }

    #[test]
    fn an_exposure_shares_private_tasks_unless_the_owner_comes_back() {
        let bounds = Bounds::<Machine>::new(5);
        let tail = bounds.begin_exposure().unwrap();
        assert_eq!(bounds.shared(), 0);
        assert_eq!(bounds.claim(|_| 1), Claim::Empty);
        assert_eq!(bounds.take_back(), None);
        assert!(bounds.end_exposure(tail, 2));
        assert_eq!(bounds.settle(), 7);
        assert_eq!(bounds.claim(|shared| shared), Claim::Taken { first: 5, count: 2 });
        let tail = bounds.begin_exposure().unwrap();
        assert_eq!(bounds.settle(), 7);
        assert!(!bounds.end_exposure(tail, 1));
        assert_eq!(bounds.shared(), 0);
        assert!(bounds.share(7, 7, 8));
        assert!(bounds.begin_exposure().is_none());
    }

    #[test]
    fn indices_wrap_without_a_carry_between_the_halves() {
        let start = u32::MAX - 1;
        let bounds = Bounds::<Machine>::new(start);
        assert!(bounds.share(start, start, start.wrapping_add(4)));
        assert_eq!(bounds.shared(), 4);
        for step in 0..3 {
            let first = start.wrapping_add(step);
            assert_eq!(bounds.claim(|_| 1), Claim::Taken { first, count: 1 });
        }
        assert_eq!(bounds.shared(), 1);
        assert_eq!(bounds.take_back(), Some(1));
        assert_eq!(bounds.tail(), 1);
    }
}
