//! A condition variable: a queue of waiting threads, whose order is that of steps on one word.
//!
//! It orders nothing beyond the queue: what a waiter may rely on it learns through the lock.

use std::collections::VecDeque;
use std::sync::{Arc as StdArc, LockResult, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use super::super::execution;
use super::mutex::MutexGuard;
use crate::machine::{Access, Change, Choice};
use crate::raw::{self, Raw};

/// As [`std::sync::Condvar`]: a wait may end without a notification, as often as the model's
/// [builder](crate::loom::model::BuilderOn::spurious_wakeups) says, and
/// [`notify_one`](Self::notify_one) wakes any of the waiting threads.
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

    #[track_caller]
    fn takes_its_turn(&self) {
        self.order.newest(Change::Add(1), Access::RELAXED);
    }

    fn queued<R>(&self, act: impl FnOnce(&mut VecDeque<StdArc<Raw>>) -> R) -> R {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[track_caller]
    fn enters(&self) -> StdArc<Raw> {
        let word = StdArc::new(Raw::common(1));
        self.takes_its_turn();
        self.queued(|queue| queue.push_back(StdArc::clone(&word)));
        word
    }

    /// Lets the lock go, waits until notified, and takes the lock again.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](super::Mutex::lock).
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let mutex = guard.mutex();
        if execution::wakes_spuriously() {
            drop(guard);
            return mutex.lock();
        }
        // In the queue before the lock is free: no notification is lost.
        let word = self.enters();
        drop(guard);
        word.wait_as(0, Change::Or(0), Access::RELAXED);
        mutex.lock()
    }

    /// [`wait`](Self::wait)s while `condition` holds.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](super::Mutex::lock).
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// [`wait`](Self::wait), but the time may be over at any moment: a model has no clock.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](super::Mutex::lock).
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        _: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let word = self.enters();
        let mutex = guard.mutex();
        drop(guard);
        if word.load_as(Access::RELAXED) == 1 {
            raw::pause();
        }
        // From here on no thread notifies this one; an earlier notification counts.
        self.takes_its_turn();
        let left = self.queued(|queue| {
            let at = queue.iter().position(|other| StdArc::ptr_eq(other, &word));
            at.and_then(|at| queue.remove(at))
        });
        let over = WaitTimeoutResult(left.is_some());
        match mutex.lock() {
            Ok(guard) => Ok((guard, over)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), over))),
        }
    }

    /// [`wait_timeout`](Self::wait_timeout)s while `condition` holds and the time is not over.
    ///
    /// # Errors
    ///
    /// As [`Mutex::lock`](super::Mutex::lock).
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let mut over = WaitTimeoutResult(false);
        while condition(&mut guard) {
            if over.timed_out() {
                return Ok((guard, over));
            }
            (guard, over) = self.wait_timeout(guard, time)?;
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes a waiting thread, if there is any. The model's
    /// [builder](crate::loom::model::BuilderOn::notify_any) says whether it may be any, or is the
    /// thread that has waited longest.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn notify_one(&self) {
        self.takes_its_turn();
        let any = execution::with(|execution| execution.settings.any_waiter);
        let waiting = self.queued(|queue| queue.len());
        let choice = Choice::Waiter(waiting as u8);
        let chosen = if any && waiting > 1 { raw::choose(choice) } else { 0 };
        if let Some(word) = self.queued(|queue| queue.remove(chosen)) {
            word.store_as(0, Access::RELAXED);
        }
    }

    /// Wakes all waiting threads.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn notify_all(&self) {
        self.takes_its_turn();
        for word in self.queued(std::mem::take) {
            word.store_as(0, Access::RELAXED);
        }
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Condvar::new()
    }
}

/// Whether the time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it was.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}
