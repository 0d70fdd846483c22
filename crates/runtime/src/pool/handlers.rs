//! What a pool's owner wants to be told.

use std::any::Any;

use crate::job::unwind::{catch, dispose};

pub(crate) type IndexHandler = Box<dyn Fn(usize) + Send + Sync>;
pub(crate) type PanicHandler = Box<dyn Fn(Box<dyn Any + Send>) + Send + Sync>;

/// Called by the workers, each if it is set.
#[derive(Default)]
pub(crate) struct Handlers {
    pub(crate) start: Option<IndexHandler>,
    pub(crate) exit: Option<IndexHandler>,
    pub(crate) panic: Option<PanicHandler>,
}

impl Handlers {
    /// Tells of a panic that has nobody to travel to. Does not unwind.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        match &self.panic {
            // A handler that panics itself is not told of that.
            Some(handler) => dispose(catch(|| handler(payload))),
            None => dispose(payload),
        }
    }

    /// Runs code of the user's whose panic has nobody to travel to, and tells of it. Does not unwind.
    #[inline(always)]
    pub(crate) fn told(&self, run: impl FnOnce()) {
        if let Err(payload) = catch(run) {
            self.panicked(payload);
        }
    }
}
