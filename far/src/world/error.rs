//! Why there is no result, or no world.

use mpi::Threading;
use poach_runtime::BuildError;

use crate::message::Failure;

/// Why there is no result, or no world.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program was not started by an MPI launcher.
    #[error(
        "MPI was not started: run it as `mpirun -n RANKS PROGRAM ..`, or with `srun` under Slurm"
    )]
    NotStarted,
    /// The launcher has started several ranks, and MPI finds each of them alone. The program's MPI
    /// is not the launcher's; each rank would be a job of its own.
    #[error(
        "the launcher has started {ranks} ranks, and MPI finds this one alone: the program is built with another MPI than the launcher's; \
         under Slurm choose with `srun --mpi=pmi2` for MPICH, or `--mpi=pmix` for Open MPI"
    )]
    Apart {
        /// How many there are, as the launcher says.
        ranks: usize,
    },
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
    /// Another rank has no pool.
    #[error("rank {rank} has no pool, and says why")]
    Elsewhere {
        /// The first of them.
        rank: usize,
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
    #[error("rank {rank}: {message}; choose Stealing::Messages, which needs none")]
    Window {
        /// A rank that has none.
        rank: usize,
        /// Why, at that rank.
        message: String,
    },
    /// A checkpoint cannot be read.
    #[error("{0:#}")]
    Checkpoint(anyhow::Error),
    /// The job failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}
