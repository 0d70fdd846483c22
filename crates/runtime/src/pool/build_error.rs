//! Why a pool could not be made.

use std::ffi::OsString;
use std::fmt;
use std::io;

use poach_deque::CapacityError;
use poach_deque::split::StackError;

use crate::topology::TopologyError;

/// A pool never has more workers than this.
pub const MAX_THREADS: usize = 1024;

/// Why a pool could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// No thread, or with the spare ones more than [`MAX_THREADS`].
    Threads(usize),
    /// The environment variable that says how many threads has something else in it.
    Environment {
        /// Its name.
        variable: &'static str,
        /// What it has.
        value: OsString,
    },
    /// The name of worker `index` has a NUL in it, which no thread's name may have.
    Name {
        /// Which worker, from 0.
        index: usize,
    },
    /// A worker's task stack could not be reserved.
    TaskStack(StackError),
    /// There is no memory for a worker's queue of spawned tasks.
    SpawnQueue(CapacityError),
    /// The system refused to start worker `index`; those already started have ended.
    Spawn {
        /// Which worker, from 0.
        index: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The start handler panicked on worker `index`; all have ended.
    Start {
        /// Which worker, from 0.
        index: usize,
    },
    /// The workers were to be pinned, and this cannot be done.
    Pin(io::Error),
    /// The workers were to be pinned, and where cannot be found out.
    Topology(TopologyError),
    /// The nearest victims were to come first, and the workers are not pinned.
    NearestUnpinned,
    /// The global pool is there already.
    GlobalExists,
    /// What makes the global pool asks for the global pool.
    GlobalWithin,
    /// The pool was to use the current thread, which is a worker of a pool already.
    CurrentThreadInPool,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Threads(threads) => {
                write!(f, "a pool of {threads} threads cannot be made: use 1 to {MAX_THREADS}")
            }
            BuildError::Environment { variable, value } => {
                write!(f, "{variable}={} is no number of threads: use 1 to {MAX_THREADS}", value.display())
            }
            BuildError::Name { index } => {
                write!(f, "the name of worker {index} has a NUL in it: leave it out")
            }
            BuildError::TaskStack(error) => write!(f, "{error}"),
            BuildError::SpawnQueue(error) => write!(f, "{error}"),
            BuildError::Spawn { index, source } => {
                write!(f, "the system refused to start worker {index}: {source}")
            }
            BuildError::Start { index } => {
                write!(f, "the start handler panicked on worker {index}, which so has nothing that it would have made")
            }
            BuildError::Pin(source) => write!(f, "the workers cannot be pinned: {source}"),
            BuildError::Topology(source) => {
                write!(f, "where to pin the workers cannot be found out: {source}")
            }
            BuildError::NearestUnpinned => f.write_str(
                "the nearest victims cannot come first while workers are not pinned, since nobody \
                 knows where they are: pin them, or take victims at random",
            ),
            BuildError::GlobalExists => {
                f.write_str("the global pool is in use already: configure it before its first use")
            }
            BuildError::GlobalWithin => f.write_str(
                "the global pool is asked for by what makes it: leave that out of its builder",
            ),
            BuildError::CurrentThreadInPool => f.write_str(
                "the current thread is a worker of a pool already: build the pool on another thread",
            ),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Spawn { source, .. } | BuildError::Pin(source) => Some(source),
            BuildError::TaskStack(error) => Some(error),
            BuildError::Topology(error) => Some(error),
            BuildError::SpawnQueue(error) => Some(error),
            BuildError::Threads(_)
            | BuildError::Environment { .. }
            | BuildError::Name { .. }
            | BuildError::Start { .. }
            | BuildError::GlobalExists
            | BuildError::GlobalWithin
            | BuildError::CurrentThreadInPool
            | BuildError::NearestUnpinned => None,
        }
    }
}
