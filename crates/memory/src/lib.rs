//! Shared memory as Poach's queues see it: words, fences, and who pays for which fence.
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
//! stays ahead of its load of the thieves' index. The policy is a parameter of an algorithm, never
//! an algorithm of its own: see [`order`].
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
/// The fences come in two strengths. [`full`](Memory::full) orders everything, for everyone.
/// [`light`](Memory::light) and [`heavy`](Memory::heavy) are the two ends of an asymmetric fence:
/// for every pair of a `light` in one thread and a `heavy` in another, either all that stands
/// before the `light` is visible to all that stands after the `heavy`, or the other way about. Two
/// `light`s order nothing between them; that is why one of them is nearly free.
///
/// # Safety
///
/// Queues that are generic over a memory hand tasks from thread to thread on the strength of it.
/// For threads that share words, pointers and cells of this memory:
///
/// - [`full`](Memory::full) is a sequentially consistent fence, as `fence(SeqCst)` of `core` is,
///   and so is [`heavy`](Memory::heavy) for the calling thread.
/// - Where the answer of [`asymmetric`](Memory::asymmetric) was `true` once, `light` and `heavy`
///   keep the promise above for ever, for every two threads that use the memory, and so does a
///   [`try_heavy`](Memory::try_heavy) that returns `true`.
/// - [`asymmetric_by_now`](Memory::asymmetric_by_now) answers `true` only where
///   [`asymmetric`](Memory::asymmetric) would.
/// - The answer of [`total_store_order`](Memory::total_store_order) never changes, and is `true`
///   only where all threads that use the memory run under total store order.
/// - [`pause`](Memory::pause), [`give_way`](Memory::give_way) and [`evict`](Memory::evict) change
///   no memory that anybody can see.
/// - Nothing unwinds but what ends a checker's execution.
///
/// A memory that breaks a promise on purpose, to see that a checker notices, is for that checker
/// alone and for tasks that may be copied.
pub unsafe trait Memory: Sized + Send + Sync + 'static {
    /// A shared 64-bit word.
    type Word: Word;
    /// A shared pointer. A word would do, but for a pointer's provenance.
    type Pointer<T>: Pointer<T>;
    /// A place for data that some protocol over words hands from one thread to the next.
    type Cell<T>: Cell<T>;

    /// Words that hold 0, as many as `length`: `None` if there is no memory for them. Real memory
    /// takes them from the allocator as they are, and no page of them is touched.
    fn zeros(length: usize) -> Option<Box<[Self::Word]>> {
        let mut words = Vec::new();
        words.try_reserve_exact(length).ok()?;
        words.extend((0..length).map(|_| Self::Word::new(0)));
        Some(words.into_boxed_slice())
    }

    /// Cells that hold nothing yet, as many as `length`: `None` if there is no memory for them.
    /// Real memory takes them from the allocator as they are: none of them is made elsewhere and
    /// moved there, which would take room on the stack.
    #[expect(clippy::type_complexity, reason = "a box of cells, if there is memory")]
    fn cells<T>(length: usize) -> Option<Box<[Self::Cell<MaybeUninit<T>>]>> {
        let mut cells = Vec::new();
        cells.try_reserve_exact(length).ok()?;
        cells.extend((0..length).map(|_| Self::Cell::new(MaybeUninit::uninit())));
        Some(cells.into_boxed_slice())
    }

    /// A sequentially consistent fence.
    fn full();

    /// The cheap end of the asymmetric fence. Only to be relied on where
    /// [`asymmetric`](Memory::asymmetric) has answered `true`.
    fn light();

    /// The costly end of the asymmetric fence. Only to be relied on where
    /// [`asymmetric`](Memory::asymmetric) has answered `true`; elsewhere it is
    /// [`full`](Memory::full).
    fn heavy();

    /// Whether this memory has an asymmetric fence. The first call may register the process with
    /// the kernel; after it the answer changes at most once, from `true` to `false`, if the system
    /// takes the fence away.
    fn asymmetric() -> bool;

    /// As [`asymmetric`](Memory::asymmetric), without waiting for an answer: `false` may become
    /// `true`, once, and that `false`, for ever. Who has seen `true` may rely on the `heavy`
    /// calls that it makes afterwards, against every `light` of others.
    fn asymmetric_by_now() -> bool {
        Self::asymmetric()
    }

    /// [`heavy`](Memory::heavy), where real memory may find that the system refuses it now: `false`
    /// says that it did nothing that others notice. Only to be relied on where `heavy` is.
    #[must_use = "if it is false there was no fence"]
    fn try_heavy() -> bool {
        Self::heavy();
        true
    }

    /// Whether [`try_heavy`](Memory::try_heavy) may be relied on and may succeed in the calling
    /// thread: the memory has the fence, or has had it. After the fence was taken away,
    /// [`asymmetric_by_now`](Memory::asymmetric_by_now) is `false`, and this may still be `true`.
    fn heavy_may_succeed() -> bool {
        Self::asymmetric_by_now()
    }

    /// Whether [`try_heavy`](Memory::try_heavy) may ever say `false`. The answer never changes.
    fn can_lose() -> bool {
        false
    }

    /// Whether it is known that there is no asymmetric fence, or none any more, so that owners do
    /// well to issue full fences. `true` never becomes `false`.
    ///
    /// By default `false`: an owner that is not told keeps to its light fences, on which nobody
    /// relies where there are no heavy ones.
    fn owners_fence() -> bool {
        false
    }

    /// Whether this memory is total store order: stores reach memory in the order in which a thread
    /// issued them, and a load can only overtake stores that are still in a buffer of bounded size.
    /// Only there does [`Bounded`] make sense.
    fn total_store_order() -> bool {
        false
    }

    /// Tells the processor, or the model's scheduler, that this thread waits for another in a loop.
    fn pause();

    /// As [`pause`](Memory::pause), where the thread waited for may have lost its processor: real
    /// memory gives this one away.
    fn give_way() {
        Self::pause();
    }

    /// How often a thread looks before it may stop waiting, where the algorithm would have it look
    /// `looks` times. Real memory has it look so often. A model may answer less, since each
    /// look is a choice of its search; at least 1. Only for a wait whose looks leave nothing
    /// but their count: then each execution with more looks has one with fewer in which the same
    /// happens.
    fn patience(looks: u32) -> u32 {
        looks
    }

    /// Moves these out of this processor's caches, where it can: another thread
    /// will write them next. A processor that writes what another's cache holds waits for each line
    /// in turn; lines that nobody holds it has fetched ahead. Orders nothing, and changes
    /// nothing that a thread can see but the time.
    fn evict<T>(_those: &[T]) {}

    /// This thread will soon write there, where another processor's cache may hold the line: asks
    /// for it, where memory can, and does not wait. Orders nothing, and changes nothing that a
    /// thread can see but the time.
    #[inline(always)]
    fn will_write<T>(_there: &T) {}

    /// Frees an object that threads have used and that, by the word of some protocol, none uses any
    /// more. A model's memory checks the protocol: it finds a use that no store and load put in
    /// order before this. What one thread alone has, or the last handle, is dropped as usual.
    fn free(object: Freed) {
        drop(object);
    }
}

