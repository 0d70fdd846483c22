//! A worker at a bag.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use poach_runtime::{Scope, Yield, yield_local, yield_now};

use super::aside::Much;
use super::nesting::{Depth, Nested};
use super::view::{View, Waits};
use super::{Comm, RELAXED, Rank, lock, rest};
use crate::bag::Bag;
use crate::job::{Context, Job, Runner};
use crate::message::Failure;

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
    /// Looks that have found nothing.
    idle: u32,
}

impl<'r, 's, 'j, J: Job> Run<'r, 's, 'j, J> {
    /// Works through a bag, and what else there is.
    pub(super) fn begin(rank: &'s Rank<'j, J>, bag: Bag<J::Task>, scope: &'r Scope<'s>) {
        rank.loose.fetch_sub(1, RELAXED);
        // The run below on this call stack does nothing until this one has ended, whatever it is
        // that it waits for.
        let _below = Depth::here().is_above().then(|| Counted::new(&rank.waiting));
        let _nested = Nested::begin();
        let pace = Pace::new();
        let mut run = Run { rank, scope, bag, result: None, pace, left: 1, ran: 0, idle: 0 };
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
                lock(&rank.aside).tasks.append(std::mem::take(&mut self.bag));
            } else {
                self.guarded(|run| {
                    if run.bag.is_empty() {
                        rank.take_up(&mut run.bag, Much::All)?;
                    }
                    run.batch();
                    Ok(())
                });
                self.count();
                self.pace.adapt();
            }
            if !self.bag.is_empty() {
                self.idle = 0;
                self.guarded(Run::look);
                continue;
            }
            self.guarded(Run::merge);
            if rank.leave() {
                return;
            }
            // The last run: nobody else is at work here.
            self.guarded(|run| {
                rank.poll(
                    lock(&rank.comm),
                    &mut View { rank, bag: Some(&mut run.bag), call: None },
                );
                if rank.is_to_save() { rank.save() } else { Ok(()) }
            });
            if lock(&rank.aside).is_empty() || rank.paused.load(RELAXED) {
                rest(&mut self.idle);
            }
            self.pace = Pace::new();
        }
        self.guarded(Run::merge);
        while !rank.leave() {
            if rank.stopped.load(RELAXED) {
                break;
            }
        }
    }

    /// Calls what runs code of the user's. If that panics, the job fails.
    fn guarded(&mut self, call: impl FnOnce(&mut Self) -> Result<(), Failure>) {
        let rank = self.rank;
        match catch_unwind(AssertUnwindSafe(|| call(self))) {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => rank.fail(failure),
            Err(payload) if payload.is::<Stopped>() => {}
            Err(payload) => match payload.downcast::<Failure>() {
                Ok(failure) => rank.fail(*failure),
                Err(payload) => {
                    rank.fail(panicked(rank.number, &*payload));
                    dispose(payload);
                }
            },
        }
    }

    /// Runs some tasks.
    fn batch(&mut self) {
        let rank = self.rank;
        let most = self.pace.batch;
        let mut ran = 0;
        while ran < most {
            let Some(task) = self.bag.pop() else { break };
            ran += 1;
            self.ran += 1;
            rank.job.run(task, self);
        }
    }

    /// Tells the rank how many tasks were run.
    fn count(&mut self) {
        self.rank.tasks.fetch_add(std::mem::take(&mut self.ran), RELAXED);
    }

    /// Between two tasks: does what nobody else is doing.
    fn look(&mut self) -> Result<(), Failure> {
        let rank = self.rank;
        self.share()?;
        while let Ok(comm) = rank.comm.try_lock() {
            rank.poll(comm, &mut View { rank, bag: Some(&mut self.bag), call: None });
            // What other ranks want is encoded between two polls, and given by the second.
            if !self.pack()? {
                break;
            }
        }
        Ok(())
    }

    /// Encodes tasks for other ranks, if they want some. Whether there were any.
    fn pack(&mut self) -> Result<bool, Failure> {
        let rank = self.rank;
        if rank.wanted.load(RELAXED) == 0
            || self.bag.len() < 2 && lock(&rank.aside).tasks.is_empty()
        {
            return Ok(false);
        }
        match rank.wanted.swap(0, RELAXED) {
            0 => Ok(false),
            wanted => rank.pack(&mut self.bag, wanted),
        }
    }

    /// Gives tasks to other ranks, or to a waiting call of this rank, or spawns them as another
    /// run.
    fn share(&mut self) -> Result<(), Failure> {
        let rank = self.rank;
        if self.pack()? || self.bag.len() < 2 {
            return Ok(());
        }
        if rank.called.load(RELAXED) && rank.called.swap(false, RELAXED) {
            lock(&rank.aside).tasks.append(self.bag.split());
        } else if rank.threads > 1 && rank.loose.load(RELAXED) < rank.threads.div_ceil(8) {
            let half = self.bag.split();
            rank.loose.fetch_add(1, RELAXED);
            rank.running.fetch_add(1, RELAXED);
            self.scope.spawn(move |scope| Run::begin(rank, half, scope));
        }
        Ok(())
    }

    /// Whether a call that waits has taken up something that lay aside.
    fn takes_up(&mut self) -> bool {
        match self.rank.take_up(&mut self.bag, Much::One) {
            Ok(false) => false,
            Ok(true) => {
                self.idle = 0;
                true
            }
            Err(failure) => Runner::fail(self, failure),
        }
    }

    /// Adds what a run has found to what the rank has.
    fn merge(&mut self) -> Result<(), Failure> {
        let Some(mut found) = self.result.take() else { return Ok(()) };
        loop {
            let mut all = lock(&self.rank.result);
            let Some(mut others) = all.take() else {
                *all = Some(found);
                return Ok(());
            };
            // The job's own code may fork, and wait by running another run of this rank, which
            // merges, too: not under the lock.
            drop(all);
            self.rank.job.combine(&mut others, found);
            found = others;
        }
    }
}

