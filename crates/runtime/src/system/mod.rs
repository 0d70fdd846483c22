//! What the runtime asks of the operating system.
//!
//! - [`process`]: whether this process is the one in which a pool was made;
//! - [`processor`]: which processor a thread is on, and moving it away from one;
//! - [`reserved`]: address space that is kept for what is mapped later.

pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod reserved;
