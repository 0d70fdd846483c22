//! A worker at a bag.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use poach_runtime::{Scope, Yield, yield_now};

use super::view::{View, Waits};
use super::{Comm, RELAXED, Rank, lock, rest};
use crate::bag::Bag;
use crate::job::{Context, Job, Seat};
use crate::message::Failure;

/// How many tasks a worker runs at most inside of calls that wait, one inside of the other, before it asks other ranks for no more.
///
/// Each of them lies above the others on the worker's stack.
const DEEP: u32 = 16;

/// How many tasks are run between two looks around.
struct Pace {
    batch: usize,
    last: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace { batch: 1, last: Instant::now() }
    }

    fn adapt(&mut self) {
        let now = Instant::now();
        let took = now - self.last;
        self.last = now;
        if took < Duration::from_micros(25) {
            self.batch = (self.batch * 2).min(1 << 14);
        } else if took > Duration::from_micros(75) {
            self.batch = (self.batch / 2).max(1);
        }
    }
}

/// A worker at a bag. See the module.
pub(super) struct Run<'r, 's, 'j, J: Job> {
    rank: &'s Rank<'j, J>,
    scope: &'r Scope<'s>,
    bag: Bag<J::Task>,
    result: Option<J::Result>,
    pace: Pace,
    /// Calls until the next look around.
    left: usize,
    /// Tasks that were run, and that the rank does not count yet.
    ran: u64,
    /// How many tasks run inside of calls that wait.
    deep: u32,
    idle: u32,
}

impl<'r, 's, 'j, J: Job> Run<'r, 's, 'j, J> {
    /// Works through a bag, and what else there is.
    pub(super) fn begin(rank: &'s Rank<'j, J>, bag: Bag<J::Task>, scope: &'r Scope<'s>) {
        rank.loose.fetch_sub(1, RELAXED);
        let pace = Pace::new();
        let mut run =
            Run { rank, scope, bag, result: None, pace, left: 1, ran: 0, deep: 0, idle: 0 };
        run.work();
    }

    fn work(&mut self) {
        let rank = self.rank;
        loop {
            if rank.stopped.load(RELAXED) {
                break;
            }
            let paused = rank.paused.load(RELAXED);
            if paused {
                lock(&rank.aside).append(std::mem::take(&mut self.bag));
            } else {
                if self.bag.is_empty() {
                    self.bag = std::mem::take(&mut lock(&rank.aside));
                }
                self.batch();
                self.pace.adapt();
            }
            if !self.bag.is_empty() {
                self.idle = 0;
                self.look();
                continue;
            }
            self.merge();
            if rank.leave() {
                return;
            }
            // The last run: nobody else is at work here.
            let mut comm = lock(&rank.comm);
            rank.poll(&mut comm, &mut View { rank, bag: Some(&mut self.bag), call: None });
            drop(comm);
            if self.bag.is_empty() {
                rest(&mut self.idle);
            }
            self.pace = Pace::new();
        }
        self.merge();
        while !rank.leave() {
            if rank.stopped.load(RELAXED) {
                break;
            }
        }
    }

