//! Jobs: closures that leave the stack frame, or the thread, that made them. All unsafe code of the
//! runtime is here.
//!
//! - [`fork`]: the second half of a `join`, in a slot of the worker's [`Stack`](poach_deque::split::Stack);
//! - [`task`]: a spawned closure as a value of 64 bytes, boxed only if it is large, and kept in half of that if it is
//!   small;
//! - [`shared`]: a closure and its result in the frame of a thread that waits for another to run it;
//! - [`queued`]: the second half of a `join` as a value, for queues other than the split stack; [`host`]: who may
//!   run it;
//! - [`scoped`]: the tasks of a scope, and the count of those that have not ended;
//! - [`current`]: which worker this thread is;
//! - [`forked`]: whether this process is the one in which a pool was made;
//! - [`processor`]: which processor this thread is on;
//! - [`unwind`]: where code of the user's runs, and what its panics come to.

pub(crate) mod current;
pub(crate) mod fork;
pub(crate) mod forked;
pub(crate) mod guests;
mod host;
pub(crate) mod processor;
pub(crate) mod queued;
pub(crate) mod scoped;
pub(crate) mod shared;
pub(crate) mod task;
pub(crate) mod unwind;
// shuttle brings its own stacks for its threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod whole;
