//! Shared memory for Poach's queues: words, fences, and policies that say which thread fences.
//!
//! Every queue and pool of Poach is generic over [`Memory`], so the lines that ship are the lines
//! that are checked. Three memories exist:
//!
//! | memory | what a word is | for |
//! |---|---|---|
//! | [`Machine`] | an atomic of `core`, every call inlined | programs |
//! | `Loom` (feature `loom`) | an atomic of loom | models under the C11 memory model |
//! | `poach-check`'s | an entry of a simulated TSO\[S\] machine | models under bounded store buffers |
//!
//! A queue also takes a fence policy, [`StoreLoad`], which says how the owner's store of its index
//! stays ahead of its load of the thieves' index. See [`order`].
#![doc = include_str!("readme.md")]

// WebAssembly has such words beside addresses of 32 bits.
#[cfg(not(any(target_pointer_width = "64", target_family = "wasm")))]
compile_error!("Poach packs two indices in one 64-bit word: it needs a 64-bit target");

#[cfg(doctest)]
mod compile_fail;
pub mod delta;
pub mod displace;
mod freed;
pub mod machine;
pub mod membarrier;
pub mod order;
mod processor;
pub mod profile;

#[cfg(feature = "loom")]
mod loom_memory;

use core::mem::MaybeUninit;

pub use core::sync::atomic::Ordering;
pub use crossbeam_utils::CachePadded;

pub use delta::Delta;
pub use displace::Displaced;
pub use freed::Freed;
#[cfg(feature = "loom")]
pub use loom_memory::Loom;
pub use machine::Machine;
pub use order::{Asymmetric, Bounded, Full, Resolved, StoreLoad, Unbounded, Unfenced};
pub use profile::Profile;

