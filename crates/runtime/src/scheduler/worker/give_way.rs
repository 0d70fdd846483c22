//! Looks that give the processor away, and when they do not.
//!
//! A yield returns within a microsecond or so where no other thread wants the processor. Where a program does that computes, the yield takes that
//! program's slice, which is milliseconds, and what the worker waits for may have been there for as long. A worker that sleeps is woken within
//! microseconds even then, because the system prefers a thread that has slept to one that has not. So a yield that takes [`LONG`] says that the
//! processor is contended. For as long as [`CONTENDED`] after it the thread pauses where it would yield, and sleeps once it has looked
//! often enough. Workers of one pool that share a processor yield to each other within less time than that: among them
//! a yield is the faster way.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// A yield of this length has run a program that computes. A tenth of it made four workers on two processors slow, which took each other for one.
const LONG: Duration = Duration::from_millis(1);
/// How long one such yield is remembered: some ten slices, so that it costs little to ask again.
const CONTENDED: Duration = Duration::from_millis(50);

thread_local! {
    /// The thread's, and not the worker's: a frame makes workers of its own on the same threads.
    static CONTENTION: Contention = const { Contention(Cell::new(None)) };
}

/// Yields; or does nothing, and says that it would take long.
pub(super) fn give_way() -> Result<(), Contended> {
    CONTENTION.with(|contention| {
        let start = Instant::now();
        if contention.lasts(start) {
            return Err(Contended);
        }
        thread::yield_now();
        contention.has_yielded(start, Instant::now());
        Ok(())
    })
}

/// Others want the processor.
pub(super) struct Contended;

/// Until when a thread does not yield.
struct Contention(Cell<Option<Instant>>);

impl Contention {
    fn lasts(&self, now: Instant) -> bool {
        self.0.get().is_some_and(|until| now < until)
    }

    fn has_yielded(&self, start: Instant, end: Instant) {
        self.0.set((end - start >= LONG).then(|| end + CONTENDED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_yield_is_remembered_for_a_while_and_a_short_one_is_not() {
        let contention = Contention(Cell::new(None));
        let start = Instant::now();
        assert!(!contention.lasts(start));
        contention.has_yielded(start, start + LONG / 2);
        assert!(!contention.lasts(start + LONG));
        let end = start + LONG;
        contention.has_yielded(start, end);
        assert!(contention.lasts(end) && contention.lasts(end + CONTENDED / 2));
        assert!(!contention.lasts(end + CONTENDED));
        // Asked again, the processor is free.
        contention.has_yielded(end + CONTENDED, end + CONTENDED + LONG / 10);
        assert!(!contention.lasts(end + CONTENDED + LONG));
    }
}
