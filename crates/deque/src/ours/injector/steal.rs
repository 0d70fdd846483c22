//! The thieves' side: the right column of the table in the module comment.

use poach_memory::{Memory, Ordering, Pointer, StoreLoad, Word};

use super::{
    Batch, Block, CONTESTED, Chain, Injector, Place, contested, decided, index_of, open, written,
};
use crate::pacing::injector::{ENOUGH, FIRST_PACE, LONGEST_PACE, LOST, NEAR};
use crate::traits::{Owner, Steal};

impl<T, M: Memory, const SLOTS: usize> Injector<T, M, SLOTS> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        let (head, block) = match self.front(NEAR) {
            Steal::Success(front) => front,
            Steal::Empty => return Steal::Empty,
            Steal::Retry | Steal::Abort => return Steal::Retry,
        };
        if !self.take_from(head, block, 1) {
            return Steal::Retry;
        }
        let index = index_of(head);
        // SAFETY: the state was *written*, and acquired; the exchange gave `index` to this call
        // alone.
        let task = unsafe { block.take(index) };
        self.finish(block, index, 1);
        Steal::Success(task)
    }

    /// Takes half of the tasks, at least one, but none beyond the end of a block: returns the
    /// oldest and pushes the others to `into`.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(usize::MAX) {
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

    /// Claims half of the tasks, at least one and at most `limit`, but none beyond the end of the
    /// block.
    #[inline]
    fn claim(&self, limit: usize) -> Steal<Batch<'_, T, M, SLOTS>> {
        self.step_over(limit).map(|(block, index, count)| Batch::new(self, block, index, count))
    }

    /// The same: what `one` makes of a single task, for which no claim is put together, or
    /// `several` of more.
    #[inline(always)]
    pub(crate) fn claim_for<R>(
        &self,
        limit: usize,
        one: impl FnOnce(T) -> R,
        several: impl FnOnce(Batch<'_, T, M, SLOTS>) -> R,
    ) -> Steal<R> {
        self.step_over(limit).map(|(block, index, count)| {
            if count == 1 {
                // SAFETY: the state was *written*, and acquired; `step_over` gave `index` to this
                // call alone.
                let task = unsafe { block.take(index) };
                self.finish(block, index, 1);
                one(task)
            } else {
                several(Batch::new(self, block, index, count))
            }
        })
    }

    /// The block, the first index and the number of what is claimed so.
    #[inline(always)]
    fn step_over(&self, limit: usize) -> Steal<(&Block<T, M, SLOTS>, u64, u64)> {
        let (head, block) = match self.front((limit as u64).clamp(NEAR, ENOUGH)) {
            Steal::Success(front) => front,
            Steal::Empty => return Steal::Empty,
            Steal::Retry | Steal::Abort => return Steal::Retry,
        };
        let index = index_of(head);
        let limit = if head & CONTESTED == 0 { limit } else { 1 };
        let most = limit.min(SLOTS - index as usize % SLOTS) as u64;
        let most = self.estimate(index, 2 * most).div_ceil(2).min(most);
        let mut count = 1;
        while count < most {
            let next = index.wrapping_add(count);
            // Acquire: as in `front`.
            if block.slot(next).state.load(Ordering::Acquire) != written(next) {
                break;
            }
            count += 1;
        }
        if self.take_from(head, block, count) {
            Steal::Success((block, index, count))
        } else {
            Steal::Retry
        }
    }

    /// Steps 1, 2, and 5 to 10: the word of the head, and the block in which its index is
    /// *written*. A thief that keeps its distance knows of `near` tickets above the head, or
    /// waits.
    #[inline(always)]
    fn front(&self, near: u64) -> Steal<(u64, &Block<T, M, SLOTS>)> {
        loop {
            // Acquire: the thread that moved the head here had seen a ticket above it; so must this
            // thread, in step 5.
            let head = self.head.index.load(Ordering::Acquire);
            let index = index_of(head);
            // Relaxed: a hint.
            let pace = self.head.pace.load(Ordering::Relaxed);
            if pace > 0 && self.known_from(index) < near {
                self.keep_distance(index, pace);
            }
            // Acquire: pairs with the release in `lead`.
            let block = self.head.block.load(Ordering::Acquire);
            // SAFETY: it was had from `block_at`, and the chain's memory stays.
            let block = unsafe { &*block };
            // Acquire: pairs with the release in `put`.
            if block.slot(index).state.load(Ordering::Acquire) == written(index) {
                return Steal::Success((head, block));
            }
            if self.nothing_from(index) {
                return Steal::Empty;
            }
            if !self.wait(index) {
                return Steal::Retry;
            }
        }
    }

    /// How many tickets from `index` on are known of.
    #[inline(always)]
    fn known_from(&self, index: u64) -> u64 {
        // Relaxed: a number that was right once, and tickets only become more.
        let known = self.head.known.load(Ordering::Relaxed);
        u64::try_from(known.wrapping_sub(index) as i64).unwrap_or(0)
    }

    /// Lets the pushers get ahead of the head.
    #[cold]
    #[inline(never)]
    fn keep_distance(&self, index: u64, pace: u64) {
        for _ in 0..pace {
            M::pause();
        }
        // Relaxed, all: numbers that nothing but the wait depends on.
        let tickets = self.tickets.load(Ordering::Relaxed);
        let pace = match tickets.wrapping_sub(index) {
            _ if tickets == self.head.known.load(Ordering::Relaxed) => 0,
            0..ENOUGH => (2 * pace).min(LONGEST_PACE),
            ahead if ahead > 4 * ENOUGH => (pace / 2).max(1),
            _ => pace,
        };
        self.head.pace.store(pace, Ordering::Relaxed);
        self.head.known.store(tickets, Ordering::Relaxed);
    }

    /// Step 3: whether `count` indices from that of `head` on are this call's.
    #[inline(always)]
    fn take_from(&self, head: u64, block: &Block<T, M, SLOTS>, count: u64) -> bool {
        (head & CONTESTED == 0 && self.move_head(head, count)) || self.take_slowly(head, block)
    }

    /// The same for a contested index, or after a lost exchange.
    #[cold]
    #[inline(never)]
    fn take_slowly(&self, head: u64, block: &Block<T, M, SLOTS>) -> bool {
        let is_mine = head & CONTESTED != 0 && self.decide(head, block);
        if !is_mine {
            // Another thief takes some tasks before the caller tries again, which takes the head's
            // line from it.
            for _ in 0..LOST.min(self.patience) {
                M::pause();
            }
        }
        is_mine
    }

    /// Whether a contested index is this call's, which was *written*.
    fn decide(&self, head: u64, block: &Block<T, M, SLOTS>) -> bool {
        let (state, index) = (&block.slot(index_of(head)).state, index_of(head));
        // Relaxed, both: `front` has acquired the task, and who comes second has nothing to read.
        let (was, now) = (written(index), decided(index));
        let won = state.compare_exchange(was, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        // If this fails another thread has stepped over it.
        let _ = self.move_head(head, 1);
        won
    }

    #[inline(always)]
    pub(super) fn move_head(&self, head: u64, count: u64) -> bool {
        let next = open(index_of(head).wrapping_add(count));
        // SeqCst: `is_empty` has its place in one order with it. Release: as in `front`.
        self.head.index.compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Step 5: whether there was no ticket for `index` or above. Only for an index at which the
    /// head has been.
    #[inline(always)]
    fn nothing_from(&self, index: u64) -> bool {
        // Relaxed, both: a number alone.
        if self.tickets.load(Ordering::Relaxed) != index {
            return false;
        }
        // Pairs with step 1 of the push, or a fence after it: see "Emptiness".
        M::full();
        self.tickets.load(Ordering::Relaxed) == index
    }

    /// There was a ticket for `index`, and its slot was not *written*: whether it may be now, or in
    /// another block than where this thread has looked.
    #[cold]
    #[inline(never)]
    fn wait(&self, index: u64) -> bool {
        // Acquire: pairs with the release in `lead`.
        let hint = Place::from(self.head.hint.load(Ordering::Acquire));
        match hint.distance_to(Chain::<T, M, SLOTS>::number(index)) {
            0 => self.wait_at(index, self.chain.block(hint), hint),
            // None: the hint was stale.
            ahead if ahead > 0 => match self.chain.next(hint, false) {
                Ok(Some(next)) => {
                    self.lead(hint, next);
                    true
                }
                _ => false,
            },
            // The head was read before it moved on.
            _ => false,
        }
    }

    /// Steps 6 to 10, in the block of `index`.
    fn wait_at(&self, index: u64, block: &Block<T, M, SLOTS>, place: Place) -> bool {
        let here = self.chain.block_at(place);
        // Relaxed: it is not followed.
        if self.head.block.load(Ordering::Relaxed) != here {
            // Release: as in `lead`.
            self.head.block.store(here, Ordering::Release);
        }
        let state = &block.slot(index).state;
        let older = |state: u64| (state.wrapping_sub(written(index)) as i64) < 0;
        // Relaxed, here and below: the caller looks again.
        let mut seen = state.load(Ordering::Relaxed);
        if older(seen) && self.head.pace.load(Ordering::Relaxed) == 0 {
            // Relaxed: a hint.
            self.head.pace.store(self.patience.min(FIRST_PACE).into(), Ordering::Relaxed);
        }
        let (mut waited, mut pauses) = (0, 1);
        while older(seen) {
            if waited >= self.patience {
                self.skip(index, block, place);
                return false;
            }
            // Longer each time: a look takes the cache line from the thread that is about to write
            // it.
            for _ in 0..pauses {
                M::pause();
            }
            waited += pauses;
            pauses *= 2;
            seen = state.load(Ordering::Relaxed);
        }
        if seen == written(index) {
            return true;
        }
        // If it was contested, the thread that decided it may have been stopped. If this fails
        // another thread has stepped over it.
        let _ = self.move_head(contested(index), 1);
        false
    }

    /// The end of step 6, and steps 7 to 10. The caller does not look again, but has its own caller
    /// do so: or a steal and a push that is slow each time could keep each other from ending.
    fn skip(&self, index: u64, block: &Block<T, M, SLOTS>, place: Place) {
        let (was, now) = (open(index), contested(index));
        // SeqCst: as in `move_head`. Relaxed: the head alone.
        let contest =
            self.head.index.compare_exchange(was, now, Ordering::SeqCst, Ordering::Relaxed);
        if contest.is_err_and(|head| head != now) || !block.contest(place.number(), index) {
            // The head has moved on.
            return;
        }
        if !self.policy.try_thief() {
            // Nothing is skipped without the fence: thieves wait for the pusher.
            return;
        }
        // Relaxed: a number alone.
        if block.slot(index).state.load(Ordering::Relaxed) != written(index) {
            // If this fails another thread has stepped over it.
            let _ = self.move_head(now, 1);
        }
    }

    /// Moves the thieves' hint on to the next block.
    pub(super) fn lead(&self, hint: Place, next: Place) {
        // Release: as in `walk`. If the exchange fails another thread has moved the hint on.
        let moved = self.head.hint.compare_exchange(
            hint.word(),
            next.word(),
            Ordering::Release,
            Ordering::Relaxed,
        );
        if moved.is_ok() {
            // Release: a thread that looks there sees the block's memory made. A slow store of an
            // older block costs only time.
            self.head.block.store(self.chain.block_at(next), Ordering::Release);
        }
    }

    /// About how many tasks there are from `head` on, or at least whether there are `enough`.
    #[inline]
    fn estimate(&self, head: u64, enough: u64) -> u64 {
        let known = self.known_from(head);
        if known >= enough.min(2 * NEAR) {
            return known;
        }
        // Relaxed, both: as in `known_from`.
        self.head.known.store(self.tickets.load(Ordering::Relaxed), Ordering::Relaxed);
        self.known_from(head)
    }

    pub(super) fn drop_all(&self) {
        while let Steal::Success(task) = self.steal() {
            drop(task);
        }
    }
}

// Its coroutines do not know that processor, and Miri does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
mod model;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lock::tests::Told;
    use poach_memory::Machine;

    /// A push that has taken ticket 0 and is stopped, and a push that has ended.
    fn stopped_at_0<M: Memory>() -> (Arc<Injector<u64, M, 2>>, Place) {
        let injector = Arc::new(Injector::<u64, M, 2>::new().with_patience(7));
        let place = injector.place_of(0).unwrap().unwrap();
        assert_eq!(injector.take_ticket(0), Ok(()));
        injector.push(8);
        (injector, place)
    }

    fn all<M: Memory, const SLOTS: usize>(injector: &Injector<u64, M, SLOTS>) -> Vec<u64> {
        (0..9).filter_map(|_| injector.steal().success()).collect()
    }

    #[test]
    fn what_is_left_in_a_claim_is_dropped() {
        let alive = Arc::new(());
        let injector: Injector<Arc<()>> = Injector::new();
        (0..8).for_each(|_| injector.push(Arc::clone(&alive)));
        let claimed = injector.claim(4).success().unwrap();
        let count = claimed.size_hint().0;
        assert!(count > 1);
        drop(claimed);
        assert_eq!((Arc::strong_count(&alive), injector.len()), (9 - count, 8 - count));
    }

    #[test]
    fn a_push_that_stops_is_skipped() {
        let (injector, place) = stopped_at_0::<Machine>();
        assert_eq!(all(&injector), [8]);
        assert_eq!(injector.put(0, place, injector.chain.block(place), 7), Err(7));
    }

    /// Nor a thief that has contested the index and has not told the push.
    #[test]
    fn a_push_and_a_thief_that_stop_are_skipped() {
        let (injector, place) = stopped_at_0::<Machine>();
        injector.head.index.store(contested(0), Ordering::Relaxed);
        assert_eq!(all(&injector), [8]);
        assert_eq!(injector.put(0, place, injector.chain.block(place), 7), Err(7));
    }

    #[test]
    fn a_thief_waits_as_long_as_it_has_patience() {
        let (injector, _) = stopped_at_0::<Told>();
        let waits = Told::waits(|| assert_eq!(injector.steal(), Steal::Retry));
        assert_eq!(waits, (injector.patience, 0));
    }

    #[test]
    fn a_thief_that_loses_waits_and_one_that_wins_does_not() {
        let injector = Injector::<u64, Told, 2>::new().with_patience(7);
        (0..2).for_each(|task| injector.push(task));
        let Steal::Success((head, block)) = injector.front(1) else { panic!("there are two") };
        let waits = Told::waits(|| assert!(injector.take_from(head, block, 1)));
        assert_eq!(waits, (0, 0));
        let waits = Told::waits(|| assert!(!injector.take_from(head, block, 1)));
        assert_eq!(waits, (7, 0));
    }

    #[test]
    fn a_push_that_ends_meanwhile_is_not_skipped() {
        let (injector, place) = stopped_at_0::<Told>();
        let pusher = Arc::clone(&injector);
        Told::at_a_pause(move || {
            assert_eq!(pusher.put(0, place, pusher.chain.block(place), 7), Ok(()));
        });
        assert_eq!(injector.steal(), Steal::Success(7));
        assert_eq!(all(&injector), [8]);
    }

    // Miri cannot use loom's stacks.
    #[cfg(not(miri))]
    mod models {
        use super::super::super::explore;
        use super::*;
        use poach_memory::Loom;

        type Modelled<const SLOTS: usize> = Injector<u64, Loom, SLOTS>;

        fn injector<const SLOTS: usize>() -> [Arc<Modelled<SLOTS>>; 2] {
            let injector = Arc::new(Modelled::<SLOTS>::new().with_patience(0));
            [Arc::clone(&injector), injector]
        }

        #[test]
        fn a_task_is_skipped_only_if_its_push_takes_it_back() {
            explore(|| {
                let [injector, other] = injector::<1>();
                let place = injector.place_of(0).unwrap().unwrap();
                assert_eq!(injector.take_ticket(0), Ok(()));
                let thief =
                    loom::thread::spawn(move || other.skip(0, other.chain.block(place), place));
                let pushed = injector.put(0, place, injector.chain.block(place), 7).is_ok();
                thief.join().unwrap();
                assert_eq!(all(&injector).len(), usize::from(pushed));
            });
        }

        /// Neither by the thieves' word for it, nor by their hint, nor by the pushers'.
        #[test]
        fn a_block_that_is_found_is_seen_made() {
            type Show = fn(&Modelled<1>, [Place; 2]);
            let leads: Show = |injector, [first, second]| injector.lead(first, second);
            let waits: Show = |injector, [_, second]| {
                injector.wait_at(1, injector.chain.block(second), second);
            };
            for show in [leads, waits] {
                explore(move || {
                    let [injector, other] = injector::<1>();
                    injector.push(0);
                    let first = injector.place_of(0).unwrap().unwrap();
                    assert_eq!(injector.steal(), Steal::Success(0));
                    let pusher = loom::thread::spawn(move || {
                        let second = other.place_of(1).unwrap().unwrap();
                        other.push(1);
                        show(&other, [first, second]);
                    });
                    let mut stolen: Vec<u64> = injector.steal().success().into_iter().collect();
                    pusher.join().unwrap();
                    stolen.extend(all(&injector));
                    assert_eq!(stolen, [1]);
                });
            }
            explore(|| {
                let [injector, other] = injector::<1>();
                injector.push(0);
                let pusher = loom::thread::spawn(move || other.place_of(1).map(drop));
                injector.push(1);
                pusher.join().unwrap().unwrap();
                assert_eq!(all(&injector), [0, 1]);
            });
        }

        #[test]
        fn the_head_does_not_pass_the_tickets() {
            explore(|| {
                let [injector, other] = injector::<2>();
                let thief = loom::thread::spawn(move || {
                    other.push(0);
                    other.steal().success()
                });
                let stolen = [injector.steal().success(), thief.join().unwrap()];
                assert_eq!(stolen.into_iter().flatten().count() + injector.len(), 1);
                let head = index_of(injector.head.index.load(Ordering::Relaxed));
                assert!(head <= injector.tickets.load(Ordering::Relaxed));
            });
        }

        #[test]
        fn all_tasks_of_a_claim_are_seen_written() {
            explore(|| {
                let [injector, other] = injector::<4>();
                injector.push(0);
                let pusher = loom::thread::spawn(move || (1..3).for_each(|task| other.push(task)));
                let mut stolen: Vec<u64> =
                    injector.claim(2).success().into_iter().flatten().collect();
                pusher.join().unwrap();
                stolen.extend(all(&injector));
                assert_eq!(stolen, [0, 1, 2]);
            });
        }
    }
}
