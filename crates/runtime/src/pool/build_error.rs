//! Why a pool could not be made.

use std::ffi::OsString;
use std::fmt;
use std::io;

use poach_deque::CapacityError;
use poach_deque::split::StackError;

use super::environment;
use crate::sleep::guests;
use poach_topology::TopologyError;

/// A pool never has more workers than this, spare ones included.
#[doc(alias = "max_num_threads")]
pub const MAX_THREADS: usize = 1024;

/// Why a pool could not be made. `Debug` prints the text of `Display`, since most programs show it
/// by an `unwrap`.
#[non_exhaustive]
pub enum BuildError {
    /// Zero threads, or, together with the spare ones, more than [`MAX_THREADS`].
    Threads(usize),
    /// Places for more [callers](crate::ThreadPoolBuilder::callers) than a pool can have.
    Callers(usize),
    /// The environment variable for the number of threads, or for the barrier, has another value
    /// than the allowed ones.
    Environment {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: OsString,
    },
    /// The name of worker `index` contains a NUL, which no thread's name can.
    Name {
        /// The worker's index, from 0.
        index: usize,
    },
    /// A worker's task stack could not be reserved.
    TaskStack(StackError),
    /// Address space is limited, and there is not enough of it, even for smaller call stacks and
    /// task stacks where the builder has not said how large they are.
    AddressSpace {
        /// The number of threads.
        threads: usize,
        /// The bytes that the last attempt asked for.
        bytes: usize,
    },
    /// There is no memory for a worker's queue of spawned tasks.
    SpawnQueue(CapacityError),
    /// The system refused to start worker `index`; those already started have ended.
    Spawn {
        /// The worker's index, from 0.
        index: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The start handler panicked on worker `index`; all have ended.
    Start {
        /// The worker's index, from 0.
        index: usize,
    },
    /// The workers were to be pinned, and the system refused.
    Pin(io::Error),
    /// The workers were to be pinned, and the machine's topology could not be read.
    Topology(TopologyError),
    /// [`Victims::Nearest`](crate::config::Victims::Nearest) was asked for, and the workers are not pinned.
    NearestUnpinned,
    /// There is a global pool already.
    GlobalExists,
    /// A handler or function that makes the global pool uses the global pool.
    GlobalWithin,
    /// The pool was to use the current thread, which is a worker of a pool already.
    CurrentThreadInPool,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Threads(threads) => {
                write!(f, "a pool of {threads} threads cannot be made: use 1 to {MAX_THREADS}, spare ones included")
            }
            BuildError::Callers(callers) => {
                write!(f, "a pool cannot have places for {callers} callers: use 0 to {}", guests::MOST_PLACES)
            }
            BuildError::Environment { variable, value } if *variable == environment::BARRIER => {
                write!(f, "{variable}={} is neither `on` nor `off`", value.to_string_lossy())
            }
            BuildError::Environment { variable, value } => {
                write!(f, "{variable}={} is not a number of threads: use 1 to {MAX_THREADS}", value.to_string_lossy())
            }
            BuildError::Name { index } => {
                write!(f, "the name of worker {index} contains a NUL: leave it out")
            }
            BuildError::TaskStack(error) => write!(f, "{error}"),
            BuildError::AddressSpace { threads, bytes } => write!(
                f,
                "the system has no {bytes} bytes of address space for a pool of {threads} threads: ask for fewer threads, or for \
                 smaller call stacks or task stacks, or raise the limit (`ulimit -v`)"
            ),
            BuildError::SpawnQueue(error) => write!(f, "{error}"),
            BuildError::Spawn { index, source } => {
                write!(f, "the system refused to start worker {index}: {source}")
            }
            BuildError::Start { index } => {
                write!(f, "the start handler panicked on worker {index}, so no pool was made")
            }
            BuildError::Pin(source) => write!(f, "the workers cannot be pinned: {source}"),
            BuildError::Topology(source) => {
                write!(f, "the workers cannot be pinned, for the machine's topology is unknown: {source}")
            }
            BuildError::NearestUnpinned => f.write_str(
                "`Victims::Nearest` needs workers that are pinned, for only then is it known where they run: \
                 pin them, or use `Victims::Random`",
            ),
            BuildError::GlobalExists => {
                f.write_str("the global pool is in use already: configure it before its first use")
            }
            BuildError::GlobalWithin => f.write_str(
                "the global pool is used by its own builder or start handler: leave that call out",
            ),
            BuildError::CurrentThreadInPool => f.write_str(
                "the current thread is a worker of a pool already: build the pool on another thread",
            ),
        }
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
            | BuildError::AddressSpace { .. }
            | BuildError::Callers(_)
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
