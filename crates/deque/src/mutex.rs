//! The baseline: a growable ring behind a lock.
//!
//! Owner and thieves take the lock for each operation. There is no fence policy and nothing to
//! argue: the lock's acquire and release order everything.

use std::collections::VecDeque;
use std::sync::Arc;

use poach_memory::{CachePadded, Cell, Machine, Memory};

use crate::handles::{owner_methods, shown, thief_methods};
use crate::lock::Lock;
use crate::traits::{ExactlyOnce, OutOfMemory, Steal};

struct Shared<T, M: Memory> {
    lock: CachePadded<Lock<M>>,
    tasks: M::Cell<VecDeque<T>>,
}

// SAFETY: the tasks are touched by the holder of the lock alone, and move from thread to thread.
unsafe impl<T: Send, M: Memory> Sync for Shared<T, M> {}
// SAFETY: the tasks are touched by the holder of the lock alone.
unsafe impl<T: Send, M: Memory> Send for Shared<T, M> {}

impl<T, M: Memory> Shared<T, M> {
    /// `body` must not call into this queue again.
    #[inline]
    fn locked<R>(&self, body: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        let held = self.lock.lock();
        let result = self.tasks.with_mut(|tasks| {
            // SAFETY: the lock is held, so this is the only reference to the tasks.
            let tasks = unsafe { &mut *tasks };
            body(tasks)
        });
        drop(held);
        result
    }
}

/// The owner of a queue behind a lock. Every operation blocks while another thread is in one; each
/// costs a swap, and amortised constant time.
pub struct Mutex<T, M: Memory = Machine> {
    shared: Arc<Shared<T, M>>,
}

/// A thief's handle to a [`Mutex`] queue. It may outlive the owner.
pub struct Thief<T, M: Memory = Machine> {
    shared: Arc<Shared<T, M>>,
}

impl<T: Send> Mutex<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<T: Send, M: Memory> Default for Mutex<T, M> {
    fn default() -> Self {
        let lock = CachePadded::new(Lock::new());
        Mutex { shared: Arc::new(Shared { lock, tasks: M::Cell::new(VecDeque::new()) }) }
    }
}

impl<T: Send, M: Memory> Mutex<T, M> {
    /// Adds a task.
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`], with the task, if the queue had to grow and could not.
    #[inline]
    pub fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        self.shared.locked(|tasks| {
            if tasks.try_reserve(1).is_err() {
                return Err(OutOfMemory(task));
            }
            tasks.push_back(task);
            Ok(())
        })
    }

    /// Takes the youngest task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        self.shared.locked(VecDeque::pop_back)
    }

    /// A handle for thieves; any number of them.
    pub fn thief(&self) -> Thief<T, M> {
        Thief { shared: Arc::clone(&self.shared) }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.locked(|tasks| tasks.len())
    }
}

impl<T: Send, M: Memory> ExactlyOnce<T> for Mutex<T, M> {}

impl<T: Send, M: Memory> Thief<T, M> {
    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        self.shared.locked(VecDeque::pop_front).map_or(Steal::Empty, Steal::Success)
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    pub fn len(&self) -> usize {
        self.shared.locked(|tasks| tasks.len())
    }
}

impl<T, M: Memory> Clone for Thief<T, M> {
    fn clone(&self) -> Self {
        Thief { shared: Arc::clone(&self.shared) }
    }
}

shown!([T, M: Memory] Mutex<T, M>, Thief<T, M>;);
owner_methods!([T: Send, M: Memory] [T: Send, M: Memory] Mutex<T, M>, Thief<T, M>);
thief_methods!([T: Send, M: Memory] Thief<T, M>);
