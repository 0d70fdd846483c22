//! Spare workers: while a worker blocks outside of the pool, another thread works in its place.
//!
//! A pool built with spares has that many threads in addition. They have slots of their own, with
//! deques, after the regular ones. They wait among the [`Spares`](crate::shared::spares::Spares),
//! not among the sleeping workers, so that no call for work wakes them. A worker that enters
//! [`blocking`] lends a spare, if one is left. The spare works like any other worker until the loan
//! is over, ends its present task, and comes back (or is lent again before it has). Meanwhile the
//! pool may have one thread too many at work. The lender goes on at once, since the spare's task
//! may be waiting for it.
//!
//! Other workers expose the tasks that a blocked worker has pushed, or pushes while it blocks.

use poach_memory::Ordering;

use crate::shared::spares::Loan;
use crate::worker::current::WorkerThread;

/// Runs `f`, which may block; while it does, a spare worker takes this one's place in the pool.
///
/// For waits that the pool does not know of: for a file, a lock, a channel. A spare worker is there
/// only if the pool was built with [`spares`](crate::ThreadPoolBuilder::spares) and one of them is
/// free. Otherwise, and on a thread that is no worker, this just calls `f`. For a thread from
/// outside that runs a region, no spare is needed: the worker that stands aside for it works
/// meanwhile.
///
/// The other workers can take the tasks that this one has spawned and not started, those that `f`
/// spawns too.
///
/// A wait in `f` for a [handle](crate::JoinHandle) or for a call into another pool runs no other
/// task, so `f` may hold a lock across it. Joins and scopes in `f` run other tasks, as always. A
/// spare worker has an index of its own, not below the pool's number of threads.
///
/// ```
/// # use poach_runtime as poach;
/// let pool = poach::ThreadPool::builder().num_threads(1).spares(1).build()?;
/// let (send, receive) = std::sync::mpsc::channel();
/// let answer = pool.install(move || {
///     poach::spawn(move || send.send(42).unwrap());
///     // The only regular worker waits for what a worker of its pool must send.
///     poach::blocking(|| receive.recv())
/// });
/// assert_eq!(answer, Ok(42));
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// With `f`'s payload, if `f` panics.
#[doc(alias = "block_in_place")]
pub fn blocking<R>(f: impl FnOnce() -> R) -> R {
    WorkerThread::with(|local| {
        let _answers = local.map(Answers);
        let _still = local.map(|local| local.set_blocks(true));
        let _loan = local.and_then(Lent::new);
        let _dozing = local.filter(|local| local.is_guest()).map(|guest| {
            guest.hand_over();
            guest.dozes()
        });
        f()
    })
}

/// A spare that works for a worker that blocks, until dropped.
struct Lent<'l> {
    local: &'l WorkerThread,
    loan: Loan,
    slot: usize,
}

impl<'l> Lent<'l> {
    fn new(local: &'l WorkerThread) -> Option<Lent<'l>> {
        let shared = &local.shared;
        if !shared.has_spares() || local.is_guest() {
            return None;
        }
        let (slot, loan) = shared.spares.lend()?;
        local.hand_over();
        Some(Lent { local, loan, slot: shared.threads + slot })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // Release: the spare sees what the lender did, and the spare's next lender hands that on.
        // The store is line P1 of sleep/README.md.
        self.loan.store(1, Ordering::Release);
        self.local.shared.sleep.wake(self.slot);
    }
}

/// Its drop, after the loan, answers calls: interrupts wait for workers that block.
struct Answers<'l>(&'l WorkerThread);

impl Drop for Answers<'_> {
    fn drop(&mut self) {
        self.0.answer_calls();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::task::value::Task;
    use crate::{ThreadPool, spawn};

    /// Others could take what it leaves, but for a task that nobody can expose.
    #[test]
    fn a_spare_hands_over_what_it_has_spawned_before_it_goes_back() {
        let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
        let shared = pool.shared();
        let (tell, spawned) = mpsc::channel();
        let (go, is_back) = mpsc::channel();
        pool.install(move || {
            spawn(move || {
                (0..5).for_each(|_| spawn(|| ()));
                tell.send(()).unwrap();
                is_back.recv().unwrap();
            });
            blocking(|| spawned.recv().unwrap());
            go.send(()).unwrap();
            while shared.spares.idle() == 0 {
                thread::yield_now();
            }
            let spare = &shared.workers[1];
            assert!(spare.spawns.is_empty() && shared.has_injected());
        });
    }

    /// An interrupt that has called it waits for it.
    #[test]
    fn a_spare_answers_calls_before_it_goes_back() {
        let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
        let shared = pool.shared();
        let (tell, begun) = mpsc::channel();
        let (release, held) = mpsc::channel::<()>();
        let (answer, answered) = mpsc::channel();
        pool.install(move || {
            spawn(move || {
                tell.send(()).unwrap();
                _ = held.recv();
            });
            blocking(|| begun.recv().unwrap());
            // The loan is over, and the spare has not ended its task.
            shared.workers[1].calls.put(Task::detached(move || answer.send(()).unwrap()));
            drop(release);
        });
        assert_eq!(answered.recv_timeout(Duration::from_secs(60)), Ok(()));
    }
}
