//! The thieves' side: the right column of the table in the module comment.

use poach_memory::{Memory, Ordering, StoreLoad, Word};

use super::{ONE, OPEN, Shared, Thief, above, index_of, opened};
use crate::pacing::fifo::{Distance, FOR_HALF, FOR_ONE, FOR_SEVERAL, LONGEST_PACE, LOST, SLOW};
use crate::ring::Claimed;
use crate::traits::Steal;

impl<T, M: Memory> Shared<T, M> {
    /// Claims as many of the oldest tasks as `want` says of their number; `Empty` if it wants none.
    #[inline]
    fn claim(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: `move_head` claimed these indices for this call alone, and a tail above them was
        // acquired.
        self.move_head(want, FOR_HALF, M::full)
            .map(|(first, count)| unsafe { self.rings.claimed(first, count) })
    }

    /// As [`claim`](Shared::claim), but `Empty` is said without a fence: nobody who pushes and then
    /// looks for sleepers may count on it.
    #[inline]
    fn claim_unfenced(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        // SAFETY: as in `claim`.
        self.move_head(want, FOR_HALF, || ())
            .map(|(first, count)| unsafe { self.rings.claimed(first, count) })
    }

    /// Whether no task is seen, without a fence: see [`claim_unfenced`](Shared::claim_unfenced).
    #[inline]
    fn seems_empty(&self) -> bool {
        // Acquire: as in `move_head`.
        let front = self.front(self.thieves.head.load(Ordering::Acquire));
        // Acquire: pairs with the release in `publish`: who is told of a task has seen what came
        // before its push.
        above(self.owner.tail.load(Ordering::Acquire), front) <= 0
    }

