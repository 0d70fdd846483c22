//! How a thread waits: it looks a few times, yields between the looks, and then sleeps.
//!
//! A yield lets other threads of the pool run until they, too, must wait, which may be for many
//! tasks. To sleep and be woken costs a switch to this thread for the first of them. But **a yield
//! has no deadline**: beside n threads that compute it lasts n slices of the scheduler, while the
//! system prefers a thread that was woken. So
//!
//! - a wait with a deadline yields only while much time is left, and looks at the clock before each
//!   look;
//! - a yield is *long* if it took long, and much longer than the thread had run since its last
//!   wait, and the pool's other threads took few tasks meanwhile. Such a yield has run threads
//!   outside the pool. After the second one the thread does not yield for a while, and after each
//!   further one for twice as long as before.
//!
//! Tasks are counted because beside threads of its own pool that sleep and wake each other, a yield
//! lasts as long as beside threads that compute. Without the count one long yield would send all
//! threads of a pool to sleep for each task, for ever. The first long yield does not count, as
//! something else runs now and then on any machine.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use poach_memory::{Machine, Memory, Ordering, Word};

use super::gate::{Gate, Woken};
use super::sleepers::Entry;

const LOOKS: u32 = 64;
/// The least length of a long yield. It has run a thread that computes.
const LONG: Duration = Duration::from_millis(1);
/// A long yield takes at least this multiple of the time that the thread ran since its last wait.
const LONGER: u32 = 8;
/// During a long yield fewer tasks were taken than one in each such interval.
const TASK: Duration = Duration::from_micros(50);
/// How long a thread does not yield after its second long yield; twice as long after the third.
const CONTENDED: Duration = Duration::from_millis(1);
/// The long yield after which that time is longest: some ten slices.
const MOST: u32 = 8;
/// After this number of waits in a row without a long yield the count starts again.
const SHORT: u32 = 32;
/// A wait that has less time left does not yield: some thirty slices.
const MARGIN: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
struct Last {
    ended: Instant,
    /// The end of the time without yields.
    contended: Instant,
    /// The number of long yields, up to [`MOST`].
    long: u32,
    short: u32,
}

thread_local! {
    static LAST: Cell<Option<Last>> = const { Cell::new(None) };
}

struct Yields {
    /// The time from the end of the thread's last wait to the beginning of this one.
    ran: Duration,
    last: Last,
    /// Whether every yield was short; `None` before the first.
    short: Option<bool>,
}

impl Yields {
    fn new(now: Instant) -> Self {
        let last = LAST.get();
        let ran = last.map_or(Duration::MAX, |last| now - last.ended);
        let first = Last { ended: now, contended: now, long: 0, short: 0 };
        Yields { ran, last: last.unwrap_or(first), short: None }
    }

    fn are_contended(&self, now: Instant) -> bool {
        now < self.last.contended
    }

    /// `taken` tasks were taken since this wait's first yield began.
    fn yielded(&mut self, start: Instant, end: Instant, taken: impl FnOnce() -> u64) {
        let took = end - start;
        let is_long = took >= LONG
            && took / LONGER >= self.ran
            && u128::from(taken()) < took.as_micros() / TASK.as_micros();
        self.short = Some(!is_long && self.short != Some(false));
        if is_long {
            let long = (self.last.long + 1).min(MOST);
            let pause = if long == 1 { Duration::ZERO } else { CONTENDED * (1 << (long - 2)) };
            self.last = Last { contended: end + pause, long, short: 0, ..self.last };
        }
    }
}

impl Drop for Yields {
    fn drop(&mut self) {
        let mut last = Last { ended: Instant::now(), ..self.last };
        if self.short == Some(true) {
            last.short += 1;
            if last.short == SHORT {
                (last.long, last.short) = (0, 0);
            }
        }
        LAST.set(Some(last));
    }
}

impl<M: Memory> Gate<M> {
    /// Looks until `look` finds something. Returns `None` if `deadline` passes first. For a thread
    /// that has just looked. `taken` is a number that rises as the pool's tasks are taken.
    ///
    /// With the result comes the sleeper's entry, if it has one. Its drop may wake another sleeper,
    /// whose waker is foreign code and may panic: the caller has the result before that.
    #[cold]
    pub(crate) fn wait<R>(
        &self,
        deadline: Option<Instant>,
        taken: impl Fn() -> u64,
        mut look: impl FnMut() -> Option<R>,
    ) -> Option<(R, Option<Entered<'_, M>>)> {
        let mut yields = Yields::new(Instant::now());
        let mut before = None;
        for _ in 0..LOOKS {
            let now = Instant::now();
            let left = deadline.map_or(Duration::MAX, |end| end.saturating_duration_since(now));
            if left.is_zero() {
                return None;
            }
            if yields.are_contended(now) {
                break;
            }
            if left >= MARGIN {
                let before = *before.get_or_insert_with(&taken);
                thread::yield_now();
                yields.yielded(now, Instant::now(), || taken().wrapping_sub(before));
            } else {
                M::pause();
            }
            if let Some(found) = look() {
                return Some((found, None));
            }
        }
        self.sleep(deadline, look)
    }

