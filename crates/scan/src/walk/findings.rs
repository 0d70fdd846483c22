//! What a worker finds, and has to itself until the walk is over.

use std::io;

use super::family::Task;
use crate::Totals;
use crate::sys::Sys;
use crate::tree::{Alias, Arena, HardLink, Id};

/// Something that could not be read.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) entry: Id,
    pub(crate) parent: Id,
    pub(crate) doing: &'static str,
    pub(crate) error: io::Error,
}

/// What one worker has found.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) arena: Arena,
    pub(crate) links: Vec<HardLink>,
    pub(crate) aliases: Vec<Alias>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) totals: Totals,
    /// The listing of each root that this worker visited.
    pub(crate) listings: Vec<(usize, Id)>,
    pub(crate) interrupted: bool,
}

impl Findings {
    pub(crate) fn new(arena: u16, keep_facts: bool) -> Findings {
        Findings {
            arena: Arena::new(arena, keep_facts),
            links: Vec::new(),
            aliases: Vec::new(),
            failures: Vec::new(),
            totals: Totals::default(),
            listings: Vec::new(),
            interrupted: false,
        }
    }

    #[cold]
    pub(super) fn fail<S: Sys>(
        &mut self,
        task: &Task<'_, S>,
        doing: &'static str,
        error: io::Error,
    ) {
        let (entry, parent) = (task.entry(), task.parent());
        self.failures.push(Failure { entry, parent, doing, error });
    }
}