    /// Runs some tasks. One that panics fails the job.
    fn batch(&mut self) {
        if self.bag.is_empty() {
            return;
        }
        let rank = self.rank;
        let most = self.pace.batch;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut ran = 0;
            while ran < most
                && let Some(task) = self.bag.pop()
            {
                ran += 1;
                self.ran += 1;
                rank.job.run(task, self);
            }
        }));
        self.count();
        if let Err(payload) = outcome
            && !payload.is::<Stopped>()
        {
            rank.fail(thrown(rank.number, payload));
        }
    }

    /// Tells the rank how many tasks were run.
    fn count(&mut self) {
        self.rank.tasks.fetch_add(std::mem::take(&mut self.ran), RELAXED);
    }

    /// Between two tasks: does what nobody else is doing.
    fn look(&mut self) {
        let rank = self.rank;
        self.share();
        if let Ok(mut comm) = rank.comm.try_lock() {
            rank.poll(&mut comm, &mut View { rank, bag: Some(&mut self.bag), call: None });
        }
    }

    /// Puts tasks aside for other ranks, or spawns them as another run.
    fn share(&mut self) {
        let rank = self.rank;
        if self.bag.len() < 2 {
            return;
        }
        if rank.wanted.load(RELAXED) && rank.wanted.swap(false, RELAXED) {
            lock(&rank.aside).append(self.bag.split());
        } else if rank.threads > 1 && rank.loose.load(RELAXED) < rank.threads.div_ceil(8) {
            let half = self.bag.split();
            rank.loose.fetch_add(1, RELAXED);
            rank.running.fetch_add(1, RELAXED);
            self.scope.spawn(move |scope| Run::begin(rank, half, scope));
        }
    }

    /// Adds what a run has found to what the rank has.
    fn merge(&mut self) {
        let Some(mut found) = self.result.take() else { return };
        loop {
            let mut all = lock(&self.rank.result);
            let Some(mut others) = all.take() else {
                *all = Some(found);
                return;
            };
            // The job's own code may fork, and wait by running another run of this rank, which merges, too: not under the lock.
            drop(all);
            self.rank.job.combine(&mut others, found);
            found = others;
        }
    }
}

/// What is thrown out of calls that wait when the job is over without them. It carries no message: the job tells why.
struct Stopped;

/// Counts a run as waiting, for as long as it is there.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, RELAXED);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, RELAXED);
    }
}

impl<J: Job> Seat<J> for Run<'_, '_, '_, J> {
    #[inline]
    fn context(&mut self) -> Context<'_, J::Task, J::Result> {
        let Rank { job, number, bag_limit, .. } = self.rank;
        let result = self.result.get_or_insert_with(|| job.identity());
        Context::new(&mut self.bag, result, *number, *bag_limit)
    }

    fn rank(&self) -> usize {
        self.rank.number
    }

    #[inline]
    fn pop(&mut self) -> Option<J::Task> {
        self.bag.pop()
    }

    #[inline]
    fn ran(&mut self) {
        self.ran += 1;
    }

    #[inline]
    fn pass(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.count();
            self.pace.adapt();
            self.left = self.pace.batch;
            self.look();
        }
    }

    fn nested(&mut self) -> &mut u32 {
        &mut self.deep
    }

    #[cold]
    fn wait(&mut self) {
        let rank = self.rank;
        self.count();
        if rank.stopped.load(RELAXED) {
            resume_unwind(Box::new(Stopped));
        }
        self.bag = std::mem::take(&mut lock(&rank.aside));
        if !self.bag.is_empty() {
            self.idle = 0;
            return;
        }
        let waiting = Counted::new(&rank.waiting);
        if let Ok(mut comm) = rank.comm.try_lock() {
            let call = Some(Waits { asks: self.deep < DEEP });
            rank.poll(&mut comm, &mut View { rank, bag: Some(&mut self.bag), call });
        }
        if !self.bag.is_empty() {
            self.idle = 0;
        } else if rank.threads > 1 {
            rank.wanted.store(true, RELAXED);
            // Another run that nobody has begun: it may hold what this call waits for.
            if yield_now() == Some(Yield::Executed) {
                self.idle = 0;
            } else {
                rest(&mut self.idle);
            }
        } else {
            rest(&mut self.idle);
        }
        drop(waiting);
    }

    fn give_back(&mut self, to: usize, call: u64, result: Vec<u8>) {
        let mut comm = lock(&self.rank.comm);
        let Comm { link, balancer, .. } = &mut *comm;
        balancer.give_back(*link, to, call, result);
    }

    fn fail(&mut self, failure: Failure) -> ! {
        self.rank.fail(failure);
        resume_unwind(Box::new(Stopped))
    }
}

/// What a task threw.
fn thrown(rank: usize, payload: Box<dyn Any + Send>) -> Failure {
    let message = match payload.downcast::<Failure>() {
        Ok(failure) => return *failure,
        Err(payload) => match payload.downcast_ref::<&str>() {
            Some(message) => (*message).to_owned(),
            None => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
        },
    };
    Failure::Panicked { rank, message }
}
