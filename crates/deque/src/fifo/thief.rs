//! The thieves' side: the right column of the table in the module comment.

use std::sync::Arc;

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{Fifo, ONE, OPEN, Shared, Thief, above, index_of, opened};
use crate::ring::{Claimed, Rings};
use crate::{Owner, Steal};

/// A thief that keeps its distance waits if there are fewer tasks than these.
const NEAR: i64 = 32;

/// How many tasks are to come in while it waits for a claim of several.
const ENOUGH: u64 = 128;

/// The same for a single theft. Nobody but thieves moves `head` while the owner pushes. A thief of single tasks that waits too long misses
/// that time. It then takes its tasks between the owner's pops, where each theft waits for the line of `head` and makes the owner wait for it.
const ENOUGH_FOR_ONE: u64 = 64;

/// The first and the longest wait, in pauses: a tenth of a microsecond, and twelve.
const FIRST_PACE: u64 = 4;
const LONGEST_PACE: u64 = 512;

/// An owner that pushes or pops less than once in so many pauses does not wait for cache lines, and thieves do not wait for it.
const SLOW: u64 = 4;

/// Pauses of a thief after an exchange over a single task that it has lost: under a microsecond. In that time the owner takes some
/// tasks without the thief's request for the line of `head`.
const LOST: u32 = 16;

impl<T, M: Memory> Shared<T, M> {
    /// Claims as many of the oldest tasks as `want` says of their number; `Empty` if it wants none.
    #[inline]
    fn claim(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: `move_head` claimed these indices for this call alone, and a tail above them was acquired.
        self.move_head(want, ENOUGH, M::full)
            .map(|(first, count)| unsafe { self.rings.claimed(first, count) })
    }

    /// As [`claim`](Shared::claim), but `Empty` is said without a fence: nobody who pushes and then looks for sleepers may count
    /// on it.
    #[inline]
    fn claim_unfenced(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: as in `claim`.
        self.move_head(want, ENOUGH, || ())
            .map(|(first, count)| unsafe { self.rings.claimed(first, count) })
    }

    /// Whether no task is seen, without a fence: see [`claim_unfenced`](Shared::claim_unfenced).
    #[inline]
    fn seems_empty(&self) -> bool {
        // Acquire: as in `move_head`.
        let front = self.front(self.thieves.head.load(Ordering::Acquire));
        // Acquire: pairs with the release in `publish`: who is told of a task has seen what came before its push.
        above(self.owner.tail.load(Ordering::Acquire), front) <= 0
    }

    /// Takes the oldest task.
    #[inline]
    fn steal(&self) -> Steal<T> {
        let thieves = &self.thieves;
        // Acquire: who takes a task has seen what came before the thefts of the older ones, as with crossbeam-deque's.
        let head = thieves.head.load(Ordering::Acquire);
        // Acquire: pairs with the release in `move_head`, by a thief that had acquired this tail.
        let known = thieves.known.load(Ordering::Acquire);
        let claimed = if head & OPEN != 0 && above(known, head) > 0 {
            let claimed = self.step_over(head, 1);
            if claimed.is_retry() {
                self.back_off();
            }
            claimed
        } else {
            self.move_head(|_| 1, ENOUGH_FOR_ONE, M::full)
        };
        // SAFETY: as in `claim`.
        claimed.map(|(first, _)| unsafe { self.rings.take(first) })
    }

    /// The first of the indices that were claimed, and how many. `enough`: see "Distance". `fence` comes before the second look at a
    /// queue that seems empty.
    #[inline(always)]
    fn move_head(
        &self,
        want: impl FnOnce(u64) -> u64,
        enough: u64,
        fence: impl FnOnce(),
    ) -> Steal<(u64, u32)> {
        // Acquire: whoever moved `head` here, or opened the queue, had seen a tail at or above it; this one must not see an
        // older. Of a closed queue, as in `pop_and_close`.
        let mut head = self.thieves.head.load(Ordering::Acquire);
        let front = self.front(head);
        // Acquire: pairs with the release in `publish`.
        let mut tail = self.owner.tail.load(Ordering::Acquire);
        if above(tail, front) <= 0 {
            // See "Emptiness".
            fence();
            // Acquire: as above.
            tail = self.owner.tail.load(Ordering::Acquire);
            if above(tail, front) <= 0 {
                return Steal::Empty;
            }
        }
        if head & OPEN == 0 {
            self.request_or_open(head);
            // Acquire: as in `steal`.
            head = self.thieves.head.load(Ordering::Acquire);
            // Acquire: as above.
            tail = self.owner.tail.load(Ordering::Acquire);
            if head & OPEN == 0 || above(tail, head) <= 0 {
                return Steal::Retry;
            }
        }
        // Relaxed: a hint.
        let pace = self.thieves.pace.load(Ordering::Relaxed);
        let is_near = above(tail, head) < NEAR;
        if is_near && pace > 0 {
            tail = self.keep_distance(head, tail, pace, enough);
            // Acquire: as above.
            head = self.thieves.head.load(Ordering::Acquire);
            if head & OPEN == 0 || above(tail, head) <= 0 {
                return Steal::Retry;
            }
        }
        // Release: pairs with the acquire in `steal`. A slow store of an older tail costs time alone.
        self.thieves.known.store(tail, Ordering::Release);
        let tasks = above(tail, head) as u64;
        let claimed = match want(tasks).min(tasks) as u32 {
            0 => return Steal::Empty,
            count => self.step_over(head, count),
        };
        // Relaxed, both: hints.
        if is_near
            && pace == 0
            && (claimed.is_retry() || self.owner.tail.load(Ordering::Relaxed) != tail)
        {
            self.thieves.pace.store(FIRST_PACE.min(self.looks.into()), Ordering::Relaxed);
        }
        claimed
    }

