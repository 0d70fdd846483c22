//! A shared owner whose count is a word of the machine.
//!
//! The count decides which owner drops the value, and when. No step can come between a step on the
//! count and the real owner's drop, so the count and the real owners agree. An owner learns only
//! whether it is the last, so the search chooses which owner is the last, not the whole order.
//! Where the value's destructor does nothing it does not choose that either.
#![expect(unsafe_code, reason = "raw pointers of an owner are taken back by unsafe functions")]

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::{ManuallyDrop, needs_drop};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc as StdArc, Weak as StdWeak};

use super::super::execution;
use crate::machine::Owners;
use crate::raw::Raw;

/// As [`std::sync::Arc`]; an `Arc` that is never dropped is a violation.
pub struct Arc<T: ?Sized> {
    count: ManuallyDrop<StdArc<Count>>,
    value: ManuallyDrop<StdArc<T>>,
}

#[derive(Debug)]
pub(in crate::loom) struct Count {
    owners: Raw,
    number: u64,
}

impl<T> Arc<T> {
    /// The first owner of `value`.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Arc::from_std(StdArc::new(value))
    }

    /// The same, of a value that never moves.
    #[track_caller]
    pub fn pin(value: T) -> Pin<Self> {
        // SAFETY: the value stays where its first owner has put it, as that of a standard `Arc`.
        unsafe { Pin::new_unchecked(Arc::new(value)) }
    }

    /// The value, if there is no other owner.
    ///
    /// # Errors
    ///
    /// The owner that was given, if there is another.
    #[track_caller]
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        if this.count.owners.owners(Owners::Look) != 1 {
            return Err(this);
        }
        let (count, value) = this.into_parts();
        count.owners.owners(Owners::FewerUnnoticed);
        count.gone(&value);
        StdArc::try_unwrap(value).map_err(|value| Arc::of(count, value))
    }

    /// The value, if this was the last owner.
    #[track_caller]
    pub fn into_inner(this: Self) -> Option<T> {
        let (count, value) = this.into_parts();
        if count.owners.owners(Owners::Fewer) == 0 {
            return None;
        }
        count.gone(&value);
        StdArc::into_inner(value)
    }
}

impl<T: ?Sized> Arc<T> {
    /// An owner of what `value` owns, with a count of its own.
    ///
    /// # Panics
    ///
    /// If it has another owner.
    #[track_caller]
    pub fn from_std(mut value: StdArc<T>) -> Self {
        assert!(
            StdArc::get_mut(&mut value).is_some(),
            "the Arc given to from_std has another owner"
        );
        let count = Count { owners: Raw::new(1), number: execution::made("an Arc") };
        let count = StdArc::new(count);
        let address = StdArc::as_ptr(&value).addr();
        execution::with(|execution| execution.arcs.insert(address, StdArc::clone(&count)));
        Arc::of(count, value)
    }

    fn of(count: StdArc<Count>, value: StdArc<T>) -> Self {
        Arc { count: ManuallyDrop::new(count), value: ManuallyDrop::new(value) }
    }

    fn into_parts(self) -> (StdArc<Count>, StdArc<T>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: what is taken out here is never used again, for `this` is not dropped.
        let count = unsafe { ManuallyDrop::take(&mut this.count) };
        // SAFETY: the same.
        let value = unsafe { ManuallyDrop::take(&mut this.value) };
        (count, value)
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        this.count.owners.owners(Owners::Look) as usize
    }

    /// The value, if there is no other owner.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        if this.count.owners.owners(Owners::Look) != 1 {
            return None;
        }
        StdArc::get_mut(&mut this.value)
    }

    /// Something that becomes an owner again as long as there is one.
    pub fn downgrade(this: &Self) -> Weak<T> {
        Weak { count: Some(StdArc::clone(&this.count)), value: StdArc::downgrade(&this.value) }
    }

    /// Whether both own one value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        StdArc::ptr_eq(&this.value, &other.value)
    }

    /// Where the value is.
    pub fn as_ptr(this: &Self) -> *const T {
        StdArc::as_ptr(&this.value)
    }

    /// Where the value is; the owner lives on until [`from_raw`](Self::from_raw).
    pub fn into_raw(this: Self) -> *const T {
        // The count is found again by the address.
        let (_count, value) = this.into_parts();
        StdArc::into_raw(value)
    }

    /// An owner that [`into_raw`](Self::into_raw) gave up.
    ///
    /// # Safety
    ///
    /// As [`std::sync::Arc::from_raw`]: it was given up in this execution, and is taken back once.
    ///
    /// # Panics
    ///
    /// If there is no such value in this execution.
    #[track_caller]
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        let address = pointer.addr();
        let count = execution::with(|execution| execution.arcs.get(&address).cloned());
        let count = count.expect("no Arc of this execution has this address");
        // SAFETY: the pointer is of `StdArc::into_raw`, and the caller takes the owner back once.
        let value = unsafe { StdArc::from_raw(pointer) };
        Arc::of(count, value)
    }

    /// One more owner of a pointer of [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    ///
    /// As [`std::sync::Arc::increment_strong_count`].
    ///
    /// # Panics
    ///
    /// As [`from_raw`](Self::from_raw).
    #[track_caller]
    pub unsafe fn increment_strong_count(pointer: *const T) {
        // SAFETY: the owner is not dropped, so it is not taken back.
        let owner = ManuallyDrop::new(unsafe { Self::from_raw(pointer) });
        let _another = ManuallyDrop::new(Arc::clone(&owner));
    }

    /// One owner less of a pointer of [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    ///
    /// As [`std::sync::Arc::decrement_strong_count`].
    ///
    /// # Panics
    ///
    /// As [`from_raw`](Self::from_raw).
    #[track_caller]
    pub unsafe fn decrement_strong_count(pointer: *const T) {
        // SAFETY: the caller gives up an owner.
        drop(unsafe { Self::from_raw(pointer) });
    }
}

impl Count {
    fn gone<T: ?Sized>(&self, value: &StdArc<T>) {
        let address = StdArc::as_ptr(value).addr();
        execution::try_with(|execution| execution.arcs.remove(&address));
        execution::dropped(self.number);
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.count.owners.owners(Owners::More);
        Arc::of(StdArc::clone(&self.count), StdArc::clone(&self.value))
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    #[track_caller]
    fn drop(&mut self) {
        let step = if needs_drop::<T>() { Owners::Fewer } else { Owners::FewerUnnoticed };
        if self.count.owners.owners(step) == 1 {
            self.count.gone(&self.value);
        }
        // SAFETY: this is dropped, and uses it no more.
        unsafe { ManuallyDrop::drop(&mut self.value) };
        // SAFETY: the same.
        unsafe { ManuallyDrop::drop(&mut self.count) };
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

impl<T: ?Sized> Borrow<T> for Arc<T> {
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

/// As [`std::sync::Weak`].
pub struct Weak<T: ?Sized> {
    count: Option<StdArc<Count>>,
    value: StdWeak<T>,
}

impl<T> Weak<T> {
    /// A `Weak` that never becomes an owner.
    pub fn new() -> Self {
        Weak { count: None, value: StdWeak::new() }
    }
}

impl<T: ?Sized> Weak<T> {
    /// An owner, if there is one still.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let count = self.count.as_ref()?;
        if count.owners.owners(Owners::MoreIfAny) == 0 {
            return None;
        }
        Some(Arc::of(StdArc::clone(count), self.value.upgrade()?))
    }

    /// Whether both are of one value.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.value.ptr_eq(&other.value)
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        Weak { count: self.count.clone(), value: self.value.clone() }
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Weak::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
