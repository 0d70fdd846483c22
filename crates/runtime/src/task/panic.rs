//! Where code of the user's runs, and what its panics come to.
//!
//! # The barrier
//!
//! Frames of the runtime's are lent to tasks: a scope's, that of a join whose half was stolen, that
//! of a thread that waits for a call. A panic that left such a frame before its tasks have ended
//! would free what they use. So no task unwinds into the worker that runs it: every task, spawned
//! or stolen, is called through a function pointer of the C ABI (`Vtable::run` in `task`,
//! `Descriptor::run` in `fork`), which ends the process rather than let a panic through, and
//! costs nothing where there is none. That is the last line, and nothing is known to come to it:
//! inside, each kind of task catches what it calls, and says who is told.
//!
//! # What is done with a panic
//!
//! - It *travels* if somebody waits for the task: to the join, the scope, the handle.
//! - It is *told* to the pool's panic handler if nobody does: a detached task, a broadcast that was
//!   spawned, a start or an exit handler.
//! - It is *dropped* if another one travels already (the second of a scope or of a join), as rayon
//!   and `std` do. The panic hook has reported it.
//!
//! # What is done with a destructor that panics
//!
//! What is dropped by the runtime, because nobody takes it, may panic in its destructor: the
//! payload of a panic, a result, what a closure holds. [`dispose`] catches that and drops the
//! payload of the new panic; if that panics as well, its payload is forgotten. `std` ends the
//! process when the payload of a thread's panic panics on drop, and rayon does where any destructor
//! unwinds into a worker: neither has a place to catch it. Here there is one, the hook has
//! printed the message, and the program has another panic under way, or has said that it wants to
//! know nothing of this task. So a box is leaked, and the pool goes on.
//!
//! # Everything of the user's that is called
//!
//! | code | called by | its panic | a lock is held |
//! |---|---|---|---|
//! | body of a scope, of an `interrupt` | the thread that calls, or a worker | travels, once all tasks have ended | no |
//! | task of a scope, and what it captures | a worker | travels: the first one; others are dropped | no |
//! | half of a join, and what it captures | its own worker, or a thief | travels: the first half's, else the second's | no |
//! | result of a half, or of a scope's body, that a panic leaves behind | the joining thread | [`dispose`] | no |
//! | detached task, and what it captures | a worker | in its handle; with none, told | no |
//! | what a task that its pool drops captures | a worker | told | no |
//! | what a cancelled task captures | the thread that cancels it | told | no |
//! | result of a task whose handle is gone | a worker | told | no |
//! | result in a handle that is dropped | the thread that drops the handle | unwinds there | no |
//! | closure of `broadcast` | each worker | travels | no |
//! | closure of `spawn_broadcast`, and its destructor | each worker; the last one | told | no |
//! | `Waker::wake` | the worker that ends the task | told | no |
//! | | the thread that cancels it | unwinds there | no |
//! | `Waker::clone`, `Waker::drop` | the thread that polls, joins, or drops the handle | unwinds there | no |
//! | start and exit handlers | each worker's thread | told; the first makes `build` fail, too, if that waits for it | no |
//! | panic handler | the thread that tells it | [`dispose`] | no |
//! | destructors of the handlers | the last one to know the pool: a worker's thread, or any other | [`dispose`]; unwinds there | no |
//! | name of a thread, spawn handler | the thread that builds | unwinds there, once the threads that run have ended | no |
//! | wrapper of `build_scoped` | each worker's thread | as of any scoped thread of `std` | no |
//! | the panic hook | the thread that panics | `std` ends the process | perhaps one of `std`'s |
//!
//! `tests/it/foreign_code.rs` runs each of them with a panic whose payload panics when it is
//! dropped, and wakers that wait for the task that they belong to.

use std::any::Any;
use std::mem::{self, ManuallyDrop};
use std::panic::{self, AssertUnwindSafe};

/// What code of the user's came to: its value, or what it panicked with.
pub(crate) type Outcome<R> = Result<R, Box<dyn Any + Send>>;

/// Runs code of the user's, and returns what it panicked with.
#[inline(always)]
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Outcome<R> {
    panic::catch_unwind(AssertUnwindSafe(run))
}

/// Runs code of which even a panic must not get out: who should be told of it is told of another
/// one.
pub(crate) fn quietly(run: impl FnOnce()) {
    if let Err(payload) = catch(run) {
        if let Err(payload) = catch(|| drop(payload)) {
            // A payload whose destructor panics, with another one that may do the same.
            mem::forget(payload);
        }
    }
}

/// Drops what nobody takes.
pub(crate) fn dispose<T>(value: T) {
    quietly(|| drop(value));
}

/// A value to be handed on, or [disposed](dispose) of if a panic comes first.
pub(crate) struct Kept<T>(ManuallyDrop<T>);

impl<T> Kept<T> {
    #[inline(always)]
    pub(crate) fn new(value: T) -> Kept<T> {
        Kept(ManuallyDrop::new(value))
    }

    #[inline(always)]
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once: `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Kept<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if const { mem::needs_drop::<T>() } {
            // SAFETY: it is taken once: `into_inner` has not been called.
            dispose(unsafe { ManuallyDrop::take(&mut self.0) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Panics when it is dropped, so many times in a row.
    struct Bomb<'a>(u32, &'a Cell<u32>);

    impl Drop for Bomb<'_> {
        fn drop(&mut self) {
            self.1.set(self.1.get() + 1);
            assert!(self.0 == 0, "a bomb");
        }
    }

    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            panic::panic_any(Endless);
        }
    }

    #[test]
    fn what_is_disposed_of_is_dropped_once_and_its_panic_stays_inside() {
        let drops = Cell::new(0);
        dispose(Bomb(0, &drops));
        dispose(Bomb(1, &drops));
        assert_eq!(drops.get(), 2);
        dispose(Endless);
    }

    #[test]
    fn what_is_kept_is_handed_on_or_disposed_of() {
        let drops = Cell::new(0);
        let bomb = Kept::new(Bomb(0, &drops)).into_inner();
        assert_eq!(drops.get(), 0);
        drop(bomb);
        assert_eq!(drops.get(), 1);
        let result = catch(|| {
            let _kept = (Kept::new(Bomb(1, &drops)), Kept::new(Endless));
            panic::panic_any("the first");
        });
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "the first");
        assert_eq!(drops.get(), 2);
    }
}
