//! Where consumers and producers sleep until there is a task or room; and the word for the close.
//!
//! # Why no wake-up is lost
//!
//! | | a waker | | a sleeper |
//! |---|---|---|---|
//! | w1 | makes the thing there | s1 | locks; enters itself, and *watches* the gate if nobody did; unlocks |
//! | w2 | the cheap end of a fence | s2 | the costly end, unless the watch is *fenced*; then says, under the lock, that it is |
//! | w3 | looks whether the gate is watched | s3 | looks for the thing |
//! | w4 | if so, locks; takes the first entry out, or, if there is none, ends the watch; unlocks; wakes | s4 | sleeps |
//!
//! The watch is a bit of the gate's word. It begins and ends under the lock; where there is an
//! entry there is a watch. It is fenced from the end of a costly fence that was issued while it
//! lasted until its own end.
//!
//! 1. *w3 misses the watch.* Then w1 comes before the costly fence of this watch, by the guarantee
//!    of [`StoreLoad`] (the waker is the owner). The sleeper issued that fence itself, or read
//!    under the lock that it is over. So s3 finds the thing, unless another thread took it.
//! 2. *w3 sees the watch, and w4 locks before s1.* The lock orders w1 before s3, which finds the
//!    thing, unless another thread took it.
//! 3. *w3 sees the watch, and w4 locks after s1.* There is an entry, this one or an earlier one. It
//!    is taken out before it is woken: each thing put wakes one sleeper, never the same one twice.
//!
//! So a sleeper that comes to a fenced watch pays for a lock and not for a process-wide barrier. A
//! watch lasts while a thread sleeps, and then until a waker has found no entry, or a sleeper has
//! removed the last. **If the end of a watch did not clear *fenced***, the next watch would begin
//! without a barrier: a waker could miss the watch, and a sleeper the thing. **If a watch were
//! fenced from its begin**, a second sleeper would look before the first one's barrier. Models find
//! both.
//!
//! If a sleeper finds what it waits for by itself, and its entry is gone, it was woken for another
//! thing, and wakes the next in its place. A sleeper that looks again, and has kept its entry, need
//! not enter again: the argument holds since it entered.
//!
//! While no thread sleeps a look costs one load of a line that no thread writes, and one
//! comparison: all reasons to do more stand in that one word.
//!
//! **Wakers are foreign code.** They are cloned before the lock is taken, and woken and dropped
//! after it is released, so that a waker may use the pool. If one panics while all are woken, the
//! others are woken while that panic unwinds. A sleeper whose look panics gives up its entry. A
//! wake-up that it had, or was going to look for ([`Woken`]), goes to the next.

use std::ops::DerefMut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use poach_memory::{Asymmetric, CachePadded, Memory, Ordering, StoreLoad, Word, order::InForce};

use super::sleepers::{Entry, Sleepers};
use crate::registry::each;

/// Set once the pool is closed.
const CLOSED: u64 = 1;
/// Set from the start if each passing thread has more to do than look.
const GUARDED: u64 = 2;
/// Set while there is an entry, and until a waker has found none or a sleeper removed the last.
const WATCHED: u64 = 4;

pub(crate) struct Gate<M: Memory> {
    watch: Watch<M>,
    sleepers: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    sleepers: Sleepers,
    lasts: bool,
    /// Whether a costly fence was issued since it was set, and is over.
    fenced: bool,
    ended: u64,
}

/// A gate without its lock, which the caller has: models use their own.
struct Watch<M: Memory> {
    word: CachePadded<M::Word>,
    fence: Asymmetric<M>,
}

impl<M: Memory> Watch<M> {
    /// s1, s2. The lock is not held across the fence.
    fn enter<G: DerefMut<Target = Watched>>(&self, lock: impl Fn() -> G, waker: Waker) -> Entry {
        let mut it = lock();
        let entry = it.sleepers.push(waker);
        if !it.lasts {
            it.lasts = true;
            // Relaxed: the lock orders the changes of the bit; readers have a fence.
            self.word.fetch_or(WATCHED, Ordering::Relaxed);
        }
        let (fenced, ended) = (it.fenced, it.ended);
        drop(it);
        if !fenced {
            self.fence.thief();
            let mut it = lock();
            // The fence does not count for a watch that began after it.
            it.fenced |= it.lasts && it.ended == ended;
        }
        entry
    }

