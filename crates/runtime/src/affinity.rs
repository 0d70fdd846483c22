//! Which processors this process may use, and binding a thread to one or moving it away.

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

/// The calling thread, kept off the processor that it was on; dropped, it may use that one again.
#[cfg(target_os = "linux")]
pub(crate) struct Aside {
    before: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Aside {
    /// Moves the calling thread to another processor that it may use, if there is one. When this returns,
    /// it runs there.
    pub(crate) fn step() -> Option<Aside> {
        use rustix::thread::{sched_getaffinity, sched_setaffinity};
        let here = crate::job::processor::here()?;
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
        let _ = rustix::thread::sched_setaffinity(None, &self.before);
    }
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
    use crate::job::processor::here;

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
        }
    }
}
