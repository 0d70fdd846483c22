//! `Worker::scope`: any number of forks of different tasks, pushed as the body reaches them and
//! popped when it has ended.
//!
//! # Why it is correct
//!
//! A task is pushed at the head that this scope keeps, by the thread that opened it: [`Forks`] is
//! not `Send`. If that head is not the top of the thread's stack (the body is in another fork, or
//! in an interrupt), its slot is occupied, and the push is refused. So the scope's tasks are all
//! that stands on the stack between its first slot and its head, and the rest of the body leaves
//! the stack as it finds it. They are popped from the last on, whether the body returns or unwinds:
//! each by its own descriptor, as a thief calls it. The scope waits for a stolen task in its turn,
//! as a join waits for its half.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic;

use poach_deque::split::{Popped, PushError};

use super::wait;
use crate::task::half::{Head, Slot, Worker, descriptor, run_popped};
use crate::task::panic::{Outcome, catch, dispose};

/// The tasks of a [`Worker::scope`], while its body runs.
///
/// `'scope` is the lifetime that the tasks' borrows must outlive.
pub struct Forks<'scope> {
    head: Cell<Head>,
    /// The panic of a task that found the stack full.
    panicked: Cell<Option<Box<dyn Any + Send>>>,
    /// Invariant in `'scope`: tasks may both read and write through what they borrow.
    life: PhantomData<fn(&'scope ()) -> &'scope ()>,
    /// The head belongs to its thread.
    not_send: PhantomData<*mut ()>,
}

impl Worker<'_> {
    /// Calls `f`, which forks tasks, and returns what it returns once all tasks have ended.
    ///
    /// A task costs about a join: it is not counted, and not allocated unless it captures more than
    /// 48 bytes. Each task is given a worker, with which it may fork or open a scope of its own.
    /// Tasks that other tasks or threads spawn into the same scope need [`scope`](crate::scope()).
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// use poach::Worker;
    ///
    /// enum Tree {
    ///     Leaf(u64),
    ///     Node(Vec<Tree>),
    /// }
    ///
    /// fn double(mut worker: Worker<'_>, tree: &mut Tree) {
    ///     match tree {
    ///         Tree::Leaf(number) => *number *= 2,
    ///         Tree::Node(trees) => worker.scope(|s| {
    ///             for tree in trees {
    ///                 s.spawn(|w| double(w, tree));
    ///             }
    ///         }),
    ///     }
    /// }
    ///
    /// let mut tree = Tree::Node(vec![Tree::Leaf(1), Tree::Node(vec![Tree::Leaf(2)])]);
    /// poach::worker(|w| double(w, &mut tree));
    /// let Tree::Node(trees) = tree else { panic!() };
    /// assert!(matches!(trees[0], Tree::Leaf(2)));
    /// ```
    ///
    /// # Panics
    ///
    /// Once all tasks have ended: with `f`'s payload if `f` panicked, else with that of a task that
    /// did.
    pub fn scope<'scope, F, R>(&mut self, f: F) -> R
    where
        F: FnOnce(&Forks<'scope>) -> R,
    {
        let bottom = self.head();
        let forks = Forks {
            head: Cell::new(bottom),
            panicked: Cell::new(None),
            life: PhantomData,
            not_send: PhantomData,
        };
        let result = catch(|| f(&forks));
        // SAFETY: the token says that this thread owns the stack, and `bottom` was its top; the
        // body has left above it what `spawn` has pushed.
        unsafe { forks.end(bottom) };
        match (result, forks.panicked.take()) {
            (Ok(result), None) => result,
            (Err(payload), late) => {
                dispose(late);
                panic::resume_unwind(payload)
            }
            (Ok(result), Some(payload)) => {
                dispose(result);
                panic::resume_unwind(payload)
            }
        }
    }
}

impl<'scope> Forks<'scope> {
    /// Forks a task. A thief may take it from now on; if none does, this worker calls it when the
    /// body has ended, the last task first. A task that finds the worker's task stack full is
    /// called at once.
    ///
    /// # Panics
    ///
    /// If the body is in the midst of another fork, or in an [`interrupt`](crate::interrupt()).
    #[inline]
    pub fn spawn<F>(&self, task: F)
    where
        F: FnOnce(Worker<'_>) + Send + 'scope,
    {
        if const { Slot::fits::<F>() } {
            self.push(task);
        } else {
            let task = Box::new(task);
            self.push(move |w: Worker<'_>| task(w));
        }
    }

    #[inline(always)]
    fn push<F>(&self, task: F)
    where
        F: FnOnce(Worker<'_>) + Send + 'scope,
    {
        assert!(Slot::fits::<F>(), "a task in a slot, or its box");
        let (head, task) = (self.head.get(), ManuallyDrop::new(task));
        // SAFETY: this thread owns the stack, which outlives the scope; the descriptor is a
        // static's address, aligned to 8. The task fits, and is not used again unless the push is
        // refused; its borrows outlive the scope. The pop follows in `end`.
        match unsafe { head.push(descriptor::<F, ()>(), &raw const task) } {
            Ok(above) => self.head.set(above),
            Err(error) => self.refused(error, ManuallyDrop::into_inner(task)),
        }
    }

    #[cold]
    #[inline(never)]
    fn refused<F: FnOnce(Worker<'_>)>(&self, error: PushError, task: F) {
        if error == PushError::Occupied {
            drop(task);
            panic!("{error}");
        }
        // SAFETY: the stack is full up to this head, which is its top.
        let call = || task(unsafe { Worker::new(self.head.get()) });
        self.ended(catch(call));
    }

    /// Pops all tasks down to the one at `bottom`, and calls those that were not stolen.
    ///
    /// # Safety
    ///
    /// This thread owns the stack; the tasks of this scope are all that stands on it from `bottom`
    /// on.
    #[inline(always)]
    unsafe fn end(&self, bottom: Head) {
        let mut head = self.head.get();
        while head.as_ptr() != bottom.as_ptr() {
            // SAFETY: a task was pushed there.
            head = unsafe { super::all::below(head) };
            // SAFETY: this thread owns the stack, and the topmost task is at this head.
            let outcome = match unsafe { head.pop() } {
                // SAFETY: it was popped, and is a task without a result.
                Popped::Own => unsafe { run_popped(head) },
                Popped::Stolen => wait(head),
            };
            self.ended(outcome);
        }
    }

    /// Keeps the first panic.
    #[inline(always)]
    fn ended(&self, outcome: Outcome<()>) {
        if let Err(payload) = outcome {
            self.keep(payload);
        }
    }

    #[cold]
    fn keep(&self, payload: Box<dyn Any + Send>) {
        match self.panicked.take() {
            None => self.panicked.set(Some(payload)),
            first => {
                self.panicked.set(first);
                dispose(payload);
            }
        }
    }
}

impl fmt::Debug for Forks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forks").finish_non_exhaustive()
    }
}
