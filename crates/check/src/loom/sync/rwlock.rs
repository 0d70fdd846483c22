//! A lock for many readers or one writer: a word that counts the readers, with a bit for the writer
//! above.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{
    LockResult, PoisonError, RwLock as StdRwLock, RwLockReadGuard as StdRead,
    RwLockWriteGuard as StdWrite, TryLockError, TryLockResult,
};

use crate::machine::{Access, Change, Function};
use crate::raw::Raw;

/// Above every count of readers.
const WRITER_BIT: u8 = 32;
const WRITER: u64 = 1 << WRITER_BIT;

/// As [`std::sync::RwLock`]. A writer's panic that is caught poisons it; others end the execution.
#[derive(Debug)]
pub struct RwLock<T: ?Sized> {
    state: Raw,
    value: StdRwLock<T>,
}

impl<T> RwLock<T> {
    /// A free one.
    #[track_caller]
    pub fn new(value: T) -> Self {
        RwLock { state: Raw::new(0), value: StdRwLock::new(value) }
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

impl<T: ?Sized> RwLock<T> {
    /// Waits until no writer has it, and takes it for reading.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        self.state.wait_as(WRITER_BIT, Change::Add(1), Access::ACQUIRE);
        self.reader()
    }

    /// Takes it for reading if no writer has it.
    ///
    /// # Errors
    ///
    /// [`TryLockError::WouldBlock`] if one has.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let enter = Function(|state, one| if state >= WRITER { state } else { state + one });
        if self.state.newest(Change::Apply(enter, 1), Access::ACQUIRE) >= WRITER {
            return Err(TryLockError::WouldBlock);
        }
        Ok(self.reader()?)
    }

    /// Waits until nobody has it, and takes it.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        self.state.wait_as(0, Change::Swap(WRITER), Access::ACQUIRE);
        self.writer()
    }

    /// Takes it if nobody has it.
    ///
    /// # Errors
    ///
    /// [`TryLockError::WouldBlock`] if somebody has.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let access = Access { fails_acquiring: false, ..Access::ACQUIRE };
        match self.state.newest(Change::CompareExchange(0, WRITER), access) {
            0 => Ok(self.writer()?),
            _ => Err(TryLockError::WouldBlock),
        }
    }

    fn reader(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let guard = |value| RwLockReadGuard { value: Some(value), state: &self.state };
        match self.value.try_read() {
            Ok(value) => Ok(guard(value)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(PoisonError::new(guard(poisoned.into_inner())))
            }
            Err(TryLockError::WouldBlock) => unreachable!("its word says that no writer has it"),
        }
    }

    fn writer(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let guard = |value| RwLockWriteGuard { value: Some(value), state: &self.state };
        match self.value.try_write() {
            Ok(value) => Ok(guard(value)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Err(PoisonError::new(guard(poisoned.into_inner())))
            }
            Err(TryLockError::WouldBlock) => unreachable!("its word says that nobody has it"),
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

    /// Returns the value of a lock that is not shared.
    ///
    /// # Errors
    ///
    /// If it is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.value.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

/// Lets the lock go when dropped.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    value: Option<StdRead<'a, T>>,
    state: &'a Raw,
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        self.value = None;
        self.state.newest(Change::Add(u64::MAX), Access::RELEASE);
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until the guard is dropped")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Lets the lock go when dropped.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    value: Option<StdWrite<'a, T>>,
    state: &'a Raw,
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        self.value = None;
        self.state.store_as(0, Access::RELEASE);
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until the guard is dropped")
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is there until the guard is dropped")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