    /// Lets the owner get ahead, by `enough` tasks if it pushes: the tail then.
    #[cold]
    #[inline(never)]
    fn keep_distance(&self, head: u64, tail: u64, pace: u64, enough: u64) -> u64 {
        for _ in 0..pace {
            M::pause();
        }
        // Acquire: as in `move_head`.
        let now = self.owner.tail.load(Ordering::Acquire);
        let came = now.wrapping_sub(tail);
        // Relaxed: a hint. What has been taken meanwhile: nothing, if an owner puts back what it has added to an empty queue.
        let gone =
            index_of(self.thieves.head.load(Ordering::Relaxed)).saturating_sub(index_of(head));
        let pace = match came + gone {
            0 => 0,
            // The owner takes its time with each task, and nobody waits for a line.
            all if all < pace / SLOW => pace / 2,
            _ if came > 2 * enough => (pace / 2).max(1),
            _ if came < enough => (2 * pace).min(LONGEST_PACE),
            _ => pace,
        };
        // Relaxed: a hint.
        self.thieves.pace.store(pace, Ordering::Relaxed);
        now
    }

    /// After a lost exchange: lets the owner get ahead before the caller tries again.
    #[cold]
    #[inline(never)]
    fn back_off(&self) {
        for _ in 0..LOST.min(self.looks) {
            M::pause();
        }
    }

    /// Steps over `count` indices, which are open and below the tail.
    #[inline(always)]
    fn step_over(&self, head: u64, count: u32) -> Steal<(u64, u32)> {
        let next = head.wrapping_add(u64::from(count) * ONE);
        // Release: keeps the next thief's acquire of `head` good for what this one had seen.
        match self.thieves.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Steal::Success((index_of(head), count)),
            Err(_) => Steal::Retry,
        }
    }

    /// The queue was closed when `head` was read: asks the owner to open it, and does so itself if the owner does not answer.
    #[cold]
    #[inline(never)]
    pub(super) fn request_or_open(&self, head: u64) {
        // Relaxed: if it is raised, that was after the lowering that came before the queue was closed.
        if self.request.load(Ordering::Relaxed) == 0 {
            // A read-modify-write, as the policy asks of an announcement.
            self.request.swap(1, Ordering::SeqCst);
        }
        for _ in 0..self.looks {
            M::pause();
            // Relaxed: the caller looks again.
            if self.thieves.head.load(Ordering::Relaxed) != head {
                return;
            }
        }
        self.owner.policy.thief();
        // Acquire: pairs with the release in `pop`; so the exchange hands on a tail at or above it.
        let taken = self.owner.taken.load(Ordering::Acquire);
        // Release: as said. If it fails the period is over.
        let _ = self.thieves.head.compare_exchange(
            head,
            opened(taken),
            Ordering::Release,
            Ordering::Relaxed,
        );
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        // Acquire: as in `move_head`.
        let front = self.front(self.thieves.head.load(Ordering::Acquire));
        // Pairs with a fence of who has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: as in `seems_empty`.
        usize::try_from(above(self.owner.tail.load(Ordering::Acquire), front)).unwrap_or(0)
    }

    /// Whether [`len`](Shared::len) is 0, with as little as possible between the fence and the answer.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // Acquire, here and below, and the fence: as in `len`.
        let first = index_of(self.front(self.thieves.head.load(Ordering::Acquire)));
        M::full();
        // By the sign, which is a flag less than a comparison.
        first.wrapping_sub(self.owner.tail.load(Ordering::Acquire)) as i64 >= 0
    }
}

