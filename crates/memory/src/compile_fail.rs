//! Programs that must not compile. Each has a twin that differs only in the error, and compiles.

/// Safe implementations of a memory, a word, a pointer, a cell and a policy: queues trust them.
///
/// ```compile_fail,E0200
/// use poach_memory::{Full, Machine, Memory, StoreLoad};
///
/// struct Mine;
/// impl StoreLoad<Machine> for Mine {
///     fn owner(&self) {}
///     fn thief(&self) {}
/// }
/// ```
///
/// ```
/// use poach_memory::{Full, Machine, Memory, StoreLoad};
///
/// struct Mine;
/// // SAFETY: full fences on both sides.
/// unsafe impl StoreLoad<Machine> for Mine {
///     fn owner(&self) { Machine::full() }
///     fn thief(&self) { Machine::full() }
/// }
/// ```
///
/// ```compile_fail,E0200
/// use poach_memory::Cell;
///
/// struct Mine<T>(std::cell::UnsafeCell<T>);
/// impl<T> Cell<T> for Mine<T> {
///     fn new(value: T) -> Self { Mine(value.into()) }
///     fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R { read(self.0.get()) }
///     fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R { write(self.0.get()) }
/// }
/// ```
///
/// ```
/// use poach_memory::Cell;
///
/// struct Mine<T>(std::cell::UnsafeCell<T>);
/// // SAFETY: the one place of an `UnsafeCell`.
/// unsafe impl<T> Cell<T> for Mine<T> {
///     fn new(value: T) -> Self { Mine(value.into()) }
///     fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R { read(self.0.get()) }
///     fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R { write(self.0.get()) }
/// }
/// ```
///
/// ```compile_fail,E0200
/// use std::sync::atomic::AtomicPtr;
/// use poach_memory::{Ordering, Pointer};
///
/// struct Mine<T>(AtomicPtr<T>);
/// impl<T> Pointer<T> for Mine<T> {
///     fn new(value: *mut T) -> Self { Mine(AtomicPtr::new(value)) }
///     fn load(&self, order: Ordering) -> *mut T { self.0.load(order) }
///     fn store(&self, value: *mut T, order: Ordering) { self.0.store(value, order) }
///     fn swap(&self, value: *mut T, order: Ordering) -> *mut T { self.0.swap(value, order) }
///     fn compare_exchange(&self, current: *mut T, new: *mut T, success: Ordering, failure: Ordering)
///         -> Result<*mut T, *mut T> { self.0.compare_exchange(current, new, success, failure) }
/// }
/// ```
///
/// ```
/// use std::sync::atomic::AtomicPtr;
/// use poach_memory::{Ordering, Pointer};
///
/// struct Mine<T>(AtomicPtr<T>);
/// // SAFETY: an `AtomicPtr`.
/// unsafe impl<T> Pointer<T> for Mine<T> {
///     fn new(value: *mut T) -> Self { Mine(AtomicPtr::new(value)) }
///     fn load(&self, order: Ordering) -> *mut T { self.0.load(order) }
///     fn store(&self, value: *mut T, order: Ordering) { self.0.store(value, order) }
///     fn swap(&self, value: *mut T, order: Ordering) -> *mut T { self.0.swap(value, order) }
///     fn compare_exchange(&self, current: *mut T, new: *mut T, success: Ordering, failure: Ordering)
///         -> Result<*mut T, *mut T> { self.0.compare_exchange(current, new, success, failure) }
/// }
/// ```
///
/// ```compile_fail,E0200
/// use poach_memory::{Ordering, Word};
///
/// struct Mine;
/// impl Word for Mine {
///     fn new(_: u64) -> Self { Mine }
///     fn load(&self, _: Ordering) -> u64 { 0 }
///     fn store(&self, _: u64, _: Ordering) {}
///     fn swap(&self, _: u64, _: Ordering) -> u64 { 0 }
///     fn fetch_add(&self, _: u64, _: Ordering) -> u64 { 0 }
///     fn fetch_sub(&self, _: u64, _: Ordering) -> u64 { 0 }
///     fn fetch_or(&self, _: u64, _: Ordering) -> u64 { 0 }
///     fn fetch_and(&self, _: u64, _: Ordering) -> u64 { 0 }
///     // An exchange that always succeeds: each thief of a task gets it.
///     fn compare_exchange(&self, current: u64, _: u64, _: Ordering, _: Ordering) -> Result<u64, u64> { Ok(current) }
/// }
/// ```
///
/// ```
/// use poach_memory::{Machine, Memory, Ordering, Word};
///
/// struct Mine(<Machine as Memory>::Word);
/// // SAFETY: an `AtomicU64`.
/// unsafe impl Word for Mine {
///     fn new(value: u64) -> Self { Mine(Word::new(value)) }
///     fn load(&self, order: Ordering) -> u64 { self.0.load(order) }
///     fn store(&self, value: u64, order: Ordering) { self.0.store(value, order) }
///     fn swap(&self, value: u64, order: Ordering) -> u64 { self.0.swap(value, order) }
///     fn fetch_add(&self, value: u64, order: Ordering) -> u64 { self.0.fetch_add(value, order) }
///     fn fetch_sub(&self, value: u64, order: Ordering) -> u64 { self.0.fetch_sub(value, order) }
///     fn fetch_or(&self, value: u64, order: Ordering) -> u64 { self.0.fetch_or(value, order) }
///     fn fetch_and(&self, value: u64, order: Ordering) -> u64 { self.0.fetch_and(value, order) }
///     fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering)
///         -> Result<u64, u64> { self.0.compare_exchange(current, new, success, failure) }
/// }
/// ```
///
/// ```compile_fail,E0200
/// use poach_memory::{Machine, Memory};
///
/// struct Mine;
/// impl Memory for Mine {
///     type Word = <Machine as Memory>::Word;
///     type Pointer<T> = <Machine as Memory>::Pointer<T>;
///     type Cell<T> = <Machine as Memory>::Cell<T>;
///     fn full() {}
///     fn light() {}
///     fn heavy() {}
///     fn asymmetric() -> bool { true }
///     fn pause() {}
/// }
/// ```
///
/// ```
/// use poach_memory::{Machine, Memory};
///
/// struct Mine;
/// // SAFETY: the machine's.
/// unsafe impl Memory for Mine {
///     type Word = <Machine as Memory>::Word;
///     type Pointer<T> = <Machine as Memory>::Pointer<T>;
///     type Cell<T> = <Machine as Memory>::Cell<T>;
///     fn full() { Machine::full() }
///     fn light() { Machine::light() }
///     fn heavy() { Machine::heavy() }
///     fn asymmetric() -> bool { Machine::asymmetric() }
///     fn pause() {}
/// }
/// ```
mod traits_that_queues_trust {}