/// A kind of shared memory: its cells, and its fences.
///
/// The fences come in two strengths. [`full`](Memory::full) is a fence that orders all accesses.
/// [`light`](Memory::light) and [`heavy`](Memory::heavy) are the two ends of an asymmetric fence.
/// For a `light` in one thread and a `heavy` in another, one of two things holds: the accesses
/// after the `heavy` see all stores before the `light`, or the accesses after the `light` see all
/// stores before the `heavy`. Two `light`s order nothing between them, so a `light` is nearly free.
///
/// # Safety
///
/// Queues that are generic over a memory rely on it to hand tasks from thread to thread. For
/// threads that share words, pointers and cells of this memory:
///
/// - [`full`](Memory::full) is a sequentially consistent fence, as `fence(SeqCst)` of `core` is,
///   and so is [`heavy`](Memory::heavy) for the calling thread.
/// - Once [`asymmetric`](Memory::asymmetric) has returned `true`, `light` and `heavy` keep the
///   promise above for ever, for every two threads that use the memory. So does a
///   [`try_heavy`](Memory::try_heavy) that returns `true`.
/// - [`asymmetric_by_now`](Memory::asymmetric_by_now) returns `true` only if
///   [`asymmetric`](Memory::asymmetric) would.
/// - The result of [`total_store_order`](Memory::total_store_order) never changes. It is `true`
///   only if all threads that use the memory run under total store order.
/// - [`pause`](Memory::pause), [`give_way`](Memory::give_way) and [`evict`](Memory::evict) change
///   no memory that a thread can read.
/// - No method unwinds, except to end a checker's execution.
///
/// A memory may break a promise to test that a checker notices. It is for that checker alone, and
/// for tasks that may be copied.
pub unsafe trait Memory: Sized + Send + Sync + 'static {
    /// A shared 64-bit word.
    type Word: Word;
    /// A shared pointer. It is not a word, because it must keep its provenance.
    type Pointer<T>: Pointer<T>;
    /// A place for data that a protocol over words hands from one thread to the next.
    type Cell<T>: Cell<T>;

    /// `length` words that hold 0; `None` if memory is exhausted. Real memory gets them zeroed from
    /// the allocator, so no page of them is touched.
    fn zeros(length: usize) -> Option<Box<[Self::Word]>> {
        let mut words = Vec::new();
        words.try_reserve_exact(length).ok()?;
        words.extend((0..length).map(|_| Self::Word::new(0)));
        Some(words.into_boxed_slice())
    }

    /// `length` uninitialized cells; `None` if memory is exhausted. Real memory gets them from the
    /// allocator without building them on the stack first.
    #[expect(clippy::type_complexity, reason = "a box of cells, if there is memory")]
    fn cells<T>(length: usize) -> Option<Box<[Self::Cell<MaybeUninit<T>>]>> {
        let mut cells = Vec::new();
        cells.try_reserve_exact(length).ok()?;
        cells.extend((0..length).map(|_| Self::Cell::new(MaybeUninit::uninit())));
        Some(cells.into_boxed_slice())
    }

    /// A sequentially consistent fence.
    fn full();

    /// The cheap end of the asymmetric fence. It orders nothing unless
    /// [`asymmetric`](Memory::asymmetric) has returned `true`.
    fn light();

    /// The costly end of the asymmetric fence. It is only [`full`](Memory::full) unless
    /// [`asymmetric`](Memory::asymmetric) has returned `true`.
    fn heavy();

    /// Returns `true` if this memory has an asymmetric fence. The first call may register the
    /// process with the kernel. Later the result changes at most once, from `true` to `false`, if
    /// the system takes the fence away.
    fn asymmetric() -> bool;

    /// As [`asymmetric`](Memory::asymmetric), without waiting for the kernel: the result may change
    /// from `false` to `true` once, and then to `false` for ever. A thread that has seen `true` may
    /// rely on its later calls of `heavy`, against every `light` of other threads.
    fn asymmetric_by_now() -> bool {
        Self::asymmetric()
    }

    /// As [`heavy`](Memory::heavy), but returns `false` if the system refuses the fence now; then
    /// no other thread has executed a fence. May be relied on where `heavy` may.
    #[must_use = "if it is false there was no fence"]
    fn try_heavy() -> bool {
        Self::heavy();
        true
    }

    /// Returns `true` if [`try_heavy`](Memory::try_heavy) may succeed in the calling thread and be
    /// relied on: the memory has the fence, or has had it. After the fence was taken away,
    /// [`asymmetric_by_now`](Memory::asymmetric_by_now) is `false`, and this may still be `true`.
    fn heavy_may_succeed() -> bool {
        Self::asymmetric_by_now()
    }

    /// Whether [`try_heavy`](Memory::try_heavy) may ever return `false`. The result never changes.
    fn can_lose() -> bool {
        false
    }

    /// Returns `true` if this memory is known to have no asymmetric fence, or to have lost it, so
    /// that owners should execute full fences. `true` never becomes `false`.
    ///
    /// By default `false`: no thread relies on light fences where there are no heavy ones.
    fn owners_fence() -> bool {
        false
    }

    /// Returns `true` if this memory has total store order: a thread's stores reach memory in
    /// program order, and a load can overtake only stores in a buffer of bounded size.
    /// [`Bounded`] requires it.
    fn total_store_order() -> bool {
        false
    }

    /// Tells the processor, or the model's scheduler, that this thread spins.
    fn pause();

    /// As [`pause`](Memory::pause), if the awaited thread may have lost its processor: real memory
    /// yields this thread's processor.
    fn give_way() {
        Self::pause();
    }

    /// Returns how many times a thread polls before it may stop waiting, if the algorithm polls
    /// `looks` times. Real memory returns `looks`. A model may return less, at least 1, because
    /// each poll is a choice of its search. Only for a wait whose polls change nothing but their
    /// count: then an execution with fewer polls has the same outcome.
    fn patience(looks: u32) -> u32 {
        looks
    }

    /// Moves these out of this processor's caches, if it can, because another thread will write
    /// them next. A processor that writes lines in another processor's cache waits for each line in
    /// turn; it prefetches lines that no cache holds. A hint: it orders nothing and changes no
    /// value.
    fn evict<T>(_those: &[T]) {}

    /// Requests the cache line for a write that this thread will make soon, without waiting. A
    /// hint: it orders nothing and changes no value.
    #[inline(always)]
    fn will_write<T>(_there: &T) {}

    /// Frees an object that threads have shared and that a reclamation protocol has found unused. A
    /// model's memory checks the protocol: it finds a use that does not happen before this call. An
    /// object of one thread, or of the last handle, is dropped as usual.
    fn free(object: Freed) {
        drop(object);
    }
}

