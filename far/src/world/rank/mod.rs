//! One rank at work: its workers are those of a Poach pool, and whichever is between two tasks
//! talks to the other ranks.
//!
//! A task of the pool is a *run*: it works through a bag of the job's tasks, youngest first.
//! Between two batches of them, some tens of microseconds apart, it does what is to be done:
//!
//! - it polls the balancer, if no other worker holds it;
//! - it encodes half of its bag, if another rank wants tasks;
//! - it spawns half of its bag as another run, if none is waiting to be begun.
//!
//! So the pool spreads the work in the rank, and the balancer between ranks.
//!
//! # The last run
//!
//! A run whose bag is empty ends, unless it is the rank's last. The last run stays: it polls, and
//! so steals from other ranks, until it has tasks again or the job is over. So there is always one
//! run that polls, never two that wait, and no thread that polls while a worker computes. `running`
//! counts the runs that are waiting to be begun, or under way. It falls only from n to n - 1, by an
//! exchange for which n > 1 has to be true, so exactly one run finds itself the last. While it is
//! the last there is no other run that could make one.
//!
//! # Calls that wait
//!
//! A task of a job of [calls](crate::call) waits inside of a run for what another rank finds. While
//! it waits (`wait`, in [`run`]) it runs what is in its bag, what other runs have put [aside], and
//! other runs that no worker has begun. Once all runs of the rank wait (`waiting` counts them) it
//! steals as well. It counts as running all the while, so the rank is not idle to the detector of
//! the end.
//! How deep that nests is [bounded](nesting).
//!
//! The user's code is called under no lock of the rank: see [aside].
//!
//! One more thread, the *heart*, sleeps, and polls once a second if nobody else has: so a rank
//! whose every task takes minutes is not taken for lost.

mod aside;
mod nesting;
mod run;
mod view;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::ThreadPool;

use super::checkpoint::Checkpoint;
use super::job_builder::Status;
use crate::bag::Bag;
use crate::balance::{Balancer, Progress};
use crate::job::Job;
use crate::message::Failure;
use crate::mpi::Link;
use aside::Aside;
pub(crate) use nesting::Nested;
use run::Run;
use view::View;

/// How often the heart beats.
const BEAT: Duration = Duration::from_secs(1);

/// What a rank may hold and send at most.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Tasks of a worker's bag.
    pub(crate) bag: usize,
    /// Bytes of a parcel.
    pub(crate) parcel: usize,
}

/// A rank at work.
pub(crate) struct Rank<'j, J: Job> {
    job: &'j J,
    number: usize,
    threads: usize,
    limits: Limits,
    comm: Mutex<Comm<'j>>,
    /// Runs that were spawned, and not ended.
    running: AtomicUsize,
    /// Of these, the runs that were not begun.
    loose: AtomicUsize,
    /// Of these, the runs in which a call waits, and that have nothing else to do.
    waiting: AtomicUsize,
    /// How many parcels other ranks want.
    wanted: AtomicUsize,
    /// A call of this rank that waits wants tasks.
    called: AtomicBool,
    paused: AtomicBool,
    /// A checkpoint waits for what this rank has.
    saves: AtomicBool,
    /// The job is over, or has failed.
    stopped: AtomicBool,
    aside: Mutex<Aside<J::Task>>,
    result: Mutex<Option<J::Result>>,
    checkpoint: Option<Checkpoint<'j>>,
    progress: Option<&'j (dyn Fn(Status) + Send + Sync)>,
    began: Instant,
    /// Tasks that were run.
    tasks: AtomicU64,
    ended: Mutex<bool>,
    beat: Condvar,
}

/// What one thread at a time holds.
struct Comm<'l> {
    link: &'l mut Link,
    balancer: Balancer,
    polled: Instant,
    saved: Instant,
    told: Instant,
}

