//! A shared owner whose count is a word of the machine.
//!
//! The count decides who drops the value, and how; between a step on the count and the real owner's
//! drop no other step can come, so the two agree. As on x86, cloning and dropping are
//! read-modify-writes, which wait for the thread's buffer to be empty.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc as StdArc;

use super::super::execution;
use crate::raw::Raw;

/// As [`std::sync::Arc`]; an `Arc` that is never dropped is a violation.
pub struct Arc<T: ?Sized> {
    count: StdArc<Count>,
    value: StdArc<T>,
}

struct Count {
    owners: Raw,
    number: u64,
}

impl<T> Arc<T> {
    /// The first owner of `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Arc::from_std(StdArc::new(value))
    }

    /// The value, if there is no other owner.
    ///
    /// # Errors
    ///
    /// The owner that was given, if there is another.
    #[track_caller]
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if this.count.owners.load() != 1 {
            return Err(this);
        }
        let Arc { count, value } = &this;
        let (count, value) = (StdArc::clone(count), StdArc::clone(value));
        drop(this);
        StdArc::try_unwrap(value).map_err(|value| Arc { count, value })
    }
}

impl<T: ?Sized> Arc<T> {
    /// An owner of what `value` owns, with a count of its own.
    #[track_caller]
    pub fn from_std(value: StdArc<T>) -> Self {
        let count = Count { owners: Raw::new(1), number: execution::made("an Arc") };
        Arc { count: StdArc::new(count), value }
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        this.count.owners.load() as usize
    }

    /// The value, if there is no other owner.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if this.count.owners.load() != 1 {
            return None;
        }
        StdArc::get_mut(&mut this.value)
    }

    /// Whether both own one value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        StdArc::ptr_eq(&this.value, &other.value)
    }

    /// Where the value is.
    pub fn as_ptr(this: &Self) -> *const T {
        StdArc::as_ptr(&this.value)
    }
}

impl<T: 'static> Arc<T> {
    /// Where the value is; the owner lives on until [`from_raw`](Self::from_raw).
    pub fn into_raw(this: Self) -> *const T {
        let pointer = Arc::as_ptr(&this);
        let owner: Box<dyn Any> = Box::new(this);
        execution::with(|execution| {
            execution.raw.entry(pointer.addr()).or_default().push(owner);
        });
        pointer
    }

    /// An owner that [`into_raw`](Self::into_raw) gave up. The execution keeps it, so that no
    /// unsafe code is needed here.
    ///
    /// # Panics
    ///
    /// If none was given up for this pointer and type.
    pub fn from_raw(pointer: *const T) -> Self {
        let owner = execution::with(|execution| {
            let owners = execution.raw.get_mut(&pointer.addr())?;
            let at = owners.iter().rposition(|owner| owner.is::<Self>())?;
            owners.swap_remove(at).downcast::<Self>().ok()
        });
        *owner.expect("a pointer of Arc::into_raw that is not taken back yet")
    }

    /// One more owner of a pointer of [`into_raw`](Self::into_raw).
    ///
    /// # Panics
    ///
    /// As [`from_raw`](Self::from_raw).
    #[track_caller]
    pub fn increment_strong_count(pointer: *const T) {
        let owner = Self::from_raw(pointer);
        let another = owner.clone();
        Self::into_raw(owner);
        Self::into_raw(another);
    }

    /// One owner less of a pointer of [`into_raw`](Self::into_raw).
    ///
    /// # Panics
    ///
    /// As [`from_raw`](Self::from_raw).
    #[track_caller]
    pub fn decrement_strong_count(pointer: *const T) {
        drop(Self::from_raw(pointer));
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.count.owners.add(1);
        Arc { count: StdArc::clone(&self.count), value: StdArc::clone(&self.value) }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        if self.count.owners.add(u64::MAX) == 1 {
            execution::dropped(self.count.number);
        }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> std::borrow::Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Arc::new(value)
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Self {
        Arc::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + Hash> Hash for Arc<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
