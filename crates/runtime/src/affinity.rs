//! Which processors this process may use, and binding a thread to one.

use std::io;

/// The processors that this thread may run on, in ascending order; at least one.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// Binds the calling thread to one processor.
#[cfg(target_os = "linux")]
pub(crate) fn bind(processor: usize) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
