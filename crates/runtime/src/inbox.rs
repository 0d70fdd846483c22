//! A queue of tasks for whoever may take from it, with a length that is read without a lock.
//!
//! Tasks come in from outside of the workers' own queues: into the pool's inboxes for any worker, into
//! a worker's own for that worker alone. Being empty is the common case and must cost a look no more
//! than a load; so the length stands beside the lock.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::job::task::Task;

/// First in, first out. Blocking, by a lock that is held for a push or a pop.
pub(crate) struct Inbox {
    /// On a line of its own: the takers read it at every look.
    length: CachePadded<<Machine as Memory>::Word>,
    tasks: Mutex<VecDeque<Task>>,
}

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox { length: CachePadded::new(Word::new(0)), tasks: Mutex::new(VecDeque::new()) }
    }

    /// Puts a task in. It is visible work, line P1 of sleep/README.md: the caller goes on with P2.
    pub(crate) fn put(&self, task: Task) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push_back(task);
        drop(tasks);
        // Relaxed: P2 follows. After the push, so that whoever sees it finds the task.
        self.length.fetch_add(1, Ordering::Relaxed);
    }

    /// The oldest task.
    #[inline]
    pub(crate) fn take(&self) -> Option<Task> {
        if self.is_empty() { None } else { self.take_locked() }
    }

    /// Whether there is nothing to take. Wait-free; line S5 if S3 or L2 precedes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: a task missed here is seen at the look before its taker sleeps.
        self.length.load(Ordering::Relaxed) == 0
    }

    #[cold]
    fn take_locked(&self) -> Option<Task> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let task = tasks.pop_front()?;
        drop(tasks);
        // Relaxed: a length that is too large for a moment costs a look at an empty queue. It may wrap
        // below zero for a moment, if the pusher has not counted yet: then it is not zero either.
        self.length.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }
}
