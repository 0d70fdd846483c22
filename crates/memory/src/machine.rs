//! The machine that the program runs on: atomics of `core`, inlined to single instructions.

use core::cell::UnsafeCell;
use core::hint;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{self, AtomicPtr, AtomicU64, Ordering};

use std::alloc::{Layout, alloc_zeroed};

use crate::{Cell, Memory, Pointer, Word, membarrier};

/// Real memory.
///
/// [`full`](Memory::full) is `fence(SeqCst)`, which rustc compiles to a locked instruction on
/// x86-64, not to `mfence`. [`light`](Memory::light) only keeps the compiler from reordering;
/// [`heavy`](Memory::heavy) is [`membarrier::barrier`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

// SAFETY: `full` and `heavy` are `core`'s fence or more; `membarrier` decides once and describes
// its two ends; total store order is what x86-64 processors have by their makers' manuals; waiting
// and `clflush` change no content.
unsafe impl Memory for Machine {
    type Word = AtomicU64;
    type Pointer<T> = AtomicPtr<T>;
    type Cell<T> = DataCell<T>;

    fn zeros(length: usize) -> Option<Box<[AtomicU64]>> {
        let layout = Layout::array::<AtomicU64>(length).ok()?;
        if length == 0 {
            return Some(Box::default());
        }
        // SAFETY: the layout has a size, of one word or more.
        let words = unsafe { alloc_zeroed(layout) };
        if words.is_null() {
            return None;
        }
        #[expect(
            clippy::cast_ptr_alignment,
            reason = "it was allocated with the layout of these words"
        )]
        let words = ptr::slice_from_raw_parts_mut(words.cast::<AtomicU64>(), length);
        // SAFETY: the global allocator has just returned it for this slice's layout, and a word
        // whose bytes are zero holds 0.
        Some(unsafe { Box::from_raw(words) })
    }

    fn cells<T>(length: usize) -> Option<Box<[DataCell<MaybeUninit<T>>]>> {
        let mut cells = Vec::new();
        cells.try_reserve_exact(length).ok()?;
        // SAFETY: `length` cells were reserved, and a cell of `MaybeUninit` may have any bytes.
        unsafe { cells.set_len(length) };
        Some(cells.into_boxed_slice())
    }

    #[inline(always)]
    fn full() {
        atomic::fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn light() {
        atomic::compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn heavy() {
        membarrier::barrier();
    }

    #[inline]
    fn asymmetric() -> bool {
        membarrier::register().is_ok()
    }

    #[inline]
    fn asymmetric_by_now() -> bool {
        membarrier::is_registered()
    }

    #[inline]
    fn try_heavy() -> bool {
        membarrier::try_barrier()
    }

    #[inline]
    fn heavy_may_succeed() -> bool {
        membarrier::may_succeed()
    }

    #[inline(always)]
    fn can_lose() -> bool {
        true
    }

    #[inline]
    fn owners_fence() -> bool {
        membarrier::is_refused()
    }

    /// `true` on x86-64, except under Miri, whose memory model is C11's on each target, and with
    /// the feature `portable`, which builds for a processor without total store order.
    #[inline(always)]
    fn total_store_order() -> bool {
        cfg!(all(target_arch = "x86_64", not(miri), not(feature = "portable")))
    }

    #[inline(always)]
    fn pause() {
        hint::spin_loop();
    }

    #[cold]
    fn give_way() {
        std::thread::yield_now();
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(feature = "portable")))]
    #[inline(always)]
    fn will_write<T>(there: &T) {
        let there = core::ptr::from_ref(there);
        // SAFETY: the instruction changes nothing but caches, faults at no address, and does
        // nothing on processors without it.
        unsafe {
            core::arch::asm!(
                "prefetchw [{}]",
                in(reg) there,
                options(nostack, preserves_flags, readonly)
            );
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(feature = "portable")))]
    fn evict<T>(those: &[T]) {
        /// The line size of every x86-64 processor, in bytes.
        const LINE: usize = 64;
        if size_of_val(those) == 0 {
            // It may stand where there is no memory.
            return;
        }
        let first = those.as_ptr().cast::<u8>();
        let end = first.wrapping_add(size_of_val(those));
        let mut line = first.wrapping_sub(first.addr() % LINE);
        while line < end {
            // SAFETY: every x86-64 has the instruction, which needs an address that may be read:
            // the line holds one of the slice's bytes.
            unsafe { core::arch::x86_64::_mm_clflush(line) };
            line = line.wrapping_add(LINE);
        }
    }
}

