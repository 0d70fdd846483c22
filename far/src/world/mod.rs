//! The ranks of an MPI job, and what they do together.

mod checkpoint;
mod launcher;
mod ping_pong;
mod rank;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Root as _};
use poach_runtime::{BuildError, ThreadPool};
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

use crate::bag::Bag;
use crate::balance::termination::{children, parent};
use crate::balance::{Balancer, Counters, Failure, Local, Message, Policy, Progress, Stealing};
use crate::job::{Closures, Context, Job, Reduction, Value};
use crate::mpi::Link;
use crate::ordered::Ordered;
use crate::transport::Transport as _;
use rank::{Checkpoint, Rank};

/// Silence after which a rank is taken for lost.
const SILENCE: Duration = Duration::from_secs(6);

/// Why there is no result, or no world.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program was not started by an MPI launcher.
    #[error(
        "MPI was not started: run it as `mpirun -n RANKS PROGRAM ..`, or with `srun` under Slurm"
    )]
    NotStarted,
    /// There is a world already, or there was one.
    #[error("MPI is initialised once a process: a World was made before")]
    Twice,
    /// MPI lets one thread alone call it.
    #[error("this MPI grants the threads level {granted:?}, and MPI_THREAD_SERIALIZED is needed")]
    Threads {
        /// What it grants.
        granted: Threading,
    },
    /// The pool cannot be made.
    #[error("rank {rank}: the pool cannot be made: {error}")]
    Pool {
        /// Where.
        rank: usize,
        /// Why.
        #[source]
        error: BuildError,
    },
    /// Ranks do not agree.
    #[error("the ranks do not agree on {what}: rank {rank} differs from rank 0")]
    Disagree {
        /// On what.
        what: String,
        /// The first that differs.
        rank: usize,
    },
    /// There is no window for one-sided stealing.
    #[error("{0}; choose Stealing::Messages, which needs none")]
    Window(String),
    /// A checkpoint cannot be read.
    #[error("{0:#}")]
    Checkpoint(anyhow::Error),
    /// The job failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// How a [`World`] is to be made: [`World::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes no world before `init` is called"]
pub struct Builder {
    threads: Option<usize>,
    policy: Policy,
    bag_limit: Option<usize>,
    alone: bool,
}

impl Builder {
    /// How many workers each rank has: by default as many as the system says run in parallel in it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How ranks steal: by default by messages.
    pub fn stealing(mut self, stealing: Stealing) -> Self {
        self.policy.stealing = stealing;
        self
    }

    /// Whether a rank that found nothing leaves word with some others, and is quiet: by default yes. Otherwise it tries again after a rest.
    pub fn lifelines(mut self, yes: bool) -> Self {
        self.policy.lifelines = yes;
        self
    }

    /// Bytes of tasks that are sent at once, at most, and so of one task: by default 64 KiB.
    ///
    /// A larger task that is to be given away ends the job with [`Failure::TooLarge`].
    pub fn parcel_bytes(mut self, bytes: usize) -> Self {
        self.policy.parcel_bytes = bytes;
        self
    }

    /// How many tasks a worker may hold: by default as many as fit into a gibibyte.
    ///
    /// One more ends the job with [`Failure::BagFull`]. Ranks take tasks only when they have none, so no rank
    /// holds more because of others.
    pub fn tasks_at_most(mut self, tasks: usize) -> Self {
        self.bag_limit = Some(tasks);
        self
    }

    /// Whether a program that no launcher has started is a world of one rank: by default it is an [error](Error::NotStarted).
    pub fn alone(mut self, yes: bool) -> Self {
        self.alone = yes;
        self
    }

    /// Initialises MPI. Collective: all ranks must call it.
    ///
    /// # Errors
    ///
    /// If MPI was not started or grants too little, if the ranks differ in their version or policy, or if the pool cannot be made.
    pub fn init(self) -> Result<World, Error> {
        if !self.alone && !launcher::started() {
            return Err(Error::NotStarted);
        }
        let initialised = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, granted) = initialised.ok_or(Error::Twice)?;
        if granted < Threading::Serialized {
            return Err(Error::Threads { granted });
        }
        let comm = universe.world().duplicate();
        let nodes = nodes(&comm);
        let (rank, ranks) = (comm.rank() as usize, nodes.len());
        let mut pool = ThreadPool::builder();
        if let Some(threads) = self.threads {
            pool = pool.threads(threads);
        }
        let pool = pool.build().map_err(|error| Error::Pool { rank, error });
        let mut policy = self.policy.clone();
        policy.silence = Some(SILENCE.as_nanos() as u64);
        policy.seed ^= 0x706f_6163_6820_6661;
        let link = Link::new(comm);
        let mut world = World {
            link,
            pool: None,
            nodes,
            policy,
            bag_limit: self.bag_limit,
            broken: false,
            threads: 0,
            _universe: universe,
        };
        debug_assert_eq!(world.ranks(), ranks);
        let about = (env!("CARGO_PKG_VERSION"), format!("{self:?}"));
        world.agree("their version and policy", &about)?;
        let pool = pool?;
        world.threads = pool.threads();
        world.pool = Some(pool);
        Ok(world)
    }
}

