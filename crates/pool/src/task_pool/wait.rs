//! How a thread waits: it looks a few times, gives way between the looks, and then sleeps.
//!
//! A yield lets others of the pool's threads run until they, too, must wait, which may be for many
//! tasks. To sleep and be woken costs a switch to this thread for the first of them. But **a yield
//! has no deadline**: beside n threads that compute it lasts n slices of the scheduler, while the
//! system prefers a thread that was woken. So
//!
//! - a wait with a deadline yields only while much time is left, and looks at the clock before each
//!   look;
//! - where a yield took long, and much longer than the thread had run since its last wait, the
//!   thread yields no more for a while.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use poach_memory::{Machine, Memory, Ordering, Word};

use super::gate::{Gate, Woken};
use super::sleepers::Entry;

/// How often a thread looks before it sleeps.
const LOOKS: u32 = 64;
/// A yield of this length has run a thread that computes,
const LONG: Duration = Duration::from_millis(1);
/// and not for this thread, if it is so many times as long as this thread has run since its last
/// wait.
const LONGER: u32 = 8;
/// How long that is remembered: some ten slices.
const CONTENDED: Duration = Duration::from_millis(50);
/// A wait that has less time left does not yield: some thirty slices.
const MARGIN: Duration = Duration::from_millis(100);

thread_local! {
    /// When this thread's last wait ended, and until when it does not yield.
    static LAST: Cell<Option<(Instant, Instant)>> = const { Cell::new(None) };
}

/// How long a wait may yield.
struct Yields {
    /// How long the thread had run when the wait began.
    ran: Duration,
    /// Until when it does not yield.
    contended: Option<Instant>,
}

impl Yields {
    fn new(now: Instant) -> Self {
        let Some((ended, until)) = LAST.get() else {
            return Yields { ran: Duration::MAX, contended: None };
        };
        Yields { ran: now - ended, contended: (now < until).then_some(until) }
    }

    fn yielded(&mut self, start: Instant, end: Instant) {
        let took = end - start;
        if took >= LONG && took / LONGER >= self.ran {
            self.contended = Some(end + CONTENDED);
        }
    }
}

impl Drop for Yields {
    fn drop(&mut self) {
        let now = Instant::now();
        LAST.set(Some((now, self.contended.unwrap_or(now))));
    }
}

impl<M: Memory> Gate<M> {
    /// Looks until `look` finds something or `deadline` has passed, if there is one: then it
    /// answers nothing. To be called by a thread that has just looked.
    ///
    /// With what was found comes the sleeper's entry, if it has one. Its drop may wake another, and
    /// a waker is foreign code, which may panic: what was found is the caller's before that.
    #[cold]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<(R, Option<Entered<'_, M>>)> {
        let mut yields = Yields::new(Instant::now());
        for _ in 0..LOOKS {
            let now = Instant::now();
            let left = deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(now));
            if left.is_zero() {
                return None;
            }
            if yields.contended.is_some() {
                break;
            }
            if left >= MARGIN {
                thread::yield_now();
                yields.yielded(now, Instant::now());
            } else {
                M::pause();
            }
            if let Some(found) = look() {
                return Some((found, None));
            }
        }
        self.sleep(deadline, look)
    }

    /// Sleeps until `look` finds something or `deadline` has passed, in which case it looks once
    /// more. Answers as [`wait`](Gate::wait).
    #[cold]
    pub(crate) fn sleep<R>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<(R, Option<Entered<'_, M>>)> {
        let parked = Parked::new();
        let waker = Waker::from(Arc::clone(&parked));
        let mut woken = None;
        let mut looks = |woken: Option<Woken<'_, M>>| {
            let found = look();
            woken.into_iter().for_each(Woken::looked);
            found
        };
        loop {
            let mut entered = Entered { gate: self, entry: Some(self.enter(&waker)) };
            // If it panics, or finds something, `entered` passes on a wake-up that was for this
            // sleeper.
            if let Some(found) = looks(woken) {
                return Some((found, Some(entered)));
            }
            if !parked.sleep(deadline) {
                // If it was woken at the last moment, for something, this finds it.
                let found = entered.leave().and_then(|woken| looks(Some(woken)));
                return found.map(|found| (found, None));
            }
            // Woken for something, in time or too late, or woken by nobody.
            woken = entered.leave();
        }
    }
}

/// A sleeper's entry while it looks. Dropped, it is given up as by who found something.
pub(crate) struct Entered<'a, M: Memory> {
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

/// What wakes a thread that sleeps here: a waker for this thread. A look calls foreign code, which
/// may park the thread itself and so take a wake-up from it. So the wake-up is remembered beside
/// the thread's own token.
pub(crate) struct Parked {
    thread: Thread,
    /// Not 0 if it was woken since it last slept.
    woken: <Machine as Memory>::Word,
}

impl Parked {
    /// Of this thread.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Parked { thread: thread::current(), woken: Word::new(0) })
    }

    /// Sleeps until it is woken, but perhaps for a shorter time. If `deadline` has passed it does
    /// not sleep, and says so by `false`. The caller looks again for what it waits for. Only for
    /// the thread that this is of.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> bool {
        // Acquire, twice: pairs with the release in `wake`, so that the look that follows sees what
        // the waker had done. No foreign code runs between the first and the sleep: who wakes the
        // thread after it leaves the token, too.
        if self.woken.swap(0, Ordering::Acquire) == 0 {
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                Some(_) => return false,
            }
            self.woken.swap(0, Ordering::Acquire);
        }
        true
    }
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        // Release: see `sleep`.
        self.woken.store(1, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yield_is_too_long_that_is_longer_than_what_the_thread_has_done() {
        let now = Instant::now();
        let long = |took, ran| {
            let mut yields = Yields { ran, contended: None };
            yields.yielded(now, now + took);
            yields.contended.take().is_some()
        };
        assert!(long(LONG, LONG / LONGER) && !long(LONG, LONG) && !long(LONG / 2, Duration::ZERO));
        LAST.set(Some((now, now + LONG)));
        assert!(Yields::new(now + LONG / 2).contended.is_some(), "it is remembered");
        LAST.set(Some((now, now + LONG)));
        assert!(Yields::new(now + LONG).contended.is_none(), "for a while");
    }

    /// How often a wait looks whose time is over when it begins, and one whose time ends during a
    /// look.
    #[test]
    fn nobody_looks_again_after_the_deadline() {
        let gate = Gate::<Machine>::new(false);
        let mut looks = 0;
        let mut look = || -> Option<()> {
            looks += 1;
            None
        };
        let now = Instant::now();
        assert!(gate.wait(Some(now), &mut look).is_none());
        assert_eq!(looks, 0, "its caller has looked");
        let slow = || -> Option<()> {
            looks += 1;
            let end = Instant::now() + MARGIN;
            while Instant::now() < end {
                thread::yield_now();
            }
            None
        };
        assert!(gate.wait(Some(Instant::now() + MARGIN / 2), slow).is_none());
        // None, if the thread had to wait for a processor.
        assert!(looks <= 1, "{looks}");
    }
}
