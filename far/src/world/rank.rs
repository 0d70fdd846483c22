//! One rank at work: its workers are those of a Poach pool, and whichever is between two tasks talks to the other ranks.
//!
//! A task of the pool is a *run*: it works through a bag of the job's tasks, youngest first. Between two batches of them, some tens
//! of microseconds apart, it does what nobody else is doing: it polls the balancer, if no other worker holds it; it puts half
//! of its bag aside, if another rank wants tasks; it spawns half of its bag as another run, if none is waiting to be begun. So the pool
//! spreads the work in the rank, and the balancer between ranks.
//!
//! # The last run
//!
//! A run whose bag is empty ends, unless it is the rank's last. That one stays: it polls, and so steals from other ranks, until it has tasks again or
//! the job is over. So there is always one run that polls, never two that wait, and no thread that polls while a worker
//! computes. `running` counts the runs that are waiting to be begun, or under way; it only falls from n to n - 1 by an exchange that n > 1
//! has to be true for, so exactly one run finds itself the last; and while it is, nobody makes another, since only a run does.
//!
//! One more thread, the *heart*, sleeps, and polls once a second if nobody else has: so a rank whose every task takes minutes is not taken for lost.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::{Scope, ThreadPool};
use serde::{Deserialize, Serialize};

use super::checkpoint;
use crate::bag::Bag;
use crate::balance::{Balancer, Failure, Given, Local, Parcel, Progress};
use crate::job::{Context, Job};
use crate::mpi::Link;

/// How often the heart beats.
const BEAT: Duration = Duration::from_secs(1);

/// What a rank hands over at a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Saved<J: Job> {
    pub(crate) tasks: Vec<J::Task>,
    pub(crate) result: J::Result,
}

/// A rank at work.
pub(crate) struct Rank<'j, J: Job> {
    job: &'j J,
    number: usize,
    threads: usize,
    bag_limit: usize,
    comm: Mutex<Comm<'j>>,
    /// Runs that were spawned, and not ended.
    running: AtomicUsize,
    /// Of these, those that were not begun.
    loose: AtomicUsize,
    /// Another rank wants tasks.
    wanted: AtomicBool,
    paused: AtomicBool,
    /// The job is over, or has failed.
    stopped: AtomicBool,
    /// Tasks that were put aside for other ranks, and tasks that came and nobody has taken up.
    aside: Mutex<Bag<J::Task>>,
    result: Mutex<Option<J::Result>>,
    checkpoint: Option<Checkpoint<'j>>,
    /// Tasks that were run.
    pub(crate) tasks: AtomicU64,
    ended: Mutex<bool>,
    beat: Condvar,
}

/// When and where checkpoints are taken.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoint<'c> {
    pub(crate) path: &'c Path,
    pub(crate) every: Duration,
    /// What job it is.
    pub(crate) about: &'c str,
}

/// What one thread at a time holds.
struct Comm<'l> {
    link: &'l mut Link,
    balancer: Balancer,
    polled: Instant,
    saved: Instant,
}

// No atomic of this module publishes anything but itself: tasks and results move through the mutexes, and through the
// pool's own spawning. `running` alone orders: see `leave`.
const RELAXED: Ordering = Ordering::Relaxed;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

impl<'j, J: Job> Rank<'j, J> {
    pub(crate) fn new(
        job: &'j J,
        link: &'j mut Link,
        balancer: Balancer,
        (rank, threads): (usize, usize),
        bag_limit: usize,
        checkpoint: Option<Checkpoint<'j>>,
    ) -> Self {
        let now = Instant::now();
        Rank {
            job,
            number: rank,
            threads,
            bag_limit,
            comm: Mutex::new(Comm { link, balancer, polled: now, saved: now }),
            running: AtomicUsize::new(1),
            loose: AtomicUsize::new(1),
            wanted: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            aside: Mutex::default(),
            result: Mutex::new(None),
            checkpoint,
            tasks: AtomicU64::new(0),
            ended: Mutex::new(false),
            beat: Condvar::new(),
        }
    }

    /// Works until the job is over. Returns what this rank's tasks have found, beginning with `result`.
    pub(crate) fn work(
        self,
        pool: &ThreadPool,
        seeds: Bag<J::Task>,
        result: Option<J::Result>,
    ) -> (Option<J::Result>, Balancer, u64) {
        *lock(&self.result) = result;
        thread::scope(|threads| {
            threads.spawn(|| self.heart());
            // By a drop, so that the heart ends too if this unwinds.
            let _ended = Ended(&self.ended, &self.beat);
            pool.install(|| {
                poach_runtime::scope(|scope| scope.spawn(|scope| self.run(seeds, scope)));
            });
        });
        let comm = self.comm.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = self.result.into_inner().unwrap_or_else(PoisonError::into_inner);
        (result, comm.balancer, self.tasks.into_inner())
    }

