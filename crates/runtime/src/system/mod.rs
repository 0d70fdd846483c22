//! What the runtime asks of the operating system.
//!
//! - [`process`]: whether this process is the one in which a pool was made;
//! - [`processor`]: which processor this thread is on; [`affinity`]: which ones it may use;
//! - [`reserved`]: address space that is kept for what is mapped later.

pub(crate) mod affinity;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod reserved;
