//! A locked deque for each worker.
//!
//! Source: Phanes, part 3. The owner pays for its lock at every push and pop although thieves are
//! rare; that is what [`lock_free`](super::lock_free) does away with.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;

use super::{Job, stealing};
use crate::Error;

/// Either end of a locked deque.
struct Locked<T>(Arc<CachePadded<Mutex<VecDeque<T>>>>);

impl<T> Locked<T> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> stealing::Owner<T> for Locked<T> {
    fn push(&mut self, task: T) {
        self.lock().push_back(task);
    }

    fn pop(&mut self) -> Option<T> {
        self.lock().pop_back()
    }
}

impl<T: Send> stealing::Thief<T> for Locked<T> {
    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn steal(&self) -> Option<T> {
        self.lock().pop_front()
    }
}

pub(super) fn run<J: Job>(
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Result<Vec<J::Worker>, Error> {
    stealing::run(job, workers, tasks, || {
        let deque = Arc::default();
        (Locked(Arc::clone(&deque)), Locked(deque))
    })
}
