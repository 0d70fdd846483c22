//! The memory of a task stack.
//!
//! A stack lies at a multiple of a large power of two, so that a head finds its header by a mask.
//! An allocator of the C library reserves as much address space for that on top of each stack.
//! Where address space is limited (`ulimit -v`) that is most of what a pool takes; so on
//! Linux a stack is mapped here, and what lies before and behind it is given back.
//!
//! # Stacks that are kept
//!
//! A program that makes a pool for each of its jobs would map and unmap a stack for each worker.
//! That is two system calls under the lock of the process's address space, an interrupt of the
//! processors that run its other threads, and faults of the first page and of the tables above it.
//! So a few freed stacks stay mapped for the next pool, as the C library keeps call stacks, and
//! with them at most 64 KiB of memory each. No thread waits for the list: a thread that finds it
//! locked does without, and so does a forked child whose parent held it. If the system has no
//! address space left, the kept stacks are given back first.

// Miri maps no memory at a chosen address, and unmaps no part of what it has mapped.
#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::alloc::Layout;
    use std::cell::Cell;
    use std::io;
    use std::ptr;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    /// A multiple of all sizes of pages.
    const PAGE: usize = 64 << 10;

    /// Of a stack that is kept, so much stays in memory at most.
    const RESIDENT: usize = PAGE;

    /// No larger stack is kept: the largest that a pool makes of its own accord.
    pub(super) const LARGEST: usize = (64 << 20) + PAGE;

    /// A stack that nobody uses.
    struct Spare {
        start: *mut u8,
        size: usize,
    }

    // SAFETY: a mapping belongs to no thread.
    unsafe impl Send for Spare {}

    /// No more than these are kept.
    static SPARES: Mutex<[Option<Spare>; 16]> = Mutex::new([const { None }; 16]);

    /// A stack that was kept, of this size.
    fn reuse(size: usize) -> Option<*mut u8> {
        let mut spares = SPARES.try_lock().ok()?;
        let fits = |spare: &&mut Option<Spare>| spare.as_ref().is_some_and(|s| s.size == size);
        Some(spares.iter_mut().find(fits)?.take()?.start)
    }

    /// Keeps a stack, in the place of one of another size if there is no other. Returns whether
    /// there was room for it.
    ///
    /// # Safety
    ///
    /// A stack of this module's, of this size, which nobody uses any more. Nothing was written to
    /// beyond its first `used` bytes.
    unsafe fn keep(start: *mut u8, size: usize, used: usize) -> bool {
        if size > LARGEST {
            return false;
        }
        let Ok(mut spares) = SPARES.try_lock() else { return false };
        // What nobody asks for any more makes room.
        let other = |spare: &Option<Spare>| spare.as_ref().is_none_or(|spare| spare.size != size);
        let free =
            spares.iter().position(Option::is_none).or_else(|| spares.iter().position(other));
        let Some(free) = free else { return false };
        if used > RESIDENT {
            let rest = start.wrapping_byte_add(RESIDENT);
            // SAFETY: whole pages of this mapping, which nobody uses.
            if unsafe { madvise(rest.cast(), size - RESIDENT, Advice::LinuxDontNeed) }.is_err() {
                return false;
            }
        }
        if let Some(other) = spares[free].replace(Spare { start, size }) {
            // SAFETY: it was kept, since nobody uses it.
            unsafe { unmap(other.start, other.size) };
        }
        true
    }

    /// Gives back what is kept.
    fn give_back() {
        let Ok(mut spares) = SPARES.try_lock() else { return };
        for Spare { start, size } in spares.iter_mut().filter_map(Option::take) {
            // SAFETY: it was kept, since nobody uses it.
            unsafe { unmap(start, size) };
        }
    }

    thread_local! {
        /// The address of this thread's next stack: below the last stack that it has made, or the
        /// place of the highest stack that it has freed since. So mostly a stack takes one system
        /// call, and a later pool takes an earlier one's places. Zero: anywhere.
        static NEXT: Cell<usize> = const { Cell::new(0) };
    }

    /// How many mappings were given back. The system unmaps a stack before it maps another in its
    /// place; this orders both for the memory model, and for `ThreadSanitizer`, which does not
    /// see the system calls.
    static UNMAPPED: AtomicUsize = AtomicUsize::new(0);

    /// A mapping of `length` bytes: at `at`, if that is free, or else at an address of the system's
    /// choice.
    fn map(at: usize, length: usize) -> io::Result<*mut u8> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let at = ptr::without_provenance_mut(at);
        // SAFETY: an address of the system's own choice, where nothing is mapped.
        let mapped = unsafe { mmap_anonymous(at, length, access, flags) };
        // Acquire: pairs with `unmap`.
        UNMAPPED.load(Ordering::Acquire);
        Ok(mapped?.cast())
    }

    /// # Safety
    ///
    /// Whole pages of a mapping that nobody uses any more.
    unsafe fn unmap(start: *mut u8, length: usize) {
        // Release: what was done to the stack comes first; pairs with `map`.
        UNMAPPED.fetch_add(1, Ordering::Release);
        // SAFETY: by this function's contract. Should the system refuse, they stay reserved.
        _ = unsafe { munmap(start.cast(), length) };
    }

    /// Memory for a stack: `untouched` if its pages are to lie on the node of the thread that
    /// writes to them first.
    ///
    /// # Safety
    ///
    /// The layout's size is not zero.
    pub(crate) unsafe fn alloc(layout: Layout, untouched: bool) -> *mut u8 {
        assert!(layout.align() % PAGE == 0, "a stack lies at a page's boundary");
        let size = layout.size().next_multiple_of(PAGE);
        if let Some(stack) = (!untouched).then(|| reuse(size)).flatten() {
            return stack;
        }
        let map = || {
            let next = map_next(size, layout.align());
            let within = || map_within(size, layout.align());
            next.or_else(within).or_else(|| map_below(size, layout.align()))
        };
        let stack = map().or_else(|| {
            give_back();
            map()
        });
        let Some(stack) = stack else {
            return ptr::null_mut();
        };
        NEXT.set(stack.addr().saturating_sub(layout.align()));
        stack
    }

    /// At the next place, if that is free.
    fn map_next(size: usize, align: usize) -> Option<*mut u8> {
        let next = NEXT.get();
        if next == 0 || next % align != 0 {
            return None;
        }
        let stack = map(next, size).ok()?;
        if stack.addr() % align == 0 {
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
                // SAFETY: of this mapping, whole pages beside the stack: `start` is page-aligned,
                // and so are the others.
                unsafe { unmap(part, length) };
            }
        }
        Some(stack)
    }

    /// The number of boundaries that are tried if there is no room for a larger piece.
    const TRIES: usize = 64;

    /// At the next free boundary below the place that the system would choose: where no more
    /// address space is left than the stack needs.
    fn map_below(size: usize, align: usize) -> Option<*mut u8> {
        let place = map(0, size).ok()?;
        // SAFETY: the mapping just made.
        unsafe { unmap(place, size) };
        let highest = place.addr() / align;
        (highest.saturating_sub(TRIES) + 1..=highest).rev().find_map(|boundary| {
            let stack = map(boundary * align, size).ok()?;
            if stack.addr() % align == 0 {
                return Some(stack);
            }
            // SAFETY: the mapping just made.
            unsafe { unmap(stack, size) };
            None
        })
    }

    /// # Safety
    ///
    /// It was allocated by `alloc` with this layout, and nobody uses it any more; nothing was
    /// written to beyond its first `used` bytes.
    pub(crate) unsafe fn dealloc(stack: *mut u8, layout: Layout, used: usize) {
        let size = layout.size().next_multiple_of(PAGE);
        // SAFETY: by this function's contract.
        if unsafe { keep(stack, size, used) } {
            return;
        }
        // SAFETY: by this function's contract.
        unsafe { unmap(stack, size) };
        // In a thread's last moments, too: it needs no destructor.
        NEXT.set(NEXT.get().max(stack.addr()));
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
pub(super) use system::{alloc, dealloc};

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::alloc::Layout;
    use std::ptr;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::system::LARGEST;
    use super::{alloc, dealloc};

    const ALIGN: usize = super::super::ALIGN;

    #[test]
    fn a_stack_that_is_kept_keeps_no_memory_but_its_first_pages() {
        // A size that no other test asks for. The others may keep the list locked just then, so
        // this is tried until it is kept.
        let layout = Layout::from_size_align(11 << 16, ALIGN).unwrap();
        let end = layout.size() - 1;
        let again = || {
            // SAFETY: a layout with a size.
            let stack = unsafe { alloc(layout, false) };
            assert!(!stack.is_null() && stack.addr() % ALIGN == 0);
            let last = stack.wrapping_byte_add(end);
            // SAFETY: the last byte of what was allocated just now, and mapped with zeros or
            // written to before.
            assert_eq!(unsafe { last.read() }, 0, "what lies behind the first pages is given back");
            // SAFETY: the last byte of what was allocated just now.
            unsafe { last.write(7) };
            // SAFETY: allocated just now, and used to its end.
            unsafe { dealloc(stack, layout, layout.size()) };
            stack
        };
        let mut before = again();
        while before != again() {
            before = again();
        }
    }

    /// A stack whose first byte was written to.
    fn written(layout: Layout) -> *mut u8 {
        // SAFETY: a layout with a size.
        let stack = unsafe { alloc(layout, false) };
        assert!(!stack.is_null() && stack.addr() % ALIGN == 0);
        // SAFETY: mapped just now.
        unsafe { stack.write(7) };
        stack
    }

    /// Makes and frees a stack of this size, and says whether the next one is the same memory.
    fn is_kept(layout: Layout) -> bool {
        let stack = written(layout);
        // SAFETY: allocated just now; its first byte is used.
        unsafe { dealloc(stack, layout, 1) };
        // SAFETY: a layout with a size.
        let again = unsafe { alloc(layout, false) };
        // SAFETY: mapped just now, with zeros or as it was left.
        let is_kept = unsafe { again.read() } == 7;
        // SAFETY: allocated just now; its first byte is used.
        unsafe { dealloc(again, layout, 1) };
        is_kept
    }

    /// Other tests may keep the list locked just then, or have the place.
    fn soon(act: impl Fn() -> bool) -> bool {
        (0..1000).any(|_| act())
    }

    #[test]
    fn a_stack_is_kept_unless_it_is_larger_than_those_of_pools() {
        let of = |size| Layout::from_size_align(size, ALIGN).unwrap();
        assert!(soon(|| is_kept(of(LARGEST))));
        assert!(!(0..10).any(|_| is_kept(of(LARGEST + 1))));
        // A stack of another size is none.
        let (small, large) = (of(19 << 16), of(23 << 16));
        assert!(soon(|| is_kept(small)));
        let stack = written(large);
        // SAFETY: the last byte of what was allocated just now.
        unsafe { stack.wrapping_byte_add(large.size() - 1).write(7) };
        // SAFETY: allocated just now, and used to its end.
        unsafe { dealloc(stack, large, large.size()) };
        // And where all places are taken by such, it takes one of theirs.
        let many: Vec<_> = (0..32).map(|_| written(small)).collect();
        for stack in many {
            // SAFETY: allocated just now; its first byte is used.
            unsafe { dealloc(stack, small, 1) };
        }
        assert!(soon(|| is_kept(of(29 << 16))));
    }

    #[test]
    fn a_stack_that_was_used_to_its_end_is_kept_too() {
        let layout = Layout::from_size_align(17 << 16, ALIGN).unwrap();
        assert!(soon(|| {
            let stack = written(layout);
            // SAFETY: allocated just now, and used to its end at most.
            unsafe { dealloc(stack, layout, layout.size()) };
            // SAFETY: a layout with a size.
            let again = unsafe { alloc(layout, false) };
            // SAFETY: mapped just now, with zeros or as it was left.
            let is_kept = unsafe { again.read() } == 7;
            // SAFETY: allocated just now; its first byte is used.
            unsafe { dealloc(again, layout, 1) };
            is_kept
        }));
    }

    #[test]
    fn what_is_kept_is_given_back_when_the_system_refuses() {
        let layout = Layout::from_size_align(31 << 16, ALIGN).unwrap();
        let impossible = Layout::from_size_align(1 << 62, ALIGN).unwrap();
        let is_given_back = || {
            let stack = written(layout);
            // SAFETY: allocated just now; its first byte is used.
            unsafe { dealloc(stack, layout, 1) };
            // SAFETY: a layout with a size.
            assert!(unsafe { alloc(impossible, false) }.is_null());
            // SAFETY: a layout with a size.
            let again = unsafe { alloc(layout, false) };
            // SAFETY: mapped just now, with zeros or as it was left.
            let is_new = unsafe { again.read() } == 0;
            // SAFETY: allocated just now; its first byte is used.
            unsafe { dealloc(again, layout, 1) };
            is_new
        };
        assert!((0..20).any(|_| is_given_back()));
    }

    /// A stack that is not kept.
    const LARGE: usize = ALIGN / 4 * 3;

    fn large() -> *mut u8 {
        // SAFETY: a layout with a size.
        let stack = unsafe { alloc(Layout::from_size_align(LARGE, ALIGN).unwrap(), true) };
        assert!(!stack.is_null() && stack.addr() % ALIGN == 0);
        stack
    }

    fn free(stack: *mut u8) {
        // SAFETY: of `large`, whose callers write nothing and free each once.
        unsafe { dealloc(stack, Layout::from_size_align(LARGE, ALIGN).unwrap(), 0) };
    }

    #[test]
    fn a_stack_lies_at_a_boundary_where_the_next_place_is_taken() {
        let [first, second] = [large(), large()];
        // The thread asks for the place of the first again, and then for that below, where the
        // second is.
        free(first);
        let [again, next] = [large(), large()];
        [second, again, next].into_iter().for_each(free);
        // Whatever it has got, the place that it asks for after that is taken.
        let stack = large();
        let below = ptr::without_provenance_mut(stack.addr() - ALIGN);
        // SAFETY: an address of the system's own choice, where nothing is mapped: that below the
        // stack, if that is free.
        let taken = unsafe {
            mmap_anonymous(below, 1 << 16, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let taken = taken.unwrap();
        free(large());
        free(stack);
        // SAFETY: the mapping that was made for this.
        unsafe { munmap(taken, 1 << 16) }.unwrap();
    }

    /// Whether something is mapped at this address.
    fn is_mapped(at: *mut u8) -> bool {
        // SAFETY: advice that changes nothing.
        unsafe { rustix::mm::madvise(at.cast(), 1 << 16, rustix::mm::Advice::Normal) }.is_ok()
    }

    #[test]
    fn nothing_is_mapped_beside_a_stack_nor_where_one_was() {
        if is_mapped(ptr::without_provenance_mut(1 << 20)) {
            // An emulator that knows no better.
            return;
        }
        // A thread that has made none yet asks for a larger piece.
        let gives_back = || {
            let stack = large();
            let beside = [stack.wrapping_byte_sub(1 << 16), stack.wrapping_byte_add(LARGE)];
            let is_alone = !beside.into_iter().any(is_mapped) && is_mapped(stack);
            free(stack);
            is_alone && !is_mapped(stack)
        };
        assert!((0..20).any(|_| std::thread::spawn(gives_back).join().unwrap()));
    }

    #[test]
    fn untouched_memory_is_zero() {
        let layout = Layout::from_size_align(13 << 16, ALIGN).unwrap();
        for _ in 0..3 {
            // SAFETY: a layout with a size.
            let stack = unsafe { alloc(layout, true) };
            // SAFETY: mapped just now.
            assert_eq!(unsafe { stack.read() }, 0);
            // SAFETY: mapped just now.
            unsafe { stack.write(7) };
            // SAFETY: allocated just now; its first byte is used.
            unsafe { dealloc(stack, layout, 1) };
        }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod portable {
    use std::alloc::{self, Layout};

    /// # Safety
    ///
    /// The layout's size is not zero.
    pub(crate) unsafe fn alloc(layout: Layout, _untouched: bool) -> *mut u8 {
        // SAFETY: by this function's contract.
        unsafe { alloc::alloc(layout) }
    }

    /// # Safety
    ///
    /// It was allocated by `alloc` with this layout, and nobody uses it any more.
    pub(crate) unsafe fn dealloc(stack: *mut u8, layout: Layout, _used: usize) {
        // SAFETY: by this function's contract.
        unsafe { alloc::dealloc(stack, layout) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
pub(super) use portable::{alloc, dealloc};
