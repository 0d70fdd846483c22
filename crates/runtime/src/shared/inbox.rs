//! A queue of tasks from outside, with a length that is read without a lock.
//!
//! Tasks that do not come from a worker's own queue come in here: into the pool's inboxes for any
//! worker, or into a worker's own inbox for that worker alone. Most looks find an inbox empty, and
//! such a look must cost no more than a load, so the length stands beside the lock.
//!
//! The holders of the two locks count what is put in and taken out, before they unlock. So a task
//! whose [`put`](Inbox::put) has returned is seen by every later look until it is taken, even if
//! other threads are stopped in the middle of a step. ("Later" is by a lock, or by the fences of
//! `sleep/README.md`.) The reason: the look reads the number of puts that this put has stored or a
//! later one, and each of those counts the task. If a pusher counted after it unlocked and were
//! stopped before, its task could be taken in the name of another's, which no look would then see.
//!
//! # Bursts
//!
//! A thread that only spawns outruns takers that lock the inbox for each task, and all its tasks
//! lie here. So threads that put tasks in have a lock, and threads that take them out another. A
//! taker finds a chunk of tasks on its own side, and goes to the other side for the next. The order
//! is that of the puts. While [many](BURST) tasks wait, a worker with nothing under way runs
//! several in a row without a look at the other workers.
//!
//! # Memory
//!
//! An inbox grows by a chunk at a time. It frees each chunk when all in it have been taken, except
//! for one on either side. So a burst's memory is not kept, and a task that comes to a shorter
//! queue costs no allocation.

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

/// The number of tasks that is a burst.
const BURST: u64 = 8 * CHUNK as u64;

/// The kind of locks: of real threads or of models.
pub(crate) trait Locks: Send + Sync {
    type Lock<T: Send>: Lock<T>;
}

/// A lock around tasks.
pub(crate) trait Lock<T>: Send + Sync {
    fn new(tasks: T) -> Self;
    /// Runs `body` with the lock held. Does not run it in a forked process whose parent held the
    /// lock at the fork.
    fn with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// The locks of real threads.
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
    /// The number of tasks that have come this way so far.
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
        // Relaxed: see `is_empty`; the holder of the lock reads what the last holder stored.
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a task; by the holder of the lock.
    fn up(&self) {
        // Relaxed: the lock orders the stores, and P2 follows a put.
        self.count.store(self.count().wrapping_add(1), Ordering::Relaxed);
    }
}

/// First in, first out. Blocking, by a lock that is held for a push or a pop.
pub(crate) struct Inbox<T: Send = Task, M: Memory = Machine, L: Locks = ThreadLocks> {
    put: CachePadded<Side<M, L::Lock<Chunks<T>>>>,
    /// Locked before `put`.
    taken: CachePadded<Side<M, L::Lock<VecDeque<T>>>>,
}

impl<T: Send, M: Memory, L: Locks> Inbox<T, M, L> {
    pub(crate) fn new() -> Self {
        Inbox { put: Side::new(Chunks::new()), taken: Side::new(VecDeque::new()) }
    }

    /// Puts a task in. The task is visible work, line P1 of sleep/README.md: the caller goes on
    /// with P2.
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

    /// The number of puts so far. For a taker that has taken all, this is the cheaper look.
    #[inline]
    pub(crate) fn puts(&self) -> u64 {
        self.put.count()
    }

    /// Whether many tasks wait. An estimate.
    #[inline]
    pub(crate) fn has_burst(&self) -> bool {
        self.len() > BURST
    }

    #[inline]
    fn len(&self) -> u64 {
        // Relaxed: a task missed here is seen at the look before its taker sleeps. Tasks put and
        // taken between the two loads count as gone.
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

    /// The room that an inbox keeps after `burst` tasks were in it at one time.
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

    /// The room that is kept.
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