    /// Polls once a second if nobody else has.
    fn heart(&self) {
        let mut ended = lock(&self.ended);
        while !*ended {
            ended = self.beat.wait_timeout(ended, BEAT).unwrap_or_else(PoisonError::into_inner).0;
            if !*ended
                && let Ok(mut comm) = self.comm.try_lock()
                && comm.polled.elapsed() >= BEAT
            {
                self.poll(&mut comm, &mut View { rank: self, bag: None });
            }
        }
    }

    /// Works through a bag, and what else there is.
    fn run<'s>(&'s self, mut bag: Bag<J::Task>, scope: &Scope<'s>) {
        self.loose.fetch_sub(1, RELAXED);
        let mut result = None;
        let mut pace = Pace::new();
        let mut idle = 0;
        loop {
            if self.stopped.load(RELAXED) {
                break;
            }
            let paused = self.paused.load(RELAXED);
            if paused {
                lock(&self.aside).append(std::mem::take(&mut bag));
            } else {
                if bag.is_empty() {
                    bag = std::mem::take(&mut lock(&self.aside));
                }
                self.batch(&mut bag, &mut result, pace.batch);
                pace.adapt();
            }
            if !bag.is_empty() {
                idle = 0;
                self.share(&mut bag, scope);
                if let Ok(mut comm) = self.comm.try_lock() {
                    self.poll(&mut comm, &mut View { rank: self, bag: Some(&mut bag) });
                }
                continue;
            }
            self.merge(&mut result);
            if self.leave() {
                return;
            }
            // The last run: nobody else is at work here.
            let mut comm = lock(&self.comm);
            self.poll(&mut comm, &mut View { rank: self, bag: Some(&mut bag) });
            drop(comm);
            if bag.is_empty() {
                rest(&mut idle);
            }
            pace = Pace::new();
        }
        self.merge(&mut result);
        while !self.leave() {
            if self.stopped.load(RELAXED) {
                break;
            }
        }
    }

    /// Runs some tasks. One that panics fails the job.
    fn batch(&self, bag: &mut Bag<J::Task>, result: &mut Option<J::Result>, most: usize) {
        if bag.is_empty() {
            return;
        }
        let result = result.get_or_insert_with(|| self.job.identity());
        let mut ran = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            while ran < most
                && let Some(task) = bag.pop()
            {
                ran += 1;
                self.job.run(task, &mut Context::new(bag, result, self.number, self.bag_limit));
            }
        }));
        self.tasks.fetch_add(ran as u64, RELAXED);
        if let Err(payload) = outcome {
            self.fail(thrown(self.number, payload));
        }
    }

    /// Puts tasks aside for other ranks, or spawns them as another run.
    fn share<'s>(&'s self, bag: &mut Bag<J::Task>, scope: &Scope<'s>) {
        if bag.len() < 2 {
            return;
        }
        if self.wanted.load(RELAXED) && self.wanted.swap(false, RELAXED) {
            lock(&self.aside).append(bag.split());
        } else if self.threads > 1 && self.loose.load(RELAXED) < self.threads.div_ceil(8) {
            let half = bag.split();
            self.loose.fetch_add(1, RELAXED);
            self.running.fetch_add(1, RELAXED);
            scope.spawn(move |scope| self.run(half, scope));
        }
    }

    /// Adds what a run has found to what the rank has.
    fn merge(&self, result: &mut Option<J::Result>) {
        let Some(found) = result.take() else { return };
        let mut all = lock(&self.result);
        match &mut *all {
            Some(all) => self.job.combine(all, found),
            none => *none = Some(found),
        }
    }

    /// Ends a run, unless it is the last.
    fn leave(&self) -> bool {
        // Release: what this run has put aside and merged is there before it no longer counts. Acquire: the run that finds
        // itself the last sees what all others have put aside and merged; the exchanges of the others are one release
        // sequence, whose end it reads.
        let one_less = |running: usize| (running > 1).then(|| running - 1);
        self.running.fetch_update(Ordering::Release, Ordering::Acquire, one_less).is_ok()
    }

    fn fail(&self, failure: Failure) {
        let mut comm = lock(&self.comm);
        let Comm { link, balancer, .. } = &mut *comm;
        balancer.fail(*link, failure);
        self.stopped.store(true, RELAXED);
    }

    fn poll(&self, comm: &mut Comm<'_>, view: &mut View<'_, '_, J>) {
        let Comm { link, balancer, polled, saved } = comm;
        *polled = Instant::now();
        if let Some(checkpoint) = &self.checkpoint
            && self.number == 0
            && polled.duration_since(*saved) >= checkpoint.every
        {
            *saved = *polled;
            balancer.checkpoint();
        }
        balancer.poll(*link, view);
        if let Some(message) = link.error.clone() {
            balancer.fail(*link, Failure::Other { rank: self.number, message });
        }
        if *balancer.progress() != Progress::Running {
            self.stopped.store(true, RELAXED);
        }
    }
}

