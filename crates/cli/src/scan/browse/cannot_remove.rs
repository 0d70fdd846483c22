//! Deletion is refused where a name cannot be told apart from an entry that takes its place.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use poach_scan::Control;

use super::act::Act;
use super::lines::Lines;
use super::names::Names;

/// What is to go.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) root: PathBuf,
    pub(super) names: Names,
    pub(super) twin: Option<(PathBuf, Names)>,
}

/// What is to go: never anything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) act: Act,
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) bytes: u64,
    never: Infallible,
}

/// Something in the trash: never anything.
#[derive(Debug)]
pub(super) enum Trashed {}

/// What a deletion came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) went: Vec<Names>,
    pub(super) partly: Vec<Names>,
    pub(super) trashed: Vec<Trashed>,
    pub(super) error: Option<io::Error>,
}

impl Plan {
    /// # Errors
    ///
    /// Always.
    pub(super) fn new(_: Act, targets: &[Target], _: &Control) -> io::Result<Plan> {
        let first = targets.first().map(|it| (&it.root, it.names.len(), it.twin.is_some()));
        debug_assert!(first.is_some(), "something was marked");
        Err(io::Error::other("poach cannot delete files on this system"))
    }

    pub(super) fn tell(&self, _: &mut Lines) {
        match self.never {}
    }

    pub(super) fn entries(&self) -> u64 {
        match self.never {}
    }

    pub(super) fn carry_out(self, _: &Control, _: &AtomicU64) -> Outcome {
        match self.never {}
    }
}

impl Trashed {
    pub(super) fn names(&self) -> &Names {
        match *self {}
    }

    /// # Errors
    ///
    /// Never, as nothing is there.
    pub(super) fn bring_back(&self) -> io::Result<()> {
        match *self {}
    }
}
