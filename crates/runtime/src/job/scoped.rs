//! The count of a scope's unfinished tasks, biased to the scope's own worker.
//!
//! Most tasks of a scope are spawned and run by the worker that opened it. That worker counts in a
//! plain cell; the others in an atomic word. Both are signed: a task spawned here and run there adds
//! one here and takes one there. The scope is finished when the sum is zero.
//!
//! The home worker alone can judge that, since it alone can read both. Before it sleeps, it moves its
//! own count over to the word and from then on counts there as well; then a worker that brings the
//! word to zero has ended the last task, and wakes the home worker. Before that, a word at zero means
//! nothing, and the wake-up does no harm.
//!
//! A scope whose body runs outside of its pool, [in place](crate::in_place_scope), has no home worker:
//! everybody counts in the word, which starts at one for the body itself. Whoever takes off the last
//! one, a task or the body, knows that it is the last, and says so to the thread that waits.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use super::current::Local;
use super::shared::Address;
use super::task::{Fresh, catch};
use crate::fifo::Fifo;
use crate::latch::Signal;
use crate::registry::Registry;
use crate::scope::Base;
use poach_memory::{Machine, Memory, Ordering};

type SharedWord = <Machine as Memory>::Word;

/// Where a scope's tasks are counted, and who waits for them.
pub(crate) struct Tally {
    pending: Pending,
    registry: Arc<Registry>,
    waiter: Waiter,
}

enum Waiter {
    /// The home worker, by its index.
    Home(usize),
    /// A thread that is no worker of the scope's pool.
    Outside(Signal),
}

/// Where a scope's task goes. What does not come from a worker of the scope's pool, and is not for one
/// worker, goes to the pool.
#[derive(Clone, Copy)]
pub(crate) enum Way<'s> {
    /// Into the worker's own queue.
    Own,
    /// There, behind what the worker has spawned before: a queue for each worker.
    InOrder(&'s [Arc<Fifo>]),
    /// To the worker of this index.
    To(usize),
}

/// A scope in any of its forms.
pub(crate) trait Form<'scope>: Sync {
    fn base(&self) -> &Base<'scope>;
}

impl Tally {
    /// For a scope that this worker opens.
    pub(crate) fn new(local: &Local) -> Tally {
        Tally {
            pending: Pending::new(),
            registry: Arc::clone(&local.registry),
            waiter: Waiter::Home(local.index),
        }
    }

    /// For a scope that this thread opens in a pool that it is no worker of; it may be one of
    /// another.
    pub(crate) fn outside(registry: &Arc<Registry>, local: Option<&Local>) -> Tally {
        Tally {
            pending: Pending::with_body(),
            registry: Arc::clone(registry),
            waiter: Waiter::Outside(Signal::new(local)),
        }
    }

    /// The pool whose workers run the scope's tasks.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Whether this worker, of any pool, is the one that opened the scope.
    #[inline(always)]
    fn is_home(&self, local: &Local) -> bool {
        matches!(self.waiter, Waiter::Home(index) if local.index == index)
            && ptr::eq(&raw const *local.registry, &raw const *self.registry)
    }

