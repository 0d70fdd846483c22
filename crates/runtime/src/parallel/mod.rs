//! Parallel loops and sorts.

pub(crate) mod collect;
pub(crate) mod grain;
pub(crate) mod index;
pub(crate) mod items;
#[expect(clippy::module_inception, reason = "the folder becomes a crate")]
pub(crate) mod parallel;
pub(crate) mod sort;
