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

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use poach_memory::{
    Asymmetric, CachePadded, Machine, Memory, Ordering, StoreLoad, Word, order::InForce,
};

/// Set once the pool is closed.
const CLOSED: u64 = 1;
/// Set from the start where whoever passes has more to do than to look.
const GUARDED: u64 = 2;
/// Above them the number of entries.
const ONE: u64 = 4;

pub(crate) struct Gate {
    word: CachePadded<<Machine as Memory>::Word>,
    sleepers: Mutex<Sleepers>,
    fence: Asymmetric<Machine>,
}

#[derive(Default)]
struct Sleepers {
    entries: VecDeque<(u64, Waker)>,
    next: u64,
}

/// An entry that must be given up by [`Gate::leave`].
#[derive(Debug)]
#[must_use]
pub(crate) struct Entry(u64);

impl Gate {
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
        Machine::light();
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
        // Relaxed: ordered by the fences around it.
        self.word.load(Ordering::Relaxed) & CLOSED != 0
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
        for _ in 0..most {
            let mut sleepers = self.lock();
            let Some((_, waker)) = sleepers.entries.pop_front() else { return };
            self.word.fetch_sub(ONE, Ordering::Relaxed);
            drop(sleepers);
            waker.wake();
        }
    }

    /// Closes the gate, for ever, and wakes all. Returns whether this call was the first.
    pub(crate) fn close(&self) -> bool {
        let first = self.word.fetch_or(CLOSED, Ordering::Relaxed) & CLOSED == 0;
        self.heavy();
        self.wake_sleepers(usize::MAX);
        first
    }

    /// Enters a sleeper. It must look again for what it waits for before it sleeps.
    pub(crate) fn enter(&self, waker: &Waker) -> Entry {
        let mut sleepers = self.lock();
        let number = sleepers.next;
        sleepers.next += 1;
        sleepers.entries.push_back((number, waker.clone()));
        self.word.fetch_add(ONE, Ordering::Relaxed);
        drop(sleepers);
        self.heavy();
        Entry(number)
    }

    /// Takes an entry away. Whether it was gone: somebody has woken this sleeper, or is about to.
    pub(crate) fn leave(&self, entry: &Entry) -> bool {
        let mut sleepers = self.lock();
        let place = sleepers.entries.iter().position(|&(number, _)| number == entry.0);
        if let Some(place) = place {
            sleepers.entries.remove(place);
            self.word.fetch_sub(ONE, Ordering::Relaxed);
        }
        place.is_none()
    }

    /// Sleeps until `look` finds something or `deadline` has passed, in which case it looks once
    /// more.
    #[cold]
    pub(crate) fn sleep<R>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        let waker = Waker::from(Arc::new(Parked(thread::current())));
        loop {
            let entry = self.enter(&waker);
            if let Some(found) = look() {
                self.left_with_something(&entry);
                return Some(found);
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                Some(_) => {
                    // If it was woken at the last moment, for something, this finds it.
                    return if self.leave(&entry) { look() } else { None };
                }
            }
            // Woken for something, in time or too late, or woken by nobody.
            self.leave(&entry);
        }
    }

    /// To be called by a sleeper that found something by itself.
    pub(crate) fn left_with_something(&self, entry: &Entry) {
        if self.leave(entry) {
            self.wake_sleepers(1);
        }
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
