//! A condition variable: a queue of waiting threads, whose order is that of steps on one word.

use std::collections::VecDeque;
use std::sync::{Arc as StdArc, LockResult, Mutex as StdMutex};
use std::time::Duration;

use super::mutex::MutexGuard;
use crate::machine::Change;
use crate::raw::Raw;

/// As [`std::sync::Condvar`], but without spurious wake-ups, and the thread that has waited longest
/// is notified first. So a program that wrongly relies on either is not refuted here.
#[derive(Debug)]
pub struct Condvar {
    /// Each wait and each notification changes this word, so their order is a choice.
    order: Raw,
    /// The waiting threads: for each a word that is 1 until it is notified.
    queue: StdMutex<VecDeque<StdArc<Raw>>>,
}

impl Condvar {
    /// A condition variable on which no thread waits.
    #[track_caller]
    pub fn new() -> Self {
        Condvar { order: Raw::new(0), queue: StdMutex::default() }
    }

    /// Lets the lock go, waits until notified, and takes the lock again.
    ///
    /// # Errors
    ///
    /// None: the lock is never poisoned.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let word = StdArc::new(Raw::new(1));
        // In the queue before the lock is free: no notification is lost.
        self.order.add(1);
        self.queue.lock().expect("nobody panics with it").push_back(StdArc::clone(&word));
        let mutex = guard.mutex();
        drop(guard);
        word.wait(0, Change::Or(0));
        mutex.lock()
    }

    /// [`wait`](Self::wait)s while `condition` holds.
    ///
    /// # Errors
    ///
    /// None: the lock is never poisoned.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// [`wait`](Self::wait): a model has no clock, so the time never passes.
    ///
    /// # Errors
    ///
    /// None: the lock is never poisoned.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let guard = self.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes the thread that has waited longest, if any.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn notify_one(&self) {
        self.order.add(1);
        let first = self.queue.lock().expect("nobody panics with it").pop_front();
        if let Some(word) = first {
            word.store(0);
        }
    }

    /// Wakes all who wait.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn notify_all(&self) {
        self.order.add(1);
        let all = std::mem::take(&mut *self.queue.lock().expect("nobody panics with it"));
        for word in all {
            word.store(0);
        }
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Condvar::new()
    }
}

/// Whether the time had passed: it never does in a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// `false`.
    pub fn timed_out(self) -> bool {
        self.0
    }
}
