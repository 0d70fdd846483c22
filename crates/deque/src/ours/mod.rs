//! The queues that no paper has.

pub mod biased;
pub mod fifo;
pub mod injector;
pub(crate) mod owners_end;
pub(crate) mod pacing;
