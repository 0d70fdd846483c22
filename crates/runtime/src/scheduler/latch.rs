//! One thread waits, another says when.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::job::current::Local;
use crate::job::forked::ForkGuard;
use crate::scheduler::registry::Registry;

/// Set once, by any thread; waited for by the one thread that made it, which, if it is a worker,
/// works meanwhile.
#[derive(Clone)]
pub(crate) struct Signal(Arc<Inner>);

struct Inner {
    set: <Machine as Memory>::Word,
    fork_guard: ForkGuard,
    waiter: Waiter,
}

enum Waiter {
    /// A worker of this pool, by its index.
    Worker(Arc<Registry>, usize),
    /// A thread that blocks.
    Thread(Mutex<bool>, Condvar),
}

impl Signal {
    /// A signal for this thread, which is the worker `local`, if it is one.
    pub(crate) fn new(local: Option<&Local>) -> Signal {
        let waiter = match local {
            Some(local) => Waiter::Worker(Arc::clone(&local.registry), local.index),
            None => Waiter::Thread(Mutex::new(false), Condvar::new()),
        };
        Signal(Arc::new(Inner { set: Word::new(0), fork_guard: ForkGuard::here(), waiter }))
    }

    /// Says that what is waited for has happened.
    pub(crate) fn set(&self) {
        // Release: publishes what has happened. For a worker it is line P1 of sleep/README.md.
        self.0.set.store(1, Ordering::Release);
        // In a child process nobody waits, and the lock may be held by a thread that is not there.
        if self.0.fork_guard.is_elsewhere() {
            return;
        }
        match &self.0.waiter {
            Waiter::Worker(registry, index) => registry.sleep.wake(*index),
            Waiter::Thread(set, changed) => {
                *set.lock().unwrap_or_else(PoisonError::into_inner) = true;
                changed.notify_one();
            }
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
    pub(crate) fn wait(&self, local: Option<&Local>) {
        // In a child process nobody comes, and the lock may be held by a thread that is not there.
        self.0.fork_guard.check();
        match (&self.0.waiter, local) {
            (Waiter::Thread(set, changed), _) => {
                let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
                while !*set {
                    set = changed.wait(set).unwrap_or_else(PoisonError::into_inner);
                }
            }
            (Waiter::Worker(..), Some(local)) => {
                local.wait_for_call(&|| self.is_set());
            }
            (Waiter::Worker(..), None) => unreachable!("a worker's signal is waited for by it"),
        }
    }
}
