//! Work-stealing deques: an owner pushes and pops at one end, thieves steal at the other.
//!
//! Every queue is generic over a [`Memory`](poach_memory::Memory), so that the source that ships is
//! the source that loom and the TSO\[S\] explorer check.

pub mod split;
