//! Whether this process is a copy, made by `fork()`, of the one that started a pool's threads.
//!
//! `fork()` copies the calling thread alone. A pool made before it has no threads in the child, and
//! its locks may be held for ever by threads that are not there: a call that waits for it would
//! never return. So each pool remembers the count of forks at which it was made, and a call that
//! would wait, or take a lock, compares it first.
//!
//! The global pool is one a process: a child that asks for it makes its own ([`PerProcess`]).
//!
//! A handler registered with `pthread_atfork` keeps the count. Comparing process ids would not do:
//! `getpid` is a system call, while reading a word costs nothing, and a child in a new process
//! namespace may well have its parent's number. A copy made past the C library (a raw `clone`, a
//! `vfork`) runs no handlers; POSIX lets such a child do little but `exec` anyway.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use poach_memory::{Machine, Memory, Pointer};

/// How many forks lie between the first process and this one.
static PROCESS_FORKS: AtomicU64 = AtomicU64::new(0);

const MESSAGE: &str = "this process was forked from the one that made the thread pool, and the \
                       pool's threads did not come along: make a new pool after fork(), or call \
                       fork() before the pool is made";

/// The process in which something was made.
#[derive(Clone, Copy)]
pub(crate) struct ProcessGuard(u64);

impl ProcessGuard {
    /// This process.
    pub(crate) fn here() -> ProcessGuard {
        watch();
        // Relaxed: the count changes only while a process has one thread.
        ProcessGuard(PROCESS_FORKS.load(Ordering::Relaxed))
    }

    /// Whether this process was forked since.
    #[inline]
    pub(crate) fn is_elsewhere(self) -> bool {
        // Relaxed: as in `here`.
        PROCESS_FORKS.load(Ordering::Relaxed) != self.0
    }

    /// # Panics
    ///
    /// If this process was forked since.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self) {
        if self.is_elsewhere() {
            elsewhere();
        }
    }

    /// As [`check`](ProcessGuard::check), where a panic must not unwind, since frames below are
    /// lent out to tasks: ends the process, with the same message.
    #[inline]
    pub(crate) fn check_or_abort(self) {
        if self.is_elsewhere() {
            let _guard = AbortOnUnwind("a forked worker waits for workers that are not there");
            elsewhere();
        }
    }
}

impl ProcessGuard {
    /// Locks `mutex`, poisoned or not. In a process forked since: unless it is held, which then is
    /// for ever, by a thread that is not there.
    #[inline]
    pub(crate) fn try_lock<T: ?Sized>(self, mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
        // First of all in the way that waits for nobody: it mostly succeeds, and then the process
        // does not matter.
        match mutex.try_lock() {
            Ok(guard) => Some(guard),
            Err(error) => self.lock_held(mutex, error),
        }
    }

    #[cold]
    fn lock_held<'m, T: ?Sized>(
        self,
        mutex: &'m Mutex<T>,
        error: TryLockError<MutexGuard<'m, T>>,
    ) -> Option<MutexGuard<'m, T>> {
        match error {
            TryLockError::Poisoned(poisoned) => Some(poisoned.into_inner()),
            TryLockError::WouldBlock if self.is_elsewhere() => None,
            TryLockError::WouldBlock => Some(mutex.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// As [`try_lock`](ProcessGuard::try_lock), where there is no way on without the lock: ends the
    /// process, with the message of [`check`](ProcessGuard::check).
    #[inline]
    pub(crate) fn lock<T: ?Sized>(self, mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        self.try_lock(mutex).unwrap_or_else(|| {
            let _guard =
                AbortOnUnwind("a forked worker needs a lock that a thread of its parent holds");
            elsewhere()
        })
    }
}

/// A value that each process has one of: made by its default where it is first asked for, and again
/// in a forked child.
///
/// A `OnceLock` in it may be held at a fork by a thread that is not there in the child. The child
/// never looks at it: it has a value of its own, and its copy of the parent's stays where it is,
/// for what was borrowed from it.
pub(crate) struct PerProcess<T: 'static, M: Memory = Machine> {
    current: M::Pointer<InProcess<T>>,
}

struct InProcess<T> {
    process: ProcessGuard,
    value: T,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess { current: AtomicPtr::new(ptr::null_mut()) }
    }
}

impl<T: Default + Sync, M: Memory> PerProcess<T, M> {
    /// This process's value. Lock-free: threads that ask for the first time at once make one each,
    /// and all get the same.
    #[inline]
    pub(crate) fn get(&'static self) -> &'static T {
        // Acquire: pairs with the exchange in `make`, before which the value was made.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: it is null, or `make` stored it, which leaks what it stores.
        match unsafe { current.as_ref() } {
            Some(made) if !made.process.is_elsewhere() => &made.value,
            _ => self.make(current),
        }
    }

    #[cold]
    fn make(&'static self, old: *mut InProcess<T>) -> &'static T {
        let own = Box::new(InProcess { process: ProcessGuard::here(), value: T::default() });
        let own = Box::into_raw(own);
        // Release: a thread that loads the pointer sees the value. What it replaces is not used any
        // more, and `get` has acquired it. Acquire: as in `get`, if another thread was
        // first; the process has not changed meanwhile, so the other's is this process's.
        match self.current.compare_exchange(old, own, Ordering::Release, Ordering::Acquire) {
            // SAFETY: it came from a box just now, and is never freed.
            Ok(_) => &unsafe { &*own }.value,
            Err(other) => {
                // SAFETY: it came from a box just now, and nobody else has seen it.
                drop(unsafe { Box::from_raw(own) });
                // SAFETY: as in `get`; it is not null, since only this function stores.
                &unsafe { &*other }.value
            }
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn elsewhere() -> ! {
    panic!("{MESSAGE}");
}

#[cfg(all(unix, not(miri)))]
fn watch() {
    use std::sync::atomic::AtomicBool;

    extern "C" fn in_the_child() {
        // Async-signal-safe, as a fork handler of a process with threads must be.
        PROCESS_FORKS.fetch_add(1, Ordering::Relaxed);
    }

    // No `Once`, which a thread of the parent may be at when another forks: the child would wait
    // for it. Threads that come here at once register the handler several times, and a fork
    // then counts more than one, which is as good.
    static WATCHED: AtomicBool = AtomicBool::new(false);
    // Acquire: a thread that sees it set knows that the handler is registered; pairs with the store
    // below.
    if !WATCHED.load(Ordering::Acquire) {
        // SAFETY: the handler is a function of this program, lives as long as it, and does nothing
        // but add to an atomic word. If the system has no memory for it, forks are not
        // noticed: calls then behave as without this module.
        unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        WATCHED.store(true, Ordering::Release);
    }
}

/// There is no `fork()`, or none that can be watched.
#[cfg(not(all(unix, not(miri))))]
fn watch() {}

/// Ends the process if dropped by a panic: guards code whose frames others rely on.
pub(crate) struct AbortOnUnwind(pub(crate) &'static str);

impl AbortOnUnwind {
    pub(crate) fn disarm(self) {
        mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A panic inside a destructor that runs because of a panic aborts, with this message.
        panic!("{}", self.0);
    }
}

#[cfg(test)]
pub(crate) mod tests;
