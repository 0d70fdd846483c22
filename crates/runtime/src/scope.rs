//! Any number of tasks that may borrow from the frame that opens the scope.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use crate::job::current::Local;
use crate::job::scoped::Tally;
use crate::pool::global;

/// Tasks that end before [`scope`] returns.
///
/// `'scope` is the lifetime that the tasks' borrows must outlive.
pub struct Scope<'scope> {
    pub(crate) tally: Tally,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Invariant in `'scope`: tasks may both read and write through what they borrow.
    life: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// Opens a scope, runs `f` in it, and returns `f`'s result once all tasks spawned in it have ended.
///
/// On a worker's thread `f` runs there; on any other thread, on a worker of the global pool.
///
/// ```
/// let mut squares = vec![0; 100];
/// poach_runtime::scope(|s| {
///     for (i, square) in squares.iter_mut().enumerate() {
///         s.spawn(move |_| *square = i * i);
///     }
/// });
/// assert_eq!(squares[99], 9801);
/// ```
///
/// # Panics
///
/// Once all tasks have ended: with `f`'s payload if `f` panicked, else with that of the first task
/// that did.
pub fn scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    Local::with(|local| match local {
        Some(local) => open(local, f),
        None => global().install(|| scope(f)),
    })
}

fn open<'scope, F, R>(local: &Local, f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    let scope = Scope { tally: Tally::new(local), panic: Mutex::new(None), life: PhantomData };
    let result = panic::catch_unwind(AssertUnwindSafe(|| f(&scope)));
    scope.tally.wait(local);
    let task_panic = scope.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (result, task_panic) {
        (Ok(result), None) => result,
        (Err(payload), _) | (Ok(_), Some(payload)) => panic::resume_unwind(payload),
    }
}

impl<'scope> Scope<'scope> {
    /// Spawns a task into the scope. It may spawn others.
    ///
    /// Allocates nothing for a closure of up to 48 bytes. Wait-free while the worker's queue has room
    /// and no other worker is hungry. Called on a thread of another pool, or of none, the task goes to
    /// the pool that opened the scope.
    ///
    /// A task that panics ends only itself; the scope panics with its payload when all have ended.
    #[inline]
    pub fn spawn<F>(&self, task: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        self.tally.spawn(self, task);
    }

    /// Keeps the first panic for the scope's end.
    #[cold]
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            *first = Some(payload);
        } else {
            drop(first);
            // Its destructor is the payload's own affair, and must not hold the lock.
            drop(payload);
        }
    }
}

impl std::fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}