impl<T, M: Memory> Thief<T, M> {
    /// Claims as many of the oldest tasks as `want` says of their number: what `one` makes of a single one, for which no claim is put
    /// together, or `several` of more.
    #[inline(always)]
    pub(crate) fn claim_for<R>(
        &self,
        want: impl FnOnce(u64) -> u64,
        one: impl FnOnce(T) -> R,
        several: impl FnOnce(Claimed<'_, T, M>) -> R,
    ) -> Steal<R> {
        let rings = &self.shared.rings;
        self.shared.move_head(want, ENOUGH, M::full).map(|(first, count)| {
            if count == 1 {
                // SAFETY: `move_head` claimed this index for this call alone, and a tail above it was acquired.
                one(unsafe { rings.take(first) })
            } else {
                // SAFETY: the same of these.
                several(unsafe { rings.claimed(first, count) })
            }
        })
    }

    #[inline(always)]
    pub(crate) fn claim_unfenced(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        self.shared.claim_unfenced(want)
    }

    #[inline(always)]
    pub(crate) fn seems_empty(&self) -> bool {
        self.shared.seems_empty()
    }

    #[inline(always)]
    pub(crate) fn rings(&self) -> &Rings<T, M> {
        &self.shared.rings
    }

    /// Whether `owner` owns this queue.
    pub(crate) fn belongs_to(&self, owner: &Fifo<T, M>) -> bool {
        Arc::ptr_eq(&self.shared, &owner.shared)
    }
}

impl<T, M: Memory> Thief<T, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.shared.steal()
    }

    /// Takes the older half by one compare-and-swap.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.shared.claim(|length| length.div_ceil(2)) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            Steal::Empty => Steal::Empty,
            Steal::Retry | Steal::Abort => Steal::Retry,
        }
    }

    /// The number of tasks that this thief sees.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether this thief sees no task.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }
}

impl<T: Send, M: Memory> crate::Thief<T> for Thief<T, M> {
    #[inline]
    fn steal(&self) -> Steal<T> {
        Thief::steal(self)
    }

    fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        Thief::steal_half(self, into)
    }

    fn len(&self) -> usize {
        Thief::len(self)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        Thief::is_empty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::tests::Told;

    impl<T, M: Memory> Thief<T, M> {
        pub(in super::super) fn head(&self) -> u64 {
            self.shared.thieves.head.load(Ordering::Relaxed)
        }

        fn pace(&self) -> u64 {
            self.shared.thieves.pace.load(Ordering::Relaxed)
        }
    }

    /// A queue of four slots whose thieves wait for the owner's answer.
    fn waited_for<M: Memory>(patience: u32) -> Fifo<u64, M> {
        Fifo::with_patience(4, 0, patience, 8).unwrap()
    }

    #[test]
    fn a_thief_opens_the_queue_of_an_owner_that_does_not_answer() {
        let owner: Fifo<u64> = waited_for(0);
        (0..2).for_each(|task| owner.push(task));
        let thief = owner.thief();
        assert_eq!((owner.pop(), thief.head() & OPEN), (Some(0), 0));
        assert_eq!(thief.steal(), Steal::Success(1));
    }

    #[test]
    fn a_thief_whose_request_is_answered_by_the_pop_of_the_last_task_tries_again() {
        let owner: Fifo<u64, Told> = waited_for(0);
        owner.push(0);
        let thief = owner.thief();
        Told::at_a_pause(move || assert_eq!((owner.pop(), owner.pop()), (Some(0), None)));
        assert_eq!(thief.steal(), Steal::Retry);
        assert_eq!(thief.steal(), Steal::Empty);
    }

    #[test]
    fn a_thief_that_has_waited_takes_what_is_there_then() {
        let others = |tasks: u64| {
            let owner: Fifo<u64, Told> = waited_for(32);
            (0..2).for_each(|task| owner.push(task));
            let (thief, other) = (owner.thief(), owner.thief());
            owner.shared.thieves.pace.store(1, Ordering::Relaxed);
            Told::at_a_pause(move || {
                (0..tasks).for_each(|task| assert_eq!(other.steal(), Steal::Success(task)));
            });
            thief.steal()
        };
        assert_eq!(
            (others(0), others(1), others(2)),
            (Steal::Success(0), Steal::Success(1), Steal::Retry)
        );
    }

    #[test]
    fn a_thief_says_which_tail_it_has_seen() {
        let owner: Fifo<u64> = waited_for(32);
        (0..3).for_each(|task| owner.push(task));
        assert_eq!(owner.thief().steal(), Steal::Success(0));
        assert_eq!(owner.shared.thieves.known.load(Ordering::Relaxed), 3);
    }

    /// The pace that a thief sets, or leaves, that takes one of `tasks` while something else happens.
    fn pace_after(tasks: u64, before: u64, act: impl FnOnce(&Fifo<u64>)) -> u64 {
        let owner: Fifo<u64> = Fifo::with_patience(256, 0, 32, 8).unwrap();
        (0..tasks).for_each(|task| owner.push(task));
        owner.shared.thieves.pace.store(before, Ordering::Relaxed);
        let _ = owner.shared.claim(|_| {
            act(&owner);
            1
        });
        owner.thief().pace()
    }

    #[test]
    fn a_thief_that_meets_others_at_few_tasks_sets_a_pace() {
        assert_eq!(pace_after(3, 0, |_| ()), 0);
        assert_eq!(pace_after(3, 0, |owner| owner.push(3)), FIRST_PACE);
        let lose = |owner: &Fifo<u64>| assert!(owner.pop().is_some());
        assert_eq!(pace_after(3, 0, lose), FIRST_PACE);
        assert_eq!((pace_after(100, 0, lose), pace_after(100, 7, lose)), (0, 7));
        // Nothing has come while it waited.
        assert_eq!((pace_after(3, 7, lose), pace_after(100, 7, |_| ())), (0, 7));
    }

    #[test]
    fn a_pace_follows_what_comes_and_goes_meanwhile() {
        let owner: Fifo<u64> = Fifo::with_patience(4, 10_000, 32, 8).unwrap();
        // So many pauses, in which so many tasks came, and so many went.
        let next = |pace, came: u64, gone: u64| {
            let (head, tail) = (opened(10_000 - gone), 10_000 - came);
            assert_eq!(owner.shared.keep_distance(head, tail, pace, ENOUGH), 10_000);
            owner.thief().pace()
        };
        assert_eq!(next(8, 0, 0), 0);
        assert_eq!((next(8, 1, 0), next(8, 0, 1), next(8, 1, 1)), (4, 4, 16));
        assert_eq!((next(8, 2, 0), next(8, 0, 2)), (16, 16));
        assert_eq!((next(8, ENOUGH - 1, 0), next(8, ENOUGH, 0)), (16, 8));
        assert_eq!((next(8, 2 * ENOUGH, 0), next(8, 2 * ENOUGH + 1, 0)), (8, 4));
        assert_eq!(
            (next(1, 2 * ENOUGH + 1, 0), next(LONGEST_PACE / 2 + 1, ENOUGH - 1, 0)),
            (1, LONGEST_PACE)
        );
    }

    #[test]
    fn a_thief_of_one_task_does_not_wait_for_as_many_as_a_thief_of_several() {
        // The pace after a claim during whose one pause so many tasks came.
        let next = |want: u64, came: u64| {
            let owner: Fifo<u64, Told> = Fifo::with_patience(512, 0, 32, 8).unwrap();
            owner.push(0);
            let thief = owner.thief();
            owner.shared.thieves.pace.store(1, Ordering::Relaxed);
            Told::at_a_pause(move || (0..came).for_each(|task| owner.push(task)));
            if want == 1 {
                assert_eq!(thief.steal(), Steal::Success(0));
            } else {
                assert!(matches!(thief.shared.claim(|_| want), Steal::Success(_)));
            }
            thief.pace()
        };
        assert_eq!((next(1, ENOUGH_FOR_ONE - 1), next(1, ENOUGH_FOR_ONE)), (2, 1));
        assert_eq!((next(2, ENOUGH - 1), next(2, ENOUGH)), (2, 1));
    }

    #[test]
    fn an_empty_queue_seems_empty() {
        for patience in [0, 32] {
            let owner: Fifo<u64> = waited_for(patience);
            let thief = owner.thief();
            assert!(thief.seems_empty());
            owner.push(0);
            assert!(!thief.seems_empty());
            assert_eq!(owner.pop(), Some(0));
            assert!(thief.seems_empty());
        }
    }

    #[test]
    fn a_thief_sees_no_task_where_it_counts_none() {
        for start in [0, (1 << 32) - 3] {
            // With an owner that closes the queue soon, or has closed it from the start.
            for patience in [0, 1, 32] {
                let owner: Fifo<usize> = Fifo::with_patience(4, start, patience, 0).unwrap();
                let what = format!("from {start} on, patience {patience}");
                crate::ring::sees_no_task_where_it_counts_none(&owner, &what);
            }
        }
    }
}