/// What is thrown out of calls that wait when the job is over without them. It carries no message:
/// the job tells why.
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

impl<J: Job> Runner<J> for Run<'_, '_, '_, J> {
    #[inline]
    fn context(&mut self) -> Context<'_, J::Task, J::Result> {
        let Rank { job, number, limits, .. } = self.rank;
        let result = self.result.get_or_insert_with(|| job.identity());
        Context::new(&mut self.bag, result, *number, limits.bag)
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
            if let Err(failure) = self.look() {
                self.fail(failure);
            }
        }
    }

    #[cold]
    fn wait(&mut self) {
        let rank = self.rank;
        self.count();
        if rank.stopped.load(RELAXED) {
            resume_unwind(Box::new(Stopped));
        }
        let depth = Depth::here();
        let impatient = depth.patience_ends(self.idle);
        let takes_any = impatient || !depth.is_deep();
        if takes_any && self.takes_up() {
            return;
        }
        let waiting = Counted::new(&rank.waiting);
        if let Ok(comm) = rank.comm.try_lock() {
            let call = Some(Waits { asks: takes_any, impatient });
            rank.poll(comm, &mut View { rank, bag: Some(&mut self.bag), call });
        }
        let last = rank.all_wait() && !lock(&rank.aside).is_empty();
        drop(waiting);
        if last && self.takes_up() {
            return;
        }
        if rank.threads > 1 {
            // Another run that nobody has begun: it may hold what this call waits for.
            let executed = if takes_any {
                rank.called.store(true, RELAXED);
                yield_now()
            } else {
                yield_local()
            };
            if executed == Some(Yield::Executed) {
                self.idle = 0;
                return;
            }
        }
        let _waiting = Counted::new(&rank.waiting);
        rest(&mut self.idle);
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

/// A task that has panicked with this.
fn panicked(rank: usize, payload: &(dyn Any + Send)) -> Failure {
    let message = match payload.downcast_ref::<&str>() {
        Some(message) => (*message).to_owned(),
        None => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
    };
    Failure::Panicked { rank, message }
}

/// Drops what a task has panicked with. The destructor is the user's: if it panics, with what may
/// panic when it is dropped, that is the end of it.
fn dispose(payload: Box<dyn Any + Send>) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    dropped.unwrap_or_else(std::mem::forget);
}
