//! Puts are refused if the pool is closed or full, and each producer says whether it is in a put.
//!
//! # Why consumers take all tasks of a closed pool, and none sleeps for ever
//!
//! A consumer may answer `Closed` once the pool is closed and no put is under way: no task can come
//! any more ([`Admission::is_settled`]). Each producer has a word, *busy*, that is 1 during a put.
//!
//! | | a put | | a consumer that finds nothing |
//! |---|---|---|---|
//! | p1 | busy = 1 | c1 | enters itself at the gate, if it is going to sleep |
//! | p2 | the cheap end of a fence | c2 | the costly end |
//! | p3 | looks whether the pool is closed; puts | c3 | looks whether the pool is closed, and at busy |
//! | p4 | busy = 0 (Release) | c4 | takes, if there is a task; sleeps, if a put was under way |
//! | p5 | the cheap end of a fence | | |
//! | p6 | looks for entries at the gate, and wakes one; all, if the pool is closed | | |
//!
//! - p1 to p3 race with c3, which has its own costly end. A put that c3 misses finds the pool
//!   closed. A put that c3 sees finished (Acquire, p4's Release) has its task in the pool.
//! - p4 to p6 race with c1 to c3. If a consumer sleeps because it saw the put, p6 sees its entry.
//!
//! **So every end of a put must wake**, also of a refused put, and of a put in which foreign code
//! panicked: p4 to p6 are the drop and the end of [`Putting`]. Without p6 a consumer may sleep for
//! ever: a unit test stops a put at every access, and finds it.
//!
//! # A get that waits gives back its room beforehand
//!
//! A get without a deadline that is about to wait gives back the room of the task that it will
//! take, and none when it takes that task. If it takes none, it takes the room back. So a pool
//! holds up to its capacity, and one task more for each such get, and the count of held tasks may
//! be below 0. Otherwise two producers and two consumers on one processor, with a capacity of one,
//! would need two thread switches for each task. A get with a deadline, or a future, may end
//! without a task after its room was used, so it gives back nothing beforehand.
//!
//! # When one side is gone
//!
//! The last handle of a side to go ([`Sides`]) closes the pool. Puts by dropped producers came
//! before: [`Admission::forget`] and `is_settled` take one lock.
//!
//! **No task stays behind the last consumer.** The last consumer marks the pool *abandoned*, closes
//! it, and drops the tasks it finds there. A put under way meanwhile looks for the mark after p5.
//! Between the mark and the search for tasks stands the costly end of the fence in `close`; between
//! the task and the look for the mark stands the cheap one. So either the consumer finds the task,
//! or the producer finds the mark, and drops what is in the pool.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use poach_memory::{CachePadded, Memory, Ordering, Word};

use super::gate::Gate;
use super::putting::{Busy, Putting};
use super::sides::{Side, Sides};

pub(crate) struct Admission<M: Memory> {
    pub(crate) tasks: Gate<M>,
    pub(crate) room: Option<Room<M>>,
    producers: Mutex<Vec<Arc<Busy<M>>>>,
    pub(crate) sides: Sides<M>,
}

pub(crate) struct Room<M: Memory> {
    /// The tasks in the pool or about to be, less the gets that gave their room back: signed.
    held: CachePadded<M::Word>,
    capacity: u64,
    pub(crate) gate: Gate<M>,
}

/// Room for one task. Dropped, it is given back.
#[must_use]
pub(crate) struct Reserved<'a, M: Memory>(&'a Room<M>);

impl<M: Memory> Reserved<'_, M> {
    /// The task is in the pool: the get that takes it gives the room back.
    pub(crate) fn keep(self) {
        mem::forget(self);
    }
}

