//! The place where a worker's thread sleeps, and its call.
//!
//! # Not behind the caller
//!
//! Linux puts a woken thread on its caller's processor, or on its own last one, which may be the
//! same, if the caches of the others are too far away to look there. Then it waits for the end of
//! the caller's slice, which is milliseconds, with another processor idle. So a sleeper is
//! forbidden its caller's processor while it sleeps, if it may use another, and allows it to itself
//! again when it is up. (To do so only for a sleeper that fell asleep on the caller's processor was
//! not enough: half of the calls still took a slice.)
//!
//! The sleeper does that itself before it sleeps, for the processor of its last caller. A caller
//! that runs there makes one system call, the one that wakes. A caller that runs elsewhere makes
//! two more: it changes the sleeper's affinity by its TID. A caller that blocks next leaves its
//! processor to the sleeper, and none of this is done for it, nor for the sleeper's next sleep.
//! Both sides hold the `sleeper` lock for that, because the TID may be reused once that thread has
//! exited.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::sync::{Parker, Unparker};
use poach_memory::{Machine, Memory, Ordering, Word};

use crate::sleep::{Caller, Parking};
use crate::system::process::ProcessGuard;
use crate::system::processor::Mover;

pub(crate) struct ThreadParking {
    /// Held by its worker whenever it parks; no other thread locks it.
    parker: Mutex<Parker>,
    unparker: Unparker,
    /// 1 from a call until it is taken. The parker may also return without a call.
    called: <Machine as Memory>::Word,
    /// The worker, while it parks.
    sleeper: Mutex<Option<Mover>>,
    /// The processor of the last caller, plus one; or zero.
    caller: <Machine as Memory>::Word,
    process_guard: ProcessGuard,
    /// Called by a thread that calls the sleeper.
    on_call: fn(),
}

impl ThreadParking {
    pub(crate) fn new(on_call: fn()) -> Self {
        let parker = Parker::new();
        let unparker = parker.unparker().clone();
        let (parker, sleeper) = (Mutex::new(parker), Mutex::new(None));
        let (called, caller, process_guard) = (Word::new(0), Word::new(0), ProcessGuard::here());
        ThreadParking { parker, unparker, called, sleeper, caller, process_guard, on_call }
    }

    fn sleeper(&self) -> MutexGuard<'_, Option<Mover>> {
        self.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks until called, or until `park` returns false: then the time is over. Returns whether it
    /// was called.
    fn sleep(&self, mut park: impl FnMut(&Parker) -> bool) -> bool {
        let parker = self.parker.lock().unwrap_or_else(PoisonError::into_inner);
        if take_call(&self.called) {
            return true;
        }
        // Relaxed: a hint.
        let avoid = (self.caller.load(Ordering::Relaxed) as usize).checked_sub(1);
        *self.sleeper() = Mover::me(avoid);
        let called = loop {
            let goes_on = park(&parker);
            if take_call(&self.called) {
                break true;
            }
            if !goes_on {
                break false;
            }
        };
        if let Some(sleeper) = self.sleeper().take() {
            sleeper.comes_back();
        }
        called
    }
}

fn say_called<W: Word>(called: &W) {
    // Release: the called thread sees what the caller did.
    called.store(1, Ordering::Release);
}

fn take_call<W: Word>(called: &W) -> bool {
    // Relaxed: the swap decides. Acquire: pairs with the release in `say_called`.
    called.load(Ordering::Relaxed) != 0 && called.swap(0, Ordering::Acquire) != 0
}

impl Parking for ThreadParking {
    fn park(&self) {
        self.sleep(|parker| {
            parker.park();
            true
        });
    }

    fn park_for(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        self.sleep(|parker| {
            parker.park_deadline(end);
            Instant::now() < end
        })
    }