// No atomic of this module publishes anything but itself: tasks and results move through the
// mutexes, and through the pool's own spawning. `running` alone orders: see `leave`.
const RELAXED: Ordering = Ordering::Relaxed;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'j, J: Job> Rank<'j, J> {
    pub(crate) fn new(
        job: &'j J,
        link: &'j mut Link,
        balancer: Balancer,
        (rank, threads): (usize, usize),
        limits: Limits,
        checkpoint: Option<Checkpoint<'j>>,
    ) -> Self {
        let now = Instant::now();
        Rank {
            job,
            number: rank,
            threads,
            limits,
            comm: Mutex::new(Comm { link, balancer, polled: now, saved: now, told: now }),
            running: AtomicUsize::new(1),
            loose: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            called: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            saves: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            aside: Mutex::default(),
            result: Mutex::new(None),
            checkpoint,
            progress: None,
            began: now,
            tasks: AtomicU64::new(0),
            ended: Mutex::new(false),
            beat: Condvar::new(),
        }
    }

    /// With a function that is told how far the job is.
    pub(crate) fn progress(mut self, tell: Option<&'j (dyn Fn(Status) + Send + Sync)>) -> Self {
        self.progress = tell;
        self
    }

    /// Works until the job is over. Returns what this rank's tasks have found, beginning with
    /// `result`.
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
                poach_runtime::scope(|scope| {
                    scope.spawn(|scope| Run::begin(&self, seeds, scope));
                });
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
            let comm = if *ended { None } else { self.comm.try_lock().ok() };
            if let Some(comm) = comm.filter(|comm| comm.polled.elapsed() >= BEAT) {
                self.poll(comm, &mut View { rank: self, bag: None, call: None });
            }
        }
    }

    /// Whether no run of this rank has anything to do. A guess, but for the last run.
    fn all_wait(&self) -> bool {
        self.waiting.load(RELAXED) >= self.running.load(RELAXED)
    }

    /// Ends a run, unless it is the last.
    fn leave(&self) -> bool {
        // Release: what this run has put aside and merged is there before it no longer counts.
        // Acquire: the run that finds itself the last sees what all others have put aside
        // and merged; the exchanges of the others are one release sequence, whose end it
        // reads.
        let one_less = |running: usize| (running > 1).then(|| running - 1);
        self.running.fetch_update(Ordering::Release, Ordering::Acquire, one_less).is_ok()
    }

    fn fail(&self, failure: Failure) {
        let mut comm = lock(&self.comm);
        let Comm { link, balancer, .. } = &mut *comm;
        balancer.fail(*link, failure);
        self.stopped.store(true, RELAXED);
    }

    fn stops(&self, balancer: &Balancer) -> bool {
        let stops = *balancer.progress() != Progress::Running;
        if stops {
            self.stopped.store(true, RELAXED);
        }
        stops
    }

    fn poll(&self, mut comm: MutexGuard<'_, Comm<'j>>, view: &mut View<'_, 'j, J>) {
        let Comm { link, balancer, polled, saved, told } = &mut *comm;
        *polled = Instant::now();
        if let Some(checkpoint) = &self.checkpoint {
            if self.number == 0 && polled.duration_since(*saved) >= checkpoint.every {
                *saved = *polled;
                balancer.checkpoint();
            }
        }
        balancer.poll(*link, view);
        if let Some(message) = link.error.clone() {
            balancer.fail(*link, Failure::Other { rank: self.number, message });
        }
        let is_due =
            !self.stops(balancer) && self.number == 0 && polled.duration_since(*told) >= BEAT;
        if let Some(tell) = self.progress.filter(|_| is_due) {
            *told = *polled;
            let tasks = self.tasks.load(RELAXED) + balancer.tasks_below();
            drop(comm);
            tell(Status { elapsed: self.began.elapsed(), tasks });
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

/// Gives the processor away, for longer and longer.
pub(crate) fn rest(idle: &mut u32) {
    *idle += 1;
    match *idle {
        0..16 => thread::yield_now(),
        16..64 => thread::sleep(Duration::from_micros(20)),
        _ => thread::sleep(Duration::from_micros(200)),
    }
}
