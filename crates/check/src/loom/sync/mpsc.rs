//! A channel without a bound.

use std::collections::VecDeque;
use std::sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};
use std::time::Duration;

pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError};

use super::Arc;
use crate::machine::{Access, Change, Function};
use crate::raw::{self, Raw};

/// The word holds this less the messages that wait: with none, and only then, this bit is set.
const EMPTY_BIT: u8 = 32;
const EMPTY: u64 = 1 << EMPTY_BIT;
/// The same once no sender is left: the bit is never set, so that nobody waits.
const CLOSED: u64 = EMPTY - (1 << 31);

#[derive(Debug)]
struct Channel<T> {
    /// [`EMPTY`] less the number of messages; [`CLOSED`] less that number once no sender is left.
    room: Raw,
    senders: Raw,
    closed: Raw,
    queue: StdMutex<VecDeque<T>>,
}

impl<T> Channel<T> {
    fn queued(&self) -> StdGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel's two ends.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let channel = Arc::new(Channel {
        room: Raw::new(EMPTY),
        senders: Raw::new(1),
        closed: Raw::new(0),
        queue: StdMutex::default(),
    });
    (Sender { channel: channel.clone() }, Receiver { channel })
}

/// The end to send at.
#[derive(Debug)]
pub struct Sender<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Sender<T> {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// The message, if the receiver is gone.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        if self.channel.closed.load_as(Access::ACQUIRE) == 1 {
            return Err(SendError(message));
        }
        self.channel.room.newest(Change::Add(u64::MAX), Access::RELEASE);
        self.channel.queued().push_back(message);
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.channel.senders.newest(Change::Add(1), Access::RELAXED);
        Sender { channel: self.channel.clone() }
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        if self.channel.senders.newest(Change::Add(u64::MAX), Access::STRONG) == 1 {
            // No sender is left: a waiting receiver goes on.
            let close = Change::Add(CLOSED.wrapping_sub(EMPTY));
            self.channel.room.newest(close, Access::RELEASE);
        }
    }
}

/// The end to receive at.
#[derive(Debug)]
pub struct Receiver<T> {
    channel: Arc<Channel<T>>,
}

impl<T> Receiver<T> {
    /// Waits for a message.
    ///
    /// # Errors
    ///
    /// If there is none, and every sender is gone.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.channel.room.wait_as(EMPTY_BIT, take(), Access::ACQUIRE);
        self.first().ok_or(RecvError)
    }

    /// Waits for a message, but the time may be over at any moment: a model has no clock.
    ///
    /// # Errors
    ///
    /// If there is none; whether one can still come.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn recv_timeout(&self, _: Duration) -> Result<T, RecvTimeoutError> {
        if self.channel.room.load_as(Access::RELAXED) == EMPTY {
            raw::pause();
        }
        self.try_recv().map_err(|error| match error {
            TryRecvError::Empty => RecvTimeoutError::Timeout,
            TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
        })
    }

    /// A message, if one is there.
    ///
    /// # Errors
    ///
    /// If there is none; whether one can still come.
    ///
    /// # Panics
    ///
    /// Outside of a model.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        let old = self.channel.room.newest(take(), Access::ACQUIRE);
        if old == EMPTY {
            return Err(TryRecvError::Empty);
        }
        self.first().ok_or(TryRecvError::Disconnected)
    }

    fn first(&self) -> Option<T> {
        self.channel.queued().pop_front()
    }
}

fn take() -> Change {
    let take = |room: u64, _| if room == EMPTY || room == CLOSED { room } else { room + 1 };
    Change::Apply(Function(take), 0)
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        self.channel.closed.newest(Change::Swap(1), Access::STRONG);
        let left = std::mem::take(&mut *self.channel.queued());
        drop(left);
    }
}
