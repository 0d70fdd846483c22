//! An error of the arguments, told from what goes wrong later.

use thiserror::Error;

/// Marks an error of the arguments.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Usage(pub(super) String);
