//! One slot of a task stack, and the bits that say whose it is.

use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use poach_memory::{Cell, Memory, Ordering, Pointer, Word};

/// Bytes of a slot that a task, and then its result, may use; aligned to 16.
pub const PAYLOAD: usize = 48;

/// Set in a slot's task word while a task stands in the slot.
pub(super) const PRESENT: usize = 1;
/// The bits of a slot's status word: how far a stolen task has come.
///
/// Zero while the task is not stolen or its thief has not yet said its name; else the thief's
/// number plus one, shifted by [`Status::THIEF_SHIFT`], and these flags.
pub struct Status;

impl Status {
    /// The result is in the slot.
    pub const DONE: u64 = 1;
    /// The thief's number plus one stands above this bit.
    pub const THIEF_SHIFT: u32 = 8;
}

#[repr(C, align(16))]
pub(super) struct Payload([MaybeUninit<u8>; PAYLOAD]);

/// One task of a [`Stack`](super::Stack): 64 bytes on a real machine.
#[repr(C, align(64))]
pub struct Slot<M: Memory> {
    /// The task's descriptor, with [`PRESENT`] while the slot is occupied.
    pub(super) task: M::Pointer<()>,
    pub(super) status: M::Word,
    pub(super) payload: M::Cell<Payload>,
}

impl<M: Memory> Slot<M> {
    fn free() -> Self {
        Slot {
            task: M::Pointer::new(core::ptr::null_mut()),
            status: M::Word::new(0),
            payload: M::Cell::new(Payload([MaybeUninit::uninit(); PAYLOAD])),
        }
    }

    /// A slot in which something stands that nobody takes.
    pub(super) fn occupied() -> Self {
        let task = M::Pointer::new(core::ptr::without_provenance_mut(PRESENT));
        Slot { task, ..Self::free() }
    }

    /// Whether a value of type `T` can be held in a slot.
    #[inline(always)]
    pub const fn fits<T>() -> bool {
        size_of::<T>() <= PAYLOAD && align_of::<T>() <= 16
    }

    /// The slot's [`Status`] word.
    #[inline(always)]
    pub fn status(&self) -> &M::Word {
        &self.status
    }

    /// The descriptor that the task was pushed with.
    #[inline(always)]
    pub fn descriptor(&self) -> *mut () {
        // Relaxed: the reader has claimed the task, and that claim acquired this word's value. The
        // owner may be changing the PRESENT bit in a vain attempt to pop; it is masked out.
        self.task.load(Ordering::Relaxed).map_addr(|address| address & !PRESENT)
    }

    /// Moves a value into the slot.
    ///
    /// # Safety
    ///
    /// `T` [fits](Slot::fits), and the slot's payload is the caller's: it is the owner of a free
    /// slot, or the thief of the task that it held.
    #[inline(always)]
    pub unsafe fn put<T>(&self, value: T) {
        debug_assert!(Self::fits::<T>());
        self.payload.with_mut(|payload| {
            // SAFETY: the payload is valid for writes of PAYLOAD bytes at 16-byte alignment, T
            // needs no more of either, and by this function's contract nobody else
            // accesses it.
            unsafe { payload.cast::<T>().write(value) }
        });
    }

    /// Moves a value out of the slot.
    ///
    /// # Safety
    ///
    /// A `T` was [put](Slot::put) last and has not been taken out, and the payload is the caller's.
    #[inline(always)]
    pub unsafe fn take<T>(&self) -> T {
        self.payload.with(|payload| {
            // SAFETY: by this function's contract the payload holds a T that is the caller's to
            // move.
            unsafe { payload.cast::<T>().read() }
        })
    }
}

/// Initialises `count` slots from `first` on.
///
/// # Safety
///
/// They lie within a stack's allocation, and nobody uses them.
pub(super) unsafe fn make_ready<M: Memory>(first: NonNull<Slot<M>>, count: usize) {
    for place in 0..count {
        // SAFETY: within the allocation, by this function's contract.
        let slot = unsafe { first.add(place) };
        // SAFETY: valid for writes, aligned, and nobody else's.
        unsafe { slot.write(Slot::free()) };
    }
}