/// No fence at all.
///
/// ```compile_fail,E0423
/// let _ = poach_memory::Unfenced(());
/// ```
///
/// ```
/// let _ = poach_memory::Full;
/// ```
///
/// ```compile_fail,E0277
/// fn made_of_nothing<P: Default>() -> P { P::default() }
/// made_of_nothing::<poach_memory::Unfenced>();
/// ```
///
/// ```
/// fn made_of_nothing<P: Default>() -> P { P::default() }
/// made_of_nothing::<poach_memory::Full>();
/// ```
///
/// ```compile_fail,E0133
/// let _ = poach_memory::Unfenced::new();
/// ```
///
/// ```
/// // SAFETY: no queue is given it.
/// let _ = unsafe { poach_memory::Unfenced::new() };
/// ```
mod unfenced {}

/// A bound without a promise.
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::exactly(core::num::NonZeroU64::MIN);
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// // SAFETY: no queue is given it; so below.
/// let _ = unsafe { Delta::exactly(core::num::NonZeroU64::MIN) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::new(1, 1);
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = unsafe { Delta::new(1, 1) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::with_egress(1, 1, 1);
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = unsafe { Delta::with_egress(1, 1, 1) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::ample(0);
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = unsafe { Delta::ample(0) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::documented(1000);
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = unsafe { Delta::documented(1000) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::{Delta, delta::DOCUMENTED};
/// let _ = Delta::of(&DOCUMENTED[0], 1000);
/// ```
///
/// ```
/// # use poach_memory::{Delta, delta::DOCUMENTED};
/// let _ = unsafe { Delta::of(&DOCUMENTED[0], 1000) };
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::Delta;
/// let _ = Delta::for_this_processor().map(|delta| delta.without_fill());
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = Delta::for_this_processor().map(|delta| unsafe { delta.without_fill() });
/// ```
///
/// ```compile_fail,E0133
/// # use poach_memory::{Delta, Profile, profile::ProfileError};
/// fn trusted(text: &str) -> Result<Delta, ProfileError> { Delta::measured(&text.parse()?, 0) }
/// ```
///
/// ```
/// # use poach_memory::{Delta, Profile, profile::ProfileError};
/// fn trusted(text: &str) -> Result<Delta, ProfileError> { unsafe { Delta::measured(&text.parse()?, 0) } }
/// ```
///
/// ```compile_fail,E0451
/// # use poach_memory::Delta;
/// let _ = |delta: Delta| Delta { stores: 1000, ..delta };
/// ```
///
/// ```
/// # use poach_memory::Delta;
/// let _ = |delta: Delta| (delta.pops(), delta.stores(), ..);
/// ```
mod bounds {}

/// An owner's processor.
///
/// ```compile_fail,E0133
/// let _ = poach_memory::Displaced::onto(0);
/// ```
///
/// ```
/// // SAFETY: no queue is given it; so below.
/// let _ = unsafe { poach_memory::Displaced::onto(0) };
/// ```
///
/// ```compile_fail,E0133
/// let _ = poach_memory::Displaced::bind_owner();
/// ```
///
/// ```
/// let _ = unsafe { poach_memory::Displaced::bind_owner() };
/// ```
mod displaced {}

/// An object that is not the caller's to free: only unsafe code makes a `Freed`, so safe code has
/// none for `Memory::free` and `Freed::address`.
///
/// ```compile_fail,E0133
/// use poach_memory::{Freed, Machine, Memory};
/// let freed = Freed::new(Box::into_raw(Box::new(1)));
/// assert_ne!(freed.address(), 0);
/// Machine::free(freed);
/// ```
///
/// ```
/// use poach_memory::{Freed, Machine, Memory};
/// // SAFETY: from a box, and used by nobody.
/// let freed = unsafe { Freed::new(Box::into_raw(Box::new(1))) };
/// assert_ne!(freed.address(), 0);
/// Machine::free(freed);
/// ```
mod freed {}
