//! Threads that share one locked queue, first in, first out, and sleep on it while it is empty.
//!
//! Source: Phanes, part 2. One lock for all is simple and fair, and the lock's cache line travels
//! twice for every directory. The walk goes breadth first, so the queue gets long.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{Job, crew};
use crate::Error;

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    queue: VecDeque<T>,
    /// Workers that wait for a task. When all of them wait, there will never be a task.
    waiting: usize,
    done: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: T) {
        let mut state = self.lock();
        state.queue.push_back(task);
        if state.waiting > 0 {
            self.changed.notify_one();
        }
    }

    /// The oldest task; `None` when there are none left and no worker visits one.
    fn pop(&self, workers: usize) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.done {
                return None;
            }
            if let Some(task) = state.queue.pop_front() {
                return Some(task);
            }
            state.waiting += 1;
            if state.waiting == workers {
                state.done = true;
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

pub(super) fn run<J: Job>(
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Result<Vec<J::Worker>, Error> {
    let state = State { queue: tasks.into(), waiting: 0, done: false };
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
    let count = workers.len();
    let abort = || {
        shared.lock().done = true;
        shared.changed.notify_all();
    };
    crew(workers, abort, |_, worker| {
        while let Some(task) = shared.pop(count) {
            job.visit(worker, task, &mut |child| shared.push(child));
        }
    })
}
