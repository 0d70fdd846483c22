//! Which processor a thread is on.

/// The processor that this thread runs on just now, if the system says so cheaply.
///
/// From the C library, which reads what the kernel keeps up to date in the thread's own memory
/// (`rseq`). `rustix` would ask the vDSO, and reads the ELF headers to find it, which a program
/// under Valgrind does not survive.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn here() -> Option<usize> {
    // SAFETY: it has no preconditions.
    let processor = unsafe { libc::sched_getcpu() };
    usize::try_from(processor).ok()
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn here() -> Option<usize> {
    None
}
