//! Orderings and fences of the code under test, played weaker than they are written.
//!
//! A search may play one access without its acquire or its release, or leave one fence out: the
//! source stays as it is. If the search then finds a violation, the code needed the ordering.

use core::fmt;
use std::panic::Location;

use crate::machine::{Access, Op};

/// What an access or a fence asks for beyond the access itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Demand {
    /// A load, or the load of a read-modify-write, acquires.
    Acquire,
    /// A compare-and-swap that fails acquires.
    FailureAcquire,
    /// A store, or the store of a read-modify-write, releases.
    Release,
    /// A full fence, or a process-wide barrier.
    Fence,
}

impl Demand {
    const ALL: [Demand; 4] =
        [Demand::Acquire, Demand::FailureAcquire, Demand::Release, Demand::Fence];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Demand::Acquire => "acquire",
            Demand::FailureAcquire => "failure-acquire",
            Demand::Release => "release",
            Demand::Fence => "fence",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Demand> {
        Demand::ALL.into_iter().find(|demand| demand.name() == name)
    }
}

/// One demand of the code under test that is not met.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weakening {
    /// The source file, as the compiler names it.
    pub file: String,
    /// The line, from 1, at which the access is called.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What is not met.
    pub demand: Demand,
}

impl Weakening {
    fn at(site: &Location<'_>, demand: Demand) -> Self {
        let (file, line, column) = (site.file().to_owned(), site.line(), site.column());
        Weakening { file, line, column, demand }
    }

    fn is_at(&self, site: &Location<'_>) -> bool {
        self.line == site.line() && self.column == site.column() && self.file == site.file()
    }
}

impl fmt::Display for Weakening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Weakening { file, line, column, demand } = self;
        write!(f, "{file}:{line}:{column}: {}", demand.name())
    }
}

/// How a search plays the orderings of the code under test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Orderings {
    /// As they are written.
    #[default]
    AsWritten,
    /// As they are written, and the report [lists](crate::Report::demands) them.
    Listed,
    /// One of them is not met.
    Without(Weakening),
}

pub(crate) fn demands(
    op: Op,
    access: Access,
    site: &'static Location<'static>,
) -> impl Iterator<Item = Weakening> {
    let asks = move |demand: &Demand| match (op, demand) {
        (Op::Full | Op::HeavyStart(_), demand) => *demand == Demand::Fence,
        (Op::Load(_) | Op::Change(..), Demand::Acquire) => access.acquires,
        (Op::Store(..) | Op::Change(..), Demand::Release) => access.releases,
        (Op::Change(_, change), Demand::FailureAcquire) => {
            access.fails_acquiring && change.may_fail()
        }
        _ => false,
    };
    Demand::ALL.into_iter().filter(asks).map(move |demand| Weakening::at(site, demand))
}

pub(crate) fn weakened(
    without: &Weakening,
    op: Op,
    access: Access,
    site: &'static Location<'static>,
) -> Option<Access> {
    if !without.is_at(site) {
        return Some(access);
    }
    match (op, without.demand) {
        (Op::Full | Op::HeavyStart(_) | Op::HeavyFinish, Demand::Fence) => None,
        (_, Demand::Acquire) => Some(Access { acquires: false, ..access }),
        (_, Demand::FailureAcquire) => Some(Access { fails_acquiring: false, ..access }),
        (_, Demand::Release) => Some(Access { releases: false, ..access }),
        (_, Demand::Fence) => Some(access),
    }
}
