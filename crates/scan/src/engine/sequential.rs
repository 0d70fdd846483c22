//! Depth first, on the calling thread: what the others are measured against.

use super::Job;

pub(super) fn run<J: Job>(
    job: &J,
    mut workers: Vec<J::Worker>,
    mut tasks: Vec<J::Task>,
) -> Vec<J::Worker> {
    if let Some(worker) = workers.first_mut() {
        while let Some(task) = tasks.pop() {
            job.visit(worker, task, &mut |child| tasks.push(child));
        }
    }
    workers
}
