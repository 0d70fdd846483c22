//! What `lace2/lace.h` does not do in its macros: the worker of the calling thread, and its scratch
//! memory.
//!
//! Lace 2 hands on a `lace_worker *`, which a task pushes to and pops from. Here it is a word of
//! the C program's, on the call stack of whatever called the task: the head of the worker's stack.
//! This thread's innermost is kept for who asks for it.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::call::fatal;
use crate::lace::here;

thread_local! {
    static WORKER: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
    static SCRATCH: Scratch = const { Scratch { base: Cell::new(ptr::null_mut()), size: Cell::new(0), used: Cell::new(0) } };
}

/// The calling thread's `lace_worker`; NULL outside of Lace's tasks.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_worker() -> *mut c_void {
    WORKER.try_with(Cell::get).unwrap_or(ptr::null_mut())
}

/// Makes this the calling thread's `lace_worker`, and returns the one before.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_set_worker(worker: *mut c_void) -> *mut c_void {
    WORKER.try_with(|of| of.replace(worker)).unwrap_or(ptr::null_mut())
}

/// How many bytes of address space a worker's scratch memory has, which take memory once they are
/// used.
static SCRATCH_SIZE: AtomicUsize = AtomicUsize::new(1 << 30);
const ALIGN: usize = 16;

/// Memory of one thread, handed out and taken back in order. Nothing of it moves.
struct Scratch {
    base: Cell<*mut u8>,
    size: Cell<usize>,
    used: Cell<usize>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let (false, Some(layout)) = (self.base.get().is_null(), layout(self.size.get())) {
            // SAFETY: allocated with this layout in `allocate`, and freed once: here.
            unsafe { dealloc(self.base.get(), layout) };
        }
    }
}

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, ALIGN).ok().filter(|layout| layout.size() > 0)
}

impl Scratch {
    fn allocate(&self, bytes: usize) -> *mut u8 {
        if self.base.get().is_null() {
            // Relaxed: set before `lace_start`, whose threads see it.
            let size = SCRATCH_SIZE.load(Ordering::Relaxed);
            let Some(layout) = layout(size) else {
                fatal("lace_scratch_alloc: lace_set_scratch_size has set it to nothing");
            };
            // SAFETY: the layout has a size.
            let base = unsafe { alloc(layout) };
            if base.is_null() {
                fatal(
                    "lace_scratch_alloc: the system has no memory: lace_set_scratch_size to less",
                );
            }
            self.base.set(base);
            self.size.set(size);
        }
        let from = self.used.get();
        let rounded =
            bytes.checked_next_multiple_of(ALIGN).and_then(|bytes| from.checked_add(bytes));
        match rounded.filter(|end| *end <= self.size.get()) {
            Some(end) => self.used.set(end),
            None => fatal(
                "lace_scratch_alloc: the scratch memory is full: reset it, or lace_set_scratch_size to more",
            ),
        }
        self.base.get().wrapping_add(from)
    }

    fn mark(&self) -> *mut u8 {
        self.base.get().wrapping_add(self.used.get())
    }

    fn reset(&self, mark: *mut u8) {
        // What was marked before the first allocation is null: all of it.
        let at = if mark.is_null() { 0 } else { mark.addr().wrapping_sub(self.base.get().addr()) };
        if at > self.used.get() {
            fatal("lace_scratch_reset: no mark of this worker's, or one that was reset before");
        }
        self.used.set(at);
    }
}

/// `lace_set_scratch_size`: for the workers of the next `lace_start`; 0: they have none.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_set_scratch_size(bytes: usize) {
    SCRATCH_SIZE.store(bytes, Ordering::Relaxed);
}

/// `lace_scratch_alloc`: `bytes` bytes, aligned to 16, until the mark before is reset. Ends the
/// process with a message if memory is exhausted.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_scratch_alloc(bytes: usize) -> *mut c_void {
    match SCRATCH.try_with(|scratch| scratch.allocate(bytes)) {
        Ok(memory) => memory.cast(),
        Err(_) => fatal("lace_scratch_alloc: the thread ends"),
    }
}

/// `lace_scratch_mark`: where the calling thread's scratch memory stands.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_scratch_mark() -> *mut c_void {
    SCRATCH.try_with(Scratch::mark).unwrap_or(ptr::null_mut()).cast()
}

/// `lace_scratch_reset`: what was allocated since the mark is free.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_scratch_reset(mark: *mut c_void) {
    _ = SCRATCH.try_with(|scratch| scratch.reset(mark.cast()));
}

/// `lace_sleep_us`: the calling thread sleeps for `microseconds`; not at all for less than 1.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_sleep(microseconds: i64) {
    if let Ok(microseconds) = u64::try_from(microseconds) {
        thread::sleep(Duration::from_micros(microseconds));
    }
}

/// `lace_gethrtime`: nanoseconds since this process, or the one that it was forked from, first used
/// Lace.
#[unsafe(no_mangle)]
pub extern "C" fn poach_lace_time() -> u64 {
    here().began.elapsed().as_nanos() as u64
}
