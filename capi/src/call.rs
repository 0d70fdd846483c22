//! Calling code of the C program's, which must come back as functions of C do.
//!
//! A callback stands on top of frames of this library's, which other threads may use. It must return: not throw a C++ exception
//! through them, nor end the thread, nor leave them by `longjmp`.
//!
//! - What *unwinds* (an exception, `pthread_exit`, `pthread_cancel`) meets a guard that ends the process with a message.
//! - `longjmp` runs no guards. So each thread remembers where its innermost callback stands; a call of the library's from a place on
//!   the same call stack that is above it (the stack grows down) finds that the callback was left, and ends the process with a
//!   message.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic;
use std::process;
use std::ptr;

/// What a callback is given: a pointer that is the C program's affair.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: it is not looked at here; who passes it says that the callback may use it on the threads on which it runs.
unsafe impl Send for Context {}
// SAFETY: it is not looked at here, and the caller vouches for its threads.
unsafe impl Sync for Context {}

impl Context {
    /// The pointer. (A method, so that a closure captures the whole.)
    pub(crate) fn get(self) -> *mut c_void {
        self.0
    }
}

/// No call stack that a callback has left is further away than this: what is, is another stack.
const FAR: usize = 64 << 20;

thread_local! {
    /// Where the frame stands that called the innermost callback; 0 if there is none.
    static INNERMOST: Cell<usize> = const { Cell::new(0) };
}

/// Calls a callback.
#[inline]
pub(crate) fn call<R>(f: impl FnOnce() -> R) -> R {
    /// Dropped only by what unwinds.
    struct Unwinds;
    impl Drop for Unwinds {
        fn drop(&mut self) {
            fatal(
                "an exception, or the end of its thread, left a callback of libpoach: catch exceptions in the callback",
            );
        }
    }
    let here = 0_u8;
    let outer = INNERMOST.try_with(|innermost| innermost.replace(ptr::from_ref(&here).addr()));
    let unwinds = Unwinds;
    let result = f();
    std::mem::forget(unwinds);
    if let Ok(outer) = outer {
        INNERMOST.set(outer);
    }
    result
}

/// Whether this thread has come here in the ordinary way.
#[inline]
pub(crate) fn check_frames() {
    let here = 0_u8;
    let innermost = INNERMOST.try_with(Cell::get).unwrap_or(0);
    let above = ptr::from_ref(&here).addr().wrapping_sub(innermost);
    if innermost != 0 && above < FAR {
        fatal("a callback of libpoach was left by longjmp: it must return");
    }
}

/// Ends the process with a message.
#[cold]
pub(crate) fn fatal(message: &str) -> ! {
    // The panic hook prints it.
    _ = panic::catch_unwind(|| panic!("{message}"));
    process::abort()
}
