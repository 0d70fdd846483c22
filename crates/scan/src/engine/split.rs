//! The project's own runtime: a scope, and a task in it for each directory.
//!
//! The runtime's workers keep new tasks to themselves until another worker is hungry, so pushing
//! and popping takes no fence and no locked instruction; see `poach-runtime`, and *Lace* for the
//! split deque. The newest directory that a visit finds is the task that its worker would pop next:
//! the worker goes on with it at once, and only the directories found earlier become tasks.
//!
//! The state of this crate's workers stands in a slot for each worker of the pool. The slot's lock
//! only ever has one taker: a task does not wait, so no second task begins on a worker before the
//! first has ended.

use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use poach_runtime::{BuildError, Scope, ThreadPool};

use super::Job;
use crate::Error;

struct Crew<'a, J: Job> {
    job: &'a J,
    workers: Vec<CachePadded<Mutex<J::Worker>>>,
}

impl<J: Job> Crew<'_, J> {
    fn visit<'scope>(&'scope self, task: J::Task, scope: &Scope<'scope>)
    where
        J::Task: 'scope,
    {
        let index = poach_runtime::worker(|worker| worker.index());
        let mut worker = self.workers[index].lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Some(task);
        while let Some(task) = next.take() {
            self.job.visit(&mut worker, task, &mut |child| {
                if let Some(older) = next.replace(child) {
                    scope.spawn(move |scope| self.visit(older, scope));
                }
            });
        }
    }
}

pub(super) fn pool(threads: usize) -> Result<ThreadPool, Error> {
    ThreadPool::builder()
        .num_threads(threads)
        .name(|index| format!("poach-scan-{index}"))
        .build()
        .map_err(refused)
}

/// Visits all tasks in a pool of as many threads as there are workers.
pub(super) fn run<J: Job>(
    job: &J,
    pool: &ThreadPool,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Vec<J::Worker> {
    let workers = workers.into_iter().map(|worker| CachePadded::new(Mutex::new(worker))).collect();
    let crew = Crew { job, workers };
    pool.install(|| {
        poach_runtime::scope(|scope| {
            for task in tasks {
                scope.spawn(|scope| crew.visit(task, scope));
            }
        });
    });
    let worker = |slot: CachePadded<Mutex<_>>| slot.into_inner().into_inner();
    let workers = crew.workers.into_iter().map(worker);
    workers.map(|worker| worker.unwrap_or_else(PoisonError::into_inner)).collect()
}

#[cold]
pub(crate) fn refused(error: BuildError) -> Error {
    match error {
        BuildError::Spawn { index, source } => Error::Thread { number: index, error: source },
        other => Error::Pool(other),
    }
}
