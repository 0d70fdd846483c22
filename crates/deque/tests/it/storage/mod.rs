//! Storages that keep tasks, or some of them, beside the slots of the ring.

use poach_deque::split::Storage;

/// Every task beside its slot.
pub(crate) enum Beside {}

// SAFETY: the task is in the rest, always.
unsafe impl<T> Storage<T> for Beside {
    type Head = u8;
    type Rest = T;

    unsafe fn write(task: T, head: *mut u8, rest: *mut T) {
        // SAFETY: by this function's contract.
        unsafe { head.write(1) };
        // SAFETY: by this function's contract.
        unsafe { rest.write(task) };
    }

    unsafe fn read(_: *const u8, rest: *const T) -> T {
        // SAFETY: by this function's contract.
        unsafe { rest.read() }
    }

    unsafe fn has_rest(head: *const u8) -> bool {
        // SAFETY: by this function's contract.
        unsafe { head.read() == 1 }
    }
}

/// Even numbers beside their slots, odd ones in them.
pub(crate) enum EvenBeside {}

/// What stands in the slot of a number that is beside it.
const EVEN: u64 = 0;

// SAFETY: an odd head is the number, and the other stands for one in the rest.
unsafe impl Storage<u64> for EvenBeside {
    type Head = u64;
    type Rest = u64;

    unsafe fn write(task: u64, head: *mut u64, rest: *mut u64) {
        let even = task % 2 == 0;
        // SAFETY: by this function's contract.
        unsafe { head.write(if even { EVEN } else { task }) };
        if even {
            // SAFETY: by this function's contract.
            unsafe { rest.write(task) };
        }
    }

    unsafe fn read(head: *const u64, rest: *const u64) -> u64 {
        // SAFETY: by this function's contract, of which `has_rest` asks no more.
        if unsafe { Self::has_rest(head) } {
            // SAFETY: by this function's contract.
            unsafe { rest.read() }
        } else {
            // SAFETY: by this function's contract.
            unsafe { head.read() }
        }
    }

    unsafe fn has_rest(head: *const u64) -> bool {
        // SAFETY: by this function's contract.
        unsafe { head.read() == EVEN }
    }
}
