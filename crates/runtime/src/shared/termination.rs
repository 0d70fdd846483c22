//! The end of a pool's workers.
//!
//! A worker takes tasks until its pool has *ended*. A pool ends once it has been closed (dropped,
//! or shut down) and nothing keeps it open. All that relies on workers keeps it open:
//!
//! | what | keeps the pool open |
//! |---|---|
//! | a call by a method of [`ThreadPool`](crate::ThreadPool) | by its borrow of the pool: closing needs the pool itself |
//! | a detached task (of a `spawn`) | by a hold, from before it is handed out until it has ended |
//! | a task for one particular worker (of a broadcast) | by a hold, in the same way |
//! | an interrupt | by a hold, for as long as it lasts |
//! | a join, a task of a scope | not at all: the thread that waits for it runs it, or a worker that has taken it runs it to its end before it looks here |
//!
//! So a thread that calls while another closes the pool either finds all workers there until its
//! call is over, or is refused because they have ended. A task of the pool is never refused. Both
//! outcomes occur on a thread that a pool [uses](crate::ThreadPoolBuilder::use_current_thread), and
//! in start and exit handlers, which have no borrow of the pool.
//!
//! A worker leaves with nothing in its own queue. A task of a scope that it has taken may have
//! pushed others there, and perhaps no other worker can take them.
//!
//! # Why that is so
//!
//! One word has the number of holds, a bit for *closing* and one for *ended*. All changes are
//! read-modify-writes, and so stand in one order.
//!
//! ```text
//! a call                                       who closes, or releases a hold
//!   H1  holds += 1; if ended was set:            C1  closing = 1, or holds -= 1
//!       holds -= 1, refused                      C2  if that made it closing = 1, holds = 0:
//!   H2  rely on workers                              ended = 1, unless it has changed meanwhile (a compare-and-swap)
//!   H3  C1                                       C3  if C2 has done so: wake all
//! a worker that looks for work (S5)
//!   W1  if ended is set, and its queue is empty: leave
//! ```
//!
//! - *A call that is not refused finds all workers.* H1 comes before every C2 that succeeds, since
//!   it has not seen one, and *ended* is never cleared. With this hold counted no C2 succeeds. So
//!   each C2 that does comes after H3, and so does each W1 that reads *ended*.
//! - *The workers end.* Each change that makes the word closing with no hold is a C1 of some
//!   thread, which goes on to C2. If C2 fails, another H1 was in between, and its H3 comes here
//!   again. A refused call changes the number only after *ended* is set. C3 wakes sleepers: C2 is a
//!   P1 of `sleep/README.md`.
//! - *Earlier work is seen.* C1 and C2 release, W1 acquires, and read-modify-writes between them
//!   keep the chain. So a worker that leaves has seen what all calls and detached tasks did, and
//!   what the closing thread did.

use poach_memory::{Machine, Memory, Ordering, Word};

const CLOSING: u64 = 1 << 63;
const ENDED: u64 = 1 << 62;

/// The word.
pub(crate) struct Termination<W = <Machine as Memory>::Word>(W);

impl<W: Word> Termination<W> {
    pub(crate) fn new() -> Self {
        Termination(Word::new(0))
    }

    /// H1: adds a hold, if the pool has not ended.
    #[inline]
    #[must_use]
    pub(crate) fn hold(&self) -> bool {
        // Relaxed: the order of this word alone decides.
        let held = self.0.fetch_add(1, Ordering::Relaxed) & ENDED == 0;
        if !held {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
        held
    }

    /// H1, of a caller that has a hold already.
    pub(crate) fn hold_again(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// H3: C1 and C2. Returns whether the caller is to wake all workers.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        // AcqRel: a worker that sees the end sees what was done under this hold, and under those
        // released before.
        self.0.fetch_sub(1, Ordering::AcqRel) == CLOSING | 1 && self.end()
    }

    /// C1 and C2. Returns whether the caller is to wake all workers.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        // AcqRel: as in `release`, and what the closing thread did.
        self.0.fetch_or(CLOSING, Ordering::AcqRel) & !CLOSING == 0 && self.end()
    }

    /// C2.
    #[cold]
    fn end(&self) -> bool {
        let ended = CLOSING | ENDED;
        // AcqRel: as in `release`.
        self.0.compare_exchange(CLOSING, ended, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// W1.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire: pairs with `end`.
        self.0.load(Ordering::Acquire) & ENDED != 0
    }

    /// Restores the initial state, if it has ended and has no holds. For a value that no other
    /// thread has.
    pub(crate) fn reopen(&mut self) -> bool {
        // Relaxed, both: no other thread has it.
        let ended = self.0.load(Ordering::Relaxed) == CLOSING | ENDED;
        if ended {
            self.0.store(0, Ordering::Relaxed);
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_once_it_is_closed_and_nobody_holds_it() {
        let mut pool: Termination = Termination::new();
        assert!(pool.hold());
        pool.hold_again();
        assert!(!pool.release() && !pool.close() && !pool.has_ended());
        assert!(pool.hold(), "a task that runs may spawn");
        assert!(!pool.release() && !pool.reopen() && !pool.has_ended());
        assert!(pool.release() && pool.has_ended());
        assert!(!pool.hold() && !pool.close(), "it has ended for ever");
        assert!(pool.reopen() && !pool.has_ended() && pool.hold());
    }

    #[test]
    fn one_that_nobody_holds_ends_when_it_is_closed() {
        let pool: Termination = Termination::new();
        assert!(pool.hold() && !pool.release() && !pool.has_ended());
        assert!(pool.close() && pool.has_ended());
    }
}

// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use super::*;

    type Modelled = Termination<AtomicU64>;

    fn leaked<T>(value: T) -> &'static T {
        Box::leak(Box::new(value))
    }

    /// One thread closes, two call, a worker looks. A call uses the worker: something that only one
    /// of them may touch, and the worker when it leaves.
    fn calls_beside_a_close(hold: fn(&Modelled) -> bool, release: fn(&Modelled) -> bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let pool = leaked(Modelled::new());
            let used: [&'static UnsafeCell<()>; 2] = [(); 2].map(|()| leaked(UnsafeCell::new(())));
            let callers = used.map(|used| {
                thread::spawn(move || {
                    if !hold(pool) {
                        return false;
                    }
                    used.with_mut(|_| ());
                    release(pool)
                })
            });
            let closed = pool.close();
            let left = pool.has_ended();
            if left {
                let _ = used.map(|used| used.with_mut(|_| ()));
            }
            let wakes = callers.map(|caller| caller.join().unwrap()).into_iter();
            assert_eq!(wakes.filter(|&wakes| wakes).count() + usize::from(closed), 1);
            assert!(pool.has_ended());
        });
    }

    #[test]
    fn who_is_not_refused_finds_the_worker_and_one_thread_wakes_all() {
        calls_beside_a_close(Termination::hold, Termination::release);
    }

    /// As it was.
    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_call_that_looks_and_then_holds_finds_nobody() {
        let looks_first = |pool: &Modelled| {
            let open = !pool.has_ended();
            if open {
                pool.hold_again();
            }
            open
        };
        calls_beside_a_close(looks_first, Termination::release);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_worker_that_leaves_before_what_was_done_is_seen() {
        let relaxed =
            |pool: &Modelled| pool.0.fetch_sub(1, Ordering::Relaxed) == CLOSING | 1 && pool.end();
        calls_beside_a_close(Termination::hold, relaxed);
    }
}
