//! A worker of a [`QueuePool`](crate::on_queue::QueuePool) hosts queued jobs.

use super::queued::{Host, Job};
use crate::on_queue::{Queue, QueueWorker};

// SAFETY: a `QueueWorker<Q>` meets jobs in the queues of its pool and in the pool's list of programs.
// Those are filled by the joins of workers of the same pool, which have the same type, and by `lend`
// for that type. `on_queue` admits only queues that hand out each job once.
unsafe impl<Q: Queue> Host for QueueWorker<Q> {
    #[inline]
    fn push(&self, job: Job) {
        self.push_job(job);
    }

    #[inline]
    fn pop(&self) -> Option<Job> {
        self.pop_job()
    }

    #[inline]
    fn help(&self) {
        self.help_others();
    }
}
