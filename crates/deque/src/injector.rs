//! An injector: a first-in, first-out queue into which any thread pushes and from which any thread
//! steals.
//!
//! Source: the role is crossbeam-deque's `Injector`; the construction is ours.
//!
//! # How it works, and why it is correct
//!
//! It is a [`Fifo`] whose owner stands behind a lock: who pushes is the owner for as long as it holds
//! it. The lock's release and acquire hand the owner's private indices from one pusher to the next.
//! Thieves know nothing of the lock; they claim tasks, one or a batch, by one compare-and-swap.

use core::fmt;
use std::sync::Arc;

use poach_memory::{Cell, Machine, Memory};

use crate::fifo::{self, Fifo};
use crate::lock::Lock;
use crate::ring::Claimed;
use crate::{CapacityError, OutOfMemory, Owner, Steal};

/// A queue that all threads share by reference.
///
/// | operation | progress | cost |
/// |---|---|---|
/// | [`push`](Injector::push) | blocking, for the few instructions of another push (or its growing) | one swap |
/// | [`steal`](Injector::steal), [`steal_half`](Injector::steal_half) | lock-free | one compare-and-swap |
///
/// ```
/// use poach_deque::{Injector, Steal};
///
/// let injector: Injector<u32> = Injector::new();
/// std::thread::scope(|scope| {
///     for task in 0..4 {
///         let injector = &injector;
///         scope.spawn(move || injector.push(task));
///     }
/// });
/// assert_eq!(injector.len(), 4);
/// assert!(matches!(injector.steal(), Steal::Success(0..4)));
/// ```
pub struct Injector<T, M: Memory = Machine> {
    lock: Lock<M>,
    /// The owner's end: only for who holds the lock.
    owner: M::Cell<Fifo<T, M>>,
    /// The thieves' end.
    shared: Arc<fifo::Shared<T, M>>,
}

// SAFETY: all that is not shared by `Fifo`'s own protocol is its owner's end, which the lock hands from
// thread to thread; `Fifo` may be sent when `T: Send`.
unsafe impl<T: Send, M: Memory> Sync for Injector<T, M> {}
// SAFETY: as above.
unsafe impl<T: Send, M: Memory> Send for Injector<T, M> {}

impl<T: Send, M: Memory> Injector<T, M> {
    /// An empty injector with room for 64 tasks before it grows.
    pub fn new() -> Self {
        Self::around(Fifo::new())
    }

    /// An empty injector with room for `capacity` tasks before it grows.
    ///
    /// # Errors
    ///
    /// [`CapacityError`] if `capacity` is 0, no power of two, above 2^30, or cannot be had.
    pub fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
        Fifo::with_capacity(capacity).map(Self::around)
    }

    fn around(owner: Fifo<T, M>) -> Self {
        let shared = Arc::clone(owner.shared());
        Injector { lock: Lock::new(), owner: M::Cell::new(owner), shared }
    }

    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let held = self.lock.lock();
        let result = self.owner.with_mut(|owner| {
            // SAFETY: the lock is held, so this thread alone has the owner's end; nothing in a push runs
            // code of the caller's that could come back here.
            let owner = unsafe { &*owner };
            owner.try_push(task)
        });
        drop(held);
        result
    }

    /// Adds a task. Ends the program if the queue has to grow and cannot, as `Vec` does.
    pub fn push(&self, task: T) {
        if self.try_push(task).is_err() {
            crate::out_of_memory::<T>();
        }
    }

    /// Takes the oldest task.
    pub fn steal(&self) -> Steal<T> {
        match self.claim(|_| 1) {
            Steal::Success(mut claimed) => claimed.next().map_or(Steal::Empty, Steal::Success),
            other => other.map(|_| unreachable!("all but success carry no task")),
        }
    }

    /// Takes half of the tasks, at least one: returns the oldest and pushes the others to `into`.
    pub fn steal_half<O: Owner<T>>(&self, into: &O) -> Steal<T> {
        match self.claim(|length| length.div_ceil(2)) {
            Steal::Success(mut claimed) => {
                let first = claimed.next();
                for task in claimed {
                    into.push(task);
                }
                first.map_or(Steal::Empty, Steal::Success)
            }
            other => other.map(|_| unreachable!("all but success carry no task")),
        }
    }

    pub(crate) fn claim(&self, want: impl FnOnce(u64) -> u64) -> Steal<Claimed<'_, T, M>> {
        self.shared.claim(want)
    }

    /// The number of tasks, out of date at once.
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether there is no task; see [`len`](Injector::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send, M: Memory> Default for Injector<T, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, M: Memory> fmt::Debug for Injector<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("len", &self.shared.len()).finish_non_exhaustive()
    }
}