impl<M: Memory> Drop for Reserved<'_, M> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<M: Memory> Room<M> {
    fn new(capacity: usize) -> Self {
        let held = CachePadded::new(M::Word::new(0));
        Room { held, capacity: capacity as u64, gate: Gate::new(false) }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub(crate) fn is_full(&self) -> bool {
        !self.has_room_beside(self.held.load(Ordering::Relaxed))
    }

    fn has_room_beside(&self, held: u64) -> bool {
        held as i64 <= 0 || held < self.capacity
    }

    fn reserve(&self) -> Option<Reserved<'_, M>> {
        // Relaxed, as in all methods: the count alone decides; tasks are published by the chunks.
        let mut held = self.held.load(Ordering::Relaxed);
        while self.has_room_beside(held) {
            let more = held.wrapping_add(1);
            match self.held.compare_exchange(held, more, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Reserved(self)),
                Err(now) => held = now,
            }
        }
        None
    }

    #[cold]
    fn wait(
        &self,
        deadline: Option<Instant>,
        taken: impl Fn() -> u64,
    ) -> Result<Reserved<'_, M>, Refused> {
        let look = || {
            if self.gate.is_closed() { Some(Err(Refused::Closed)) } else { self.reserve().map(Ok) }
        };
        let (found, entered) = self.gate.wait(deadline, taken, look).ok_or(Refused::TimedOut)?;
        // This may wake another thread. If that panics the room is given back.
        drop(entered);
        found
    }

    /// Takes back the room of a get that gave it back beforehand and has taken no task.
    pub(crate) fn take_back(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn release(&self) {
        // The gate's fence orders it before the look for sleepers.
        self.held.fetch_sub(1, Ordering::Relaxed);
        self.gate.wake(1);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Closed,
    Full,
    TimedOut,
    OutOfMemory,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    No,
    /// Without an instant: for ever.
    Until(Option<Instant>),
}

impl<M: Memory> Admission<M> {
    pub(crate) fn new(capacity: Option<usize>, stays_open: bool) -> Self {
        let room = capacity.map(Room::new);
        Admission {
            tasks: Gate::new(room.is_some()),
            room,
            producers: Mutex::default(),
            sides: Sides::new(stays_open),
        }
    }

    pub(crate) fn leave(&self, side: Side) -> bool {
        let last = self.sides.leave(side);
        if last {
            self.gone(side);
        }
        last
    }

    /// Removes one `TaskPool`. Returns whether no thread can take from then on.
    pub(crate) fn leave_pool(&self) -> bool {
        let [puts, takes] = self.sides.leave_pool();
        if puts {
            self.gone(Side::Puts);
        }
        if takes {
            self.gone(Side::Takes);
        }
        takes
    }

    #[cold]
    fn gone(&self, side: Side) {
        if side == Side::Takes {
            self.sides.abandon(self.tasks.is_closed());
        }
        self.close();
    }

    pub(crate) fn new_producer(&self) -> Arc<Busy<M>> {
        let busy: Arc<Busy<M>> = Arc::new(CachePadded::new(M::Word::new(0)));
        self.producers().push(Arc::clone(&busy));
        busy
    }

    fn producers(&self) -> MutexGuard<'_, Vec<Arc<Busy<M>>>> {
        // A panic during a push or removal leaves the list whole.
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a producer that is gone. It is in no put, so no get waits for it.
    pub(crate) fn forget(&self, busy: &Arc<Busy<M>>) {
        self.producers().retain(|other| !Arc::ptr_eq(other, busy));
    }

    /// The checks of a put when the gate is not plain. `taken` is as in [`Gate::wait`].
    #[cold]
    pub(crate) fn admit<'a>(
        &'a self,
        putting: Putting<'a, M>,
        wait: Wait,
        taken: impl Fn() -> u64,
    ) -> Result<(Putting<'a, M>, Option<Reserved<'a, M>>), Refused> {
        let putting = self.open(putting)?;
        let Some(room) = &self.room else { return Ok((putting, None)) };
        if let Some(reserved) = room.reserve() {
            return Ok((putting, Some(reserved)));
        }
        let Wait::Until(deadline) = wait else { return Err(Refused::Full) };
        // A thread that sees the pool closed must not wait for a put that waits for room.
        let busy = putting.busy;
        drop(putting);
        let reserved = room.wait(deadline, taken)?;
        let putting = self.open(Putting::begin(busy, &self.tasks))?;
        Ok((putting, Some(reserved)))
    }

    fn open<'a>(&self, putting: Putting<'a, M>) -> Result<Putting<'a, M>, Refused> {
        // p2: orders busy before the look, also if the cheap end of the fence is not enough.
        self.tasks.light();
        if self.tasks.is_closed() { Err(Refused::Closed) } else { Ok(putting) }
    }

    pub(crate) fn close(&self) -> bool {
        /// Wakes producers even if a consumer's waker panics.
        struct Producers<'a, M: Memory>(&'a Option<Room<M>>);
        impl<M: Memory> Drop for Producers<'_, M> {
            fn drop(&mut self) {
                if let Some(room) = self.0 {
                    room.gate.close();
                }
            }
        }
        let _producers = Producers(&self.room);
        self.tasks.close()
    }

    pub(crate) fn is_settled(&self) -> bool {
        if !self.tasks.is_closed() {
            return false;
        }
        self.tasks.heavy();
        self.producers().iter().all(|busy| busy.load(Ordering::Acquire) == 0)
    }
}

