//! Cells whose accesses must be put in order by what the threads do with atomics and locks.
#![expect(unsafe_code, reason = "loom's pointers are dereferenced by unsafe functions")]

use std::cell::{Cell as StdCell, UnsafeCell as StdUnsafeCell};
use std::fmt;
use std::panic::Location;

use crate::memory::Uses;

/// As [`std::cell::UnsafeCell`], with its pointer handed to closures: two accesses that nothing
/// puts in order, one of which writes, are a violation. What is ordered is what the memory model
/// orders: under TSO any store and any load that sees it.
pub struct UnsafeCell<T: ?Sized> {
    uses: Uses,
    value: StdUnsafeCell<T>,
}

/// An access that lasts until this is dropped.
#[derive(Clone, Copy)]
struct Access<'a> {
    uses: &'a Uses,
    writes: bool,
    site: &'static Location<'static>,
}

impl<'a> Access<'a> {
    #[track_caller]
    fn begin(uses: &'a Uses, writes: bool) -> Self {
        let site = Location::caller();
        _ = uses.touch(writes, site);
        Access { uses, writes, site }
    }

    fn end(self) {
        if !std::thread::panicking() {
            _ = self.uses.touch(self.writes, self.site);
        }
    }
}

impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let uses = Uses::new();
        if crate::engine::is_weak() {
            // The making is a write that must happen before each read.
            _ = uses.touch(true, Location::caller());
        }
        UnsafeCell { uses, value: StdUnsafeCell::new(value) }
    }

    /// What it holds.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads it: until `read` returns nobody may write.
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        let access = Access::begin(&self.uses, false);
        let result = read(self.value.get());
        access.end();
        result
    }

    /// Writes it: until `write` returns nobody else may read or write.
    #[track_caller]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        let access = Access::begin(&self.uses, true);
        let result = write(self.value.get());
        access.end();
        result
    }

    /// A pointer to read by, until it is dropped.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr { pointer: self.value.get(), _lasts: Lasts::begin(&self.uses, false) }
    }

    /// A pointer to write by, until it is dropped.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        MutPtr { pointer: self.value.get(), _lasts: Lasts::begin(&self.uses, true) }
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> Self {
        UnsafeCell::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        UnsafeCell::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

/// An access that a pointer stands for. As in loom's interface nothing keeps the cell alive.
#[derive(Debug)]
struct Lasts {
    uses: *const Uses,
    writes: bool,
    site: &'static Location<'static>,
}

impl fmt::Debug for Uses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uses").finish_non_exhaustive()
    }
}

impl Lasts {
    #[track_caller]
    fn begin(uses: &Uses, writes: bool) -> Self {
        let Access { site, .. } = Access::begin(uses, writes);
        Lasts { uses, writes, site }
    }
}

impl Drop for Lasts {
    fn drop(&mut self) {
        // SAFETY: as with loom's cells, a pointer of a cell must be dropped before the cell. So the
        // cell, and its uses, are still there.
        let uses = unsafe { &*self.uses };
        Access { uses, writes: self.writes, site: self.site }.end();
    }
}

/// A pointer to read by. It must be dropped before its cell.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized> {
    _lasts: Lasts,
    pointer: *const T,
}

impl<T: ?Sized> ConstPtr<T> {
    /// What it points to.
    ///
    /// # Safety
    ///
    /// The cell is still there, and nobody writes what it holds: a race is a violation, but the
    /// search may find it only afterwards.
    pub unsafe fn deref(&self) -> &T {
        // SAFETY: the caller says so.
        unsafe { &*self.pointer }
    }

    /// Reads by it.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.pointer)
    }
}

/// A pointer to write by. It must be dropped before its cell.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized> {
    _lasts: Lasts,
    pointer: *mut T,
}

impl<T: ?Sized> MutPtr<T> {
    /// What it points to.
    ///
    /// # Safety
    ///
    /// The cell is still there, and nobody else reads or writes what it holds: a race is a violation,
    /// but the search may find it only afterwards.
    #[expect(clippy::mut_from_ref, reason = "it is a pointer, as loom's")]
    pub unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller says so.
        unsafe { &mut *self.pointer }
    }

    /// Writes by it.
    pub fn with<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.pointer)
    }
}

/// As [`std::cell::Cell`].
pub struct Cell<T> {
    uses: Uses,
    value: StdCell<T>,
}

impl<T> Cell<T> {
    /// A cell that holds `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        let UnsafeCell { uses, value } = UnsafeCell::new(value);
        Cell { uses, value: StdCell::new(value.into_inner()) }
    }

    /// Writes it.
    #[track_caller]
    pub fn set(&self, value: T) {
        self.replace(value);
    }

    /// Writes it, and returns what it held.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        _ = self.uses.touch(true, Location::caller());
        self.value.replace(value)
    }

    /// Exchanges what the two hold.
    #[track_caller]
    pub fn swap(&self, other: &Self) {
        _ = self.uses.touch(true, Location::caller());
        _ = other.uses.touch(true, Location::caller());
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
        _ = self.uses.touch(false, Location::caller());
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
    #[track_caller]
    fn default() -> Self {
        Cell::new(T::default())
    }
}

impl<T> From<T> for Cell<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Cell::new(value)
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        Cell::new(self.get())
    }
}

impl<T: Copy + PartialEq> PartialEq for Cell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Copy + Eq> Eq for Cell<T> {}

impl<T: Copy + PartialOrd> PartialOrd for Cell<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Copy + Ord> Ord for Cell<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get().cmp(&other.get())
    }
}

impl<T> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").finish_non_exhaustive()
    }
}