/// Ends the heart.
struct Ended<'e>(&'e Mutex<bool>, &'e Condvar);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *lock(self.0) = true;
        self.1.notify_all();
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

/// Gives the processor away, for longer and longer.
pub(crate) fn rest(idle: &mut u32) {
    *idle += 1;
    match *idle {
        0..16 => thread::yield_now(),
        16..64 => thread::sleep(Duration::from_micros(20)),
        _ => thread::sleep(Duration::from_micros(200)),
    }
}

/// The rank as the balancer sees it, from a run or from the heart.
struct View<'v, 'j, J: Job> {
    rank: &'v Rank<'j, J>,
    /// The bag of the run that polls.
    bag: Option<&'v mut Bag<J::Task>>,
}

impl<J: Job> View<'_, '_, J> {
    fn is_last(&self) -> bool {
        // Acquire: see `leave`.
        self.bag.is_some() && self.rank.running.load(Ordering::Acquire) == 1
    }
}

impl<J: Job> Local for View<'_, '_, J> {
    fn is_idle(&self) -> bool {
        let empty = self.bag.as_ref().is_some_and(|bag| bag.is_empty());
        empty && self.is_last() && lock(&self.rank.aside).is_empty()
    }

    fn is_still(&self) -> bool {
        let empty = self.bag.as_ref().is_some_and(|bag| bag.is_empty());
        empty && self.is_last()
    }

    fn give(&mut self, parcels: usize, bytes: usize) -> Result<Given, Failure> {
        let rank = self.rank.number;
        let mut given = Vec::new();
        {
            let mut aside = lock(&self.rank.aside);
            if !aside.is_empty() {
                let all = aside.len();
                given = aside.give_first(rank, all, parcels, bytes)?;
            }
        }
        if let Some(bag) = self.bag.as_mut().filter(|_| given.is_empty()) {
            given = bag.give(rank, parcels, bytes)?;
        }
        if !given.is_empty() {
            return Ok(Given::Parcels(given));
        }
        if self.is_last() {
            return Ok(Given::Nothing);
        }
        self.rank.wanted.store(true, RELAXED);
        Ok(Given::Later)
    }

    fn take(&mut self, from: usize, parcel: &Parcel) -> Result<(), Failure> {
        let tasks = Bag::open(self.rank.number, from, parcel)?;
        match &mut self.bag {
            Some(bag) => bag.append(tasks),
            None => lock(&self.rank.aside).append(tasks),
        }
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        self.rank.paused.store(paused, RELAXED);
        if paused && let Some(bag) = &mut self.bag {
            lock(&self.rank.aside).append(std::mem::take(bag));
        }
    }

    fn save(&mut self) -> Result<Vec<u8>, Failure> {
        let rank = self.rank.number;
        let aside = lock(&self.rank.aside);
        let result = lock(&self.rank.result);
        let identity = self.rank.job.identity();
        // As `Saved` is encoded, from what is borrowed.
        postcard::to_allocvec(&(
            aside.iter().collect::<Vec<_>>(),
            result.as_ref().unwrap_or(&identity),
        ))
        .map_err(|error| Failure::Other {
            rank,
            message: format!("cannot encode a checkpoint: {error}"),
        })
    }

    fn commit(&mut self, parts: Vec<Vec<u8>>) -> Result<(), Failure> {
        let rank = self.rank.number;
        let Some(checkpoint) = &self.rank.checkpoint else { return Ok(()) };
        checkpoint::write(checkpoint, &parts)
            .map_err(|error| Failure::Other { rank, message: format!("{error:#}") })
    }
}