/// The first rank of each rank's node.
fn nodes(comm: &SimpleCommunicator) -> Vec<usize> {
    let shared = comm.split_shared(comm.rank());
    let own = comm.rank();
    let mut least = own;
    shared.all_reduce_into(&own, &mut least, mpi::collective::SystemOperation::min());
    let mut nodes = vec![0; comm.size() as usize];
    comm.all_gather_into(&least, &mut nodes[..]);
    nodes.into_iter().map(|node: i32| node as usize).collect()
}

/// The ranks of an MPI job. One a process; its drop finalises MPI, and waits for all ranks.
///
/// All methods that say so are collective: each rank calls them, in the same order.
pub struct World {
    link: Link,
    pool: Option<ThreadPool>,
    nodes: Vec<usize>,
    policy: Policy,
    bag_limit: Option<usize>,
    /// A job has failed: the ranks can no longer be brought to agree on anything.
    broken: bool,
    threads: usize,
    /// Finalises MPI when it is dropped: after `link`, whose communicator is freed before.
    _universe: Universe,
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

    /// A job, to be run: a task of it is a value of your own type.
    ///
    /// `seeds` are the tasks that this rank begins with. Collective, as are the methods that run it.
    pub fn job<T: Value>(&mut self, seeds: impl IntoIterator<Item = T>) -> JobBuilder<'_, T> {
        JobBuilder { world: self, seeds: seeds.into_iter().collect(), checkpoint: None }
    }

    /// Runs tasks that make tasks, until none is left on any rank. Collective.
    ///
    /// `seeds` are the tasks that this rank begins with. The outcome is at rank 0; the others get `None`, at the same time.
    ///
    /// # Errors
    ///
    /// On every rank that is left, if a task panics, a rank is lost, or a [limit](Builder) is met. The world is of no more use then.
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

    fn run_job<J: Job>(
        &mut self,
        job: &J,
        seeds: Bag<J::Task>,
        checkpoint: Option<&(PathBuf, Duration, String)>,
    ) -> Result<Option<Outcome<J::Result>>, Error> {
        let (rank, ranks, threads) = (self.rank(), self.ranks(), self.threads);
        let (mut seeds, mut result) = (seeds, None);
        if let Some((path, _, about)) = checkpoint {
            let read = if rank == 0 { checkpoint::read::<J>(path, about) } else { Ok(None) };
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
                    result = Some(sum);
                }
                Err(error) => return Err(Error::Checkpoint(error)),
                Ok(None) if code == 2 => {
                    return Err(Error::Checkpoint(anyhow::anyhow!(
                        "rank 0 cannot read the checkpoint"
                    )));
                }
                Ok(None) => {}
            }
        }
        let each = size_of::<J::Task>().max(1);
        let bag_limit = self.bag_limit.unwrap_or_else(|| ((1 << 30) / each).max(1 << 10));
        self.link.begin(self.policy.stealing, self.policy.parcel_bytes).map_err(Error::Window)?;
        let began = Instant::now();
        let balancer = Balancer::new(self.policy.clone(), rank, &self.nodes);
        let checkpoint =
            checkpoint.map(|(path, every, about)| Checkpoint { path, every: *every, about });
        let pool = self.pool.as_ref().expect("a world that was made has a pool");
        let at_work =
            Rank::new(job, &mut self.link, balancer, (rank, threads), bag_limit, checkpoint);
        let (result, mut balancer, tasks) = at_work.work(pool, seeds, result);
        let outcome = self.gather(job, &mut balancer, result, tasks, ranks);
        match outcome {
            Ok(result) => {
                self.link.end();
                Ok(result.map(|(result, ranks)| Outcome {
                    result,
                    elapsed: began.elapsed(),
                    ranks: ranks.into_values().collect(),
                }))
            }
            Err(failure) => {
                self.broken = true;
                Err(failure.into())
            }
        }
    }

    /// Brings the results to rank 0, up the tree of ranks.
    #[expect(clippy::type_complexity, reason = "a result, and what each rank has done")]
    fn gather<J: Job>(
        &mut self,
        job: &J,
        balancer: &mut Balancer,
        result: Option<J::Result>,
        tasks: u64,
        ranks: usize,
    ) -> Result<Option<(J::Result, BTreeMap<usize, RankStats>)>, Failure> {
        let rank = self.rank();
        let stats = RankStats { tasks, balance: balancer.counters() };
        let mut all = BTreeMap::from([(rank, stats)]);
        let mut result = result.unwrap_or_else(|| job.identity());
        let mut missing = children(rank, ranks).count();
        let mut sent = false;
        let mut idle = 0;
        loop {
            if missing == 0 && !sent {
                sent = true;
                match parent(rank) {
                    None => {
                        self.send_down(&Message::Final);
                        return Ok(Some((result, all)));
                    }
                    Some(parent) => {
                        let bytes = postcard::to_allocvec(&(&result, &all)).map_err(|error| {
                            Failure::Other {
                                rank,
                                message: format!("cannot encode a result: {error}"),
                            }
                        })?;
                        self.link.send(parent, Message::Result(bytes));
                    }
                }
            }
            balancer.poll(&mut self.link, &mut Nobody);
            if let Some(message) = self.link.error.clone() {
                balancer.fail(&mut self.link, Failure::Other { rank, message });
            }
            if let Progress::Failed(failure) = balancer.progress() {
                return Err(failure.clone());
            }
            while let Some((from, message)) = balancer.results.pop_front() {
                idle = 0;
                let Message::Result(bytes) = message else {
                    self.send_down(&Message::Final);
                    return Ok(None);
                };
                let (theirs, stats): (J::Result, BTreeMap<usize, RankStats>) =
                    postcard::from_bytes(&bytes).map_err(|error| {
                        let message = error.to_string();
                        Failure::Unreadable { rank, from, message }
                    })?;
                job.combine(&mut result, theirs);
                all.extend(stats);
                missing -= 1;
            }
            rank::rest(&mut idle);
        }
    }

    fn send_down(&mut self, message: &Message) {
        for child in children(self.rank(), self.ranks()) {
            self.link.send(child, message.clone());
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
            // Nobody knows which ranks still answer, so there is no orderly end.
            self.abort(1);
        }
        self.link.drain();
    }
}

