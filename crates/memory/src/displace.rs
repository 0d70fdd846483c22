//! An asymmetric fence by displacement: a thief moves to the owner's processor and back.
//!
//! Source: Dice, Huang and Yang, *Asymmetric Dekker Synchronization* (2001), as Gidron et al. use
//! it in *SALSA*, section 6.1.
//!
//! While a thief runs on the owner's processor, the owner is descheduled, and the kernel executes a
//! full fence at each context switch. So the thief sees every store that the owner had issued, and
//! the owner later sees every store that the thief had made. The fence is slow: the thief waits for
//! the end of the owner's time slice, milliseconds if the owner is busy.

use core::fmt;

use crate::{Machine, Memory, StoreLoad};

/// The owner pays nothing; a thief that sees a task moves to the owner's processor and back.
///
/// Sound on Linux, for an owner whose pushes and pops all happen on a thread that is bound to the
/// given processor. A queue whose owner runs elsewhere loses tasks or hands them out twice, so the
/// constructors are unsafe.
///
/// Delta is infinite, so a thief [resolves](StoreLoad::resolve) each steal, and moves only if
/// there is a task to steal. If the kernel refuses the owner's processor, the steal is aborted.
#[derive(Clone, Copy, Debug)]
pub struct Displaced {
    #[cfg_attr(
        not(all(target_os = "linux", not(miri), not(feature = "portable"))),
        expect(dead_code, reason = "there is no such policy to be had here")
    )]
    owner: usize,
}

/// Why displacement is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotDisplace {
    /// This build cannot bind threads.
    NotBuilt,
    /// The kernel does not let this thread run on that processor, or will not bind it.
    Refused(usize),
}

impl fmt::Display for CannotDisplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotDisplace::NotBuilt => {
                f.write_str("this build cannot bind a thread to a processor")
            }
            CannotDisplace::Refused(processor) => write!(
                f,
                "this thread may not run on processor {processor}: name one that the process may use"
            ),
        }
    }
}

impl std::error::Error for CannotDisplace {}

impl Displaced {
    /// Binds the calling thread to its processor, and makes the policy for queues that it owns.
    ///
    /// # Errors
    ///
    /// [`CannotDisplace`] where threads cannot be bound.
    ///
    /// # Safety
    ///
    /// Only this thread pushes to and pops from queues with this policy. It stays bound to its
    /// processor while they are in use.
    pub unsafe fn bind_owner() -> Result<Displaced, CannotDisplace> {
        system::bind_here().map(|owner| Displaced { owner })
    }

    /// The policy for owners that the caller has bound to `processor`. Moves the calling thread
    /// there once, to see that it can.
    ///
    /// # Errors
    ///
    /// [`CannotDisplace`] if this thread cannot run there.
    ///
    /// # Safety
    ///
    /// Only threads that are bound to `processor` alone push to and pop from a queue with this
    /// policy.
    pub unsafe fn onto(processor: usize) -> Result<Displaced, CannotDisplace> {
        system::visit(processor).map(|()| Displaced { owner: processor })
    }
}

// SAFETY: delta is infinite, so only `resolve` promises anything. The policy's maker has
// promised that the owner runs on the given processor only. While the thief runs there, the owner
// does not, and a context switch is a full fence for both threads.
unsafe impl StoreLoad<Machine> for Displaced {
    #[inline(always)]
    fn owner(&self) {
        Machine::light();
    }

    #[inline(always)]
    fn thief(&self) {}

    #[inline(always)]
    fn delta(&self) -> u64 {
        u64::MAX
    }

    fn resolve(&self) -> bool {
        #[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
        let visited = system::visit(self.owner).is_ok();
        #[cfg(not(all(target_os = "linux", not(miri), not(feature = "portable"))))]
        let visited = false;
        visited
    }
}

#[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
mod system {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::CannotDisplace;

    pub(super) fn bind_here() -> Result<usize, CannotDisplace> {
        let here = sched_getcpu();
        // The thread may have moved meanwhile; after this call it is there, and stays.
        sched_setaffinity(None, &only(here)?).map_err(|_| CannotDisplace::Refused(here))?;
        Ok(here)
    }

    pub(super) fn visit(processor: usize) -> Result<(), CannotDisplace> {
        let refused = |_| CannotDisplace::Refused(processor);
        let home = sched_getaffinity(None).map_err(refused)?;
        sched_setaffinity(None, &only(processor)?).map_err(refused)?;
        // The fence has happened, even if the thread cannot return because the process was confined
        // meanwhile. It then goes on where it is.
        let _ = sched_setaffinity(None, &home);
        Ok(())
    }

    fn only(processor: usize) -> Result<CpuSet, CannotDisplace> {
        if processor >= CpuSet::MAX_CPU {
            return Err(CannotDisplace::Refused(processor));
        }
        let mut set = CpuSet::new();
        set.set(processor);
        Ok(set)
    }
}

#[cfg(not(all(target_os = "linux", not(miri), not(feature = "portable"))))]
mod system {
    use super::CannotDisplace;

    pub(super) fn bind_here() -> Result<usize, CannotDisplace> {
        Err(CannotDisplace::NotBuilt)
    }

    pub(super) fn visit(_: usize) -> Result<(), CannotDisplace> {
        Err(CannotDisplace::NotBuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
    fn a_thief_visits_and_comes_home() {
        use rustix::thread::sched_getaffinity;
        // SAFETY: no queue is given it.
        let bind = || unsafe { Displaced::bind_owner() };
        let bound = move || (bind().unwrap(), sched_getaffinity(None).unwrap());
        let (owner, there) = std::thread::spawn(bound).join().unwrap();
        assert_eq!(there.count(), 1);
        assert!(there.is_set(owner.owner));
        let home = sched_getaffinity(None).unwrap();
        assert!(owner.resolve());
        assert_eq!(sched_getaffinity(None).unwrap(), home);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri), not(feature = "portable")))]
    fn a_processor_that_is_not_there_is_refused() {
        for absent in [1023, rustix::thread::CpuSet::MAX_CPU, usize::MAX] {
            // SAFETY: no queue is given it.
            let refused = unsafe { Displaced::onto(absent) }.unwrap_err();
            assert_eq!(refused, CannotDisplace::Refused(absent));
        }
    }

    #[test]
    #[cfg(not(all(target_os = "linux", not(miri), not(feature = "portable"))))]
    fn says_that_it_was_not_built() {
        // SAFETY: no queue is given it.
        let refused = unsafe { Displaced::bind_owner() }.unwrap_err();
        assert_eq!(refused, CannotDisplace::NotBuilt);
    }
}
