//! Jobs: closures that leave the stack frame, or the thread, that made them. All unsafe code of the
//! runtime is here.
//!
//! - [`fork`]: `join`, which pushes its second half to the worker's [`Stack`](poach_deque::split::Stack), runs the first and pops the second;
//! - [`half`]: that second half in its slot, for its owner and for a thief; [`token`]: the worker as a value;
//! - [`foreign`]: forks whose fast path is written in another language;
//! - [`task`]: a spawned closure as a value of 64 bytes, boxed only if it is large, and kept in half of that if it is
//!   small;
//! - [`shared`]: a closure and its result in the frame of a thread that waits for another to run it;
//! - [`scoped`]: the tasks of a scope, and the count of those that have not ended;
//! - [`current`]: which worker this thread is; [`enter`]: becoming one for a while;
//! - [`forked`]: whether this process is the one in which a pool was made;
//! - [`processor`]: which processor this thread is on;
//! - [`reserved`]: address space that is kept for what is mapped later;
//! - [`unwind`]: where code of the user's runs, and what its panics come to.

pub(crate) mod current;
mod enter;
pub mod foreign;
pub(crate) mod fork;
pub(crate) mod forked;
pub(crate) mod guests;
pub(crate) mod half;
pub(crate) mod processor;
pub(crate) mod reserved;
pub(crate) mod scoped;
pub(crate) mod shared;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod unwind;
// shuttle brings its own stacks for its threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod whole;
