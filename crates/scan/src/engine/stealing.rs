//! Work stealing over some deque: each worker takes the newest of its own tasks, and the oldest of
//! another's when it has none. `mutex-stealing` and `lock-free` differ in nothing but the deque.
//!
//! **How it ends.** `active` counts the workers that have, or may come to have, a task. A worker
//! leaves the count only when its own deque is empty, and only its owner fills a deque; a thief
//! enters the count before it steals. So a task always has a counted worker: the one that holds it,
//! or the owner of the deque it is in. Hence `active == 0` means that there is no task and, as
//! or the owner of the deque it is in. Hence `active == 0` means that there is no task and, as
//! tasks come only from tasks, never will be. A thief looks before it enters the count, so a thief
//! that finds nothing writes to no shared line.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_utils::{Backoff, CachePadded};
use poach_deque::{ExactlyOnce, Owner, Steal, Thief};

use super::{Job, crew};
use crate::Error;

/// The longest that a worker without work sleeps before it looks again.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Runs a job with an empty deque for each worker.
pub(super) fn run<J: Job, O: ExactlyOnce<J::Task>>(
    job: &J,
    workers: Vec<J::Worker>,
    tasks: Vec<J::Task>,
    owners: Vec<O>,
) -> Result<Vec<J::Worker>, Error> {
    let thieves: Vec<O::Thief> = owners.iter().map(Owner::thief).collect();
    if let Some(first) = owners.first() {
        for task in tasks {
            first.push(task);
        }
    }
    let active = CachePadded::new(AtomicUsize::new(workers.len()));
    let aborted = AtomicBool::new(false);
    let crew_members = workers.into_iter().zip(owners).collect();

    // Relaxed: the flag publishes nothing, and a worker that sees it late does one task more.
    let abort = || aborted.store(true, Ordering::Relaxed);
    let done = crew(crew_members, abort, |number, (worker, own): &mut (J::Worker, O)| {
        let mut victims = Victims { number, count: thieves.len(), next: number };
        loop {
            while let Some(task) = own.pop() {
                if aborted.load(Ordering::Relaxed) {
                    return;
                }
                job.visit(worker, task, &mut |child| own.push(child));
            }
            // Release: pairs with the Acquire load below, so that a worker that sees the last
            // worker leave sees what it did. (The threads' joining would do; this is for the
            // argument's sake as much as for the compiler's.)
            active.fetch_sub(1, Ordering::Release);
            let Some(task) = search(&thieves, &mut victims, &active, &aborted) else { return };
            job.visit(worker, task, &mut |child| own.push(child));
        }
    })?;
    Ok(done.into_iter().map(|(worker, _)| worker).collect())
}

/// Looks for a task until there is one, whereupon this worker is counted as active again, or until
/// there will be none.
#[cold]
fn search<T>(
    thieves: &[impl Thief<T>],
    victims: &mut Victims,
    active: &AtomicUsize,
    aborted: &AtomicBool,
) -> Option<T> {
    let backoff = Backoff::new();
    let mut sleep = Duration::from_micros(20);
    loop {
        for _ in 0..victims.count {
            let thief = &thieves[victims.next()];
            if thief.is_empty() {
                continue;
            }
            // Relaxed: an atomic count needs no ordering to be exact, and a task stolen after this
            // line was, until then, in the deque of a worker that is in the count.
            active.fetch_add(1, Ordering::Relaxed);
            if let Steal::Success(task) = thief.steal() {
                return Some(task);
            }
            active.fetch_sub(1, Ordering::Release);
            backoff.reset();
        }
        // Acquire: pairs with the Release of the worker that left the count.
        if active.load(Ordering::Acquire) == 0 || aborted.load(Ordering::Relaxed) {
            return None;
        }
        if backoff.is_completed() {
            thread::sleep(sleep);
            sleep = (sleep * 2).min(LONGEST_SLEEP);
        } else {
            backoff.snooze();
        }
    }
}

/// All others in turn, beginning after the one that was tried last.
struct Victims {
    number: usize,
    count: usize,
    next: usize,
}

impl Victims {
    fn next(&mut self) -> usize {
        self.next = (self.next + 1) % self.count;
        if self.next == self.number {
            self.next = (self.next + 1) % self.count;
        }
        self.next
    }
}
