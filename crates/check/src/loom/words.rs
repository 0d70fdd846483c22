//! Atomic types of every width, whose every access is a choice of the search.
//!
//! Under C11 an access has the ordering that it names. TSO orders loads with loads and stores with
//! stores, so there the ordering changes nothing, with two exceptions: a `SeqCst` store is an
//! exchange, as compilers make it, and a `SeqCst` fence is a full fence. So under TSO the search
//! does not see an ordering that is too weak for another processor.
#![expect(unsafe_code, reason = "loads without synchronization are unsafe in loom's interface")]

use std::fmt;
use std::marker::PhantomData;

pub use std::sync::atomic::Ordering;

use crate::engine;
use crate::machine::{Access, Change, Function};
use crate::raw::{self, Raw, full_fence};

#[track_caller]
fn check_load(order: Ordering) {
    assert!(
        !matches!(order, Ordering::Release | Ordering::AcqRel),
        "a load can be neither Release nor AcqRel"
    );
}

#[track_caller]
fn store(word: &Raw, value: u64, order: Ordering) {
    match order {
        Ordering::Acquire | Ordering::AcqRel => {
            panic!("a store can be neither Acquire nor AcqRel")
        }
        Ordering::SeqCst if !engine::is_weak() => {
            word.change(Change::Swap(value));
        }
        _ => word.store_as(value, Access::new(order, order)),
    }
}

/// A fence: as [`std::sync::atomic::fence`] under C11. Under TSO a full one if it is `SeqCst`; what
/// the others forbid TSO does not do.
///
/// # Panics
///
/// If `order` is `Relaxed`, as [`std::sync::atomic::fence`].
#[track_caller]
pub fn fence(order: Ordering) {
    match order {
        Ordering::Relaxed => panic!("there is no such thing as a relaxed fence"),
        Ordering::SeqCst => full_fence(),
        _ => raw::fence(Access::new(order, Ordering::Relaxed)),
    }
}

/// As [`yield_now`](super::thread::yield_now).
#[track_caller]
pub fn spin_loop_hint() {
    raw::pause();
}

fn of_failure(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel | Ordering::Acquire => Ordering::Acquire,
        Ordering::SeqCst => Ordering::SeqCst,
        _ => Ordering::Relaxed,
    }
}

