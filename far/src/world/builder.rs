//! How a world is to be made.

use std::marker::PhantomData;
use std::time::Duration;

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};
use poach_runtime::ThreadPool;

use super::{Error, World, launcher};
use crate::balance::{Policy, Stealing};
use crate::mpi::Link;

/// Silence after which a rank is taken for lost.
const SILENCE: Duration = Duration::from_secs(6);

/// How a [`World`] is to be made: [`World::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes no world before `init` is called"]
pub struct Builder {
    pub(super) threads: Option<usize>,
    pub(super) policy: Policy,
    pub(super) bag_limit: Option<usize>,
    pub(super) alone: bool,
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

    /// Whether a rank that found nothing leaves word with some others, and is quiet: by default
    /// yes. Otherwise it tries again after a rest.
    pub fn lifelines(mut self, yes: bool) -> Self {
        self.policy.lifelines = yes;
        self
    }

    /// Bytes of tasks that are sent at once, at most, and so of one task: by default 64 KiB.
    ///
    /// A larger task that is to be given away ends the job with
    /// [`Failure::TooLarge`](crate::Failure::TooLarge).
    pub fn parcel_bytes(mut self, bytes: usize) -> Self {
        self.policy.parcel_bytes = bytes;
        self
    }

    /// How many tasks a worker may hold: by default as many as fit into a gibibyte by their own
    /// size. What a task owns on the heap, as a `Vec` does, is not counted: say fewer if it is
    /// much.
    ///
    /// One more ends the job with [`Failure::BagFull`](crate::Failure::BagFull). Ranks take tasks
    /// only when they have none, so no rank holds more because of others.
    pub fn tasks_at_most(mut self, tasks: usize) -> Self {
        self.bag_limit = Some(tasks);
        self
    }

    /// Whether a program that no launcher has started is a world of one rank: by default it is an
    /// [error](Error::NotStarted).
    pub fn alone(mut self, yes: bool) -> Self {
        self.alone = yes;
        self
    }

    /// Initialises MPI. Collective: all ranks must call it.
    ///
    /// # Errors
    ///
    /// If MPI was not started, is not the launcher's or grants too little; if the ranks differ in
    /// their version or policy; or if the pool cannot be made.
    pub fn init(self) -> Result<World, Error> {
        if !self.alone && !launcher::started() {
            return Err(Error::NotStarted);
        }
        let initialised = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, granted) = initialised.ok_or(Error::Twice)?;
        enough(granted)?;
        let comm = universe.world().duplicate();
        if !self.alone && comm.size() == 1 {
            if let Some(ranks) = launcher::ranks().filter(|&ranks| ranks > 1) {
                return Err(Error::Apart { ranks });
            }
        }
        let nodes = nodes(&comm);
        let (rank, ranks) = (comm.rank() as usize, nodes.len());
        let mut pool = ThreadPool::builder();
        if let Some(threads) = self.threads {
            pool = pool.num_threads(threads);
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
            tell: None,
            broken: false,
            threads: 0,
            _universe: universe,
            _thread: PhantomData,
        };
        debug_assert_eq!(world.ranks(), ranks);
        let about = (env!("CARGO_PKG_VERSION"), format!("{self:?}"));
        world.agree("their version and policy", &about)?;
        let mut well = vec![0u8; ranks];
        world.link.comm().all_gather_into(&u8::from(pool.is_ok()), &mut well[..]);
        let without = well.iter().position(|&well| well == 0);
        let pool = pool?;
        if let Some(rank) = without {
            return Err(Error::Elsewhere { rank });
        }
        world.threads = pool.threads();
        world.pool = Some(pool);
        Ok(world)
    }
}

/// Whether MPI may be called by the threads of a pool, one at a time.
fn enough(granted: Threading) -> Result<(), Error> {
    if granted < Threading::Serialized { Err(Error::Threads { granted }) } else { Ok(()) }
}

/// The first rank of each rank's node.
fn nodes(comm: &SimpleCommunicator) -> Vec<usize> {
    let shared = comm.split_shared(comm.rank());
    let own = comm.rank();
    let mut least = own;
    shared.all_reduce_into(&own, &mut least, SystemOperation::min());
    let mut nodes = vec![0; comm.size() as usize];
    comm.all_gather_into(&least, &mut nodes[..]);
    nodes.into_iter().map(|node: i32| node as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_mpi_that_lets_one_thread_alone_call_it_is_refused_with_what_it_grants() {
        for granted in [Threading::Single, Threading::Funneled] {
            let message = enough(granted).unwrap_err().to_string();
            assert!(message.contains(&format!("{granted:?}")), "{message}");
            assert!(message.contains("MPI_THREAD_SERIALIZED is needed"), "{message}");
        }
        assert!(enough(Threading::Serialized).is_ok() && enough(Threading::Multiple).is_ok());
    }
}
