//! Where consumers sleep until there is a task, and producers until there is room; and the word that
//! says the pool is closed.
//!
//! **No wake-up is lost.** A sleeper enters itself, issues the costly end of the fence, and looks
//! once more for what it waits for; only then does it sleep. A waker makes that there, issues the
//! cheap end of the fence, and looks whether anybody has entered ([`StoreLoad`]: the waker is the
//! owner, the sleeper the thief). So either the sleeper finds it, or the waker finds the sleeper. The
//! waker takes the sleeper's entry away before it wakes it: each thing put wakes one sleeper, never
//! the same one twice. A sleeper that finds what it waits for by itself, and its entry gone, was
//! woken for another thing, and wakes the next in its place.
//!
//! While nobody sleeps a look costs one load of a line that nobody writes, and one comparison: all that
//! could ask for more than that stands in the one word, also what never changes, such as that this system
//! has no process-wide barrier and the cheap end of the fence is therefore not cheap.
//!
//! **Wakers are foreign code.** They are cloned before the lock is taken, and woken and dropped after it is
//! released, so that a waker may use the pool. If one panics while all are woken, the others are woken while
//! that panic unwinds. A sleeper whose look panics gives up its entry: a wake-up that went to it goes to the
//! next, and so does one that it was going to look for ([`Woken`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use poach_memory::{Asymmetric, CachePadded, Memory, Ordering, StoreLoad, Word, order::InForce};

use crate::registry::each;

/// Set once the pool is closed.
const CLOSED: u64 = 1;
/// Set from the start where whoever passes has more to do than to look.
const GUARDED: u64 = 2;
/// Above them the number of entries.
const ONE: u64 = 4;

pub(crate) struct Gate<M: Memory> {
    word: CachePadded<M::Word>,
    sleepers: Mutex<Sleepers>,
    fence: Asymmetric<M>,
}

#[derive(Default)]
struct Sleepers {
    entries: VecDeque<(u64, Waker)>,
    next: u64,
}

/// A wake-up that a sleeper has had, and for which it is going to look. Dropped before, as by a panic, it goes to the next.
#[must_use]
pub(crate) struct Woken<'a, M: Memory>(&'a Gate<M>);

impl<M: Memory> Woken<'_, M> {
    /// The sleeper has looked.
    pub(crate) fn looked(self) {
        core::mem::forget(self);
    }
}

impl<M: Memory> Drop for Woken<'_, M> {
    fn drop(&mut self) {
        self.0.wake_sleepers(1);
    }
}

/// An entry that must be given up by [`Gate::leave`].
#[derive(Debug)]
#[must_use]
pub(crate) struct Entry(u64);

impl<M: Memory> Gate<M> {
    /// An open gate. If it is `guarded` no look at it is [`plain`](Gate::is_plain), and none is where the
    /// system has no process-wide barrier.
    pub(crate) fn new(guarded: bool) -> Self {
        let fence = Asymmetric::new();
        let plain = !guarded && fence.in_force() == InForce::ProcessWide;
        Gate {
            word: CachePadded::new(Word::new(if plain { 0 } else { GUARDED })),
            sleepers: Mutex::default(),
            fence,
        }
    }

