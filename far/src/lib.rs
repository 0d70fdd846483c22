//! Poach past one machine: the ranks of an MPI job steal work from each other.

pub mod bag;
pub mod balance;
mod call;
#[cfg(doctest)]
mod compile_fail;
mod divide;
mod job;
mod message;
mod mpi;
mod ordered;
pub mod simulate;
pub mod transport;
mod world;

pub use balance::{Counters, Failure, Stealing};
pub use call::{Call, join};
pub use divide::Divided;
pub use job::{Context, Reduction, Value, reduction, sum};
pub use ordered::Ordered;
pub use world::{
    Builder, Ended, Error, JobBuilder, Lost, Outcome, RankStats, Role, Status, World, supervise,
};
