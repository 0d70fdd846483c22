//! What a program is divided into, and how.

/// Part of a program: what a fork makes.
pub(crate) trait Task: Send {
    /// Its result.
    type Output: Send;

    /// Runs it; `fork` is its own way to fork further.
    fn run<F: Fork>(self, fork: F) -> Self::Output;
}

/// A way to fork: what each half of a join is handed.
pub(crate) trait Fork: Sized {
    /// Runs both, perhaps in parallel, and returns both results.
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output);
}
