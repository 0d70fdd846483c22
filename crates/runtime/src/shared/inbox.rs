//! A queue of tasks from outside, with a length that is read without a lock.
//!
//! Tasks come in from outside of the workers' own queues: into the pool's inboxes for any worker,
//! into a worker's own for that worker alone. Being empty is the common case and must cost a look
//! no more than a load; so the length stands beside the lock.
//!
//! What was put in and what was taken out are counted by the holders of the two locks, before they
//! let go. A task whose [`put`](Inbox::put) has returned is therefore seen by every look that comes
//! after it (by a lock, or by the fences of `sleep/README.md`) until it is taken, whatever other
//! threads are stopped in the midst of: the number of puts that the look reads is the one that this
//! put has stored or a later one, and each of those counts the task. Counted after the lock, the
//! task of a pusher that was stopped before it counted would be taken in the name of another's,
//! which nobody would then see.
//!
//! # Bursts
//!
//! A thread that does nothing but spawn outruns takers that lock the inbox for each task, and all
//! that it has spawned lies here. So those that put tasks in and those that take them out have a
//! lock each: who takes finds a chunk of tasks on its own side, and goes to the other for the next.
//! The order is that of the puts. And while [many](BURST) wait, a worker with nothing under way
//! runs some one after the other, without a look at the other workers in between.
//!
//! # Memory
//!
//! An inbox grows by a chunk at a time, and frees each chunk when all in it have been taken, but
//! for one on either side. So a burst's memory is not kept, and no task that comes to a shorter
//! queue costs an allocation.

use std::collections::VecDeque;
use std::sync::Mutex;

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use self::chunks::{CHUNK, Chunks};
use crate::system::process::ProcessGuard;
use crate::task::value::Task;

mod chunks;
// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models;

/// So many tasks are a burst.
const BURST: u64 = 8 * CHUNK as u64;

/// The locks of real or other threads.
pub(crate) trait Locks: Send + Sync {
    type Lock<T: Send>: Lock<T>;
}

/// A lock around tasks.
pub(crate) trait Lock<T>: Send + Sync {
    fn new(tasks: T) -> Self;
    /// Runs `body` with the lock held; not at all in a process forked since, if a thread of its
    /// parent held it then.
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// Those of real threads.
pub(crate) enum ThreadLocks {}

impl Locks for ThreadLocks {
    type Lock<T: Send> = ThreadLock<T>;
}

pub(crate) struct ThreadLock<T> {
    process_guard: ProcessGuard,
    tasks: Mutex<T>,
}

impl<T: Send> Lock<T> for ThreadLock<T> {
    fn new(tasks: T) -> Self {
        ThreadLock { process_guard: ProcessGuard::here(), tasks: Mutex::new(tasks) }
    }

    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.process_guard.try_lock(&self.tasks).map(|mut tasks| body(&mut tasks))
    }
}

/// One side of an inbox.
struct Side<M: Memory, L> {
    /// How many tasks have come this way so far.
    count: M::Word,
    tasks: L,
}

impl<M: Memory, L> Side<M, L> {
    fn new<T>(tasks: T) -> CachePadded<Self>
    where
        L: Lock<T>,
    {
        CachePadded::new(Side { count: M::Word::new(0), tasks: L::new(tasks) })
    }

    fn count(&self) -> u64 {
        // Relaxed: see `is_empty`; the holder of the lock reads what the last one stored.
        self.count.load(Ordering::Relaxed)
    }

    /// One more, by the holder of the lock.
    fn up(&self) {
        // Relaxed: the lock orders the stores, and P2 follows a put.
        self.count.store(self.count().wrapping_add(1), Ordering::Relaxed);
    }
}

/// First in, first out. Blocking, by a lock that is held for a push or a pop.
pub(crate) struct Inbox<T: Send = Task, M: Memory = Machine, L: Locks = ThreadLocks> {
    put: CachePadded<Side<M, L::Lock<Chunks<T>>>>,
    /// Its lock is taken before that of the other.
    taken: CachePadded<Side<M, L::Lock<VecDeque<T>>>>,
}

impl<T: Send, M: Memory, L: Locks> Inbox<T, M, L> {
    pub(crate) fn new() -> Self {
        Inbox { put: Side::new(Chunks::new()), taken: Side::new(VecDeque::new()) }
    }

    /// Puts a task in. It is visible work, line P1 of sleep/README.md: the caller goes on with P2.
    pub(crate) fn put(&self, task: T) {
        self.put.tasks.with(|tasks| {
            tasks.push(task);
            self.put.up();
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
        self.len() == 0
    }

    /// How many tasks were put in so far. For a taker that has taken all, this is the cheaper look.
    #[inline]
    pub(crate) fn puts(&self) -> u64 {
        self.put.count()
    }

    /// Whether many wait. An estimate.
    #[inline]
    pub(crate) fn has_burst(&self) -> bool {
        self.len() > BURST
    }

    #[inline]
    fn len(&self) -> u64 {
        // Relaxed: a task missed here is seen at the look before its taker sleeps. What is put and
        // taken between the two loads does not count as there.
        let put = self.puts();
        put.saturating_sub(self.taken.count())
    }

    #[cold]
    fn take_locked(&self) -> Option<T> {
        let oldest = self.taken.tasks.with(|tasks| {
            if tasks.is_empty() {
                self.put.tasks.with(|other| other.next(tasks));
            }
            let oldest = tasks.pop_front();
            if oldest.is_some() {
                self.taken.up();
            }
            oldest
        });
        oldest?
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
        room(&inbox)
    }

    fn room(inbox: &Inbox<usize>) -> usize {
        let put = inbox.put.tasks.with(|tasks| tasks.capacity());
        put.unwrap() + inbox.taken.tasks.with(|tasks| tasks.capacity()).unwrap()
    }

    /// Room for so many tasks is kept.
    const KEPT: usize = 2 * CHUNK;

    #[test]
    fn a_burst_leaves_no_more_memory_than_is_kept() {
        assert!((200..=KEPT).contains(&kept_after(200)));
        assert!(kept_after(100 * KEPT) <= KEPT);
    }

    #[test]
    fn what_is_taken_of_a_burst_is_freed_before_all_are() {
        let inbox: Inbox<usize> = Inbox::new();
        (0..100 * CHUNK).for_each(|task| inbox.put(task));
        assert!(inbox.has_burst());
        (0..99 * CHUNK).for_each(|task| assert_eq!(inbox.take(), Some(task)));
        assert!(room(&inbox) <= KEPT && !inbox.has_burst());
    }

    #[test]
    fn who_takes_does_not_wait_for_who_puts() {
        let inbox: Inbox<usize> = Inbox::new();
        (0..3).for_each(|task| inbox.put(task));
        assert_eq!(inbox.take(), Some(0));
        // With the lock of the puts held.
        let taken = inbox.put.tasks.with(|_| inbox.take());
        assert_eq!(taken, Some(Some(1)));
        inbox.put(3);
        assert!([Some(2), Some(3), None] == [(); 3].map(|()| inbox.take()) && inbox.is_empty());
    }
}
