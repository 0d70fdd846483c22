//! What moves between threads: closures that leave the stack frame, or the thread, that made them.
//!
//! - [`half`]: the worker as a value, and the second half of a join in its slot, for its owner and
//!   for a thief;
//! - [`value`]: a spawned closure as a value of 64 bytes, boxed only if it is large, and kept in
//!   half of that if it is small;
//! - [`frame`]: a closure and its result in the frame of a thread that waits for another to run it;
//! - [`panic`]: where code of the user's runs, and what its panics come to.

pub(crate) mod frame;
pub(crate) mod half;
pub(crate) mod panic;
pub(crate) mod value;
