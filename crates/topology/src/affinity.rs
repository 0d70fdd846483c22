//! The processors that a thread may use, and binding a thread to a processor.

use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that this thread may run on, in ascending order; at least one.
///
/// # Errors
///
/// The system's; on others than Linux always `Unsupported`.
#[cfg(target_os = "linux")]
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// Binds the calling thread to one processor.
///
/// # Errors
///
/// The system's; on others than Linux always `Unsupported`.
#[cfg(target_os = "linux")]
pub fn bind(processor: usize) -> io::Result<()> {
    if processor >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL.into());
    }
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// Not known on this system.
///
/// # Errors
///
/// `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub fn allowed() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not known on this system.
///
/// # Errors
///
/// `Unsupported`.
#[cfg(not(target_os = "linux"))]
pub fn bind(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
