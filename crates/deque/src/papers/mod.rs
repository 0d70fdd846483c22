//! The deques of the papers, a file or folder each.

pub mod bwos;
pub mod chase_lev;
pub mod idempotent;
pub(crate) mod lap;
pub mod mult;
pub(crate) mod owner_line;
pub mod private;
pub mod split;
pub mod the;
pub mod thep;
