//! Why a pool cannot be made.

use std::error::Error;
use std::fmt;
use std::io;

use poach_runtime::BuildError;

/// Why a pool cannot be made.
// The names are those that the original's `Debug` prints: an `unwrap` shows them, so most programs
// that fail here do.
#[derive(Debug)]
pub struct ThreadPoolBuildError {
    kind: ErrorKind,
}

#[derive(Debug)]
enum ErrorKind {
    GlobalPoolAlreadyInitialized,
    CurrentThreadAlreadyInPool,
    /// The system refused a thread, or memory.
    IOError(io::Error),
}

impl From<BuildError> for ThreadPoolBuildError {
    fn from(error: BuildError) -> ThreadPoolBuildError {
        let kind = match error {
            BuildError::GlobalExists => ErrorKind::GlobalPoolAlreadyInitialized,
            BuildError::CurrentThreadInPool => ErrorKind::CurrentThreadAlreadyInPool,
            BuildError::Spawn { source, .. } => ErrorKind::IOError(source),
            other => ErrorKind::IOError(io::Error::other(other)),
        };
        ThreadPoolBuildError { kind }
    }
}

impl From<io::Error> for ThreadPoolBuildError {
    fn from(error: io::Error) -> ThreadPoolBuildError {
        ThreadPoolBuildError { kind: ErrorKind::IOError(error) }
    }
}

impl ThreadPoolBuildError {
    pub(crate) fn is_global_there(&self) -> bool {
        matches!(self.kind, ErrorKind::GlobalPoolAlreadyInitialized)
    }

    /// Whether the system has no threads.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(&self.kind, ErrorKind::IOError(error) if error.kind() == io::ErrorKind::Unsupported)
    }
}

// The original's words, which programs may compare.
const GLOBAL_EXISTS: &str = "The global thread pool has already been initialized.";
const CURRENT_THREAD_IN_POOL: &str = "The current thread is already part of another thread pool.";

impl fmt::Display for ThreadPoolBuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized => GLOBAL_EXISTS.fmt(f),
            ErrorKind::CurrentThreadAlreadyInPool => CURRENT_THREAD_IN_POOL.fmt(f),
            ErrorKind::IOError(error) => error.fmt(f),
        }
    }
}

impl Error for ThreadPoolBuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized | ErrorKind::CurrentThreadAlreadyInPool => None,
            ErrorKind::IOError(error) => Some(error),
        }
    }

    #[expect(deprecated, reason = "old programs ask for it")]
    fn description(&self) -> &str {
        match &self.kind {
            ErrorKind::GlobalPoolAlreadyInitialized => GLOBAL_EXISTS,
            ErrorKind::CurrentThreadAlreadyInPool => CURRENT_THREAD_IN_POOL,
            ErrorKind::IOError(error) => error.description(),
        }
    }
}
