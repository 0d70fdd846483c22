//! The ranks of an MPI job, and what they do together.

mod builder;
mod checkpoint;
mod error;
mod gather;
mod job_builder;
mod launcher;
mod ping_pong;
mod rank;
mod supervise;

use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};
use poach_runtime::ThreadPool;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::bag::Bag;
use crate::balance::{Balancer, Counters, Policy, Stealing};
use crate::job::{Closures, Context, Job, Reduction, Value};
use crate::message::Failure;
use crate::mpi::{Link, Windowless};
use crate::transport::Transport as _;
use checkpoint::Checkpoint;
use rank::{Limits, Rank};

pub use builder::Builder;
pub use error::Error;
pub(crate) use job_builder::Asked;
use job_builder::Tell;
pub use job_builder::{JobBuilder, Status};
pub(crate) use rank::Nested;
pub use supervise::{Ended, Lost, Role, supervise};

/// The ranks of an MPI job. One a process; its drop finalises MPI, and waits for all ranks. It
/// stays on the thread that has made it.
///
/// All methods that say so are collective: each rank calls them, in the same order.
pub struct World {
    link: Link,
    pool: Option<ThreadPool>,
    nodes: Vec<usize>,
    policy: Policy,
    bag_limit: Option<usize>,
    /// What rank 0 calls for a job that asks for nothing else.
    tell: Option<Tell>,
    /// A job has failed: the ranks can no longer be brought to agree on anything.
    broken: bool,
    threads: usize,
    /// Finalises MPI when it is dropped: after `link`, whose communicator is freed before.
    _universe: Universe,
    /// Not `Send`: MPI is finalised by the thread that has initialised it. Not `Sync`: one thread
    /// at a time may call MPI, which [`abort`](World::abort) does by `&self`.
    _thread: PhantomData<*const ()>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("rank", &self.rank())
            .field("ranks", &self.ranks())
            .finish_non_exhaustive()
    }
}

/// What a job came to, at rank 0.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// What the tasks have found, together.
    pub result: R,
    /// From the begin of the job to the end of its last task, and of its last message.
    pub elapsed: Duration,
    /// What each rank has done.
    pub ranks: Vec<RankStats>,
}

impl<R> Outcome<R> {
    /// Adds the time of another job of the same ranks, and the counts of what they did for it.
    pub fn add(&mut self, elapsed: Duration, ranks: &[RankStats]) {
        self.elapsed += elapsed;
        for (own, more) in self.ranks.iter_mut().zip(ranks) {
            own.tasks += more.tasks;
            own.balance.add(&more.balance);
        }
    }
}

/// What a rank has done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct RankStats {
    /// Tasks that it has run.
    pub tasks: u64,
    /// What it has done for the balance.
    pub balance: Counters,
}

impl World {
    /// The world with the defaults of [`World::builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::init`].
    pub fn init() -> Result<World, Error> {
        World::builder().init()
    }

    /// To say how the world is to be.
    pub fn builder() -> Builder {
        Builder { threads: None, policy: Policy::default(), bag_limit: None, alone: false }
    }

