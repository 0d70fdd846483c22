//! A notification that is kept until somebody waits for it.

use crate::machine::Change;
use crate::raw::Raw;

/// A word that [`notify`](Self::notify) clears and [`wait`](Self::wait) waits for.
#[derive(Debug)]
pub struct Notify {
    /// 1 while nothing is notified.
    silent: Raw,
}

impl Notify {
    /// One that has not been notified.
    #[track_caller]
    pub fn new() -> Self {
        Notify { silent: Raw::new(1) }
    }

    /// Lets the next [`wait`](Self::wait) return, the one under way if there is one. Notifying
    /// twice is notifying once.
    #[track_caller]
    pub fn notify(&self) {
        self.silent.store(0);
    }

    /// Waits for a notification, and takes it.
    #[track_caller]
    pub fn wait(&self) {
        self.silent.wait(0, Change::Or(1));
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Notify::new()
    }
}