    /// Whether the gate is open, nobody sleeps, and it is not guarded: then this look is ordered after
    /// all that this thread has done. If not, ask [`light`](Gate::light) for that.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        // The cheap end of `fence`, with no need to ask whether it is in force: where it is not the
        // word is never 0.
        M::light();
        // Relaxed: ordered by the fence.
        self.word.load(Ordering::Relaxed) == 0
    }

    /// Orders what this thread has done before what it sees of the gate after.
    pub(crate) fn light(&self) {
        self.fence.owner();
    }

    /// Orders what this thread did to the gate before what it sees of others' doings after.
    pub(crate) fn heavy(&self) {
        self.fence.thief();
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire pairs with the Release in `close`: who sees the gate closed sees why. The rest is ordered by the fences around it.
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Wakes up to `things` sleepers, if there are any: that many things are there for the taking.
    /// Wakes all if the gate is closed: it may be this that they wait to see the end of.
    #[inline(always)]
    pub(crate) fn wake(&self, things: usize) {
        if !self.is_plain() {
            self.wake_if_any(things);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_if_any(&self, things: usize) {
        self.light();
        // Relaxed: ordered by the fence.
        let word = self.word.load(Ordering::Relaxed);
        if word >= ONE {
            self.wake_sleepers(if word & CLOSED == 0 { things } else { usize::MAX });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        // Nothing that runs under the lock can leave the entries half changed.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    pub(crate) fn wake_sleepers(&self, most: usize) {
        let mut left = most;
        each(|| {
            if left == 0 {
                return false;
            }
            left -= 1;
            let mut sleepers = self.lock();
            let Some((_, waker)) = sleepers.entries.pop_front() else { return false };
            // Relaxed: the lock orders the changes of the count; who looks at it has a fence.
            self.word.fetch_sub(ONE, Ordering::Relaxed);
            drop(sleepers);
            waker.wake();
            true
        });
    }

    /// Closes the gate, for ever, and wakes all. Returns whether this call was the first.
    pub(crate) fn close(&self) -> bool {
        // Release pairs with the Acquire in `is_closed`.
        let first = self.word.fetch_or(CLOSED, Ordering::Release) & CLOSED == 0;
        self.heavy();
        self.wake_sleepers(usize::MAX);
        first
    }

    /// Enters a sleeper. It must look again for what it waits for before it sleeps.
    pub(crate) fn enter(&self, waker: &Waker) -> Entry {
        let waker = waker.clone();
        let mut sleepers = self.lock();
        let number = sleepers.next;
        sleepers.next += 1;
        sleepers.entries.push_back((number, waker));
        self.word.fetch_add(ONE, Ordering::Relaxed);
        drop(sleepers);
        self.heavy();
        Entry(number)
    }

    /// Takes an entry away. Whether it was gone: somebody has woken this sleeper, or is about to.
    pub(crate) fn leave(&self, entry: &Entry) -> bool {
        let mut sleepers = self.lock();
        let place = sleepers.entries.iter().position(|&(number, _)| number == entry.0);
        let removed = place.and_then(|place| sleepers.entries.remove(place));
        if removed.is_some() {
            self.word.fetch_sub(ONE, Ordering::Relaxed);
        }
        // Before the waker is dropped, which may be foreign code.
        drop(sleepers);
        removed.is_none()
    }

    /// As [`leave`](Gate::leave), by a sleeper that looks next for what it was woken for.
    pub(crate) fn leave_to_look(&self, entry: &Entry) -> Option<Woken<'_, M>> {
        self.leave(entry).then_some(Woken(self))
    }

    /// Sleeps until `look` finds something or `deadline` has passed, in which case it looks once
    /// more.
    #[cold]
    pub(crate) fn sleep<R>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let waker = parked();
        let mut woken = None;
        let mut looks = |woken: Option<Woken<'_, M>>| {
            let found = look();
            woken.into_iter().for_each(Woken::looked);
            found
        };
        loop {
            let mut entered = Entered { gate: self, entry: Some(self.enter(&waker)) };
            // If it panics, or finds something, `entered` passes on a wake-up that was for this sleeper.
            if let Some(found) = looks(woken) {
                return Some(found);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                Some(_) => {
                    // If it was woken at the last moment, for something, this finds it.
                    return entered.leave().and_then(|woken| looks(Some(woken)));
                }
            }
            // Woken for something, in time or too late, or woken by nobody.
            woken = entered.leave();
        }
    }

    /// To be called by a sleeper that found something by itself.
    pub(crate) fn left_with_something(&self, entry: &Entry) {
        if self.leave(entry) {
            self.wake_sleepers(1);
        }
    }
}