/// A shared 64-bit word.
///
/// Orderings mean the same as on [`AtomicU64`](core::sync::atomic::AtomicU64), and the same
/// orderings are refused (a load cannot be `Release`). Every operation is wait-free.
///
/// # Safety
///
/// Each method is one atomic access to one word that all threads with a reference share. It does
/// what the method of `AtomicU64` with the same name does, with the given ordering or a stronger
/// one. In particular:
///
/// - A word's changes have one order, in which each read-modify-write reads the value just before
///   its own.
/// - An exchange writes if and only if it returns `Ok`, and returns `Err` only if the word held
///   another value.
pub unsafe trait Word: Send + Sync {
    /// A word that holds `value`.
    fn new(value: u64) -> Self;
    /// Reads the word.
    fn load(&self, order: Ordering) -> u64;
    /// Writes the word.
    fn store(&self, value: u64, order: Ordering);
    /// Writes the word and returns what it held.
    fn swap(&self, value: u64, order: Ordering) -> u64;
    /// Adds, wrapping, and returns what the word held.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Subtracts, wrapping, and returns what the word held.
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits and returns what the word held.
    fn fetch_or(&self, value: u64, order: Ordering) -> u64;
    /// Keeps only the bits of `value` and returns what the word held.
    fn fetch_and(&self, value: u64, order: Ordering) -> u64;
    /// Writes `new` if the word holds `current`.
    ///
    /// # Errors
    ///
    /// What the word held instead.
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64>;
}

/// A shared pointer to `T`, which it does not own.
///
/// As [`Word`], for pointers.
///
/// # Safety
///
/// As for [`Word`]. A load returns the pointer that was written, with its provenance. Two pointers
/// are equal if their addresses are.
pub unsafe trait Pointer<T>: Send + Sync {
    /// A pointer word that holds `value`.
    fn new(value: *mut T) -> Self;
    /// Reads the pointer.
    fn load(&self, order: Ordering) -> *mut T;
    /// Writes the pointer.
    fn store(&self, value: *mut T, order: Ordering);
    /// Writes the pointer and returns what it was.
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T;
    /// Writes `new` if the word holds `current`.
    ///
    /// # Errors
    ///
    /// What the word held instead.
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T>;
}

/// A place that one thread at a time may touch, where words say which thread that is.
///
/// Closures get the pointers, so that a model can watch each access begin and end and report two
/// accesses that overlap. Using them is as unsafe as using an
/// [`UnsafeCell`](core::cell::UnsafeCell): the cell of real memory checks nothing.
///
/// # Safety
///
/// The cell owns one `T`, at one address while the cell is not moved: the value given to
/// [`new`](Cell::new), and later the value written there. [`with`](Cell::with) and
/// [`with_mut`](Cell::with_mut) call the closure once and return its result. The closure's pointer
/// to the value is valid for reads, and from `with_mut` for writes. Only the closures and the
/// cell's own drop access the value.
pub unsafe trait Cell<T> {
    /// A cell that holds `value`.
    fn new(value: T) -> Self;
    /// Calls `read` with a pointer to the content.
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R;
    /// Calls `write` with a pointer to the content.
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R;
}
