//! Task pools.

pub mod mechanism;
pub mod policy;
mod registry;
pub mod salsa;
