//! Tests of memory, each file a module. They have a program of their own, since a program has one
//! allocator: the system's, which counts what a thread asks for, and is short of memory for a
//! thread that asks it to be. The models of `it` would be slower with it.

mod bad_input;
mod out_of_memory;
#[path = "../../../memory/tests/it/own_process/mod.rs"]
mod own_process;
mod retired;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The largest block that this thread can have.
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
    /// How often this thread gets memory still.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    /// What this thread has allocated and not freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// How often it has allocated.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

struct Scarce;

// SAFETY: the system's allocator, or no memory, which an allocator may say.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LARGEST.get() {
            return core::ptr::null_mut();
        }
        match LEFT.get() {
            u32::MAX => {}
            0 => return core::ptr::null_mut(),
            left => LEFT.set(left - 1),
        }
        LIVE.set(LIVE.get() + 1);
        ALLOCATED.set(ALLOCATED.get() + 1);
        // SAFETY: by this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - 1);
        // SAFETY: by this function's contract; all blocks came from the system's allocator.
        unsafe { System.dealloc(place, layout) };
    }
}

#[global_allocator]
static SCARCE: Scarce = Scarce;
