//! Every call of the user's code, and the handling of its panics.
//!
//! # The barrier
//!
//! Frames of the runtime are lent to tasks: the frames of a scope, of a join whose half was stolen,
//! of a thread that waits for a call. A panic that left such a frame before its tasks have ended
//! would free memory that they use. So no task unwinds into the worker that runs it. Every task,
//! spawned or stolen, is called through a function pointer of the C ABI (`Vtable::run` in `value`,
//! `Descriptor::run` in `half`). That ends the process rather than let a panic through, and costs
//! nothing without one. It is the last line of defence, and no known panic reaches it: inside, each
//! kind of task catches its panics, and says where they go.
//!
//! # What is done with a panic
//!
//! - It *travels* if a thread waits for the task: to the join, the scope, the handle.
//! - It is *told* to the pool's panic handler otherwise: that of a detached task, of a spawned
//!   broadcast, of a start or an exit handler.
//! - It is *dropped* if another one travels already (the second of a scope or of a join), as rayon
//!   and `std` do. The panic hook has reported it.
//!
//! # What is done with a destructor that panics
//!
//! A value that the runtime drops, because no thread takes it, may panic in its destructor: the
//! payload of a panic, a result, a closure's capture. [`dispose`] catches that and drops the
//! payload of the new panic; if that panics as well, its payload is forgotten. `std` ends the
//! process when the payload of a thread's panic panics on drop, and rayon does where any destructor
//! unwinds into a worker: neither has a place to catch it. Here there is one, and the hook has
//! printed the message. The program has another panic under way, or has dropped its interest in
//! this task. So a box is leaked, and the pool goes on.
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
//! dropped, and wakers that wait for their own task.

use std::any::Any;
use std::mem::{self, ManuallyDrop};
use std::panic::{self, AssertUnwindSafe};

/// The outcome of the user's code: its value, or its panic's payload.
pub(crate) type Outcome<R> = Result<R, Box<dyn Any + Send>>;

/// Runs code of the user's, and catches its panic.
#[inline(always)]
pub(crate) fn catch<R>(run: impl FnOnce() -> R) -> Outcome<R> {
    panic::catch_unwind(AssertUnwindSafe(run))
}

/// Runs code whose panic must not get out, and of which no thread is told.
pub(crate) fn quietly(run: impl FnOnce()) {
    if let Err(payload) = catch(run) {
        if let Err(payload) = catch(|| drop(payload)) {
            // A payload whose destructor panics, with a payload that may do the same.
            mem::forget(payload);
        }
    }
}

/// Drops a value that no thread takes.
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

    /// Panics when it is dropped, that number of times in a row.
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
