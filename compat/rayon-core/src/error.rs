//! Why a pool cannot be made.

use std::error::Error;
use std::fmt;
use std::io;

use poach_runtime::BuildError;

/// Why a pool cannot be made.
#[derive(Debug)]
pub struct ThreadPoolBuildError(Kind);

#[derive(Debug)]
enum Kind {
    GlobalExists,
    CurrentThreadInPool,
    /// The system refused a thread, or memory.
    System(io::Error),
}

impl From<BuildError> for ThreadPoolBuildError {
    fn from(error: BuildError) -> ThreadPoolBuildError {
        ThreadPoolBuildError(match error {
            BuildError::GlobalExists => Kind::GlobalExists,
            BuildError::CurrentThreadInPool => Kind::CurrentThreadInPool,
            BuildError::Spawn { source, .. } => Kind::System(source),
            other => Kind::System(io::Error::other(other)),
        })
    }
}

impl From<io::Error> for ThreadPoolBuildError {
    fn from(error: io::Error) -> ThreadPoolBuildError {
        ThreadPoolBuildError(Kind::System(error))
    }
}

impl ThreadPoolBuildError {
    pub(crate) fn is_global_there(&self) -> bool {
        matches!(self.0, Kind::GlobalExists)
    }

    /// Whether the system has no threads.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(&self.0, Kind::System(error) if error.kind() == io::ErrorKind::Unsupported)
    }
}

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Programs compare the first two with those of the original.
        match &self.0 {
            Kind::GlobalExists => {
                f.write_str("The global thread pool has already been initialized.")
            }
            Kind::CurrentThreadInPool => {
                f.write_str("The current thread is already part of another thread pool.")
            }
            Kind::System(error) => error.fmt(f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::GlobalExists | Kind::CurrentThreadInPool => None,
            Kind::System(error) => Some(error),
        }
    }
}
