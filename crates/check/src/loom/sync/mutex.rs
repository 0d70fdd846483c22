//! A lock: an exchange that waits takes it, a store lets it go.
//!
//! That store waits in its thread's buffer like any other. A lock whose release is a
//! read-modify-write has fewer executions, so a program that is right with this lock is right with
//! such a lock.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{
    LockResult, Mutex as StdMutex, MutexGuard as StdGuard, PoisonError, TryLockError, TryLockResult,
};

use crate::machine::{Access, Change};
use crate::raw::Raw;

/// As [`std::sync::Mutex`]. It is poisoned by a panic that is caught; any other ends the execution.
#[derive(Debug)]
pub struct Mutex<T: ?Sized> {
    taken: Raw,
    value: StdMutex<T>,
}

impl<T> Mutex<T> {
    /// A free one.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Mutex { taken: Raw::new(0), value: StdMutex::new(value) }
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for it and takes it.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.taken.wait_as(0, Change::Swap(1), Access::ACQUIRE);
        self.guard()
    }

    /// Takes it if nobody has it.
    ///
    /// # Errors
    ///
    /// [`TryLockError::WouldBlock`] if it is taken, [`TryLockError::Poisoned`] if it is poisoned.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        // Fails only while another thread holds the lock, and a failure acquires nothing.
        let access = Access { fails_acquiring: false, ..Access::ACQUIRE };
        match self.taken.newest(Change::CompareExchange(0, 1), access) {
            0 => Ok(self.guard()?),
            _ => Err(TryLockError::WouldBlock),
        }
    }

    fn guard(&self) -> LockResult<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Ok(MutexGuard { value: Some(value), mutex: self }),
            Err(TryLockError::Poisoned(poisoned)) => {
                let value = Some(poisoned.into_inner());
                Err(PoisonError::new(MutexGuard { value, mutex: self }))
            }
            Err(TryLockError::WouldBlock) => unreachable!("its word says that it is free"),
        }
    }

    /// Whether it is poisoned.
    pub fn is_poisoned(&self) -> bool {
        self.value.is_poisoned()
    }

    /// It is poisoned no more.
    pub fn clear_poison(&self) {
        self.value.clear_poison();
    }

    /// Returns the value of a mutex that is not shared.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.value.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

/// Lets the lock go when dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    value: Option<StdGuard<'a, T>>,
    mutex: &'a Mutex<T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        // The real lock first: another thread may come between this step and the next.
        self.value = None;
        self.mutex.taken.store_as(0, Access::RELEASE);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until the guard is dropped")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is there until the guard is dropped")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
