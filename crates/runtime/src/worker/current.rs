//! Which worker this thread is.

use std::cell::Cell;
use std::ptr;

use crate::shared::Registry;
use crate::task::token::{Head, Worker};
pub(crate) use crate::worker::Local;

thread_local! {
    static CURRENT: Cell<*const Local> = const { Cell::new(ptr::null()) };
}

impl Local {
    /// Calls `f` with the worker that this thread is, if it is one.
    #[inline(always)]
    pub(crate) fn with<R>(f: impl FnOnce(Option<&Local>) -> R) -> R {
        // During a thread's last destructors the variable may be gone; then it is no worker.
        let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
        // SAFETY: either null, or set by `enter`, whose guard is still alive on this thread, and
        // borrows the Local, or by `reside`, whose Local lives for ever.
        f(unsafe { current.as_ref() })
    }

    /// The worker that this thread is, if it is one, has called a sleeper.
    pub(crate) fn called() {
        Local::with(|local| {
            if let Some(local) = local {
                local.watch.called();
            }
        });
    }

    /// The bottom of a worker's stack. Called once for each Local, of which a worker has one at a time; the thread that
    /// has the Local is the stack's owner.
    pub(crate) fn bottom(registry: &Registry, index: usize) -> Head {
        // SAFETY: one thread at a time owns the stack, by this function's contract; and its Local keeps the
        // registry, and so the stack.
        unsafe { registry.workers[index].forks.bottom() }
    }

    /// A token for the top of this worker's stack.
    #[inline(always)]
    pub(crate) fn token(&self) -> Worker<'_> {
        // SAFETY: a Local is only used on its own thread, which owns the stack of its hint.
        let top = unsafe { self.hint.get().locate() };
        // SAFETY: the thread owns the stack of its hint. Should the token be used when the stack has another top, its push finds
        // out (see `fork`).
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

    /// Makes this thread the worker for as long as `f` runs. If it is a worker already, that worker's stack is [covered](Local::covered).
    pub(crate) fn enter_alone<R>(&self, f: impl FnOnce(&Local) -> R) -> R {
        struct Restore(*const Local);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        let _restore = Restore(CURRENT.replace(ptr::from_ref(self)));
        f(self)
    }
}
