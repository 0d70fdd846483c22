//! A job that is about to be run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Error, Outcome, World};
use crate::bag::Bag;
use crate::job::{Context, Reduction, Value};

/// How far a job is, as rank 0 knows it.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Since the job began.
    pub elapsed: Duration,
    /// Tasks that all ranks have run, as of some seconds ago.
    pub tasks: u64,
}

/// The function that rank 0 calls to tell how far a job is.
pub(crate) type Tell = Box<dyn Fn(Status) + Send + Sync>;

/// What a job does beside its result.
#[derive(Default)]
pub(crate) struct Asked {
    /// A file, how often, and what job it is.
    pub(crate) checkpoint: Option<(PathBuf, Duration, String)>,
    /// What rank 0 is to call.
    pub(crate) progress: Option<Tell>,
    /// As long as a message is held back at most, and what decides.
    pub(crate) delays: Option<(Duration, u64)>,
}

/// A job that is about to be run: [`World::job`].
#[must_use = "a job does nothing before it is run"]
pub struct JobBuilder<'w, T> {
    pub(crate) world: &'w mut World,
    pub(crate) seeds: Bag<T>,
    pub(crate) asked: Asked,
}

impl<T> fmt::Debug for JobBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobBuilder").field("seeds", &self.seeds.len()).finish_non_exhaustive()
    }
}

impl<'w, T: Value> JobBuilder<'w, T> {
    pub(super) fn new(world: &'w mut World, seeds: Bag<T>) -> Self {
        JobBuilder { world, seeds, asked: Asked::default() }
    }

    /// With a checkpoint in a file, so often. If the file is there when the job begins, it goes on
    /// from it, and the seeds are not used. `about` says what job it is: a checkpoint of
    /// another is refused.
    ///
    /// Rank 0 alone reads and writes the file. It stays when the job is over. Each task counts
    /// once: what was done after the last checkpoint is forgotten, and done again.
    ///
    /// The next one is taken no sooner than the last one took, so that at least half of the time
    /// goes into the tasks.
    pub fn checkpoint(mut self, file: impl Into<PathBuf>, every: Duration, about: &str) -> Self {
        self.asked.checkpoint = Some((file.into(), every, about.to_owned()));
        self
    }

    /// At rank 0: calls `tell` about once a second with how far the job is, by whichever worker is
    /// between two tasks. It should be brief.
    pub fn progress(mut self, tell: impl Fn(Status) + Send + Sync + 'static) -> Self {
        self.asked.progress = Some(Box::new(tell));
        self
    }

    /// For tests: delays each message between ranks and each one-sided operation by up to that
    /// time, at random, as the seed decides. The seed also decides the choice of victims. All ranks
    /// must say the same.
    ///
    /// The result of a job does not depend on it.
    pub fn delays(mut self, most: Duration, seed: u64) -> Self {
        self.asked.delays = Some((most, seed));
        self
    }

    /// As [`World::run`].
    ///
    /// # Errors
    ///
    /// As there, or if the checkpoint cannot be read.
    pub fn run<R, C, F>(
        self,
        reduction: Reduction<R, C>,
        task: F,
    ) -> Result<Option<Outcome<R>>, Error>
    where
        R: Value + Clone + Sync,
        C: Fn(&mut R, R) + Sync,
        F: Fn(T, &mut Context<'_, T, R>) + Sync,
    {
        self.world.run_closures(self.seeds, &self.asked, reduction, task)
    }
}
