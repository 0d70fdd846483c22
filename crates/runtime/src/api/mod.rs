//! What users call: the crate's functions, and the types that they take and give.

pub(crate) mod blocking;
pub(crate) mod broadcast;
pub(crate) mod cancel;
pub(crate) mod collect;
pub(crate) mod context;
pub(crate) mod grain;
pub(crate) mod handle;
pub(crate) mod index;
pub(crate) mod interrupt;
pub(crate) mod items;
pub(crate) mod join;
pub(crate) mod parallel;
pub(crate) mod scope;
pub(crate) mod sort;
pub(crate) mod spawn;