#[cfg(test)]
#[path = "../../tests/it/stopping/mod.rs"]
#[allow(dead_code, reason = "the integration tests use the rest")]
mod stopping;

#[cfg(all(test, not(miri)))]
mod models {
    //! The locks are the system's, so no thread of a model may reach one while another thread has
    //! it. Only one thread uses the list of producers, and no thread sleeps at a gate.

    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

    use crate::models::clean_on_both;
    use poach_check::{Config, Kind, Simulated, Threads, Verdict, WithoutBarrier, explore, fail};
    use poach_memory::Cell;

    use super::*;

    /// If the consumer hears that all puts are over, none touches the place of its task.
    fn a_put_against_the_close<M: Memory + 'static>(threads: &mut Threads) {
        let admission = Arc::new(Admission::<M>::new(None, false));
        let task = Arc::new(M::Cell::<u32>::new(0));
        let busy = admission.new_producer();
        let (puts, place) = (Arc::clone(&admission), Arc::clone(&task));
        threads.spawn("producer", move || {
            let putting = Putting::begin(&busy, &puts.tasks);
            if putting.is_plain() {
                place.with_mut(|_| ());
            } else if let Ok((_putting, _)) = puts.admit(putting, Wait::No, || 0) {
                place.with_mut(|_| ());
            }
        });
        let closes = Arc::clone(&admission);
        threads.spawn("closes", move || {
            closes.close();
        });
        let (asks, place) = (Arc::clone(&admission), Arc::clone(&task));
        threads.spawn("consumer", move || {
            if asks.is_settled() {
                place.with(|_| ());
            }
        });
        threads.finally(move || drop((admission, task)));
    }

    #[test]
    fn once_all_puts_are_over_their_tasks_are_there() {
        clean_on_both(a_put_against_the_close::<Simulated>);
        clean_on_both(a_put_against_the_close::<WithoutBarrier>);
    }

    /// Three puts into a pool of one meet a get that waits, and gives its room back so often.
    fn puts_against_a_get_that_waits(given_back: usize) -> impl Fn(&mut Threads) {
        move |threads| {
            let admission = Arc::new(Admission::<Simulated>::new(Some(1), false));
            // The tasks that no get waits for.
            let tasks = Arc::new(AtomicI64::new(0));
            for name in ["first", "second", "third"] {
                let (puts, tasks) = (Arc::clone(&admission), Arc::clone(&tasks));
                threads.spawn(name, move || {
                    let room = puts.room.as_ref().expect("it has a capacity");
                    if let Some(reserved) = room.reserve() {
                        reserved.keep();
                        let before = tasks.fetch_add(1, Relaxed);
                        assert!(before < 1, "there are more tasks than the capacity says");
                    }
                });
            }
            let (gets, comes) = (Arc::clone(&admission), Arc::clone(&tasks));
            threads.spawn("get", move || {
                let room = gets.room.as_ref().expect("it has a capacity");
                // It has come for one, whichever that is.
                comes.fetch_sub(1, Relaxed);
                (0..given_back).for_each(|_| room.release());
            });
            threads.finally(move || drop((admission, tasks)));
        }
    }

    #[test]
    fn a_get_that_waits_is_room_for_one_task() {
        clean_on_both(puts_against_a_get_that_waits(1));
    }

    /// What must fail: it gives its room back when it waits, and again when it takes.
    #[test]
    fn a_get_that_gives_back_twice_is_room_for_two() {
        let report = explore(&Config::default(), &puts_against_a_get_that_waits(2));
        assert!(matches!(report.verdict, Verdict::Violation(_)), "{:?}", report.verdict);
    }

    fn the_last_goes<M: Memory + 'static>(threads: &mut Threads) {
        let admission = Arc::new(Admission::<M>::new(None, false));
        admission.sides.join(Side::Takes);
        let busy = admission.new_producer();
        let leaves = Arc::clone(&admission);
        threads.spawn("consumer", move || _ = leaves.leave(Side::Takes));
        let puts = Arc::clone(&admission);
        threads.spawn("producer", move || {
            let putting = Putting::begin(&busy, &puts.tasks);
            if !putting.is_plain()
                && puts.admit(putting, Wait::No, || 0).err() == Some(Refused::Closed)
                && !puts.sides.is_untaken()
            {
                fail(Kind::Lost, "it is not told that nobody is left to take its task");
            }
        });
        threads.finally(move || drop(admission));
    }

    #[test]
    fn who_finds_the_pool_closed_finds_why() {
        clean_on_both(the_last_goes::<Simulated>);
        clean_on_both(the_last_goes::<WithoutBarrier>);
    }

    /// Two consumers go, one of which has seen the pool closed: nobody closed it by going.
    fn all_go<M: Memory + 'static>(threads: &mut Threads) {
        let admission = Arc::new(Admission::<M>::new(None, false));
        (0..2).for_each(|_| admission.sides.join(Side::Takes));
        let seen = Arc::new(AtomicBool::new(false));
        let closes = Arc::clone(&admission);
        threads.spawn("closes", move || {
            closes.close();
        });
        let (sees, says) = (Arc::clone(&admission), Arc::clone(&seen));
        threads.spawn("sees", move || {
            says.store(sees.tasks.is_closed(), Relaxed);
            sees.leave(Side::Takes);
        });
        let leaves = Arc::clone(&admission);
        threads.spawn("goes", move || _ = leaves.leave(Side::Takes));
        threads.finally(move || {
            if seen.load(Relaxed) && admission.sides.is_untaken() {
                fail(Kind::Lost, "the pool was closed before the last had gone");
            }
        });
    }

    #[test]
    fn the_last_that_goes_sees_that_the_pool_was_closed() {
        clean_on_both(all_go::<Simulated>);
        clean_on_both(all_go::<WithoutBarrier>);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::task::{Wake, Waker};
    use std::thread;

    use super::stopping::{Kind, Stopping, start, stop_before};
    use super::*;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }

    const EVERYWHERE: [usize; 2] = [usize::MAX; 2];

    type Act = fn(&Admission<Stopping>, &Busy<Stopping>);

    /// What a consumer that found nothing does: answers that nothing will come, or is asleep.
    fn look(admission: &Admission<Stopping>, flag: &Arc<Flag>) -> bool {
        let entry = admission.tasks.enter(&Waker::from(Arc::clone(flag)));
        let settled = admission.is_settled();
        if settled {
            admission.tasks.leave(&entry);
        }
        settled
    }

    /// A put into a full pool is stopped before each of its loads and stores in turn, but no more
    /// than `most` of each; the pool is closed, a consumer looks, and the put goes on. At how
    /// many such places the consumer sleeps and nobody wakes it; and how many loads and stores
    /// there are. (The exchanges stand under the gate's lock, or next to a load.)
    fn lost_while_a_put_stops(act: Act, most: [usize; 2]) -> (usize, [usize; 2]) {
        let (mut lost, mut places) = (0, [0; 2]);
        for (which, kind) in [Kind::Load, Kind::Store].into_iter().enumerate() {
            for left in 0..most[which] {
                let admission = Admission::<Stopping>::new(Some(1), false);
                admission.room.as_ref().and_then(Room::reserve).expect("room for one").keep();
                let busy = admission.new_producer();
                let flag = Arc::new(Flag::default());
                let stopped = thread::scope(|scope| {
                    let putter = start(scope, |stops| {
                        stop_before(stops, Some(kind), left);
                        act(&admission, &busy);
                    });
                    let stopped = putter.stopped;
                    if stopped {
                        admission.close();
                        let settled = look(&admission, &flag);
                        putter.wake();
                        lost += usize::from(!settled && !flag.0.load(SeqCst));
                    } else {
                        putter.wake();
                    }
                    stopped
                });
                if !stopped {
                    break;
                }
                places[which] += 1;
            }
        }
        (lost, places)
    }

    /// A consumer about to sleep is stopped before each access; the pool is closed, and a put runs.
    fn lost_while_a_consumer_stops(act: Act) -> (usize, usize) {
        let (mut lost, mut places) = (0, 0);
        for kind in [Kind::Load, Kind::Store, Kind::Heavy] {
            for left in 0.. {
                let admission = Admission::<Stopping>::new(Some(1), false);
                let busy = admission.new_producer();
                let flag = Arc::new(Flag::default());
                let settled = AtomicBool::new(false);
                let stopped = thread::scope(|scope| {
                    let consumer = start(scope, |stops| {
                        stop_before(stops, Some(kind), left);
                        settled.store(look(&admission, &flag), SeqCst);
                    });
                    let stopped = consumer.stopped;
                    admission.close();
                    act(&admission, &busy);
                    consumer.wake();
                    stopped
                });
                lost += usize::from(!settled.load(SeqCst) && !flag.0.load(SeqCst));
                if !stopped {
                    break;
                }
                places += 1;
            }
        }
        (lost, places)
    }

    fn try_put(admission: &Admission<Stopping>, busy: &Busy<Stopping>) {
        let putting = Putting::begin(busy, &admission.tasks);
        assert!(!putting.is_plain());
        assert!(admission.admit(putting, Wait::No, || 0).is_err());
    }

    #[test]
    fn a_put_that_is_refused_wakes_who_slept_for_it() {
        let (lost, places) = lost_while_a_put_stops(try_put, EVERYWHERE);
        assert_eq!(lost, 0, "of {places:?} places");
        assert!(places.iter().sum::<usize>() >= 5, "{places:?}");
    }

    #[test]
    fn a_put_that_waits_for_room_wakes_who_slept_for_it() {
        // A waiting put begins with the steps of a refused put; unstopped it waits for ever.
        let (_, most) = lost_while_a_put_stops(try_put, EVERYWHERE);
        let put = |admission: &Admission<Stopping>, busy: &Busy<Stopping>| {
            let putting = Putting::begin(busy, &admission.tasks);
            assert_eq!(
                admission.admit(putting, Wait::Until(None), || 0).err(),
                Some(Refused::Closed)
            );
        };
        assert_eq!(lost_while_a_put_stops(put, most), (0, most));
    }

    #[test]
    fn a_consumer_that_falls_asleep_at_the_close_is_woken() {
        let (lost, places) = lost_while_a_consumer_stops(try_put);
        assert_eq!(lost, 0, "of {places} places");
        // A load; and a process-wide barrier, where there is one (Miri has none).
        assert!(places > usize::from(Stopping::asymmetric()), "{places}");
    }

    /// What must fail: busy is cleared, and nobody woken.
    #[test]
    fn a_put_that_only_clears_busy_leaves_a_sleeper() {
        let put = |admission: &Admission<Stopping>, busy: &Busy<Stopping>| {
            let putting = Putting::begin(busy, &admission.tasks);
            mem::forget(putting);
            admission.tasks.light();
            busy.store(0, Ordering::Release);
        };
        let (lost, places) = lost_while_a_put_stops(put, EVERYWHERE);
        assert!(lost > 0, "of {places:?} places");
    }

    #[test]
    fn a_consumers_waker_that_panics_at_the_close_leaves_no_producer_asleep() {
        struct Loud;
        impl Wake for Loud {
            fn wake(self: Arc<Self>) {
                panic!("foreign code");
            }
        }
        let admission = Admission::<Stopping>::new(Some(1), false);
        let room = admission.room.as_ref().expect("it has a capacity");
        let flag = Arc::new(Flag::default());
        let _producer = room.gate.enter(&Waker::from(Arc::clone(&flag)));
        let _consumer = admission.tasks.enter(&Waker::from(Arc::new(Loud)));
        let closed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| admission.close()));
        assert!(closed.is_err());
        assert!(room.gate.is_closed() && flag.0.load(SeqCst));
    }

    #[test]
    fn a_put_that_panics_wakes_and_gives_back_its_room() {
        let admission = Admission::<Stopping>::new(Some(1), false);
        let busy = admission.new_producer();
        let flag = Arc::new(Flag::default());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let putting = Putting::begin(&busy, &admission.tasks);
            let _admitted =
                admission.admit(putting, Wait::No, || 0).expect("it is open and has room");
            admission.close();
            assert!(!look(&admission, &flag));
            panic!("foreign code");
        }));
        assert!(panicked.is_err());
        assert!(flag.0.load(SeqCst) && admission.is_settled());
        assert!(admission.room.as_ref().and_then(Room::reserve).is_some());
    }
}
