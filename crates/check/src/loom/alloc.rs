//! Values that must be dropped before an execution ends.

use super::execution;

/// A value whose leak is a violation.
#[derive(Debug)]
pub struct Track<T> {
    value: T,
    mark: Mark,
}

#[derive(Debug)]
struct Mark(u64);

impl Drop for Mark {
    fn drop(&mut self) {
        execution::dropped(self.0);
    }
}

impl<T> Track<T> {
    /// Tracks `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Track { value, mark: Mark(execution::made("a tracked value")) }
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, which is tracked no more.
    pub fn into_inner(self) -> T {
        let Track { value, mark } = self;
        drop(mark);
        value
    }
}
