//! Becoming a worker for a while.

use crate::task::fork::cover;
use crate::worker::current::Local;

impl Local {
    /// Makes this thread the worker for as long as `f` runs: at the top of a thread's call stack, or in the place of a
    /// worker that it is already, which is then [covered](Local::covered).
    pub(crate) fn enter<R>(&self, f: impl FnOnce(&Local) -> R) -> R {
        Local::with(|outer| match outer {
            None => self.enter_alone(f),
            Some(outer) => outer.covered(|| self.enter_alone(f)),
        })
    }

    /// Runs `f`, which makes this thread another worker for a while, on top of a fork of this worker's stack.
    ///
    /// A token of this stack that `f` uses, hidden from the borrow checker, would push onto it, and then, since a fork that was stolen
    /// or whose first half panics asks the thread which worker it is, wait or unwind on the stack of the other. So none
    /// may stand at the top meanwhile: the slot there is occupied by the second half of this fork, which does
    /// nothing, and the token's push is refused like that of any other token below the top.
    fn covered<R>(&self, f: impl FnOnce() -> R) -> R {
        cover(&self.token(), |_| (), f, || self.registry.fork_guard.check_or_abort())
    }
}
