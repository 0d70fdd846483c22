//! Calling code of the C program's, which must come back as functions of C do.
//!
//! A callback stands on top of frames of this library's, which other threads may use. It must
//! return: not throw a C++ exception through them, nor end the thread, nor leave them by `longjmp`.
//!
//! - What *unwinds* (an exception, `pthread_exit`, `pthread_cancel`) meets a guard that ends the
//!   process with a message.
//! - `longjmp` runs no guards. So each thread records the stack frame of its innermost callback. A
//!   call of the library from above that frame on the same call stack (which grows down) shows that
//!   the callback was left, and ends the process with a message. A call on another stack than the
//!   callback's, for example a coroutine's, shows nothing.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic;
use std::process;
use std::ptr;

/// What a callback is given: a pointer that is the C program's affair.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: it is not looked at here; who passes it says that the callback may use it on the threads
// on which it runs.
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
    let here = ptr::from_ref(&here).addr();
    let innermost = INNERMOST.try_with(Cell::get).unwrap_or(0);
    if innermost != 0 && here.wrapping_sub(innermost) < FAR {
        above(innermost, here);
    }
}

/// The innermost callback stands below this call: the callback was left, if both are on this
/// thread's own stack.
#[cold]
fn above(innermost: usize, here: usize) {
    if stack::of_this_thread().is_none_or(|own| own.contains(&innermost) && own.contains(&here)) {
        fatal("a callback of libpoach was left by longjmp: it must return");
    }
}

/// Where the call stack of a thread is.
#[cfg(target_os = "linux")]
mod stack {
    use std::cell::Cell;
    use std::mem::MaybeUninit;
    use std::ops::Range;
    use std::ptr;

    /// The addresses of the calling thread's stack; `None` if the system does not say.
    pub(super) fn of_this_thread() -> Option<Range<usize>> {
        thread_local! {
            /// Asked for once: for a program's first thread the answer stands in a file.
            static KNOWN: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
        }
        let known = KNOWN.try_with(Cell::get).ok().flatten();
        let (begin, end) = known.or_else(ask)?;
        _ = KNOWN.try_with(|known| known.set(Some((begin, end))));
        Some(begin..end)
    }

    fn ask() -> Option<(usize, usize)> {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: a call of the system's without conditions.
        let own = unsafe { libc::pthread_self() };
        // SAFETY: the calling thread, and a place for its attributes.
        if unsafe { libc::pthread_getattr_np(own, attributes.as_mut_ptr()) } != 0 {
            return None;
        }
        let (mut base, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the attributes were written by the call above; and places for an address and a
        // number.
        let known = unsafe {
            libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut base, &raw mut size)
        };
        // SAFETY: the attributes were written above, and are not used any more.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        (known == 0).then(|| (base.addr(), base.addr().saturating_add(size)))
    }
}

/// Nobody asks there: what is near is taken for the same stack.
#[cfg(not(target_os = "linux"))]
mod stack {
    pub(super) fn of_this_thread() -> Option<std::ops::Range<usize>> {
        None
    }
}

/// Ends the process with a message.
#[cold]
pub(crate) fn fatal(message: &str) -> ! {
    // The panic hook prints it.
    _ = panic::catch_unwind(|| panic!("{message}"));
    process::abort()
}
