//! Deleting where names cannot be told apart from what takes their place: it is refused.

use std::io;
use std::path::Path;

/// What is to go: never anything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) bytes: u64,
}

/// What a deletion came to.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) gone: u64,
    pub(super) error: Option<io::Error>,
}

impl Plan {
    /// # Errors
    ///
    /// Always.
    pub(super) fn new(_: &Path, _: &[&[u8]]) -> io::Result<Plan> {
        Err(io::Error::other("on this system nothing is deleted from here"))
    }

    pub(super) fn carry_out(self) -> Outcome {
        Outcome { gone: 0, error: None }
    }
}
