//! Futures in a model.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};

use super::alloc::Mark;
use super::sync::{Mutex, Notify};
use super::thread::yield_now;
use std::sync::TryLockError;

/// Wakes a thread that is in [`block_on`]. A waker that is never dropped is a violation.
struct Awake {
    notify: Notify,
    _mark: Mark,
}

impl Wake for Awake {
    #[track_caller]
    fn wake(self: StdArc<Self>) {
        self.notify.notify();
    }

    #[track_caller]
    fn wake_by_ref(self: &StdArc<Self>) {
        self.notify.notify();
    }
}

/// Polls a future until it is ready; in between it waits, as [`Notify::wait`] does.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let awake = StdArc::new(Awake { notify: Notify::new(), _mark: Mark::new("a waker") });
    let waker = Waker::from(StdArc::clone(&awake));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        awake.notify.wait();
    }
}

/// A place for the waker of one task, as `futures::task::AtomicWaker`.
#[derive(Debug)]
pub struct AtomicWaker {
    waker: Mutex<Option<Waker>>,
}

impl AtomicWaker {
    /// One without a waker.
    #[track_caller]
    pub fn new() -> Self {
        AtomicWaker { waker: Mutex::new(None) }
    }

    /// The waker that [`wake`](Self::wake) wakes from now on. If another thread is just taking the
    /// last one, this one is woken at once.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        match self.waker.try_lock() {
            Err(TryLockError::WouldBlock) => {
                waker.wake();
                yield_now();
            }
            Ok(mut place) => *place = Some(waker),
            Err(TryLockError::Poisoned(poisoned)) => *poisoned.into_inner() = Some(waker),
        }
    }

    /// The same, with a waker that its owner keeps.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Wakes the task that was registered last, once.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes out the waker that was registered last.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        self.waker.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

impl Default for AtomicWaker {
    #[track_caller]
    fn default() -> Self {
        AtomicWaker::new()
    }
}
