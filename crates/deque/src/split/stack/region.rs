//! The memory of a task stack.
//!
//! A stack lies at a multiple of a large power of two, so that a head finds its header by a mask. An allocator of the C library reserves as much
//! address space for that on top of each stack. Where address space is limited (`ulimit -v`) that is most of what a pool takes; so on
//! Linux a stack is mapped here, and what lies before and behind it is given back.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::alloc::Layout;
    use std::ptr;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// A multiple of all sizes of pages.
    const PAGE: usize = 64 << 10;

    /// # Safety
    ///
    /// The layout's size is not zero.
    pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
        assert!(layout.align().is_multiple_of(PAGE), "a stack lies at a page's boundary");
        let size = layout.size().next_multiple_of(PAGE);
        let whole = size + layout.align();
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: an address of the system's own choice, where nothing is mapped.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), whole, access, flags) };
        let Ok(start) = mapped else {
            return ptr::null_mut();
        };
        let before = start.align_offset(layout.align());
        let stack = start.wrapping_byte_add(before);
        let behind = stack.wrapping_byte_add(size);
        for (part, length) in [(start, before), (behind, layout.align() - before)] {
            if length != 0 {
                // SAFETY: whole pages of this mapping that nobody uses: `start` is page-aligned, and so are the others.
                // Should the system refuse, they stay reserved.
                _ = unsafe { munmap(part, length) };
            }
        }
        stack.cast()
    }

    /// # Safety
    ///
    /// It was allocated by `alloc` with this layout, and nobody uses it any more.
    pub(crate) unsafe fn dealloc(stack: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        _ = unsafe { munmap(stack.cast(), layout.size().next_multiple_of(PAGE)) };
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
pub(super) use system::{alloc, dealloc};

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) use std::alloc::{alloc, dealloc};
