//! The process-wide barrier: a full fence in every running thread of this process, paid by the
//! caller alone.
//!
//! A thread that calls [`barrier`] makes each processor that runs a thread of the process execute a
//! full fence before the call returns; a thread that is not running passed one when it was
//! descheduled. So a store that another thread had issued before its fence is visible after
//! `barrier`, and a load that it issues after the fence sees all that preceded `barrier`. The other
//! thread needs no more than to keep its compiler from reordering.
//!
//! | system | means | source |
//! |---|---|---|
//! | Linux 4.14+ | `membarrier(2)`, private expedited: registered once per process | its manual page |
//! | Windows | `FlushProcessWriteBuffers` | its reference page |
//! | others, Miri, feature `portable` | none: [`register`] says why, [`barrier`] is a full fence | |
//!
//! Miri interprets the C11 memory model, in which a fence in another thread's name has no meaning:
//! there, too, the answer is an open "unavailable" and the policies fall back to full fences.

use core::fmt;
use core::sync::atomic::{self, AtomicU8, Ordering};

/// Why this process has no process-wide barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// This build has none: the system offers none, or the `portable` feature asks for none.
    NotBuilt,
    /// The kernel does not list the command, or refused to register the process.
    Refused,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::NotBuilt => "this build has no process-wide memory barrier",
            Unavailable::Refused => "the kernel refuses membarrier(2) private expedited",
        })
    }
}

impl std::error::Error for Unavailable {}

/// Registers the process, the first time; the same answer ever after.
///
/// The first call may take milliseconds, in which the kernel makes sure that every processor has heard
/// of it; the others cost a load. No call waits for another: a process forked while a thread of its
/// parent registered is not left waiting for that thread. (Calls at once may all register, which the
/// kernel allows.)
///
/// # Errors
///
/// [`Unavailable`], where full fences must be used instead.
#[inline]
pub fn register() -> Result<(), Unavailable> {
    // Relaxed: the answer is all there is to know, and each thread that finds none asks the kernel.
    match ANSWER.load(Ordering::Relaxed) {
        REGISTERED => Ok(()),
        NOT_BUILT => Err(Unavailable::NotBuilt),
        REFUSED => Err(Unavailable::Refused),
        _ => register_now(),
    }
}

/// What [`register`] has found out; zero while nobody has asked.
static ANSWER: AtomicU8 = AtomicU8::new(0);
const REGISTERED: u8 = 1;
const NOT_BUILT: u8 = 2;
const REFUSED: u8 = 3;

#[cold]
fn register_now() -> Result<(), Unavailable> {
    let answer = system::register();
    let word = match answer {
        Ok(()) => REGISTERED,
        Err(Unavailable::NotBuilt) => NOT_BUILT,
        Err(Unavailable::Refused) => REFUSED,
    };
    // Relaxed: as in `register`.
    ANSWER.store(word, Ordering::Relaxed);
    answer
}

/// A full fence in every thread of this process, where [`register`] has answered `Ok`; a full fence
/// in this thread alone elsewhere.
///
/// Costs one system call: about 0.1 us alone, 0.4 us when it must interrupt another processor.
#[inline]
pub fn barrier() {
    if register().is_ok() {
        system::barrier();
    } else {
        atomic::fence(Ordering::SeqCst);
    }
}

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
mod system {
    use super::Unavailable;
    use rustix::thread::{
        MembarrierCommand::{PrivateExpedited, RegisterPrivateExpedited},
        MembarrierQuery, membarrier, membarrier_query,
    };

    pub(super) fn register() -> Result<(), Unavailable> {
        let offered = membarrier_query();
        if !offered.contains(MembarrierQuery::PRIVATE_EXPEDITED) {
            return Err(Unavailable::Refused);
        }
        membarrier(RegisterPrivateExpedited).map_err(|_| Unavailable::Refused)
    }

    pub(super) fn barrier() {
        // Once a process is registered the command has no way to fail (its manual page, ERRORS).
        // Going on without the fence would corrupt a queue, so a kernel that thinks otherwise ends
        // the program here.
        membarrier(PrivateExpedited).expect("membarrier(2) failed after it had been registered");
    }
}

#[cfg(all(windows, not(miri), not(feature = "portable")))]
mod system {
    use super::Unavailable;
    use windows_sys::Win32::System::Threading::FlushProcessWriteBuffers;

    #[expect(clippy::unnecessary_wraps, reason = "the other systems' answer can be an error")]
    pub(super) fn register() -> Result<(), Unavailable> {
        Ok(())
    }

    pub(super) fn barrier() {
        // SAFETY: the function takes nothing, returns nothing, and has no precondition.
        unsafe { FlushProcessWriteBuffers() }
    }
}

#[cfg(any(not(any(target_os = "linux", windows)), miri, feature = "portable"))]
mod system {
    use super::Unavailable;

    pub(super) fn register() -> Result<(), Unavailable> {
        Err(Unavailable::NotBuilt)
    }

    pub(super) fn barrier() {
        unreachable!("a barrier is only asked for where one is registered")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_once_and_keeps_its_answer() {
        let first = register();
        barrier();
        assert_eq!(first, register());
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
    fn answers_as_the_kernel_does() {
        let listed = rustix::thread::membarrier_query()
            .contains(rustix::thread::MembarrierQuery::PRIVATE_EXPEDITED);
        assert_eq!(register().is_ok(), listed);
    }

    #[test]
    #[cfg(any(miri, feature = "portable"))]
    fn says_that_it_was_not_built() {
        assert_eq!(register(), Err(Unavailable::NotBuilt));
    }
}
