//! What a pool's owner wants to be told.

use std::any::Any;

use crate::task::panic::{catch, dispose};

pub(crate) type IndexHandler = Box<dyn Fn(usize) + Send + Sync>;
pub(crate) type PanicHandler = Box<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

/// Called by the workers, each if it is set.
pub(crate) struct Handlers {
    pub(crate) start: Option<IndexHandler>,
    /// Whether the thread that builds the pool waits for `start`.
    pub(crate) start_is_awaited: bool,
    pub(crate) exit: Option<IndexHandler>,
    pub(crate) panic: Option<PanicHandler>,
}

impl Default for Handlers {
    fn default() -> Handlers {
        Handlers { start: None, start_is_awaited: true, exit: None, panic: None }
    }
}

impl Handlers {
    /// The start handler, if the thread that builds the pool waits for it.
    pub(crate) fn awaited_start(&self) -> Option<&IndexHandler> {
        self.start.as_ref().filter(|_| self.start_is_awaited)
    }

    /// Tells of a panic that has nobody to travel to. Does not unwind.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        match &self.panic {
            // A handler that panics itself is not told of that.
            Some(handler) => dispose(catch(|| handler(payload))),
            None => dispose(payload),
        }
    }

    /// Runs code of the user's whose panic has nobody to travel to, and tells of it. Does not
    /// unwind.
    #[inline(always)]
    pub(crate) fn told(&self, run: impl FnOnce()) {
        if let Err(payload) = catch(run) {
            self.panicked(payload);
        }
    }
}
