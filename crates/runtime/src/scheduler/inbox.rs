//! A queue of tasks from outside, with a length that is read without a lock.
//!
//! Tasks come in from outside of the workers' own queues: into the pool's inboxes for any worker, into
//! a worker's own for that worker alone. Being empty is the common case and must cost a look no more
//! than a load; so the length stands beside the lock.
//!
//! The length is stored by the holder of the lock, before it lets go, and so is the number of tasks at each moment at which
//! the lock is free. A task whose [`put`](Inbox::put) has returned is therefore seen by every look that comes after it
//! (by a lock, or by the fences of `sleep/README.md`) until it is taken, whatever other threads are stopped in the
//! midst of: the value that the look reads is the one that this put has stored or a later one, and each of those
//! counts the task. Counted after the lock, as it was, the task of a pusher that was stopped before it counted would be taken
//! in the name of another's, which nobody would then see.
//!
//! # Memory
//!
//! An inbox grows as tasks come, and when the last of them is taken it gives back all its memory if that has room for more than [`KEPT`]. So a
//! burst's memory is not kept, and no task that comes to a shorter queue costs an allocation.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem;
use std::sync::Mutex;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::job::forked::ForkGuard;
use crate::job::task::Task;

// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod model;

/// An empty inbox keeps room for this many tasks at most: 16 KiB.
const KEPT: usize = 256;

/// A lock around the tasks.
pub(crate) trait Lock<T>: Send + Sync {
    fn new(tasks: VecDeque<T>) -> Self;
    /// Runs `body` with the lock held; not at all in a process forked since, if a thread of its parent held it then.
    fn with<R>(&self, body: impl FnOnce(&mut VecDeque<T>) -> R) -> Option<R>;
}

/// A lock of real threads.
pub(crate) struct ThreadLock<T> {
    fork_guard: ForkGuard,
    tasks: Mutex<VecDeque<T>>,
}

impl<T: Send> Lock<T> for ThreadLock<T> {
    fn new(tasks: VecDeque<T>) -> Self {
        ThreadLock { fork_guard: ForkGuard::here(), tasks: Mutex::new(tasks) }
    }

    fn with<R>(&self, body: impl FnOnce(&mut VecDeque<T>) -> R) -> Option<R> {
        self.fork_guard.try_lock(&self.tasks).map(|mut tasks| body(&mut tasks))
    }
}

/// First in, first out. Blocking, by a lock that is held for a push or a pop.
pub(crate) struct Inbox<T = Task, M: Memory = Machine, L = ThreadLock<T>> {
    /// On a line of its own: the takers read it at every look.
    length: CachePadded<M::Word>,
    tasks: L,
    life: PhantomData<T>,
}

impl<T, M: Memory, L: Lock<T>> Inbox<T, M, L> {
    pub(crate) fn new() -> Self {
        let length = CachePadded::new(M::Word::new(0));
        Inbox { length, tasks: L::new(VecDeque::new()), life: PhantomData }
    }

    /// Puts a task in. It is visible work, line P1 of sleep/README.md: the caller goes on with P2.
    pub(crate) fn put(&self, task: T) {
        self.tasks.with(|tasks| {
            tasks.push_back(task);
            // Relaxed: the lock orders the stores, and P2 follows.
            self.length.store(tasks.len() as u64, Ordering::Relaxed);
        });
    }

    /// The oldest task.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        if self.is_empty() { None } else { self.take_locked() }
    }

    /// Whether there is nothing to take. Wait-free; line S5 if S3 or L2 precedes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a task missed here is seen at the look before its taker sleeps.
        self.length.load(Ordering::Relaxed) == 0
    }

    #[cold]
    fn take_locked(&self) -> Option<T> {
        let oldest = self.tasks.with(|tasks| {
            let oldest = tasks.pop_front();
            // Relaxed: as in `put`.
            self.length.store(tasks.len() as u64, Ordering::Relaxed);
            let is_large = tasks.is_empty() && tasks.capacity() > KEPT;
            // Freed once the lock is.
            (oldest, is_large.then(|| mem::take(tasks)))
        });
        oldest?.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for how many tasks an inbox keeps, that had so many in it at a time.
    fn kept_after(burst: usize) -> usize {
        let inbox: Inbox<usize> = Inbox::new();
        (0..burst).for_each(|task| inbox.put(task));
        let taken: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
        assert!(taken.into_iter().eq(0..burst) && inbox.is_empty());
        inbox.tasks.with(|tasks| tasks.capacity()).unwrap()
    }

    #[test]
    fn a_burst_leaves_no_more_memory_than_is_kept() {
        assert!((200..=KEPT).contains(&kept_after(200)));
        assert!(kept_after(100 * KEPT) <= KEPT);
    }
}
