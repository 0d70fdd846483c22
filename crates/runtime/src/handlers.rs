//! What a pool's owner wants to be told.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

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
    /// A panic that has nobody to travel to.
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        if let Some(handler) = &self.panic {
            // A handler that panics itself has had its say.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| handler(payload)));
        }
    }
}
