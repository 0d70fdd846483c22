//! Cells whose accesses must be put in order by what the threads do with atomics and locks.

use std::cell::Cell as StdCell;
use std::fmt;

use poach_memory::Cell as _;

use crate::memory::SimulatedCell;

/// As [`std::cell::UnsafeCell`], with its pointer handed to closures: two accesses that nothing
/// puts in order, one of which writes, are a violation. What is ordered is what TSO orders: any
/// store and any load that sees it.
pub struct UnsafeCell<T> {
    cell: SimulatedCell<T>,
}

impl<T> UnsafeCell<T> {
    /// One that holds `value`.
    pub fn new(value: T) -> Self {
        UnsafeCell { cell: SimulatedCell::unentered(value) }
    }

    /// Reads it: until `read` returns, no thread may write.
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        let result = self.cell.with(read);
        // The access has lasted until now.
        self.cell.with(|_| ());
        result
    }

    /// Writes it: until `write` returns nobody else may read or write.
    #[track_caller]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        let result = self.cell.with_mut(write);
        self.cell.with_mut(|_| ());
        result
    }

    /// A pointer to read by, until it is dropped.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<'_, T> {
        self.cell.with(|_| ());
        ConstPtr { cell: self }
    }

    /// A pointer to write by, until it is dropped.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<'_, T> {
        self.cell.with_mut(|_| ());
        MutPtr { cell: self }
    }

    /// What it holds.
    pub fn into_inner(self) -> T {
        self.cell.into_inner()
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        UnsafeCell::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    fn from(value: T) -> Self {
        UnsafeCell::new(value)
    }
}

impl<T> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

/// A pointer to read by. It has no `deref`: to make a reference is up to the caller's unsafe code.
#[derive(Debug)]
pub struct ConstPtr<'a, T> {
    cell: &'a UnsafeCell<T>,
}

impl<T> ConstPtr<'_, T> {
    /// Reads by it.
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.cell.with(read)
    }
}

impl<T> Drop for ConstPtr<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        self.cell.cell.with(|_| ());
    }
}

/// A pointer to write by. It has no `deref`: to make a reference is up to the caller's unsafe code.
#[derive(Debug)]
pub struct MutPtr<'a, T> {
    cell: &'a UnsafeCell<T>,
}

impl<T> MutPtr<'_, T> {
    /// Writes by it.
    #[track_caller]
    pub fn with<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.cell.with_mut(write)
    }
}

impl<T> Drop for MutPtr<'_, T> {
    #[track_caller]
    fn drop(&mut self) {
        self.cell.cell.with_mut(|_| ());
    }
}

/// As [`std::cell::Cell`].
pub struct Cell<T> {
    order: SimulatedCell<()>,
    value: StdCell<T>,
}

impl<T> Cell<T> {
    /// One that holds `value`.
    pub fn new(value: T) -> Self {
        Cell { order: SimulatedCell::unentered(()), value: StdCell::new(value) }
    }

    /// Writes it.
    #[track_caller]
    pub fn set(&self, value: T) {
        self.replace(value);
    }

    /// Writes it, and returns what it held.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        self.order.with_mut(|_| ());
        self.value.replace(value)
    }

    /// Exchanges what the two hold.
    #[track_caller]
    pub fn swap(&self, other: &Self) {
        self.order.with_mut(|_| ());
        other.order.with_mut(|_| ());
        self.value.swap(&other.value);
    }

    /// What it holds.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: Copy> Cell<T> {
    /// Reads it.
    #[track_caller]
    pub fn get(&self) -> T {
        self.order.with(|_| ());
        self.value.get()
    }
}

impl<T: Default> Cell<T> {
    /// Takes out what it holds.
    #[track_caller]
    pub fn take(&self) -> T {
        self.replace(T::default())
    }
}

impl<T: Default> Default for Cell<T> {
    fn default() -> Self {
        Cell::new(T::default())
    }
}

impl<T> From<T> for Cell<T> {
    fn from(value: T) -> Self {
        Cell::new(value)
    }
}

impl<T> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").finish_non_exhaustive()
    }
}
