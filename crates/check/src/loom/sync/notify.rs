//! A notification that is kept until somebody waits for it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::execution;
use crate::engine;
use crate::machine::{Access, Change};
use crate::raw::Raw;

/// A word that [`notify`](Self::notify) clears and [`wait`](Self::wait) waits for.
#[derive(Debug)]
pub struct Notify {
    silent: Raw,
    waits: AtomicBool,
}

impl Notify {
    /// A `Notify` that has not been notified.
    #[track_caller]
    pub fn new() -> Self {
        Notify { silent: Raw::new(1), waits: AtomicBool::new(false) }
    }

    /// Lets the next [`wait`](Self::wait) return, or the one under way. Several in a row count
    /// as one.
    #[track_caller]
    pub fn notify(&self) {
        if engine::is_weak() {
            self.silent.newest(Change::Swap(0), Access::RELEASE);
        } else {
            self.silent.store(0);
        }
    }

    /// Waits for a notification, and takes it. It may also return without one, as often as the model's
    /// [builder](crate::loom::model::BuilderOn::spurious_wakeups) says.
    ///
    /// # Panics
    ///
    /// If another thread waits.
    #[track_caller]
    pub fn wait(&self) {
        if execution::wakes_spuriously() {
            return;
        }
        // Relaxed, both: the threads of a model share one thread of the system.
        let another = self.waits.swap(true, Ordering::Relaxed);
        assert!(!another, "only a single thread may wait on `Notify`");
        self.silent.wait_as(0, Change::Or(1), Access::ACQUIRE);
        self.waits.store(false, Ordering::Relaxed);
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Notify::new()
    }
}
