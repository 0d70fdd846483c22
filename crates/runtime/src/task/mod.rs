//! Closures that move between threads, or leave the stack frame that made them.
//!
//! - [`half`]: the worker as a value, and the second half of a join in its slot, for its owner and
//!   for a thief;
//! - [`value`]: a spawned closure as a value of 64 bytes, boxed only if it is large, and kept in
//!   half of that if it is small;
//! - [`frame`]: a closure and its result in the frame of a thread that waits for another to run it;
//! - [`panic`]: every call of the user's code, and the handling of its panics.

pub(crate) mod frame;
pub(crate) mod half;
pub(crate) mod panic;
pub(crate) mod value;
