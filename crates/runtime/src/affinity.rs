//! Which processors this process may use, and binding a thread to one or moving it away.

use std::io;

#[cfg(target_os = "linux")]
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[cfg(target_os = "linux")]
use crate::job::processor::here;

/// The processors that this thread may run on, in ascending order; at least one.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// Binds the calling thread to one processor.
#[cfg(target_os = "linux")]
pub(crate) fn bind(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(None, &set)?)
}

/// The calling thread, kept off the processor that it was on; dropped, it may use that one again.
#[cfg(target_os = "linux")]
pub(crate) struct Aside {
    before: CpuSet,
}

#[cfg(target_os = "linux")]
impl Aside {
    /// Moves the calling thread to another processor that it may use, if there is one. When this returns,
    /// it runs there.
    pub(crate) fn step() -> Option<Aside> {
        let here = here()?;
        let before = sched_getaffinity(None).ok()?;
        let mut others = before;
        others.unset(here);
        if others.count() == 0 {
            return None;
        }
        sched_setaffinity(None, &others).ok().map(|()| Aside { before })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Aside {
    fn drop(&mut self) {
        // It fails only where the system has taken these processors away meanwhile, and then it has set
        // the thread's own.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// A thread that sleeps, or is about to.
#[cfg(target_os = "linux")]
pub(crate) struct Sleeper {
    thread: rustix::thread::Pid,
    /// The processor that it is kept off.
    kept_off: Option<usize>,
}

#[cfg(target_os = "linux")]
impl Sleeper {
    /// The calling thread, if the system can move it.
    pub(crate) fn me() -> Option<Sleeper> {
        here().map(|_| Sleeper { thread: rustix::thread::gettid(), kept_off: None })
    }

    /// Keeps the sleeper off the calling thread's processor, if it may use another. Its thread must not have
    /// ended.
    pub(crate) fn makes_way(&mut self) {
        let (None, Some(here)) = (self.kept_off, here()) else { return };
        let Ok(mut others) = sched_getaffinity(Some(self.thread)) else { return };
        if others.is_set(here) && others.count() > 1 {
            others.unset(here);
            let moved = sched_setaffinity(Some(self.thread), &others);
            self.kept_off = moved.is_ok().then_some(here);
        }
    }

    /// The sleeper is awake, and may use the processor again that it was kept off.
    pub(crate) fn gets_up(self) {
        if let Some(processor) = self.kept_off
            && let Ok(mut all) = sched_getaffinity(None)
        {
            all.set(processor);
            // It fails only where the system has taken that processor away meanwhile.
            let _ = sched_setaffinity(None, &all);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) enum Sleeper {}

#[cfg(not(target_os = "linux"))]
impl Sleeper {
    pub(crate) fn me() -> Option<Sleeper> {
        None
    }

    pub(crate) fn makes_way(&mut self) {}

    pub(crate) fn gets_up(self) {}
}

#[cfg(not(target_os = "linux"))]
pub(crate) enum Aside {}

#[cfg(not(target_os = "linux"))]
impl Aside {
    pub(crate) fn step() -> Option<Aside> {
        None
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> io::Result<Vec<usize>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn one_that_steps_aside_is_elsewhere_and_comes_back_to_all_its_processors() {
        let before = allowed().unwrap();
        // Bound to one, so that no scheduler moves it before it looks.
        bind(before[0]).unwrap();
        assert_eq!(here(), Some(before[0]));
        assert!(Aside::step().is_none(), "there is nowhere to go");
        if let [first, second, ..] = before[..] {
            let mut two = rustix::thread::CpuSet::new();
            two.set(first);
            two.set(second);
            rustix::thread::sched_setaffinity(None, &two).unwrap();
            let aside = Aside::step().expect("there is another");
            let away = allowed().unwrap();
            assert_eq!(away.len(), 1);
            assert_eq!(here(), Some(away[0]));
            drop(aside);
            assert_eq!(allowed().unwrap(), [first, second]);
            // A sleeper makes way for its caller (both are this thread here), and only if it can.
            let mut sleeper = Sleeper::me().unwrap();
            sleeper.makes_way();
            let away = allowed().unwrap();
            assert_eq!(away.len(), 1);
            assert_eq!(here(), Some(away[0]));
            let mut bound = Sleeper::me().unwrap();
            bound.makes_way();
            assert_eq!(allowed().unwrap(), away);
            bound.gets_up();
            assert_eq!(allowed().unwrap(), away);
            sleeper.gets_up();
            assert_eq!(allowed().unwrap(), [first, second]);
        }
    }
}