    /// Takes the oldest task.
    #[inline]
    fn steal(&self) -> Steal<T> {
        let thieves = &self.thieves;
        // Acquire: who takes a task has seen what came before the thefts of the older ones, as with
        // crossbeam-deque's.
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
            self.move_head(|_| 1, FOR_ONE, M::full)
        };
        // SAFETY: as in `claim`.
        claimed.map(|(first, _)| unsafe { self.rings.take(first) })
    }

    /// The first of the indices that were claimed, and how many. `fence` comes before the second
    /// look at a queue that seems empty.
    #[inline(always)]
    fn move_head(
        &self,
        want: impl FnOnce(u64) -> u64,
        distance: Distance,
        fence: impl FnOnce(),
    ) -> Steal<(u64, u32)> {
        // Acquire: the thread that moved `head` here, or opened the queue, had seen a tail at or
        // above it; this thread must not see an older one. For a closed queue, as in
        // `pop_and_close`.
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
        let is_near = above(tail, head) < distance.near;
        if is_near && pace > 0 {
            tail = self.keep_distance(head, tail, pace, distance.enough);
            // Acquire: as above.
            head = self.thieves.head.load(Ordering::Acquire);
            if head & OPEN == 0 || above(tail, head) <= 0 {
                return Steal::Retry;
            }
        }
        // Release: pairs with the acquire in `steal`. A slow store of an older tail costs time
        // alone.
        self.thieves.known.store(tail, Ordering::Release);
        let claimed = self.step_over_some(head, above(tail, head) as u64, want);
        // Relaxed, both: hints.
        if is_near
            && pace == 0
            && (claimed.is_retry() || self.owner.tail.load(Ordering::Relaxed) != tail)
        {
            self.thieves.pace.store(distance.first.min(self.looks.into()), Ordering::Relaxed);
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
        // Relaxed: a hint. What has been taken meanwhile: nothing, if an owner puts back what it
        // has added to an empty queue.
        let gone =
            index_of(self.thieves.head.load(Ordering::Relaxed)).saturating_sub(index_of(head));
        let pace = match came + gone {
            0 => 0,
            // The owner takes its time with each task, and nobody waits for a line.
            all if all < pace / SLOW => pace / 2,
            // At once, not by halves: which of two paces a run has would be left to what happened
            // first.
            _ if came > 2 * enough => (pace * (enough + enough / 2) / came).max(1),
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

    /// Steps over as many indices as `want` says of `tasks`, which are open and below the tail.
    #[inline(always)]
    fn step_over_some(
        &self,
        head: u64,
        tasks: u64,
        want: impl FnOnce(u64) -> u64,
    ) -> Steal<(u64, u32)> {
        match want(tasks).min(tasks) as u32 {
            0 => Steal::Empty,
            count => self.step_over(head, count),
        }
    }

    /// Steps over `count` indices, which are open and below the tail.
    #[inline(always)]
    fn step_over(&self, head: u64, count: u32) -> Steal<(u64, u32)> {
        let next = head.wrapping_add(u64::from(count) * ONE);
        // Release: keeps the next thief's acquire of `head` good for what this one had seen.
        // Acquire: pairs with the owner that leaves a ring.
        match self.thieves.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Steal::Success((index_of(head), count)),
            Err(_) => Steal::Retry,
        }
    }

    /// The queue was closed when `head` was read: asks the owner to open it, and does so itself if
    /// the owner does not answer.
    #[cold]
    #[inline(never)]
    pub(super) fn request_or_open(&self, head: u64) {
        // Relaxed: if it is raised, that was after the lowering that came before the queue was
        // closed.
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
        if !self.owner.policy.try_thief() {
            // The request stays: the owner answers at its next pop, or push that finds the ring
            // full.
            return;
        }
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
        // Pairs with the fence of a thread that has pushed and looks for sleepers: see "Emptiness".
        M::full();
        // Acquire: as in `seems_empty`.
        usize::try_from(above(self.owner.tail.load(Ordering::Acquire), front)).unwrap_or(0)
    }

    /// Whether [`len`](Shared::len) is 0, with the fewest instructions between the fence and the
    /// answer.
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
    /// Claims as many of the oldest tasks as `want` says of their number: what `one` makes of a
    /// single one, for which no claim is put together, or `several` of more. Of `sure` tasks
    /// `want` asks for as many as of any larger number: where thieves know of these, this one does
    /// not look at the owner's tail.
    #[inline(always)]
    pub(crate) fn claim_for<R>(
        &self,
        sure: u64,
        want: impl FnOnce(u64) -> u64,
        one: impl FnOnce(T) -> R,
        several: impl FnOnce(Claimed<'_, T, M>) -> R,
    ) -> Steal<R> {
        let shared = &self.shared;
        let (thieves, rings) = (&shared.thieves, &shared.rings);
        // Acquire, both: as in `steal`.
        let head = thieves.head.load(Ordering::Acquire);
        let known = above(thieves.known.load(Ordering::Acquire), head).max(0) as u64;
        let claimed = if head & OPEN != 0 && known >= sure {
            shared.step_over_some(head, known, want)
        } else {
            shared.move_head(want, FOR_SEVERAL, M::full)
        };
        claimed.map(|(first, count)| {
            if count == 1 {
                // SAFETY: the index was claimed for this call alone, and a tail above it was
                // acquired.
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
}

impl<T, M: Memory> Thief<T, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.shared.steal()
    }

    /// As [`Shared::claim`].
    #[inline]
    pub(super) fn claim(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        self.shared.claim(want)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fifo;
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

    /// The pace that a thief of halves sets, or leaves, that takes one of `tasks` while something
    /// else happens.
    fn pace_after(tasks: u64, before: u64, act: impl FnOnce(&Fifo<u64>)) -> u64 {
        let owner: Fifo<u64> = Fifo::with_patience(256, 0, 32, 64).unwrap();
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
        assert_eq!(pace_after(3, 0, |owner| owner.push(3)), FOR_HALF.first);
        let lose = |owner: &Fifo<u64>| assert!(owner.pop().is_some());
        assert_eq!(pace_after(3, 0, lose), FOR_HALF.first);
        assert_eq!((pace_after(200, 0, lose), pace_after(200, 7, lose)), (0, 7));
        // Nothing has come while it waited.
        assert_eq!((pace_after(3, 7, lose), pace_after(200, 7, |_| ())), (0, 7));
    }

    #[test]
    fn a_pace_follows_what_comes_and_goes_meanwhile() {
        let owner: Fifo<u64> = Fifo::with_patience(4, 10_000, 32, 8).unwrap();
        let enough = FOR_SEVERAL.enough;
        // The pace after `pace` pauses, in which `came` tasks came and `gone` went.
        let next = |pace, came: u64, gone: u64| {
            let (head, tail) = (opened(10_000 - gone), 10_000 - came);
            assert_eq!(owner.shared.keep_distance(head, tail, pace, enough), 10_000);
            owner.thief().pace()
        };
        assert_eq!(next(8, 0, 0), 0);
        assert_eq!((next(8, 1, 0), next(8, 0, 1), next(8, 1, 1)), (4, 4, 16));
        assert_eq!((next(8, 2, 0), next(8, 0, 2)), (16, 16));
        assert_eq!((next(8, enough - 1, 0), next(8, enough, 0)), (16, 8));
        assert_eq!((next(8, 2 * enough, 0), next(8, 2 * enough + 1, 0)), (8, 5));
        assert_eq!((next(64, 4 * enough, 0), next(512, 12 * enough, 0)), (24, 64));
        assert_eq!(
            (next(1, 2 * enough + 1, 0), next(LONGEST_PACE / 2 + 1, enough - 1, 0)),
            (1, LONGEST_PACE)
        );
    }

    #[test]
    fn a_thief_waits_for_as_many_tasks_as_it_takes_one_or_several_or_a_half() {
        // The pace after a claim with one pause, during which `came` tasks came.
        let next = |take: fn(&Thief<u64, Told>), came: u64| {
            let owner: Fifo<u64, Told> = Fifo::with_patience(512, 0, 32, 8).unwrap();
            owner.push(0);
            let thief = owner.thief();
            owner.shared.thieves.pace.store(1, Ordering::Relaxed);
            Told::at_a_pause(move || (0..came).for_each(|task| owner.push(task)));
            take(&thief);
            thief.pace()
        };
        let one: fn(&Thief<u64, Told>) = |thief| assert_eq!(thief.steal(), Steal::Success(0));
        let several: fn(&Thief<u64, Told>) = |thief| {
            let taken = thief.claim_for(64, |_| 1, |task| task, |_| unreachable!());
            assert_eq!(taken, Steal::Success(0));
        };
        let half: fn(&Thief<u64, Told>) =
            |thief| assert!(matches!(thief.shared.claim(|all| all / 2), Steal::Success(_)));
        for (take, Distance { enough, .. }) in
            [(one, FOR_ONE), (several, FOR_SEVERAL), (half, FOR_HALF)]
        {
            assert_eq!((next(take, enough - 1), next(take, enough)), (2, 1));
        }
    }

    #[test]
    fn a_thief_of_several_tasks_opens_a_queue_of_which_it_knows_the_tail() {
        let owner: Fifo<u64> = waited_for(1);
        (0..4).for_each(|task| owner.push(task));
        let thief = owner.thief();
        let take = || thief.claim_for(1, |_| 1, |task| task, |_| unreachable!());
        assert_eq!(take(), Steal::Success(0));
        (4..8).for_each(|task| owner.push(task));
        assert!((1..5).all(|task| owner.pop() == Some(task)));
        assert_eq!(
            (thief.head() & OPEN, owner.shared.thieves.known.load(Ordering::Relaxed)),
            (0, 4)
        );
        owner.shared.thieves.known.store(8, Ordering::Relaxed);
        assert_eq!((take(), owner.pop(), take()), (Steal::Success(5), Some(6), Steal::Success(7)));
    }

    #[test]
    fn a_thief_of_several_tasks_looks_at_the_tail_if_too_few_are_known() {
        let owner: Fifo<u64> = Fifo::with_patience(64, 0, 32, 8).unwrap();
        let thief = owner.thief();
        let mut seen = Vec::new();
        let mut take = |pushes: u64| {
            (0..pushes).for_each(|task| owner.push(task));
            let want = |all| {
                seen.push(all);
                2
            };
            let count = |claimed: Claimed<'_, _, _>| claimed.size_hint().0;
            assert_eq!(thief.claim_for(4, want, |_| 1, count), Steal::Success(2));
        };
        // Of 6, 4 are left, and 2 of these; then it sees what has come.
        [6, 10, 10].into_iter().for_each(&mut take);
        assert_eq!(seen, [6, 4, 22]);
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