    /// This rank, counted from 0.
    pub fn rank(&self) -> usize {
        self.link.rank()
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes they are on.
    pub fn nodes(&self) -> usize {
        let firsts = self.nodes.iter().enumerate().filter(|(rank, node)| rank == *node);
        firsts.count()
    }

    /// How many workers this rank has.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// What threads MPI has granted.
    pub fn threads_granted(&self) -> Threading {
        mpi::environment::threading_support()
    }

    /// Checks that all ranks have the same value of something. Collective.
    ///
    /// # Errors
    ///
    /// [`Error::Disagree`], on every rank, if they have not.
    ///
    /// # Panics
    ///
    /// If the value cannot be encoded.
    pub fn agree<T: Serialize>(&mut self, what: &str, value: &T) -> Result<(), Error> {
        let bytes = postcard::to_allocvec(value).expect("what ranks agree on can be encoded");
        let digest: [u8; 20] = Sha1::digest(&bytes).into();
        let mut all = vec![0u8; 20 * self.ranks()];
        self.link.comm().all_gather_into(&digest[..], &mut all[..]);
        let (first, rest) = all.split_at(20);
        match rest.chunks(20).position(|other| other != first) {
            Some(at) => Err(Error::Disagree { what: what.to_owned(), rank: at + 1 }),
            None => Ok(()),
        }
    }

    /// Rank 0's value, on all ranks. Collective.
    ///
    /// # Errors
    ///
    /// If it cannot be encoded, or decoded; and if it takes more than 2 GiB.
    pub fn tell<T: Value>(&mut self, value: T) -> Result<T, Error> {
        let rank = self.rank();
        let wrong = |message: String| Failure::Other { rank, message };
        if self.ranks() == 1 {
            return Ok(value);
        }
        let mut bytes = Vec::new();
        if rank == 0 {
            // Empty if it cannot be encoded, which no value with anything in it is otherwise; a
            // unit is told by one byte.
            bytes = postcard::to_allocvec(&(0u8, &value)).unwrap_or_default();
        }
        let root = self.link.comm().process_at_rank(0);
        let mut length = bytes.len() as u64;
        root.broadcast_into(&mut length);
        if length == 0 || length > i32::MAX as u64 {
            return Err(wrong(format!("rank 0 cannot tell a value of {length} bytes")).into());
        }
        bytes.resize(length as usize, 0);
        root.broadcast_into(&mut bytes[..]);
        let told: Result<(u8, T), _> = postcard::from_bytes(&bytes);
        told.map(|(_, value)| value).map_err(|error| wrong(error.to_string()).into())
    }

    /// For all jobs of this world, those of [`divide`](World::divide) and [`call`](World::call)
    /// too: as [`JobBuilder::progress`], which comes before it.
    pub fn progress(&mut self, tell: impl Fn(Status) + Send + Sync + 'static) {
        self.tell = Some(Box::new(tell));
    }

    /// A job, to be run: a task of it is a value of your own type.
    ///
    /// `seeds` are the tasks that this rank begins with. Collective, as are the methods that run
    /// it.
    pub fn job<T: Value>(&mut self, seeds: impl IntoIterator<Item = T>) -> JobBuilder<'_, T> {
        JobBuilder::new(self, seeds.into_iter().collect())
    }