    fn take<G: DerefMut<Target = Watched>>(&self, lock: impl Fn() -> G) -> Option<Waker> {
        let mut it = lock();
        let first = it.sleepers.pop_front();
        if first.is_none() {
            self.end(&mut it);
        }
        first
    }

    fn leave<G: DerefMut<Target = Watched>>(
        &self,
        lock: impl Fn() -> G,
        entry: &Entry,
    ) -> Option<Waker> {
        let mut it = lock();
        let removed = it.sleepers.remove(entry);
        if removed.is_some() && it.sleepers.is_empty() {
            self.end(&mut it);
        }
        removed
    }

    fn end(&self, it: &mut Watched) {
        if it.lasts {
            it.lasts = false;
            it.fenced = false;
            it.ended += 1;
            // Relaxed, as where it is set.
            self.word.fetch_and(!WATCHED, Ordering::Relaxed);
        }
    }
}

/// A wake-up that its sleeper is going to look for. Dropped before that, it goes to the next.
#[must_use]
pub(crate) struct Woken<'a, M: Memory>(&'a Gate<M>);

impl<M: Memory> Woken<'_, M> {
    pub(crate) fn looked(self) {
        core::mem::forget(self);
    }
}

impl<M: Memory> Drop for Woken<'_, M> {
    fn drop(&mut self) {
        self.0.wake_sleepers(1);
    }
}

impl<M: Memory> Gate<M> {
    /// No look at it is plain if it is `guarded`, or the system has no process-wide barrier.
    pub(crate) fn new(guarded: bool) -> Self {
        let fence = Asymmetric::new();
        let plain = !guarded && fence.in_force() == InForce::ProcessWide;
        let word = CachePadded::new(Word::new(if plain { 0 } else { GUARDED }));
        Gate { watch: Watch { word, fence }, sleepers: Mutex::default() }
    }

    /// Whether the gate is open, without sleepers and not guarded. If so, this look is ordered
    /// after all that this thread has done; if not, a look after [`light`](Gate::light) is.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        // The cheap end of `fence`; where that is not in force the word is never 0.
        M::light();
        // Relaxed: ordered by the fence.
        self.watch.word.load(Ordering::Relaxed) == 0
    }

    /// Orders this thread's earlier accesses before its later looks at the gate.
    pub(crate) fn light(&self) {
        self.watch.fence.owner();
    }

    /// Orders this thread's changes of the gate before its later looks at other threads' stores.
    pub(crate) fn heavy(&self) {
        self.watch.fence.thief();
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire pairs with `close`: a thread that sees the gate closed sees why. The fences
        // around it order the rest.
        self.watch.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Wakes up to `things` sleepers; all if the gate is closed: they may wait for this put's end.
    #[inline(always)]
    pub(crate) fn wake(&self, things: usize) {
        if !self.is_plain() {
            self.wake_if_any(things);
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_if_any(&self, things: usize) {
        // w2, w3.
        self.light();
        // Relaxed: ordered by the fence.
        let word = self.watch.word.load(Ordering::Relaxed);
        if word & WATCHED != 0 {
            self.wake_sleepers(if word & CLOSED == 0 { things } else { usize::MAX });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        // No code under the lock can panic and leave the entries half changed.
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
            let Some(waker) = self.watch.take(|| self.lock()) else { return false };
            waker.wake();
            true
        });
    }

    /// Closes the gate, for ever, and wakes all. Returns whether this call was the first.
    pub(crate) fn close(&self) -> bool {
        // Release pairs with the Acquire in `is_closed`.
        let first = self.watch.word.fetch_or(CLOSED, Ordering::Release) & CLOSED == 0;
        self.heavy();
        self.wake_sleepers(usize::MAX);
        first
    }

    /// Enters a sleeper. It must look again for what it waits for before it sleeps.
    pub(crate) fn enter(&self, waker: &Waker) -> Entry {
        let waker = waker.clone();
        self.watch.enter(|| self.lock(), waker)
    }

    /// Replaces the waker of an entry. Returns whether the entry is still there.
    pub(crate) fn renew(&self, entry: &Entry, waker: &Waker) -> bool {
        match self.lock().sleepers.get_mut(entry) {
            Some(old) if old.will_wake(waker) => return true,
            Some(_) => {}
            None => return false,
        }
        let mut waker = waker.clone();
        let mut it = self.lock();
        let there = it.sleepers.get_mut(entry).map(|old| core::mem::swap(old, &mut waker));
        // Unlocks before the old or the unused waker is dropped: its drop is foreign code.
        drop(it);
        there.is_some()
    }

    /// Returns whether the entry was gone: another thread has woken this sleeper, or is about to.
    pub(crate) fn leave(&self, entry: &Entry) -> bool {
        // The waker, foreign code, is dropped after the lock is released.
        self.watch.leave(|| self.lock(), entry).is_none()
    }

    /// As [`leave`](Gate::leave), by a sleeper that looks next for what it was woken for.
    pub(crate) fn leave_to_look(&self, entry: &Entry) -> Option<Woken<'_, M>> {
        self.leave(entry).then(|| self.woken())
    }

    /// For a sleeper whose entry is gone and that looks next for what it was woken for.
    pub(crate) fn woken(&self) -> Woken<'_, M> {
        Woken(self)
    }

    /// For a sleeper that found something by itself.
    pub(crate) fn left_with_something(&self, entry: &Entry) {
        if self.leave(entry) {
            self.wake_sleepers(1);
        }
    }
}