/// A sleeper's entry while it looks. Dropped, it is given up as by who found something.
struct Entered<'a, M: Memory> {
    gate: &'a Gate<M>,
    entry: Option<Entry>,
}

impl<'a, M: Memory> Entered<'a, M> {
    /// Takes the entry away. What it was woken with, if that was gone.
    fn leave(&mut self) -> Option<Woken<'a, M>> {
        self.entry.take().and_then(|entry| self.gate.leave_to_look(&entry))
    }
}

impl<M: Memory> Drop for Entered<'_, M> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.gate.left_with_something(&entry);
        }
    }
}

/// A waker that unparks this thread.
pub(crate) fn parked() -> Waker {
    Waker::from(Arc::new(Parked(thread::current())))
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

// Miri cannot run what switches stacks, as the checker's threads do.
#[cfg(all(test, not(miri)))]
mod models {
    //! The lock is the system's: the one that wakes comes to it only behind the one that has entered.

    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use crate::models::clean_on_both;
    use poach_explore::{Simulated, Threads, WithoutBarrier};

    use super::*;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    /// Somebody makes a thing there and wakes who waits for it; another enters, and looks once more.
    fn a_thing_against_a_sleeper<M: Memory + 'static>(threads: &mut Threads) {
        let (gate, thing) = (Arc::new(Gate::<M>::new(false)), Arc::new(M::Word::new(0)));
        let [woken, found] = [(); 2].map(|()| Arc::new(Flag::default()));
        let (wakes, makes) = (Arc::clone(&gate), Arc::clone(&thing));
        threads.spawn("waker", move || {
            makes.store(1, Ordering::Relaxed);
            wakes.wake(1);
        });
        let (enters, looks, finds) = (Arc::clone(&gate), Arc::clone(&thing), Arc::clone(&found));
        let waker = Waker::from(Arc::clone(&woken));
        threads.spawn("sleeper", move || {
            let _entry = enters.enter(&waker);
            finds.0.store(looks.load(Ordering::Relaxed) != 0, Relaxed);
        });
        threads.finally(move || {
            assert!(found.0.load(Relaxed) || woken.0.load(Relaxed), "it sleeps for ever");
            drop((gate, thing));
        });
    }

    #[test]
    fn a_sleeper_finds_the_thing_or_is_woken() {
        clean_on_both(a_thing_against_a_sleeper::<Simulated>);
        clean_on_both(a_thing_against_a_sleeper::<WithoutBarrier>);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use poach_memory::Machine;

    use super::*;

    /// Counts how often it is woken; panics if it is told to.
    struct Bell {
        rung: AtomicUsize,
        panics: bool,
    }

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.rung.fetch_add(1, Ordering::Relaxed);
            assert!(!self.panics, "a waker panics");
        }
    }

    fn bell(panics: bool) -> (Arc<Bell>, Waker) {
        let bell = Arc::new(Bell { rung: AtomicUsize::new(0), panics });
        (Arc::clone(&bell), Waker::from(bell))
    }

    #[test]
    fn a_waker_that_panics_keeps_nobody_asleep() {
        let gate = Gate::<Machine>::new(false);
        let bells = [false, true, false, false].map(bell);
        let entries: Vec<_> = bells.iter().map(|(_, waker)| gate.enter(waker)).collect();
        assert!(catch_unwind(AssertUnwindSafe(|| gate.close())).is_err());
        let rung = bells.each_ref().map(|(bell, _)| bell.rung.load(Ordering::Relaxed));
        assert_eq!(rung, [1; 4]);
        assert!(entries.iter().all(|entry| gate.leave(entry)));
    }

    #[test]
    fn a_sleeper_whose_look_panics_gives_up_its_entry() {
        let gate = Gate::<Machine>::new(false);
        let trap = || -> Option<()> { panic!("foreign code") };
        assert!(catch_unwind(AssertUnwindSafe(|| gate.sleep(None, trap))).is_err());
        // The next is woken, not the one that has gone.
        let (next, waker) = bell(false);
        let entry = gate.enter(&waker);
        gate.wake(1);
        assert_eq!(next.rung.load(Ordering::Relaxed), 1);
        assert!(gate.leave(&entry));
    }

    #[test]
    fn a_wake_up_is_not_lost_by_who_was_woken_and_panics_at_its_next_look() {
        let gate = Gate::<Machine>::new(false);
        let (next, waker) = bell(false);
        let mut second = false;
        let looks = || -> Option<()> {
            assert!(!second, "foreign code, at the look of one that was woken");
            second = true;
            // Behind this sleeper, which is the one that is woken.
            let _entry = gate.enter(&waker);
            gate.wake(1);
            None
        };
        assert!(catch_unwind(AssertUnwindSafe(|| gate.sleep(None, looks))).is_err());
        assert_eq!(next.rung.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_wake_up_that_meets_a_panic_goes_to_the_next() {
        let gate = Gate::<Machine>::new(false);
        let (next, waker) = bell(false);
        let looks = || -> Option<()> {
            let _entry = gate.enter(&waker);
            gate.wake(1);
            panic!("foreign code, after the one that looks was woken")
        };
        assert!(catch_unwind(AssertUnwindSafe(|| gate.sleep(None, looks))).is_err());
        assert_eq!(next.rung.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_gate_is_plain_where_the_barrier_is_and_nobody_sleeps() {
        let plain = Asymmetric::<Machine>::new().in_force() == InForce::ProcessWide;
        let gate = Gate::<Machine>::new(false);
        assert_eq!(gate.is_plain(), plain);
        assert!(!Gate::<Machine>::new(true).is_plain());
        // An entry is taken away once, by who wakes it or by who leaves.
        let (_, waker) = bell(false);
        let [woken, leaves] = [(); 2].map(|()| gate.enter(&waker));
        assert!(!gate.is_plain());
        gate.wake(1);
        assert!(gate.leave(&woken) && !gate.is_plain());
        assert!(!gate.leave(&leaves) && gate.leave(&leaves));
        assert_eq!(gate.is_plain(), plain);
        assert_eq!(gate.word.load(Ordering::Relaxed) / ONE, 0);
    }

    #[test]
    fn a_sleeper_that_has_looked_keeps_its_wake_up() {
        let gate = Gate::<Machine>::new(false);
        let (next, waker) = bell(false);
        let mut looks = 0;
        let found = gate.sleep(None, || {
            looks += 1;
            if looks == 1 {
                // Behind this sleeper, which is the one that is woken.
                let _entry = gate.enter(&waker);
                gate.wake(1);
                return None;
            }
            Some(looks)
        });
        assert_eq!((found, next.rung.load(Ordering::Relaxed)), (Some(2), 0));
    }

    /// Comes and goes at a gate, when it is woken and when it is dropped.
    struct Uses(Arc<Gate<Machine>>);

    impl Uses {
        fn gate(&self) {
            let entry = self.0.enter(Waker::noop());
            assert!(!self.0.leave(&entry));
        }
    }

    impl Wake for Uses {
        fn wake(self: Arc<Self>) {
            self.gate();
        }
    }

    impl Drop for Uses {
        fn drop(&mut self) {
            self.gate();
        }
    }

    #[test]
    fn a_waker_may_use_the_gate() {
        let gate = Arc::new(Gate::<Machine>::new(false));
        for wakes in [true, false] {
            let entry = gate.enter(&Waker::from(Arc::new(Uses(Arc::clone(&gate)))));
            if wakes {
                gate.wake(1);
            }
            assert_eq!(gate.leave(&entry), wakes);
        }
        assert_eq!(Arc::strong_count(&gate), 1);
    }
}
