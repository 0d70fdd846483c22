//! A locked deque for each worker.
//!
//! Source: Phanes, part 3. The owner pays for its lock at every push and pop although thieves are
//! rare; [`lock_free`](super::lock_free) avoids this cost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use poach_deque::{ExactlyOnce, OutOfMemory, Owner, Steal, Thief};

use super::{Job, stealing};
use crate::Error;

/// Either end of a locked deque.
struct Locked<T>(Arc<CachePadded<Mutex<VecDeque<T>>>>);

impl<T> Locked<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Locked<T> {
    fn clone(&self) -> Self {
        Locked(Arc::clone(&self.0))
    }
}

impl<T: Send> Owner<T> for Locked<T> {
    type Thief = Self;

    fn try_push(&self, task: T) -> Result<(), OutOfMemory<T>> {
        let mut deque = self.lock();
        if deque.try_reserve(1).is_err() {
            return Err(OutOfMemory(task));
        }
        deque.push_back(task);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        self.lock().pop_back()
    }

    fn thief(&self) -> Self {
        self.clone()
    }

    fn len(&self) -> usize {
        self.lock().len()
    }
}

impl<T: Send> Thief<T> for Locked<T> {
    fn steal(&self) -> Steal<T> {
        self.lock().pop_front().map_or(Steal::Empty, Steal::Success)
    }

    fn len(&self) -> usize {
        self.lock().len()
    }
}

impl<T: Send> ExactlyOnce<T> for Locked<T> {}

pub(super) fn run<J: Job>(
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Result<Vec<J::Worker>, Error> {
    let owners = workers.iter().map(|_| Locked(Arc::default())).collect();
    stealing::run(job, workers, tasks, owners)
}