#[cfg(all(test, not(miri)))]
mod models;

#[cfg(test)]
#[path = "../../tests/it/watchdog/mod.rs"]
mod watchdog;

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use poach_memory::Machine;

    use super::watchdog::watched;
    use super::*;

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
    fn a_sleeper_has_what_it_found_before_the_next_is_woken() {
        let gate = Gate::<Machine>::new(false);
        let (next, waker) = bell(true);
        let looks = || {
            let _entry = gate.enter(&waker);
            gate.wake(1);
            Some("a task")
        };
        let (found, entered) = gate.sleep(None, looks).expect("it finds something");
        assert_eq!((found, next.rung.load(Ordering::Relaxed)), ("a task", 0));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(entered))).is_err());
        assert_eq!(next.rung.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_sleeper_is_woken_though_its_look_parks() {
        watched(|| {
            let gate = Gate::<Machine>::new(false);
            let mut looks = 0;
            let found = gate.sleep(None, || {
                looks += 1;
                if looks == 1 {
                    gate.wake(1);
                    // What foreign code may do; it takes the wake-up of the thread.
                    std::thread::park();
                }
                (looks == 2).then_some(())
            });
            assert!(found.is_some());
        });
    }

    #[test]
    fn a_gate_is_plain_where_the_barrier_is_and_nobody_sleeps() {
        let plain = Asymmetric::<Machine>::new().in_force() == InForce::ProcessWide;
        let gate = Gate::<Machine>::new(false);
        assert_eq!(gate.is_plain(), plain);
        assert!(!Gate::<Machine>::new(true).is_plain());
        let (_, waker) = bell(false);
        let [woken, leaves] = [(); 2].map(|()| gate.enter(&waker));
        assert!(!gate.is_plain());
        gate.wake(1);
        assert!(gate.leave(&woken) && !gate.is_plain());
        assert!(!gate.leave(&leaves) && gate.leave(&leaves));
        assert_eq!(gate.is_plain(), plain);
        assert_eq!(gate.watch.word.load(Ordering::Relaxed) & WATCHED, 0);
    }

    #[test]
    fn a_sleeper_that_has_looked_keeps_its_wake_up() {
        let gate = Gate::<Machine>::new(false);
        let (next, waker) = bell(false);
        let mut looks = 0;
        let found = gate.sleep(None, || {
            looks += 1;
            if looks == 1 {
                let _entry = gate.enter(&waker);
                gate.wake(1);
                return None;
            }
            Some(looks)
        });
        let found = found.map(|(found, _)| found);
        assert_eq!((found, next.rung.load(Ordering::Relaxed)), (Some(2), 0));
    }

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
        // Nor is one dropped under the lock that gives way to another.
        let entry = gate.enter(&Waker::from(Arc::new(Uses(Arc::clone(&gate)))));
        assert!(gate.renew(&entry, Waker::noop()));
        assert!(!gate.leave(&entry));
        assert_eq!(Arc::strong_count(&gate), 1);
    }
}
