//! Poach past one machine: the ranks of an MPI job steal work from each other.

pub mod bag;
pub mod balance;
mod divide;
mod job;
mod mpi;
mod ordered;
pub mod simulate;
pub mod transport;
mod world;

pub use balance::{Counters, Failure, Stealing};
pub use divide::Divided;
pub use job::{Context, Reduction, Value, reduction, sum};
pub use ordered::Ordered;
pub use world::{Builder, Error, JobBuilder, Outcome, RankStats, World};
