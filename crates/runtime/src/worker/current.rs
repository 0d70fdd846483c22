//! The worker of the current thread, and becoming a worker for a while.

use std::cell::Cell;
use std::panic;
use std::ptr;
use std::thread;

use poach_deque::split::Popped;

use crate::shared::PoolShared;
use crate::task::half::{Head, Worker};
use crate::task::half::{Slot, descriptor, is_done, take_outcome};
use crate::task::panic::catch;
pub(crate) use crate::worker::WorkerThread;

thread_local! {
    static CURRENT: Cell<*const WorkerThread> = const { Cell::new(ptr::null()) };
}

impl WorkerThread {
    /// Calls `f` with the worker that this thread is, if it is one.
    #[inline(always)]
    pub(crate) fn with<R>(f: impl FnOnce(Option<&WorkerThread>) -> R) -> R {
        // During a thread's last destructors the variable may be gone; then the thread is no
        // worker.
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: either null, or set by `enter`, whose guard is still alive on this thread, and
        // borrows the WorkerThread, or by `reside`, whose WorkerThread lives for ever.
        f(unsafe { current.as_ref() })
    }

    pub(crate) fn called() {
        WorkerThread::with(|local| {
            if let Some(local) = local {
                local.watch.called();
            }
        });
    }

    /// The bottom of a worker's stack. Called once for each `WorkerThread`, of which a worker has
    /// one at a time; the thread that has the `WorkerThread` is the stack's owner.
    pub(crate) fn bottom(shared: &PoolShared, index: usize) -> Head {
        // SAFETY: one thread at a time owns the stack, by this function's contract; and its
        // WorkerThread keeps the pool's shared state, and so the stack.
        unsafe { shared.workers[index].forks.bottom() }
    }

    #[inline(always)]
    pub(crate) fn token(&self) -> Worker<'_> {
        // SAFETY: a WorkerThread is only used on its own thread, which owns the stack of its hint.
        let top = unsafe { self.hint.get().locate() };
        // SAFETY: the thread owns the stack of its hint. Should the token be used when the stack
        // has another top, its push finds out (see `fork`).
        unsafe { Worker::new(top) }
    }

    /// The head at the topmost task of this worker's stack, which must have one.
    pub(crate) fn topmost_task(&self) -> Head {
        // SAFETY: as in `token`.
        unsafe { self.hint.get().locate_task() }
    }

    /// Makes this thread the worker for ever.
    pub(crate) fn reside(self) {
        self.resident.set(true);
        CURRENT.set(Box::leak(Box::new(self)));
    }

    /// Makes this thread the worker for as long as `f` runs. If it is a worker already, that
    /// worker's stack is [covered](WorkerThread::covered).
    pub(crate) fn enter_alone<R>(&self, f: impl FnOnce(&WorkerThread) -> R) -> R {
        struct Restore(*const WorkerThread);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(ptr::from_ref(self)));
        f(self)
    }

    /// Makes this thread the worker for as long as `f` runs: at the top of a thread's call stack,
    /// or in the place of a worker that it is already, which is then
    /// [covered](WorkerThread::covered).
    pub(crate) fn enter<R>(&self, f: impl FnOnce(&WorkerThread) -> R) -> R {
        WorkerThread::with(|outer| match outer {
            None => self.enter_alone(f),
            Some(outer) => outer.covered(|| self.enter_alone(f)),
        })
    }

    /// Runs `f`, which makes this thread another worker for a while, on top of a fork of this
    /// worker's stack.
    ///
    /// A token of this stack that `f` uses, hidden from the borrow checker, would push onto it. A
    /// fork that was stolen, or whose first half panics, asks the thread which worker it is. So it
    /// would then wait or unwind on the stack of the other worker. Therefore no such token may
    /// stand at the top meanwhile. The second half of this fork, which does nothing, occupies the
    /// slot there, and the token's push is refused like that of any other token below the top.
    fn covered<R>(&self, f: impl FnOnce() -> R) -> R {
        cover(&self.token(), |_| (), f, || self.shared.process_guard.check_or_abort())
    }
}

/// Runs `f` with the task `nothing` at `worker`'s place, which keeps it occupied. If it is stolen,
/// its thief is done with it at once, and this takes no work meanwhile: a task that is interrupted
/// wants nothing else on top of it. `check` is called between two looks.
///
/// A full stack is left as it is: it refuses every push anyway.
fn cover<B, R>(worker: &Worker<'_>, nothing: B, f: impl FnOnce() -> R, check: impl Fn()) -> R
where
    B: FnOnce(Worker<'_>) + Send + Copy,
{
    let head = worker.head();
    assert!(Slot::fits::<B>(), "nothing is small");
    // SAFETY: the token says that this thread owns the stack and that `head` is its top; the
    // descriptor is a static's address, aligned to 8; B fits, and may be used where it was
    // copied from. The pop follows.
    let pushed = unsafe { head.push(descriptor::<B, ()>(), &raw const nothing) };
    if pushed.is_err() {
        return f();
    }
    let result = catch(f);
    // SAFETY: this thread owns the stack, and `f` leaves it as it has found it.
    if unsafe { head.pop() } == Popped::Stolen {
        // SAFETY: this thread owns the stack; a slot stays valid while its stolen task is not
        // retired.
        let slot = unsafe { head.slot() };
        while !is_done(slot.status()) {
            check();
            thread::yield_now();
        }
        // SAFETY: DONE says that the thief has put the outcome of this descriptor's `run` there and
        // does not touch the slot again.
        let outcome = unsafe { take_outcome::<()>(slot) };
        // SAFETY: the outcome was taken, and nothing is above it.
        unsafe { head.retire() };
        outcome.expect("what does nothing does not panic");
    }
    result.unwrap_or_else(|payload| panic::resume_unwind(payload))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// As in a forked child, whose thief is not there: what is called between two looks has to end
    /// the wait.
    #[test]
    fn who_waits_for_the_thief_of_nothing_checks_meanwhile() {
        let (begun, checked) = (AtomicBool::new(false), AtomicBool::new(false));
        let until = |flag: &AtomicBool| {
            while !flag.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let nothing = |_: Worker<'_>| {
            begun.store(true, Ordering::Relaxed);
            until(&checked);
        };
        let pool = crate::ThreadPool::builder().num_threads(2).build().unwrap();
        pool.install(|| {
            WorkerThread::with(|local| {
                let local = local.unwrap();
                // The other worker exposes it.
                let covered = || until(&begun);
                let check = || checked.store(true, Ordering::Relaxed);
                cover(&local.token(), nothing, covered, check);
            });
        });
        assert!(checked.into_inner());
    }
}
