//! A signal: one thread waits for it, another sets it.
//!
//! A thread that is not a worker looks for [`SIGNAL_SPIN`], about the cost of blocking and of being
//! woken on another processor, and then blocks. A call that ends sooner costs no system call. A
//! longer call is delayed by no more than blocking takes anyway: ski rental, as in
//! `sleep/wake_policy.rs`. The thread yields between its looks, since the worker that it waits for
//! may have been put on the same processor. If other programs want that processor, a yield lasts
//! for milliseconds; then the thread blocks at once, for a while (`give_way`).

use std::hint::spin_loop;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Instant;

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::pace::{SIGNAL_LOOKS, SIGNAL_SPIN};
use crate::shared::PoolShared;
use crate::system::process::ProcessGuard;
use crate::worker::current::WorkerThread;
use crate::worker::give_way::GiveWay;
use crate::worker::idle::GivesWay;

/// Set once, by any thread. The thread that made it waits for it; if it is a worker, it works
/// meanwhile.
#[derive(Clone)]
pub(crate) struct Signal(Arc<Inner>);

struct Inner {
    set: <Machine as Memory>::Word,
    process_guard: ProcessGuard,
    owner: Owner,
}

enum Owner {
    /// A worker of this pool, by its index.
    Worker(Arc<PoolShared>, usize),
    /// Any other thread.
    Thread(Thread),
}

impl Signal {
    /// A signal for this thread, which is the worker `local`, if it is one.
    pub(crate) fn new(local: Option<&WorkerThread>) -> Signal {
        let owner = match local {
            Some(local) => Owner::Worker(Arc::clone(&local.shared), local.index),
            None => Owner::Thread(thread::current()),
        };
        Signal(Arc::new(Inner { set: Word::new(0), process_guard: ProcessGuard::here(), owner }))
    }

    /// Sets the signal: the awaited event has happened.
    pub(crate) fn set(&self) {
        // Release: publishes what has happened. For a worker it is line P1 of sleep/README.md.
        self.0.set.store(1, Ordering::Release);
        // In a child process no thread waits.
        if self.0.process_guard.is_elsewhere() {
            return;
        }
        match &self.0.owner {
            Owner::Worker(shared, index) => shared.sleep.wake(*index),
            Owner::Thread(thread) => thread.unpark(),
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        // Acquire: pairs with `set`. For a worker it is line S5.
        self.0.set.load(Ordering::Acquire) != 0
    }

    /// Waits, on the thread that made the signal.
    ///
    /// # Panics
    ///
    /// In a process forked since; on a worker's thread such a wait ends the process.
    pub(crate) fn wait(&self, local: Option<&WorkerThread>) {
        self.wait_or_begin(local, &|_| false);
    }

    /// [`wait`](Signal::wait), for a task that `begin` runs on this worker, if it may and the task
    /// has not begun.
    pub(crate) fn wait_or_begin(
        &self,
        local: Option<&WorkerThread>,
        begin: &dyn Fn(&WorkerThread) -> bool,
    ) {
        self.wait_by(local, |local, done| local.wait_for_call(done, &|| begin(local)));
    }

    /// [`wait`](Signal::wait); a worker takes only calls meanwhile, which an
    /// [`interrupt`](crate::interrupt()) makes.
    pub(crate) fn wait_still(&self, local: Option<&WorkerThread>) {
        self.wait_by(local, WorkerThread::wait_still);
    }

    fn wait_by(
        &self,
        local: Option<&WorkerThread>,
        by: impl FnOnce(&WorkerThread, &dyn Fn() -> bool),
    ) {
        // In a child process no thread sets it.
        self.0.process_guard.check();
        match (&self.0.owner, local) {
            (Owner::Thread(_), _) => {
                // `park` may return for another reason, and `unpark` may come after the last look.
                while !self.is_set_soon() {
                    thread::park();
                }
            }
            (Owner::Worker(..), Some(local)) => {
                by(local, &|| self.is_set());
            }
            (Owner::Worker(..), None) => unreachable!("a worker's signal is waited for by it"),
        }
    }
    /// Whether it is set now, or within [`SIGNAL_SPIN`].
    fn is_set_soon(&self) -> bool {
        let (start, mut way) = (Instant::now(), GiveWay::new());
        loop {
            for _ in 0..SIGNAL_LOOKS {
                if self.is_set() {
                    way.looked(true);
                    return true;
                }
                spin_loop();
            }
            if start.elapsed() > SIGNAL_SPIN || !way.yields() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_seen_however_late_it_comes() {
        for late in [std::time::Duration::ZERO, SIGNAL_SPIN / 2, SIGNAL_SPIN * 100] {
            let signal = Signal::new(None);
            let told = signal.clone();
            thread::scope(|s| {
                s.spawn(move || {
                    thread::sleep(late);
                    told.set();
                });
                signal.wait(None);
            });
            assert!(signal.is_set());
        }
    }

    #[test]
    fn what_woke_the_thread_for_another_reason_ends_no_wait() {
        let signal = Signal::new(None);
        let (told, owner) = (signal.clone(), thread::current());
        let started = Instant::now();
        thread::scope(|s| {
            s.spawn(move || {
                while started.elapsed() < SIGNAL_SPIN * 100 {
                    owner.unpark();
                    thread::yield_now();
                }
                told.set();
            });
            signal.wait(None);
        });
        assert!(started.elapsed() >= SIGNAL_SPIN * 100);
    }
}