    /// As [`wait`](Gate::wait), asleep. After `deadline` it looks once more if it was woken.
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
            // If the look panics, or finds something, `entered` passes a wake-up on.
            if let Some(found) = looks(woken) {
                return Some((found, Some(entered)));
            }
            if !parked.sleep(deadline) {
                // A last look: it may have been woken just now.
                let found = entered.leave().and_then(|woken| looks(Some(woken)));
                return found.map(|found| (found, None));
            }
            woken = entered.leave();
        }
    }
}

/// A sleeper's entry while it looks. Its drop gives the entry up, as after a find.
pub(crate) struct Entered<'a, M: Memory> {
    gate: &'a Gate<M>,
    entry: Option<Entry>,
}

impl<'a, M: Memory> Entered<'a, M> {
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

/// A waker for this thread. A look calls foreign code, which may park the thread itself and so take
/// a wake-up from it. So the wake-up is remembered beside the thread's own token.
pub(crate) struct Parked {
    thread: Thread,
    woken: <Machine as Memory>::Word,
}

impl Parked {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Parked { thread: thread::current(), woken: Word::new(0) })
    }

    /// Sleeps until a wake-up, perhaps for a shorter time; `false` if `deadline` has passed. Only
    /// the thread that made `self` may call this.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) -> bool {
        // Acquire, twice: pairs with the Release in `wake`, so that the look that follows sees what
        // the waker had done. No foreign code runs between the first swap and the sleep, so a later
        // wake-up leaves the token, too.
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

    fn wait(took: Duration, ran: Duration, taken: u64) -> Last {
        wait_at(Instant::now(), took, ran, taken)
    }

    fn wait_at(now: Instant, took: Duration, ran: Duration, taken: u64) -> Last {
        let mut yields = Yields { ran, ..Yields::new(now) };
        yields.yielded(now, now + took, || taken);
        drop(yields);
        LAST.get().expect("there was a wait")
    }

    #[test]
    fn a_yield_is_too_long_that_is_longer_than_what_the_thread_has_done() {
        let is_long = |took, ran, taken| {
            LAST.set(None);
            wait(took, ran, taken).long == 1
        };
        assert!(is_long(LONG, LONG / LONGER, 0));
        assert!(!is_long(LONG, LONG, 0) && !is_long(LONG / 2, Duration::ZERO, 0));
        // The pool's other threads had the processor.
        let many = (LONG.as_micros() / TASK.as_micros()) as u64;
        assert!(is_long(LONG, Duration::ZERO, many - 1) && !is_long(LONG, Duration::ZERO, many));
    }

    #[test]
    fn a_thread_stops_to_yield_for_longer_and_longer() {
        LAST.set(None);
        let long = || {
            let now = Instant::now();
            wait_at(now, LONG, Duration::ZERO, 0).contended.saturating_duration_since(now + LONG)
        };
        assert_eq!(long(), Duration::ZERO, "the first is chance");
        let pauses: Vec<_> = (2..=MOST + 1).map(|_| long()).collect();
        assert!(pauses.is_sorted() && pauses[0] == CONTENDED, "{pauses:?}");
        let most = CONTENDED * (1 << (MOST - 2));
        assert!(pauses.iter().all(|pause| *pause <= most), "{pauses:?}");
        assert!(Yields::new(Instant::now()).are_contended(Instant::now()), "it is remembered");
        let later = Instant::now() + most + LONG;
        assert!(!Yields::new(later).are_contended(later), "for a while");
    }

    #[test]
    fn long_yields_are_forgotten() {
        LAST.set(None);
        wait(LONG, Duration::ZERO, 0);
        let longs: Vec<_> = (0..SHORT).map(|_| wait(LONG / 2, LONG, 0).long).collect();
        assert_eq!(longs.iter().filter(|long| **long == 1).count() as u32, SHORT - 1);
        assert_eq!(longs.last(), Some(&0));
    }

    #[test]
    fn a_wait_with_a_long_yield_is_none_of_short_ones() {
        for took in [[LONG, LONG / 2], [LONG / 2, LONG]] {
            LAST.set(None);
            let now = Instant::now();
            let mut yields = Yields { ran: Duration::ZERO, ..Yields::new(now) };
            for took in took {
                yields.yielded(now, now + took, || 0);
            }
            drop(yields);
            let last = LAST.get().expect("there was a wait");
            assert_eq!((last.long, last.short), (1, 0), "{took:?}");
        }
        assert_eq!(wait(LONG / 2, LONG, 0).short, 1);
    }

    #[test]
    fn nobody_looks_again_after_the_deadline() {
        let gate = Gate::<Machine>::new(false);
        let mut looks = 0;
        let mut look = || -> Option<()> {
            looks += 1;
            None
        };
        let now = Instant::now();
        let taken = || panic!("it does not yield");
        assert!(gate.wait(Some(now), taken, &mut look).is_none());
        assert_eq!(looks, 0, "its caller has looked");
        let slow = || -> Option<()> {
            looks += 1;
            let end = Instant::now() + MARGIN;
            while Instant::now() < end {
                thread::yield_now();
            }
            None
        };
        assert!(gate.wait(Some(Instant::now() + MARGIN / 2), || 0, slow).is_none());
        // None, if the thread had to wait for a processor.
        assert!(looks <= 1, "{looks}");
    }
}