// SAFETY: these are the methods of `AtomicU64` that the trait describes.
unsafe impl Word for AtomicU64 {
    #[inline(always)]
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    #[inline(always)]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::swap(self, value, order)
    }

    #[inline(always)]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_add(self, value, order)
    }

    #[inline(always)]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_sub(self, value, order)
    }

    #[inline(always)]
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_or(self, value, order)
    }

    #[inline(always)]
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        AtomicU64::fetch_and(self, value, order)
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        AtomicU64::compare_exchange(self, current, new, success, failure)
    }
}

// SAFETY: as for the word; an `AtomicPtr` keeps provenance.
unsafe impl<T> Pointer<T> for AtomicPtr<T> {
    #[inline(always)]
    fn new(value: *mut T) -> Self {
        AtomicPtr::new(value)
    }

    #[inline(always)]
    fn load(&self, order: Ordering) -> *mut T {
        AtomicPtr::load(self, order)
    }

    #[inline(always)]
    fn store(&self, value: *mut T, order: Ordering) {
        AtomicPtr::store(self, value, order);
    }

    #[inline(always)]
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        AtomicPtr::swap(self, value, order)
    }

    #[inline(always)]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        AtomicPtr::compare_exchange(self, current, new, success, failure)
    }
}

/// The [`Cell`] of [`Machine`]: an `UnsafeCell`, as large as its content and nothing more.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct DataCell<T>(UnsafeCell<T>);

// SAFETY: the value lies in an `UnsafeCell`, which has one address.
unsafe impl<T> Cell<T> for DataCell<T> {
    #[inline(always)]
    fn new(value: T) -> Self {
        DataCell(UnsafeCell::new(value))
    }

    #[inline(always)]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    #[inline(always)]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_evicted_is_still_there() {
        let bytes: Vec<u8> = (0..=255).collect();
        // From the middle of a line to the middle of another, a part of one line, and nothing.
        for part in [3..253, 10..11, 0..256, 256..256] {
            Machine::evict(&bytes[part]);
        }
        Machine::evict::<u64>(&[]);
        Machine::evict(&[(); 3]);
        assert!(bytes.iter().copied().eq(0..=255));
    }

    /// The line after a slice is not evicted: if no memory is mapped there, the instruction faults.
    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(feature = "portable")))]
    fn a_slice_may_end_where_memory_ends() {
        const PAGE: usize = 4096;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the system chooses the address, so no memory of others is replaced.
        let pages = unsafe { libc::mmap(core::ptr::null_mut(), 2 * PAGE, access, kind, -1, 0) };
        assert_ne!(pages, libc::MAP_FAILED);
        // SAFETY: the second page belongs to this mapping, and no thread uses it.
        assert_eq!(unsafe { libc::munmap(pages.wrapping_byte_add(PAGE), PAGE) }, 0);
        // SAFETY: the first page is mapped and zeroed, and no thread writes to it.
        let page = unsafe { core::slice::from_raw_parts(pages.cast::<u8>(), PAGE) };
        Machine::evict(page);
        assert!(page.iter().all(|byte| *byte == 0));
        // SAFETY: the first page is this mapping's, and `page` is not used any more.
        assert_eq!(unsafe { libc::munmap(pages, PAGE) }, 0);
    }
}
