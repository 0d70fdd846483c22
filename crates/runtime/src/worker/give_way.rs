//! Looks that yield the processor, and when they do not.
//!
//! If no other thread wants the processor, a yield returns within about a microsecond. If a program
//! wants it that computes, the yield takes that program's slice, which is milliseconds, and the
//! awaited work may have been there for as long. A worker that sleeps is woken within microseconds
//! even then, because the system prefers a thread that has slept. So if a yield takes
//! [`LONG_YIELD`], and the worker then finds what it looked for, the processor is contended. For
//! [`CONTENDED_FOR`] after it the thread pauses instead of yielding, and sleeps once it has looked
//! often enough.
//!
//! A long yield after which there is nothing has lost nothing. Take a caller of the pool that
//! computes alone for a while: it uses the slice of a worker without work, and the two then yield
//! to each other at each of the caller's regions. Workers of one pool that share a processor yield
//! to each other within less time than [`LONG_YIELD`]: among them a yield is the faster way.

use std::cell::Cell;
use std::thread;
use std::time::Instant;

use crate::pace::{CONTENDED_FOR, LONG_YIELD};
use crate::worker::idle::GivesWay;

thread_local! {
    /// The end of the time without yields. It is the thread's, not the worker's: a frame makes
    /// workers of its own on the same threads.
    static CONTENDED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The yields of one search for work, or of one wait for a call.
#[derive(Default)]
pub(crate) struct GiveWay {
    /// The end of the last yield, if it was long.
    late: Option<Instant>,
    contended: bool,
}

impl GiveWay {
    pub(crate) fn new() -> GiveWay {
        GiveWay { late: None, contended: false }
    }

    fn yielded(&mut self, start: Instant, end: Instant) {
        self.late = (end - start >= LONG_YIELD).then_some(end);
    }
}

impl GivesWay for GiveWay {
    fn yields(&mut self) -> bool {
        let start = Instant::now();
        self.contended = CONTENDED_UNTIL.get().is_some_and(|until| start < until);
        if !self.contended {
            thread::yield_now();
            self.yielded(start, Instant::now());
        }
        !self.contended
    }

    fn is_contended(&self) -> bool {
        self.contended
    }

    fn looked(&mut self, found: bool) {
        if let Some(end) = self.late.take() {
            if found {
                CONTENDED_UNTIL.set(Some(end + CONTENDED_FOR));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_yield_after_which_something_is_found_is_remembered_for_a_while() {
        let mut way = GiveWay::new();
        assert!(way.yields() && !way.is_contended());
        let start = Instant::now();
        way.yielded(start, start + LONG_YIELD);
        way.looked(true);
        assert!(!way.yields() && way.is_contended());
        assert!(!GiveWay::new().yields(), "the thread's next search knows it too");
        CONTENDED_UNTIL.set(Some(start));
        assert!(way.yields() && !way.is_contended(), "it is forgotten");
    }

    #[test]
    fn a_short_one_is_not_and_nor_is_one_that_lost_nothing() {
        let mut way = GiveWay::new();
        let start = Instant::now();
        way.yielded(start, start + LONG_YIELD / 2);
        way.looked(true);
        assert!(way.yields());
        way.yielded(start, start + LONG_YIELD);
        way.looked(false);
        way.looked(true);
        assert!(way.yields());
    }
}
