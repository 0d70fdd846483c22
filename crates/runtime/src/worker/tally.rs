//! The count of a scope's unfinished tasks, biased to the scope's own worker.
//!
//! The worker that opened a scope spawns and runs most of its tasks. It counts in a plain cell; the
//! others count in an atomic word. Both are signed: a task spawned here and run there adds one here
//! and subtracts one there. The scope is finished when the sum is zero. The address of a
//! [`WorkerThread`] names the *keeper*, the worker that counts in the cell, so each spawn and each
//! end takes one comparison.
//!
//! Only the opening worker can read both, and so decide. Before it sleeps, it moves its own count
//! to the word and from then on counts there as well. Then a worker that brings the word to zero
//! has ended the last task, and wakes the opening worker. Before that, a word at zero means
//! nothing, and the wake-up does no harm.
//!
//! A task does not subtract itself from a count. It returns where it is counted, and the worker
//! that has run it subtracts it there ([`WorkerThread::count_down`]). So the opening worker, which
//! waits for its scope and runs its tasks one after the other, counts their ends in a register.
//!
//! A scope whose body runs outside of its pool, [in place](crate::in_place_scope), has no opening
//! worker: all count in the word, which starts at one for the body itself. The task, or the body,
//! that brings the word to zero is the last, and signals the waiting thread.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::shared::{OpenPool, PoolShared};
use crate::task::frame::Address;
use crate::task::panic::{catch, dispose};
use crate::task::value::{Ended, Fresh};
use crate::worker::current::WorkerThread;
use crate::worker::fifo::Fifo;
use crate::worker::signal::Signal;
use poach_memory::{Machine, Memory, Ordering, Word};

/// The payload of the first panic in a scope.
type Payload = Option<Box<dyn Any + Send>>;

type SharedWord = <Machine as Memory>::Word;
type SharedPointer<T> = <Machine as Memory>::Pointer<T>;

/// How many tasks the opening worker runs, one after the other, between two looks at the others'
/// count. It looks after each task of its queue that is not the scope's, so it runs at most one of
/// these after the scope's last task has ended elsewhere.
///
/// A look takes the word's cache line from the workers that count in it, which then wait for it in
/// turn. With a look every 32 tasks, a scope of 10,000 empty ones took 5.5 ns a task on two
/// workers, with one every 256 or 1,024 it took 3.3.
const BLIND: i64 = 256;

/// The part that all scopes have.
pub(crate) struct Base<'scope> {
    pub(crate) tally: Tally,
    panic: Mutex<Payload>,
    /// Invariant in `'scope`: tasks may both read and write through what they borrow.
    life: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// The count of a scope's tasks, and the worker or thread that waits for them.
pub(crate) struct Tally {
    pending: Pending,
    shared: Arc<PoolShared>,
    opener: Opener,
}

enum Opener {
    /// The opening worker, by its index.
    Own(usize),
    /// A thread that is no worker of the scope's pool.
    Outside(Signal),
}

/// The queue for a scope's task. A task for no particular worker that a worker of the scope's pool
/// did not spawn goes to the pool.
#[derive(Clone, Copy)]
pub(crate) enum Destination<'s> {
    /// Into the worker's own queue.
    Own,
    /// The same, after the worker's earlier tasks: a queue for each worker.
    InOrder(&'s [Arc<Fifo>]),
    /// To the worker of this index in the pool.
    To(usize, &'s OpenPool),
}

pub(crate) trait ScopeKind<'scope>: Sync {
    fn base(&self) -> &Base<'scope>;
}

impl Base<'_> {
    #[inline(always)]
    pub(crate) fn new(tally: Tally) -> Self {
        Base { tally, panic: Mutex::new(None), life: PhantomData }
    }

    /// Keeps the first panic for the scope's end.
    #[cold]
    fn panicked(&self, payload: Box<dyn Any + Send>) {
        keep_first(self.lock(), payload);
    }

    /// One task more, whose panic is the scope's, until the value is dropped, by any thread.
    pub(crate) fn hold(&self) -> HeldScope {
        HeldScope { panic: Address::new(&self.panic), held: self.tally.hold() }
    }

    pub(crate) fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Payload> {
        self.tally.shared.process_guard.lock(&self.panic)
    }
}