    /// Counts a task, and sends it on its way.
    ///
    /// # Panics
    ///
    /// In a process forked since the pool was made, if this thread is not one of its workers.
    #[inline]
    pub(crate) fn spawn<'scope, S, F>(scope: &S, closure: F, way: Way<'_>)
    where
        S: Form<'scope> + 'scope,
        F: FnOnce(&S) + Send + 'scope,
    {
        let address = Address::new(scope);
        let run = move || {
            // Not a reference for long: it would have to be valid until this closure returns, and the
            // scope may be gone as soon as the task is taken off its count.
            let scope: *const S = address.get();
            // SAFETY: the scope stays where it is until `ended`.
            if let Err(payload) = catch(|| closure(unsafe { &*scope })) {
                // SAFETY: as above.
                unsafe { &*scope }.base().panicked(payload);
            }
            // SAFETY: as above.
            let tally = &raw const unsafe { &*scope }.base().tally;
            // SAFETY: the task was counted, and uses the scope no more.
            unsafe { Tally::ended(tally) };
        };
        // SAFETY: what the closure borrows outlives 'scope, and the scope does not end before its
        // tasks have been taken off its count.
        let task = unsafe { Fresh::new(run) };
        let tally = &scope.base().tally;
        Local::with(|local| match local {
            Some(local) if ptr::eq(&raw const *local.registry, &raw const *tally.registry) => {
                // SAFETY: compared with the worker that made the count.
                unsafe { tally.pending.add(tally.is_home(local)) };
                match way {
                    Way::Own => local.spawn_fresh(task),
                    Way::InOrder(fifos) => local.spawn(fifos[local.index].ticket(task.task())),
                    Way::To(index) => tally.registry.post(index, task.task()),
                }
            }
            _ => {
                tally.registry.birth.check();
                // SAFETY: not the worker that made the count.
                unsafe { tally.pending.add(false) };
                match way {
                    Way::Own | Way::InOrder(_) => tally.registry.inject(task.task()),
                    Way::To(index) => tally.registry.post(index, task.task()),
                }
            }
        });
    }

    /// A task has ended, on a worker of the scope's pool. If that is not the home worker, the scope
    /// may be gone when this returns.
    ///
    /// # Safety
    ///
    /// The task was counted in this tally, and is taken off once, here.
    #[inline]
    unsafe fn ended(tally: *const Tally) {
        Local::with(|local| {
            let local = local.expect("a scope's tasks run on workers");
            // SAFETY: the task is still counted, so the scope still stands.
            let is_home = unsafe { &*tally }.is_home(local);
            // Copied out, since the scope may be gone by the time it is needed.
            // SAFETY: as above.
            let waiter = match unsafe { &(*tally).waiter } {
                Waiter::Home(index) => Waiter::Home(*index),
                Waiter::Outside(signal) => Waiter::Outside(signal.clone()),
            };
            // A reference to nothing but cells: it may dangle while `remove` returns.
            // SAFETY: as above.
            let pending = unsafe { &(*tally).pending };
            // SAFETY: compared with the worker that made the count.
            if unsafe { pending.remove(is_home) } {
                match waiter {
                    // The task's pool is the scope's, so its registry will do, and outlives this.
                    Waiter::Home(index) => local.registry.sleep.wake(index),
                    Waiter::Outside(signal) => signal.set(),
                }
            }
        });
    }

    /// Works until all tasks have ended: what [`wait`](Tally::wait) is on the scope's own worker.
    fn wait_at_home(&self, local: &Local) {
        let done = || {
            // SAFETY: this is the thread that made the count.
            unsafe { self.pending.is_zero() }
        };
        // A call ends the short loop: the long one answers it.
        while !done() && local.remote().calls.is_empty() && local.run_own() {}
        if !done() {
            // SAFETY: as above.
            unsafe { self.pending.fold() };
            local.wait_for_any(&done);
        }
    }

    /// Waits until all tasks have ended, on the thread that opened the scope.
    pub(crate) fn wait(&self, local: Option<&Local>) {
        match (&self.waiter, local) {
            (Waiter::Home(_), Some(local)) => self.wait_at_home(local),
            (Waiter::Home(_), None) => unreachable!("a worker's scope is waited for by it"),
            (Waiter::Outside(signal), _) => {
                // SAFETY: there is no home worker.
                if !unsafe { self.pending.remove(false) } {
                    signal.wait(local);
                }
            }
        }
    }
}

struct Pending {
    home: Cell<i64>,
    folded: Cell<bool>,
    away: SharedWord,
}

// SAFETY: `home` and `folded` are only used where `is_home` is true, on the one thread that made the
// scope: that is the contract of each method that takes it. `away` is atomic.
unsafe impl Sync for Pending {}

impl Pending {
    fn new() -> Self {
        Pending { home: Cell::new(0), folded: Cell::new(false), away: SharedWord::new(0) }
    }

    /// For a scope without a home worker, whose body is counted too.
    fn with_body() -> Self {
        Pending { home: Cell::new(0), folded: Cell::new(true), away: SharedWord::new(1) }
    }

    /// One task more.
    ///
    /// # Safety
    ///
    /// `is_home` is true only on the thread that made this count.
    #[inline(always)]
    unsafe fn add(&self, is_home: bool) {
        if is_home && !self.folded.get() {
            self.home.set(self.home.get() + 1);
        } else {
            // Relaxed: the task that adds is itself still counted, so the sum is not near zero.
            self.away.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One task less. Returns whether the home worker may be waiting for just this one. If not home,
    /// the scope may be gone when this returns.
    ///
    /// # Safety
    ///
    /// `is_home` is true only on the thread that made this count.
    #[inline(always)]
    unsafe fn remove(&self, is_home: bool) -> bool {
        if is_home && !self.folded.get() {
            self.home.set(self.home.get() - 1);
            false
        } else {
            // AcqRel: releases what the task did to the home worker's `is_zero`, through those that
            // come after it too.
            self.away.fetch_sub(1, Ordering::AcqRel) == 1
        }
    }

    /// Whether no task is left.
    ///
    /// # Safety
    ///
    /// On the thread that made this count.
    unsafe fn is_zero(&self) -> bool {
        // Acquire: sees what the tasks did; pairs with `remove`.
        self.home.get().wrapping_add(self.away.load(Ordering::Acquire) as i64) == 0
    }

    /// Moves the home count over: from now on every end of a task that leaves none says so.
    ///
    /// # Safety
    ///
    /// On the thread that made this count.
    unsafe fn fold(&self) {
        if !self.folded.replace(true) {
            // Relaxed: the count itself is all that matters.
            self.away.fetch_add(self.home.replace(0) as u64, Ordering::Relaxed);
        }
    }
}