    /// Runs tasks that make tasks, until none is left on any rank. Collective.
    ///
    /// `seeds` are the tasks that this rank begins with. The outcome is at rank 0; the others get
    /// `None`, at the same time.
    ///
    /// # Errors
    ///
    /// On every rank that is left, if a task panics, a rank is lost, or a [limit](Builder) is met.
    /// The world is of no more use then.
    pub fn run<T, R, C, F>(
        &mut self,
        seeds: impl IntoIterator<Item = T>,
        reduction: Reduction<R, C>,
        task: F,
    ) -> Result<Option<Outcome<R>>, Error>
    where
        T: Value,
        R: Value + Clone + Sync,
        C: Fn(&mut R, R) + Sync,
        F: Fn(T, &mut Context<'_, T, R>) + Sync,
    {
        self.job(seeds).run(reduction, task)
    }

    pub(crate) fn run_closures<T, R, C, F>(
        &mut self,
        seeds: Bag<T>,
        asked: &Asked,
        reduction: Reduction<R, C>,
        task: F,
    ) -> Result<Option<Outcome<R>>, Error>
    where
        T: Value,
        R: Value + Clone + Sync,
        C: Fn(&mut R, R) + Sync,
        F: Fn(T, &mut Context<'_, T, R>) + Sync,
    {
        let job = Closures { reduction, task, kind: PhantomData::<fn(T)> };
        self.run_job(&job, seeds, asked)
    }

    pub(crate) fn run_job<J: Job>(
        &mut self,
        job: &J,
        seeds: Bag<J::Task>,
        asked: &Asked,
    ) -> Result<Option<Outcome<J::Result>>, Error> {
        let (rank, ranks, threads) = (self.rank(), self.ranks(), self.threads);
        let (seeds, result) = self.restore(job, seeds, asked)?;
        let each = size_of::<J::Task>().max(1);
        let bag_limit = self.bag_limit.unwrap_or_else(|| ((1 << 30) / each).max(1 << 10));
        self.begin(self.policy.stealing, self.policy.parcel_bytes)?;
        let began = Instant::now();
        let (delay, seed) = asked.delays.unwrap_or_default();
        self.link.delay(delay, seed);
        let policy = Policy { seed: self.policy.seed ^ seed, ..self.policy.clone() };
        let balancer = Balancer::new(policy, rank, &self.nodes);
        let checkpoint = asked.checkpoint.as_ref().map(|(path, every, about)| Checkpoint {
            path,
            every: *every,
            about,
        });
        let pool = self.pool.as_ref().expect("a world that was made has a pool");
        let limits = Limits { bag: bag_limit, parcel: self.policy.parcel_bytes };
        let at_work = Rank::new(job, &mut self.link, balancer, (rank, threads), limits, checkpoint)
            .progress(asked.progress.as_deref().or(self.tell.as_deref()));
        let (result, mut balancer, tasks) = at_work.work(pool, seeds, result);
        let outcome = self.gather(job, &mut balancer, result, tasks, ranks);
        match outcome {
            Ok(result) => Ok(result.map(|(result, ranks)| Outcome {
                result,
                elapsed: began.elapsed(),
                ranks: ranks.into_values().collect(),
            })),
            Err(failure) => Err(self.broke(failure)),
        }
    }

    /// A job has failed.
    pub(crate) fn broke(&mut self, failure: Failure) -> Error {
        self.broken = true;
        failure.into()
    }

    /// Waits for all ranks, each of which has a window then, if they are wanted.
    fn begin(&mut self, stealing: Stealing, parcel_bytes: usize) -> Result<(), Error> {
        self.link.begin(stealing, parcel_bytes).map_err(|Windowless { rank, message, alone }| {
            self.broken |= alone;
            Error::Window { rank, message }
        })
    }

    /// What a job begins with: its seeds, or what a checkpoint holds. Collective, if there may be
    /// one.
    #[expect(clippy::type_complexity, reason = "tasks, and what was found")]
    fn restore<J: Job>(
        &mut self,
        job: &J,
        mut seeds: Bag<J::Task>,
        asked: &Asked,
    ) -> Result<(Bag<J::Task>, Option<J::Result>), Error> {
        let Some((path, _, about)) = &asked.checkpoint else { return Ok((seeds, None)) };
        let read = if self.rank() == 0 { checkpoint::read::<J>(path, about) } else { Ok(None) };
        // All ranks learn whether rank 0 goes on from it: 0, begins: 1, or cannot: 2.
        let mut code = match &read {
            Ok(Some(_)) => 0u8,
            Ok(None) => 1,
            Err(_) => 2,
        };
        self.link.comm().process_at_rank(0).broadcast_into(&mut code);
        if code != 1 {
            seeds = Bag::default();
        }
        match read {
            Ok(Some(parts)) => {
                let mut sum = job.identity();
                for part in parts {
                    job.combine(&mut sum, part.result);
                    seeds.append(part.tasks.into_iter().collect());
                }
                Ok((seeds, Some(sum)))
            }
            Err(error) => Err(Error::Checkpoint(error)),
            Ok(None) if code == 2 => {
                Err(Error::Checkpoint(anyhow::anyhow!("rank 0 cannot read the checkpoint")))
            }
            Ok(None) => Ok((seeds, None)),
        }
    }

    /// Ends the program on all ranks at once, with an exit code.
    pub fn abort(&self, code: i32) -> ! {
        self.link.comm().abort(code)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.broken {
            // It is not known which ranks still answer, so there is no orderly end.
            self.abort(1);
        }
        self.link.drain();
        self.link.free();
    }
}
