//! The states of idle workers, as other threads see them: one array, four bits a worker.
//!
//! The states and the transitions between them are drawn in the README. Only the worker itself
//! enters a state, and only from none, so a worker is in at most one. A read-modify-write that
//! clears the state's bit ends it: the worker's own, or that of a thread that calls it. The thread
//! that finds the bit set has taken the worker out, and no other thread has.

use poach_memory::{CachePadded, Memory, Ordering, Word};

/// The state of a worker that neither runs anything nor searches. A set of states is their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Idle {
    /// It sleeps for want of work, until a call or the end of a nap, and has left requests.
    Asleep = 1,
    /// It sleeps for a bounded time and has left no request; owners need not call it.
    Resting = 2,
    /// It sleeps in a restricted wait.
    Following = 4,
}

#[derive(Clone, Copy)]
pub(super) struct Set(u64);

pub(super) const ASLEEP: Set = Set(Idle::Asleep as u64);
pub(super) const RESTING: Set = Set(Idle::Resting as u64);
pub(super) const FOLLOWING: Set = Set(Idle::Following as u64);
/// The states whose worker is a searcher before and afterwards.
pub(super) const SLEEPERS: Set = ASLEEP.and(RESTING);
pub(super) const ANY: Set = SLEEPERS.and(FOLLOWING);

impl Set {
    pub(super) const fn and(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    /// The bits of these states, for all workers of a word.
    const fn of_all(self) -> u64 {
        self.0 * (u64::MAX / 0xf)
    }
}

const WIDTH: usize = 4;
const WORKERS: usize = 64 / WIDTH;

/// The index of the worker's word, and its shift in it.
const fn position(worker: usize) -> (usize, usize) {
    (worker / WORKERS, worker % WORKERS * WIDTH)
}

pub(super) struct States<M: Memory> {
    words: CachePadded<Box<[M::Word]>>,
}

impl<M: Memory> States<M> {
    pub(super) fn new(workers: usize) -> Self {
        let words = (0..workers.div_ceil(WORKERS)).map(|_| M::Word::new(0)).collect();
        States { words: CachePadded::new(words) }
    }

    /// The worker enters a state. Only the worker itself may call this, while it is in none.
    pub(super) fn enter(&self, worker: usize, state: Idle) {
        let (word, shift) = position(worker);
        // AcqRel: pairs with `take_out`. A thread that takes a worker out acquires what the worker
        // did before.
        self.words[word].fetch_or((state as u64) << shift, Ordering::AcqRel);
    }

    /// Takes a worker out of its state, if that is one of these. The thread that gets `true`, and
    /// no other, must see that the worker runs: another thread calls it, the worker itself goes on.
    pub(super) fn take_out(&self, worker: usize, states: Set) -> bool {
        let (word, shift) = position(worker);
        let bits = states.0 << shift;
        // AcqRel: as in `enter`.
        self.words[word].fetch_and(!bits, Ordering::AcqRel) & bits != 0
    }

    /// Whether the worker is in one of these states. Relaxed, here and below: as in the parent.
    #[inline]
    pub(super) fn is(&self, worker: usize, states: Set) -> bool {
        let (word, shift) = position(worker);
        self.words[word].load(Ordering::Relaxed) & states.0 << shift != 0
    }

    pub(super) fn first(&self, states: Set) -> Option<usize> {
        self.each(states).next()
    }

    /// The workers in one of these states; each word is read when the iterator comes to it.
    pub(super) fn each(&self, states: Set) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(move |(index, word)| {
            let mut left = word.load(Ordering::Relaxed) & states.of_all();
            std::iter::from_fn(move || {
                let shift = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (shift < 64).then(|| index * WORKERS + shift / WIDTH)
            })
        })
    }

    /// Whether any worker is in one of these states.
    #[inline]
    pub(super) fn any(&self, states: Set) -> bool {
        self.words.iter().any(|word| word.load(Ordering::Relaxed) & states.of_all() != 0)
    }

    /// How many workers are in one of these states.
    #[inline]
    pub(super) fn count(&self, states: Set) -> u32 {
        let count = |word: &M::Word| (word.load(Ordering::Relaxed) & states.of_all()).count_ones();
        self.words.iter().map(count).sum()
    }

    /// The number of workers but `me` in a state, by reads that are writes: a thread that takes one
    /// of them out afterwards acquires what this worker has written before.
    #[cold]
    pub(super) fn count_others(&self, me: usize) -> usize {
        let (mine, shift) = position(me);
        let count = |(index, word): (usize, &M::Word)| {
            let others = if index == mine { !(0xf << shift) } else { u64::MAX };
            // AcqRel, for that.
            (word.fetch_or(0, Ordering::AcqRel) & others).count_ones() as usize
        };
        self.words.iter().enumerate().map(count).sum()
    }
}

// loom's words stand in its models alone.
#[cfg(test)]
mod tests {
    use poach_memory::Machine;

    use super::*;

    #[test]
    fn a_worker_is_in_one_state_and_taken_out_once() {
        let states = States::<Machine>::new(40);
        for (worker, state) in [(3, Idle::Asleep), (17, Idle::Resting), (39, Idle::Following)] {
            states.enter(worker, state);
        }
        assert_eq!(states.each(ANY).collect::<Vec<_>>(), [3, 17, 39]);
        assert_eq!(states.each(SLEEPERS).collect::<Vec<_>>(), [3, 17]);
        assert_eq!((states.first(FOLLOWING), states.count(SLEEPERS)), (Some(39), 2));
        assert!(states.is(17, RESTING) && !states.is(17, ASLEEP) && !states.is(16, ANY));
        assert_eq!((states.count_others(3), states.count_others(4)), (2, 3));
        // Of another state nobody is taken out.
        assert!(!states.take_out(17, ASLEEP) && states.take_out(17, SLEEPERS));
        assert!(!states.take_out(17, SLEEPERS) && !states.any(RESTING));
        assert_eq!(states.each(ANY).collect::<Vec<_>>(), [3, 39]);
    }
}
