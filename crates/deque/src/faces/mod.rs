//! The interfaces of other crates, on the queues of this one.

pub mod crossbeam;
pub mod st3;