impl Tally {
    /// For a scope that this worker opens.
    #[inline(always)]
    pub(crate) fn new(local: &WorkerThread) -> Tally {
        Tally {
            pending: Pending::new(local),
            shared: Arc::clone(&local.shared),
            opener: Opener::Own(local.index),
        }
    }

    /// For a scope that this thread opens in a pool of which it is no worker; it may be a worker of
    /// another.
    pub(crate) fn outside(shared: &Arc<PoolShared>, local: Option<&WorkerThread>) -> Tally {
        Tally {
            pending: Pending::with_body(),
            shared: Arc::clone(shared),
            opener: Opener::Outside(Signal::new(local)),
        }
    }

    /// The pool whose workers run the scope's tasks.
    pub(crate) fn shared(&self) -> &Arc<PoolShared> {
        &self.shared
    }

    /// Counts a task, and sends it to its destination.
    ///
    /// # Panics
    ///
    /// In a process forked since the pool was made, if this thread is not one of its workers.
    #[inline]
    pub(crate) fn spawn<'scope, S, F>(scope: &S, closure: F, destination: Destination<'_>)
    where
        S: ScopeKind<'scope> + 'scope,
        F: FnOnce(&S) + Send + 'scope,
    {
        let address = Address::new(scope);
        let run = move || {
            // No reference is kept: it would have to be valid until this closure returns, and the
            // scope may be gone as soon as the task is taken off its count.
            let scope: *const S = address.get();
            // SAFETY: the scope stays where it is until `ended`.
            if let Err(payload) = catch(|| closure(unsafe { &*scope })) {
                // SAFETY: the scope stays where it is until `ended`.
                unsafe { &*scope }.base().panicked(payload);
            }
            // SAFETY: the scope stays where it is until `ended`.
            let tally = &raw const unsafe { &*scope }.base().tally;
            // The task was counted there, and does not use the scope any more.
            Ended { counted_in: tally.cast() }
        };
        // SAFETY: what the closure borrows outlives 'scope, and the scope does not end before its
        // tasks have been taken off its count.
        let task = unsafe { Fresh::new(run) };
        let tally = &scope.base().tally;
        WorkerThread::with(|local| {
            let is_own = matches!(destination, Destination::Own);
            match local {
                Some(local) if is_own && tally.pending.add_own(local) => local.spawn_fresh(task),
                _ => tally.send(local, task, destination),
            }
        });
    }

    /// Counts a task, and sends it to its destination.
    #[inline(never)]
    fn send<F>(&self, local: Option<&WorkerThread>, task: Fresh<F>, destination: Destination<'_>)
    where
        F: FnOnce() -> Ended + Send,
    {
        match local {
            Some(local) if ptr::eq(&raw const *local.shared, &raw const *self.shared) => {
                self.pending.add(Some(local));
                match destination {
                    Destination::Own => local.spawn_fresh(task),
                    Destination::InOrder(fifos) => {
                        local.spawn(fifos[local.index].ticket(task.task()));
                    }
                    Destination::To(index, pool) => pool.post(index, task.task()),
                }
            }
            _ => {
                self.shared.process_guard.check();
                self.pending.add(None);
                match destination {
                    Destination::Own | Destination::InOrder(_) => self.shared.inject(task.task()),
                    Destination::To(index, pool) => pool.post(index, task.task()),
                }
            }
        }
    }

    /// A task that `local`, a worker of the scope's pool, has run has ended. If `local` is not the
    /// opening worker, the scope may be gone when this returns.
    ///
    /// # Safety
    ///
    /// The task was counted in this tally, and is taken off once, here.
    #[inline(always)]
    unsafe fn ended(tally: *const Tally, local: &WorkerThread) {
        // SAFETY: the task is still counted, so the scope still stands.
        let pending = unsafe { &(*tally).pending };
        if !pending.remove_own(local) {
            // SAFETY: by this function's contract.
            unsafe { Tally::ended_away(tally, &local.shared) };
        }
    }

    /// Counts one more task, by any thread, until the value is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.pending.add(None);
        Held { tally: Address::new(self), shared: Arc::clone(&self.shared) }
    }

    /// [`ended`](Tally::ended) of a task that is counted in the word. `shared` is that of the
    /// scope's pool.
    ///
    /// # Safety
    ///
    /// As for `ended`.
    #[inline(never)]
    unsafe fn ended_away(tally: *const Tally, shared: &PoolShared) {
        // Copied out, since the scope may be gone by the time it is needed.
        // SAFETY: the task is still counted, so the scope still stands.
        let opener = match unsafe { &(*tally).opener } {
            Opener::Own(index) => Opener::Own(*index),
            Opener::Outside(signal) => Opener::Outside(signal.clone()),
        };
        // A reference to the atomic word alone, not to its neighbours: it may dangle while `remove`
        // returns.
        // SAFETY: the task is still counted, so the scope still stands.
        let away = unsafe { &(*tally).pending.away.0 };
        if Pending::remove(away) {
            match opener {
                // The scope's own `PoolShared` may go with it; the caller's is the same, and stays.
                Opener::Own(index) => shared.sleep.wake(index),
                Opener::Outside(signal) => signal.set(),
            }
        }
    }

    /// [`wait`](Tally::wait) on the opening worker.
    fn wait_as_owner(&self, local: &WorkerThread) {
        if local.nesting_depth.is_deep() || local.shared.has_awaitable() {
            // It begins no task that was there before the scope.
            local.run_above(self.pending.below);
        } else {
            self.run_own(local);
        }
        let done = || {
            // SAFETY: this is the opening worker, which opened the scope.
            unsafe { self.pending.unfinished() == 0 }
        };
        if !done() {
            self.pending.fold(local);
            local.wait_for_any(&done, &|| false);
        }
    }

    /// Runs tasks of the opening worker's own queue until all of the scope have ended, or the queue
    /// is empty, or an interrupt calls.
    #[inline(always)]
    fn run_own(&self, local: &WorkerThread) {
        let calls = &local.slot().calls;
        loop {
            // SAFETY: this is the opening worker, which opened the scope.
            let unfinished = unsafe { self.pending.unfinished() };
            if unfinished == 0 {
                return;
            }
            // Others write their count all the time, if their tasks are short; so it is not read
            // after each task. Nor is this worker's own count written, which would be a store and a
            // load for the next task to wait for.
            let most = unfinished.min(BLIND);
            let mut ended = 0;
            let mut other = None;
            // Read before the look, so that a later call changes the number of calls.
            let called = calls.puts();
            if !calls.is_empty() {
                // The other loop answers them.
                return;
            }
            local.run_each(|end| {
                if !ptr::eq(end.counted_in, ptr::from_ref(self).cast()) {
                    other = Some(end);
                    return false;
                }
                ended += 1;
                ended != most && calls.puts() == called
            });
            if ended == 0 && other.is_none() {
                other = local.run_next();
                if other.is_none() {
                    return;
                }
            }
            // SAFETY: this is the opening worker, which opened the scope.
            unsafe { self.pending.remove_many_own(ended) };
            if let Some(other) = other {
                local.count_down(other);
            }
        }
    }

    /// Waits until all tasks have ended, on the thread that opened the scope.
    pub(crate) fn wait(&self, local: Option<&WorkerThread>) {
        match (&self.opener, local) {
            (Opener::Own(_), Some(local)) => self.wait_as_owner(local),
            (Opener::Own(_), None) => unreachable!("a worker's scope is waited for by it"),
            (Opener::Outside(signal), _) => {
                if !Pending::remove(&self.pending.away.0) {
                    signal.wait(local);
                }
            }
        }
    }
}