    fn unpark(&self, caller: Caller) {
        // Checked first: in a child process the sleeper does not exist, and its locks may be held
        // for ever.
        if self.process_guard.is_elsewhere() {
            return;
        }
        (self.on_call)();
        let here = match (caller, &mut *self.sleeper()) {
            (Caller::GoesOn, Some(sleeper)) => sleeper.makes_way(),
            _ => None,
        };
        // Relaxed: as in `sleep`.
        self.caller.store(here.map_or(0, |here| here as u64 + 1), Ordering::Relaxed);
        say_called(&self.called);
        self.unparker.unpark();
    }
}

// Miri's threads run on no processor.
#[cfg(all(test, target_os = "linux", not(miri)))]
mod processors {
    use std::thread;

    use poach_topology::{allowed, bind};

    use super::*;

    /// A thread that calls itself while it sleeps is moved off its own processor until it is up.
    #[test]
    fn a_sleeper_is_kept_off_the_processor_of_its_last_caller_and_comes_back() {
        let sleeps = || {
            let before = allowed().unwrap();
            let [_, _, ..] = before[..] else { return };
            let parking = ThreadParking::new(|| ());
            let sleep_until = |caller| {
                let (mut on, mut during) = (0, Vec::new());
                let called = parking.sleep(|_| {
                    assert!(parking.sleeper().is_some(), "it can be moved");
                    during = allowed().unwrap();
                    // The caller's processor is where this thread is, until it has called.
                    on = crate::system::processor::here().unwrap();
                    parking.unpark(caller);
                    true
                });
                assert!(called && parking.sleeper().is_none());
                assert_eq!(allowed().unwrap(), before);
                (on, during)
            };
            let (_, during) = sleep_until(Caller::Blocks);
            assert_eq!(during, before, "nobody has called before");
            let (_, during) = sleep_until(Caller::GoesOn);
            assert_eq!(during, before, "the last caller has left its processor");
            let (_, during) = sleep_until(Caller::GoesOn);
            assert_eq!(during.len(), before.len() - 1, "kept off the last caller's processor");
            let last = parking.caller.load(Ordering::Relaxed) as usize - 1;
            let (on, during) = sleep_until(Caller::GoesOn);
            assert!(!during.contains(&last) && on != last);
            // Where the sleeper has one processor it stays there.
            bind(before[0]).unwrap();
            let called = parking.sleep(|_| {
                assert_eq!(allowed().unwrap(), [before[0]]);
                parking.unpark(Caller::GoesOn);
                true
            });
            assert!(called);
            assert_eq!(parking.caller.load(Ordering::Relaxed) as usize, before[0] + 1);
        };
        // On a new thread, because its affinity changes.
        thread::spawn(sleeps).join().unwrap();
    }
}

// Miri does not fork.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use crate::system::process::tests::children::{alone_in, fork};

    #[test]
    fn a_call_in_a_child_waits_for_no_lock_of_its_parent() {
        if !alone_in(module_path!(), "a_call_in_a_child_waits_for_no_lock_of_its_parent") {
            return;
        }
        let parking = ThreadParking::new(|| ());
        // As it is held by another thread at the moment of the fork.
        let held = parking.sleeper();
        let status = fork(|| {
            parking.unpark(Caller::GoesOn);
            7
        });
        drop(held);
        assert_eq!(status, 7 << 8, "{status:#x}");
        // In the process that made it, it calls.
        parking.unpark(Caller::GoesOn);
        parking.park();
    }
}

// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod models {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use super::*;

    /// The sleeper may find the call before the parker does, which orders them too.
    #[test]
    fn one_that_was_called_has_what_its_caller_did() {
        loom::model(|| {
            let called: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
            let done: &'static UnsafeCell<()> = Box::leak(Box::new(UnsafeCell::new(())));
            let caller = thread::spawn(move || {
                done.with_mut(|_| ());
                say_called(called);
            });
            let was_called = take_call(called);
            if was_called {
                done.with_mut(|_| ());
            }
            caller.join().unwrap();
            assert_eq!(take_call(called), !was_called, "a call is taken once");
        });
    }
}
