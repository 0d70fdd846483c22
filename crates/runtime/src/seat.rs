//! Where a worker's thread sleeps, and how it is called.
//!
//! # Not behind the caller
//!
//! Linux puts a woken thread on its caller's processor, or on the one that it fell asleep on, which may be the
//! same, if the caches of the others are too far away to look there. It so waits for the caller's slice to end,
//! which is milliseconds, with another processor idle. So the caller forbids the sleeper its own processor
//! before the call, if the sleeper may use another, and the sleeper allows it to itself again when it is up.
//! That is two system calls of each, beside the one that wakes. (To do so only for a sleeper that fell asleep
//! on the caller's processor was not enough: half of the calls still took a slice.)
//!
//! The caller may do that to a thread only while that lies here, for its number may be another's once it has
//! ended: both hold the lock of `sleeper` for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::sync::{Parker, Unparker};
use poach_memory::{Machine, Memory, Ordering, Word};

use crate::affinity::Mover;
use crate::job::current::Local;
use crate::sleep::Seat;

/// A seat of real threads.
pub(crate) struct ThreadSeat {
    /// Held by its worker whenever it parks; nobody else locks it.
    parker: Mutex<Parker>,
    unparker: Unparker,
    /// 1 from a call until it is taken. The parker alone does not say why it has returned.
    called: <Machine as Memory>::Word,
    /// The worker, while it parks.
    sleeper: Mutex<Option<Mover>>,
}

impl ThreadSeat {
    fn take_call(&self) -> bool {
        // Relaxed: the swap decides. Acquire: pairs with the release in `unpark`.
        self.called.load(Ordering::Relaxed) != 0 && self.called.swap(0, Ordering::Acquire) != 0
    }

    fn sleeper(&self) -> MutexGuard<'_, Option<Mover>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks until called, or until `park` says that it has been long enough. Whether it was called.
    fn sleep(&self, mut park: impl FnMut(&Parker) -> bool) -> bool {
        let parker = self.parker.lock().unwrap_or_else(PoisonError::into_inner);
        if self.take_call() {
            return true;
        }
        *self.sleeper() = Mover::me();
        let called = loop {
            let goes_on = park(&parker);
            if self.take_call() {
                break true;
            }
            if !goes_on {
                break false;
            }
        };
        if let Some(sleeper) = self.sleeper().take() {
            sleeper.comes_back();
        }
        called
    }
}

impl Seat for ThreadSeat {
    fn new() -> Self {
        let parker = Parker::new();
        let unparker = parker.unparker().clone();
        let (parker, sleeper) = (Mutex::new(parker), Mutex::new(None));
        ThreadSeat { parker, unparker, called: Word::new(0), sleeper }
    }

    fn park(&self) {
        self.sleep(|parker| {
            parker.park();
            true
        });
    }

    fn park_for(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        self.sleep(|parker| {
            parker.park_deadline(end);
            Instant::now() < end
        })
    }

    fn unpark(&self) {
        Local::with(|local| {
            if let Some(local) = local {
                local.watch.called();
            }
        });
        if let Some(sleeper) = &mut *self.sleeper() {
            sleeper.makes_way();
        }
        // Release: what the caller did is seen by the one it calls.
        self.called.store(1, Ordering::Release);
        self.unparker.unpark();
    }
}