/// A shared 64-bit word.
///
/// Orderings mean what they mean on [`AtomicU64`](core::sync::atomic::AtomicU64), and the same ones
/// are refused (a load cannot be `Release`). Every operation is wait-free.
///
/// # Safety
///
/// Each method is one indivisible access to one word that all threads with a reference share, and
/// does what the method of the same name of `AtomicU64` does, with the ordering that it is given or
/// a stronger one. In particular a word's changes have one order, in which each read-modify-write
/// reads the value just before its own; an exchange writes if and only if it returns `Ok`, and
/// returns `Err` only if the word held another value.
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
/// As [`Word`]'s. What is read is the very pointer that was written, with its provenance; two
/// pointers are equal if their addresses are.
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
/// The pointers are handed to closures, so that a model can watch each access begin and end and
/// report two that overlap. Using them is as unsafe as using an
/// [`UnsafeCell`](core::cell::UnsafeCell): the cell checks nothing when it is real.
///
/// # Safety
///
/// The cell owns one `T`, at one place for as long as the cell is not moved: the value it was made
/// with, and later what is written there. [`with`](Cell::with) and [`with_mut`](Cell::with_mut)
/// call the closure once, return what it returns, and give it a pointer to that place that is valid
/// for reads, and from `with_mut` for writes. Nothing but the closures and the cell's own drop
/// touches the value.
pub unsafe trait Cell<T> {
    /// A cell that holds `value`.
    fn new(value: T) -> Self;
    /// Lends the content for reading.
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R;
    /// Lends the content for writing.
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R;
}