/// A rank whose job is over.
struct Nobody;

impl Local for Nobody {
    fn is_idle(&self) -> bool {
        false
    }

    fn is_still(&self) -> bool {
        false
    }

    fn give(&mut self, _: usize, _: usize) -> Result<crate::balance::Given, Failure> {
        Ok(crate::balance::Given::Nothing)
    }

    fn take(&mut self, _: usize, _: &crate::balance::Parcel) -> Result<(), Failure> {
        Ok(())
    }

    fn pause(&mut self, _: bool) {}

    fn save(&mut self) -> Result<Vec<u8>, Failure> {
        Ok(Vec::new())
    }

    fn commit(&mut self, _: Vec<Vec<u8>>) -> Result<(), Failure> {
        Ok(())
    }
}

/// A job that is about to be run: [`World::job`].
#[must_use = "a job does nothing before it is run"]
pub struct JobBuilder<'w, T> {
    world: &'w mut World,
    seeds: Bag<T>,
    checkpoint: Option<(PathBuf, Duration, String)>,
}

impl<T> fmt::Debug for JobBuilder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobBuilder").field("seeds", &self.seeds.len()).finish_non_exhaustive()
    }
}

impl<T: Value> JobBuilder<'_, T> {
    /// With a checkpoint in a file, so often. If the file is there when the job begins, it goes on from it, and the seeds
    /// are not used. `about` says what job it is: a checkpoint of another is refused.
    ///
    /// Rank 0 alone reads and writes the file. It stays when the job is over. Each task counts once: what was done after the last
    /// checkpoint is forgotten, and done again.
    pub fn checkpoint(mut self, file: impl Into<PathBuf>, every: Duration, about: &str) -> Self {
        self.checkpoint = Some((file.into(), every, about.to_owned()));
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
        let job = Closures { reduction, task, kind: PhantomData::<fn(T)> };
        self.world.run_job(&job, self.seeds, self.checkpoint.as_ref())
    }

    /// Runs the job, and returns what its tasks have emitted in the order of a sequential program: what a task
    /// [emits](Ordered::emit), and then what the tasks that it [pushed](Ordered::push) do, the first of them first. So a reduction
    /// of it need not be commutative.
    ///
    /// A value takes the path of its task beside it, four bytes a level, until the end.
    ///
    /// # Errors
    ///
    /// As [`run`](JobBuilder::run).
    pub fn run_ordered<V, F>(self, task: F) -> Result<Option<Outcome<Vec<V>>>, Error>
    where
        V: Value + Clone + Sync,
        F: Fn(T, &mut Ordered<'_, '_, T, V>) + Sync,
    {
        crate::ordered::run(self.world, self.seeds, self.checkpoint.as_ref(), task)
    }
}

impl World {
    pub(crate) fn run_closures<T, R, C, F>(
        &mut self,
        seeds: Bag<T>,
        checkpoint: Option<&(PathBuf, Duration, String)>,
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
        self.run_job(&job, seeds, checkpoint)
    }
}
