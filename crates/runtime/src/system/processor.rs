//! The processor of a thread, and moving a thread away from one.

#[cfg(target_os = "linux")]
use rustix::thread::{sched_getaffinity, sched_setaffinity};

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

/// A thread that sleeps, and is kept off a processor meanwhile.
#[cfg(target_os = "linux")]
pub(crate) struct Mover {
    thread: rustix::thread::Pid,
    /// The processor that it is kept off.
    kept_off: Option<usize>,
}

#[cfg(target_os = "linux")]
impl Mover {
    /// The calling thread, if the system can move it. It is kept off the processor `avoid` from now
    /// on, if one is given, and it may use another.
    pub(crate) fn me(avoid: Option<usize>) -> Option<Mover> {
        here()?;
        let mut me = Mover { thread: rustix::thread::gettid(), kept_off: None };
        if let Some(avoid) = avoid {
            me.keep_off(avoid);
        }
        Some(me)
    }

    /// Keeps the thread off the calling thread's processor, if it may use another; if it runs
    /// there, it is moved before this returns. It must not have ended. Returns that processor.
    ///
    /// No system call if it is kept off that one already.
    pub(crate) fn makes_way(&mut self) -> Option<usize> {
        let here = here()?;
        if self.kept_off != Some(here) {
            self.keep_off(here);
        }
        Some(here)
    }

    fn keep_off(&mut self, processor: usize) {
        let Ok(mut others) = sched_getaffinity(Some(self.thread)) else { return };
        if let Some(kept_off) = self.kept_off {
            others.set(kept_off);
        }
        if others.is_set(processor) && others.count() > 1 {
            others.unset(processor);
            if sched_setaffinity(Some(self.thread), &others).is_ok() {
                self.kept_off = Some(processor);
            }
        }
    }

    /// The calling thread, which this is, may use the processor again that it was kept off.
    pub(crate) fn comes_back(self) {
        if let Some(processor) = self.kept_off {
            if let Ok(mut all) = sched_getaffinity(None) {
                all.set(processor);
                // It fails only where the system has taken that processor away meanwhile.
                let _ = sched_setaffinity(None, &all);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) enum Mover {}

#[cfg(not(target_os = "linux"))]
impl Mover {
    pub(crate) fn me(_avoid: Option<usize>) -> Option<Mover> {
        None
    }

    pub(crate) fn makes_way(&mut self) -> Option<usize> {
        match *self {}
    }

    pub(crate) fn comes_back(self) {
        match self {}
    }
}

// Miri's threads run on no processor.
#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use poach_topology::{allowed, bind};
    use rustix::thread::CpuSet;

    use super::*;

    #[test]
    fn one_that_makes_way_is_elsewhere_and_comes_back_to_all_its_processors() {
        let before = allowed().unwrap();
        // Bound to one, so that no scheduler moves it before it looks.
        bind(before[0]).unwrap();
        assert_eq!(here(), Some(before[0]));
        let mut bound = Mover::me(None).unwrap();
        bound.makes_way();
        assert_eq!(allowed().unwrap(), [before[0]], "there is nowhere to go");
        bound.comes_back();
        assert_eq!(allowed().unwrap(), [before[0]]);
        if let [first, second, ..] = before[..] {
            let mut two = CpuSet::new();
            two.set(first);
            two.set(second);
            sched_setaffinity(None, &two).unwrap();
            let mut mover = Mover::me(None).unwrap();
            mover.makes_way();
            let away = allowed().unwrap();
            assert_eq!(away.len(), 1);
            assert_eq!(here(), Some(away[0]));
            mover.comes_back();
            assert_eq!(allowed().unwrap(), [first, second]);
            let mut prepared = Mover::me(Some(first)).unwrap();
            assert_eq!(allowed().unwrap(), [second]);
            prepared.makes_way();
            assert_eq!(allowed().unwrap(), [first], "the caller is not where it was expected");
            prepared.comes_back();
            assert_eq!(allowed().unwrap(), [first, second]);
        }
    }
}