impl WorkerThread {
    /// Takes a task that this worker has run off its count, if it has one.
    #[inline(always)]
    pub(crate) fn count_down(&self, ended: Ended) {
        let tally: *const Tally = ended.counted_in.cast();
        if !tally.is_null() {
            // SAFETY: a task of a scope names the tally in which it was counted, once; and the
            // scope, whose task this was, has not ended.
            unsafe { Tally::ended(tally, self) };
        }
    }
}

fn keep_first(mut first: MutexGuard<'_, Payload>, payload: Box<dyn Any + Send>) {
    if first.is_none() {
        *first = Some(payload);
    } else {
        // After the lock is released: its destructor is the user's.
        drop(first);
        dispose(payload);
    }
}

/// As [`Held`], with the place of the scope's panic.
pub(crate) struct HeldScope {
    panic: Address<Mutex<Payload>>,
    held: Held,
}

impl HeldScope {
    /// That of the scope's pool.
    pub(crate) fn shared(&self) -> &Arc<PoolShared> {
        &self.held.shared
    }

    /// Keeps the first panic for the scope's end.
    #[cold]
    pub(crate) fn panicked(&self, payload: Box<dyn Any + Send>) {
        // SAFETY: the scope, of which this is a part, does not end while it is held.
        let panic = unsafe { &*self.panic.address() };
        keep_first(self.shared().process_guard.lock(panic), payload);
    }
}

