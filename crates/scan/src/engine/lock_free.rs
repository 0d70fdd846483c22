//! A Chase-Lev deque for each worker, with a full fence in each pop.
//!
//! Source: Phanes, part 4. The deque, its growing circular buffer and the argument for its
//! orderings are [`poach_deque::ChaseLev`]'s.

use poach_deque::ChaseLev;

use super::{Job, stealing};
use crate::Error;

pub(super) fn run<J: Job>(
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
) -> Result<Vec<J::Worker>, Error> {
    let owners = workers.iter().map(|_| ChaseLev::<J::Task>::default()).collect::<Vec<_>>();
    stealing::run(job, workers, tasks, owners)
}
