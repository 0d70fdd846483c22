//! Address space that is kept for what is mapped later.
//!
//! If address space is limited, a thread that starts takes more of it than its call stack. The C
//! library tries to reserve 64 MiB for the thread's allocations, and does with less if it must. So
//! the threads that start first could take what the last ones need for their call stacks. A pool
//! reserves that until their turn.

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ptr;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    /// A multiple of all sizes of pages.
    const PAGE: usize = 64 << 10;

    /// `bytes` of address space, until the value is dropped.
    pub(crate) struct Reserved {
        start: *mut u8,
        bytes: usize,
    }

    // SAFETY: a mapping belongs to no thread.
    unsafe impl Send for Reserved {}

    impl Reserved {
        /// `None` if the system does not have it.
        pub(crate) fn new(bytes: usize) -> Option<Reserved> {
            let bytes = bytes.max(1).checked_next_multiple_of(PAGE)?;
            // Writable and private, as a call stack: so it counts as address space. It is one
            // mapping for all stacks, and the system may refuse a mapping larger than its memory;
            // without a reservation it is not asked for one.
            let (access, flags) =
                (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
            // SAFETY: at an address of the system's own choice, where nothing is mapped.
            let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, access, flags) }.ok()?;
            Some(Reserved { start: start.cast(), bytes })
        }

        /// Gives `bytes` of it back, rounded down to [`PAGE`], or what is left of it.
        pub(crate) fn release(&mut self, bytes: usize) {
            let bytes = (bytes / PAGE * PAGE).min(self.bytes);
            if bytes != 0 {
                self.bytes -= bytes;
                // SAFETY: the last pages of this mapping, to which nobody has a pointer. Should the
                // system refuse, they stay reserved.
                _ = unsafe { munmap(self.start.wrapping_byte_add(self.bytes).cast(), bytes) };
            }
        }
    }

    impl Drop for Reserved {
        fn drop(&mut self) {
            self.release(self.bytes);
        }
    }
}

/// Address space is not known to be limited.
#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    /// Nothing.
    pub(crate) struct Reserved;

    impl Reserved {
        pub(crate) fn new(_: usize) -> Option<Reserved> {
            Some(Reserved)
        }

        pub(crate) fn release(&mut self, _: usize) {}
    }
}

pub(crate) use system::Reserved;
