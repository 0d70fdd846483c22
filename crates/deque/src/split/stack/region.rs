//! The memory of a task stack.
//!
//! A stack lies at a multiple of a large power of two, so that a head finds its header by a mask. An allocator of the C library reserves as much
//! address space for that on top of each stack. Where address space is limited (`ulimit -v`) that is most of what a pool takes; so on
//! Linux a stack is mapped here, and what lies before and behind it is given back.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::alloc::Layout;
    use std::cell::Cell;
    use std::io;
    use std::ptr;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// A multiple of all sizes of pages.
    const PAGE: usize = 64 << 10;

    thread_local! {
        /// Where this thread asks for its next stack: below the last one that it has made, or where the highest one lay that it has
        /// freed since. So mostly a stack takes one system call, and a pool that comes after another takes its places. Zero: anywhere.
        static NEXT: Cell<usize> = const { Cell::new(0) };
    }

    /// So many bytes, at an address of the system's choice: the one that is asked for, if that is free.
    fn map(at: usize, length: usize) -> io::Result<*mut u8> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let at = ptr::without_provenance_mut(at);
        // SAFETY: an address of the system's own choice, where nothing is mapped.
        let mapped = unsafe { mmap_anonymous(at, length, access, flags) };
        Ok(mapped?.cast())
    }

    /// # Safety
    ///
    /// Whole pages of a mapping that nobody uses any more.
    unsafe fn unmap(start: *mut u8, length: usize) {
        // SAFETY: by this function's contract. Should the system refuse, they stay reserved.
        _ = unsafe { munmap(start.cast(), length) };
    }

    /// # Safety
    ///
    /// The layout's size is not zero.
    pub(crate) unsafe fn alloc(layout: Layout) -> *mut u8 {
        assert!(layout.align().is_multiple_of(PAGE), "a stack lies at a page's boundary");
        let size = layout.size().next_multiple_of(PAGE);
        let stack = map_next(size, layout.align()).or_else(|| map_within(size, layout.align()));
        let Some(stack) = stack else {
            return ptr::null_mut();
        };
        NEXT.set(stack.addr().saturating_sub(layout.align()));
        stack
    }

    /// At the next place, if that is free.
    fn map_next(size: usize, align: usize) -> Option<*mut u8> {
        let next = NEXT.get();
        if next == 0 || !next.is_multiple_of(align) {
            return None;
        }
        let stack = map(next, size).ok()?;
        if stack.addr().is_multiple_of(align) {
            return Some(stack);
        }
        // SAFETY: the mapping just made.
        unsafe { unmap(stack, size) };
        None
    }

    /// In the midst of a larger piece, of which the rest is given back.
    fn map_within(size: usize, align: usize) -> Option<*mut u8> {
        let start = map(0, size + align).ok()?;
        let before = start.align_offset(align);
        let stack = start.wrapping_byte_add(before);
        let behind = stack.wrapping_byte_add(size);
        for (part, length) in [(start, before), (behind, align - before)] {
            if length != 0 {
                // SAFETY: of this mapping, whole pages beside the stack: `start` is page-aligned, and so are the others.
                unsafe { unmap(part, length) };
            }
        }
        Some(stack)
    }

    /// # Safety
    ///
    /// It was allocated by `alloc` with this layout, and nobody uses it any more.
    pub(crate) unsafe fn dealloc(stack: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        unsafe { unmap(stack, layout.size().next_multiple_of(PAGE)) };
        // In a thread's last moments, too: it needs no destructor.
        NEXT.set(NEXT.get().max(stack.addr()));
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
pub(super) use system::{alloc, dealloc};

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) use std::alloc::{alloc, dealloc};
