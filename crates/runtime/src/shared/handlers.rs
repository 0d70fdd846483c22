//! The handlers that a pool calls.

use std::any::Any;

use crate::task::panic::{catch, dispose};

pub(crate) type IndexHandler = Box<dyn Fn(usize) + Send + Sync>;
pub(crate) type PanicHandler = Box<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

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

    /// Calls the panic handler for a panic that no thread waits for. Does not unwind.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        match &self.panic {
            // A panic of the handler itself is dropped.
            Some(handler) => dispose(catch(|| handler(payload))),
            None => dispose(payload),
        }
    }

    /// Runs code of the user's that no thread waits for; a panic goes to the panic handler. Does
    /// not unwind.
    #[inline(always)]
    pub(crate) fn told(&self, run: impl FnOnce()) {
        if let Err(payload) = catch(run) {
            self.panicked(payload);
        }
    }
}