/// A task of a scope, which does not end before it.
pub(crate) struct Held {
    tally: Address<Tally>,
    shared: Arc<PoolShared>,
}

impl Held {
    /// That of the scope's pool.
    pub(crate) fn shared(&self) -> &Arc<PoolShared> {
        &self.shared
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it was counted in the word when it was made, and is taken off once, here.
        unsafe { Tally::ended_away(self.tally.address(), &self.shared) };
    }
}

/// A cache line. (A pair of them, as elsewhere, would make a scope of half a kilobyte, which is
/// moved once.)
#[repr(align(64))]
struct Line<T>(T);

struct Pending {
    /// Used only by the thread that acts as the opening worker. On a line of its own, because that
    /// thread writes it all the time, and others read the fields beside it.
    own: Line<Cell<i64>>,
    /// The opening worker, while it counts in `own`; or null.
    keeper: SharedPointer<WorkerThread>,
    /// The top of the opening worker's queue before the first task.
    below: u64,
    /// On a line of its own: thieves of small tasks write it all the time.
    away: Line<SharedWord>,
}

// SAFETY: `own` is only used by the thread whose `WorkerThread` is the keeper, and in `unfinished`
// by the thread of the opening worker. One thread at a time uses a `WorkerThread`, that of its
// worker or its guest. The opening worker's stays in place with the thread that opened the scope
// until the scope has ended. The other two are atomic.
unsafe impl Sync for Pending {}

impl Pending {
    /// For a scope that this worker opens.
    fn new(opener: &WorkerThread) -> Self {
        let keeper = SharedPointer::new(ptr::from_ref(opener).cast_mut());
        let away = Line(Word::new(0));
        Pending { own: Line(Cell::new(0)), keeper, below: opener.top(), away }
    }

    /// For a scope without an opening worker, which counts its body, too.
    fn with_body() -> Self {
        let keeper = SharedPointer::new(ptr::null_mut());
        let away = Line(Word::new(1));
        Pending { own: Line(Cell::new(0)), keeper, below: 0, away }
    }

    /// Whether this worker counts in `own`.
    #[inline(always)]
    fn is_kept_by(&self, local: &WorkerThread) -> bool {
        // Relaxed: the word changes once, on the keeper's own thread; to any other thread it never
        // names that thread's worker.
        ptr::eq(self.keeper.load(Ordering::Relaxed), ptr::from_ref(local))
    }

    /// Counts one more task, if this worker is the keeper.
    #[inline(always)]
    fn add_own(&self, local: &WorkerThread) -> bool {
        let counts_here = self.is_kept_by(local);
        if counts_here {
            self.own.0.set(self.own.0.get() + 1);
        }
        counts_here
    }

    /// Counts one task less, if this worker is the keeper.
    #[inline(always)]
    fn remove_own(&self, local: &WorkerThread) -> bool {
        let counts_here = self.is_kept_by(local);
        if counts_here {
            // SAFETY: this is the keeper.
            unsafe { self.remove_many_own(1) };
        }
        counts_here
    }

    /// Counts `tasks` tasks less.
    ///
    /// # Safety
    ///
    /// On the thread of the opening worker.
    #[inline(always)]
    unsafe fn remove_many_own(&self, tasks: i64) {
        self.own.0.set(self.own.0.get().wrapping_sub(tasks));
    }