/// The methods that every atomic type has; `encode` and `decode` are between its value and a word.
macro_rules! common {
    ($name:ident, $value:ty $(, $t:ident)?) => {
        impl$(<$t>)? $name$(<$t>)? {
            /// Reads it.
            ///
            /// # Panics
            ///
            /// If `order` is `Release` or `AcqRel`.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                check_load(order);
                Self::decode(self.word.load_as(Access::new(order, order)))
            }

            /// Reads it where nobody else writes it: another thread's store that nothing orders
            /// before this, or this before it, is a violation.
            ///
            /// # Safety
            ///
            /// A model may call it at will.
            #[track_caller]
            pub unsafe fn unsync_load(&self) -> $value {
                Self::decode(self.word.alone(false))
            }

            /// Writes it.
            ///
            /// # Panics
            ///
            /// If `order` is `Acquire` or `AcqRel`.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                store(&self.word, Self::encode(value), order);
            }

            /// Writes it, and returns what it held.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                let access = Access::new(order, order);
                Self::decode(self.word.change_as(Change::Swap(Self::encode(value)), access))
            }

            /// Writes `new` if it holds `current`.
            ///
            /// # Errors
            ///
            /// What it holds instead.
            ///
            /// # Panics
            ///
            /// If `failure` is `Release` or `AcqRel`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                check_load(failure);
                let (current, new) = (Self::encode(current), Self::encode(new));
                let change = Change::CompareExchange(current, new);
                let old = self.word.change_as(change, Access::new(success, failure));
                if old == current { Ok(Self::decode(old)) } else { Err(Self::decode(old)) }
            }

            /// As [`compare_exchange`](Self::compare_exchange): it fails with a reason only, as
            /// loom's.
            ///
            /// # Errors
            ///
            /// What it holds instead.
            ///
            /// # Panics
            ///
            /// If `failure` is `Release` or `AcqRel`.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Writes `new` if it holds `current`, and returns what it held.
            #[track_caller]
            pub fn compare_and_swap(&self, current: $value, new: $value, order: Ordering) -> $value {
                let exchanged = self.compare_exchange(current, new, order, of_failure(order));
                exchanged.unwrap_or_else(|held| held)
            }

            /// Loads and exchanges until no other thread's store comes between, or until `next`
            /// returns `None`.
            ///
            /// # Errors
            ///
            /// What it held when `next` returned `None`.
            ///
            /// # Panics
            ///
            /// As [`compare_exchange`](Self::compare_exchange).
            #[track_caller]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut next: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(failure);
                while let Some(new) = next(old) {
                    match self.compare_exchange(old, new, success, failure) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }

            /// Reads and writes it where nobody else can.
            #[track_caller]
            pub fn with_mut<R>(&mut self, act: impl FnOnce(&mut $value) -> R) -> R {
                let old = self.word.alone(true);
                let mut value = Self::decode(old);
                let result = act(&mut value);
                let new = Self::encode(value);
                if new != old {
                    self.word.store_as(new, Access::RELAXED);
                }
                result
            }

            /// What it holds.
            #[track_caller]
            pub fn into_inner(self) -> $value {
                Self::decode(self.word.alone(true))
            }

            #[track_caller]
            #[allow(dead_code, reason = "not every type computes")]
            fn compute(
                &self,
                function: fn(u64, u64) -> u64,
                operand: $value,
                order: Ordering,
            ) -> $value {
                let change = Change::Apply(Function(function), Self::encode(operand));
                Self::decode(self.word.change_as(change, Access::new(order, order)))
            }
        }

        impl$(<$t>)? From<$value> for $name$(<$t>)? {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl$(<$t>)? fmt::Debug for $name$(<$t>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Reading it would be a step of the model.
                f.debug_tuple(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

/// A method that replaces the value by a function of it and an operand.
macro_rules! computes {
    ($(#[$doc:meta] $method:ident($value:ty) = |$old:ident, $by:ident| $new:expr;)*) => {$(
        #[$doc]
        #[track_caller]
        pub fn $method(&self, value: $value, order: Ordering) -> $value {
            self.compute(
                |old, operand| {
                    let ($old, $by) = (Self::decode(old), Self::decode(operand));
                    Self::encode($new)
                },
                value,
                order,
            )
        }
    )*};
}

macro_rules! integers {
    ($($(#[$doc:meta])* $name:ident $value:ty, $unsigned:ty;)*) => {$(
        $(#[$doc])*
        pub struct $name {
            word: Raw,
        }

        impl $name {
            /// An atomic that holds `value`.
            #[track_caller]
            pub fn new(value: $value) -> Self {
                $name { word: Raw::new(Self::encode(value)) }
            }

            #[allow(clippy::cast_lossless, reason = "one text for every width")]
            fn encode(value: $value) -> u64 {
                value as $unsigned as u64
            }

            fn decode(word: u64) -> $value {
                word as $value
            }

            computes! {
                /// Adds, around the end of the type, and returns what it held.
                fetch_add($value) = |old, by| old.wrapping_add(by);
                /// Subtracts, around the end of the type, and returns what it held.
                fetch_sub($value) = |old, by| old.wrapping_sub(by);
                /// Bitwise and; returns what it held.
                fetch_and($value) = |old, by| old & by;
                /// Bitwise not-and; returns what it held.
                fetch_nand($value) = |old, by| !(old & by);
                /// Bitwise or; returns what it held.
                fetch_or($value) = |old, by| old | by;
                /// Bitwise exclusive or; returns what it held.
                fetch_xor($value) = |old, by| old ^ by;
                /// The larger of the two; returns what it held.
                fetch_max($value) = |old, by| old.max(by);
                /// The smaller of the two; returns what it held.
                fetch_min($value) = |old, by| old.min(by);
            }
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(0)
            }
        }

        common!($name, $value);
    )*};
}

integers! {
    /// An [`i8`] that threads may share.
    AtomicI8 i8, u8;
    /// A [`u8`] that threads may share.
    AtomicU8 u8, u8;
    /// An [`i16`] that threads may share.
    AtomicI16 i16, u16;
    /// A [`u16`] that threads may share.
    AtomicU16 u16, u16;
    /// An [`i32`] that threads may share.
    AtomicI32 i32, u32;
    /// A [`u32`] that threads may share.
    AtomicU32 u32, u32;
    /// An [`i64`] that threads may share.
    AtomicI64 i64, u64;
    /// A [`u64`] that threads may share.
    AtomicU64 u64, u64;
    /// An [`isize`] that threads may share.
    AtomicIsize isize, usize;
    /// A [`usize`] that threads may share.
    AtomicUsize usize, usize;
}

/// A [`bool`] that threads may share.
pub struct AtomicBool {
    word: Raw,
}

impl AtomicBool {
    /// An atomic that holds `value`.
    #[track_caller]
    pub fn new(value: bool) -> Self {
        AtomicBool { word: Raw::new(Self::encode(value)) }
    }

    fn encode(value: bool) -> u64 {
        u64::from(value)
    }

    fn decode(word: u64) -> bool {
        word != 0
    }

    computes! {
        /// Logical and; returns what it held.
        fetch_and(bool) = |old, by| old & by;
        /// Logical not-and; returns what it held.
        fetch_nand(bool) = |old, by| !(old & by);
        /// Logical or; returns what it held.
        fetch_or(bool) = |old, by| old | by;
        /// Logical exclusive or; returns what it held.
        fetch_xor(bool) = |old, by| old ^ by;
    }
}

impl Default for AtomicBool {
    #[track_caller]
    fn default() -> Self {
        Self::new(false)
    }
}

common!(AtomicBool, bool);

/// A pointer that threads may share. Its word holds a number in the pointer's place, the same in
/// every execution in which the threads have come equally far.
pub struct AtomicPtr<T> {
    word: Raw,
    target: PhantomData<fn() -> *mut T>,
}

impl<T> AtomicPtr<T> {
    /// An atomic that holds `value`.
    #[track_caller]
    pub fn new(value: *mut T) -> Self {
        AtomicPtr { word: Raw::new(Self::encode(value)), target: PhantomData }
    }

    fn encode(value: *mut T) -> u64 {
        engine::number_of(value.expose_provenance() as u64)
    }

    fn decode(word: u64) -> *mut T {
        std::ptr::with_exposed_provenance_mut(engine::address_of(word) as usize)
    }
}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

common!(AtomicPtr, *mut T, T);