    /// Counts one more task.
    fn add(&self, local: Option<&WorkerThread>) {
        if !local.is_some_and(|local| self.add_own(local)) {
            // Relaxed: the task that adds is itself still counted, so the sum is not near zero.
            self.away.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one task less, in the word `away`. Returns whether the opening worker may be waiting
    /// for just this task. The scope, and the word with it, may be gone when this returns.
    fn remove<W: Word>(away: &W) -> bool {
        // AcqRel: releases what the task did to `unfinished_away`, through later subtractions too,
        // and to a body whose end is the last.
        away.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The word `away`: the number of unfinished tasks counted there.
    #[inline(always)]
    fn unfinished_away<W: Word>(away: &W) -> i64 {
        // Acquire: sees what the tasks did; pairs with `remove`.
        away.load(Ordering::Acquire) as i64
    }

    /// The number of unfinished tasks.
    ///
    /// # Safety
    ///
    /// On the thread of the opening worker.
    #[inline(always)]
    unsafe fn unfinished(&self) -> i64 {
        self.own.0.get().wrapping_add(Self::unfinished_away(&self.away.0))
    }

    /// Moves the opening worker's count to the word: from now on each end of a task that brings it
    /// to zero is signalled.
    fn fold(&self, local: &WorkerThread) {
        if self.is_kept_by(local) {
            // Relaxed, both: only the count itself matters, and the keeper knows that it no longer
            // keeps.
            self.keeper.store(ptr::null_mut(), Ordering::Relaxed);
            self.away.0.fetch_add(self.own.0.replace(0) as u64, Ordering::Relaxed);
        }
    }
}

// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use super::*;

    /// Two tasks of a scope, each of which uses something of its own; `wait` says whether both have
    /// ended.
    fn ends(count: u64, has_ended: fn(&AtomicU64) -> bool) {
        loom::model(move || {
            let away: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(count)));
            let used: [&'static UnsafeCell<()>; 2] =
                [(); 2].map(|()| &*Box::leak(Box::new(UnsafeCell::new(()))));
            let tasks = used.map(|used| {
                thread::spawn(move || {
                    used.with_mut(|_| ());
                    Pending::remove(away)
                })
            });
            let ended = has_ended(away);
            if ended {
                let _ = used.map(|used| used.with_mut(|_| ()));
            }
            let [one, two] = tasks.map(|task| task.join().unwrap());
            // Of all that are counted one is the last.
            assert_eq!(u32::from(one) + u32::from(two), u32::from(count == 2 || !ended));
        });
    }

    #[test]
    fn an_opening_worker_that_finds_no_task_left_has_what_they_did() {
        ends(2, |away| Pending::unfinished_away(away) == 0);
    }

    /// Once it has moved its count over, the opening worker counts in the word as all others do.
    #[test]
    fn who_has_folded_its_count_counts_in_the_word() {
        let pool = crate::ThreadPool::builder().num_threads(1).build().unwrap();
        pool.install(|| {
            WorkerThread::with(|local| {
                let local = local.unwrap();
                let pending = Pending::new(local);
                assert!(pending.add_own(local));
                pending.fold(local);
                assert!(!pending.add_own(local));
                pending.add(Some(local));
                // SAFETY: this is the opening worker.
                assert_eq!(unsafe { pending.unfinished() }, 2);
                assert!(!pending.remove_own(local));
                let ends = [(); 2].map(|()| Pending::remove(&pending.away.0));
                assert_eq!(ends, [false, true]);
            });
        });
    }

    #[test]
    fn a_worker_that_waits_for_its_tasks_answers_a_call_first() {
        let pool = crate::ThreadPool::builder().num_threads(1).build().unwrap();
        let ran = AtomicUsize::new(0);
        std::thread::scope(|threads| {
            let interrupter = pool.install(|| {
                crate::scope(|s| {
                    for _ in 0..3 {
                        s.spawn(|_| _ = ran.fetch_add(1, Ordering::Relaxed));
                    }
                    let interrupt = || pool.interrupt(|| ran.load(Ordering::Relaxed));
                    let interrupter = threads.spawn(interrupt);
                    let is_called =
                        || WorkerThread::with(|local| !local.unwrap().slot().calls.is_empty());
                    while !is_called() {
                        std::thread::yield_now();
                    }
                    interrupter
                })
            });
            assert_eq!(interrupter.join().unwrap(), 0);
        });
        assert_eq!(ran.into_inner(), 3);
    }

    #[test]
    fn a_body_that_ends_last_has_what_the_tasks_did() {
        ends(3, Pending::remove);
    }
}
