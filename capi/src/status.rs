//! The result of a call: a code, and a message for more detail.

use std::any::Any;
use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{self, AssertUnwindSafe};

use crate::call;

/// What a call came to. Zero is success.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum poach_status {
    /// All is done.
    POACH_OK = 0,
    /// A pointer is NULL that must not be.
    POACH_NULL = 1,
    /// A value is out of range.
    POACH_INVALID = 2,
    /// The pool has ended, or the task pool is closed and empty.
    POACH_CLOSED = 3,
    /// Somebody uses it: the pool has calls under way.
    POACH_BUSY = 4,
    /// The system has no memory, or no thread, for it.
    POACH_NO_MEMORY = 5,
    /// The process was forked from the one in which the pool was made.
    POACH_FORKED = 6,
    /// A call panicked: a defect of this library, or a full task stack.
    POACH_PANICKED = 7,
    /// The task was cancelled before it began.
    POACH_CANCELLED = 8,
    /// There is no task.
    POACH_EMPTY = 9,
    /// The pool is full.
    POACH_FULL = 10,
    /// Another thread was in the way: try again.
    POACH_RETRY = 11,
    /// The time is up.
    POACH_TIMEOUT = 12,
    /// The calling thread is no worker.
    POACH_NO_WORKER = 13,
}

use poach_status::{
    POACH_BUSY, POACH_CANCELLED, POACH_CLOSED, POACH_EMPTY, POACH_FORKED, POACH_FULL,
    POACH_INVALID, POACH_NO_MEMORY, POACH_NO_WORKER, POACH_NULL, POACH_OK, POACH_PANICKED,
    POACH_RETRY, POACH_TIMEOUT,
};

const ALL: [(poach_status, &CStr); 14] = [
    (POACH_OK, c"success"),
    (POACH_NULL, c"a pointer is NULL"),
    (POACH_INVALID, c"a value is out of range"),
    (POACH_CLOSED, c"the pool has ended or is closed"),
    (POACH_BUSY, c"calls of other threads are under way"),
    (POACH_NO_MEMORY, c"the system has no memory or no thread left"),
    (POACH_FORKED, c"the pool was made before fork(), in the parent process"),
    (POACH_PANICKED, c"the call panicked"),
    (POACH_CANCELLED, c"the task was cancelled before it began"),
    (POACH_EMPTY, c"there is no task"),
    (POACH_FULL, c"the pool is full"),
    (POACH_RETRY, c"another thread was in the way: try again"),
    (POACH_TIMEOUT, c"the time is up"),
    (POACH_NO_WORKER, c"the calling thread is no worker of a pool"),
];

/// What a status means, in English. Never NULL, for any number; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn poach_strerror(status: c_int) -> *const c_char {
    let known = ALL.iter().find(|(each, _)| *each as c_int == status);
    known.map_or(c"no status of Poach's", |(_, text)| text).as_ptr()
}

/// Bytes that the words of an error may have, with the 0 at their end. What is longer is cut.
const LONGEST: usize = 512;

thread_local! {
    // No destructor: it would never run if it were registered while the thread's last destructors
    // run.
    static LAST: UnsafeCell<[u8; LONGEST]> = const { UnsafeCell::new([0; LONGEST]) };
}

/// What the last call that failed on this thread says about it: the empty string if none has. Valid
/// until the next one fails here.
#[unsafe(no_mangle)]
pub extern "C" fn poach_last_error() -> *const c_char {
    LAST.with(|last| last.get().cast_const().cast())
}

/// Why a call fails.
pub(crate) struct Error(poach_status, Cow<'static, str>);

impl Error {
    pub(crate) fn new(status: poach_status, message: impl Into<Cow<'static, str>>) -> Error {
        Error(status, message.into())
    }

    pub(crate) fn null(what: &'static str) -> Error {
        Error::new(POACH_NULL, format!("{what} is NULL"))
    }
}

impl From<poach_status> for Error {
    fn from(status: poach_status) -> Error {
        Error::new(status, "")
    }
}

/// Runs what a function of C's does: its error is kept for [`poach_last_error`], and no panic gets
/// out.
pub(crate) fn guard(f: impl FnOnce() -> Result<(), Error>) -> poach_status {
    call::check_frames();
    let Error(status, message) = match panic::catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => return POACH_OK,
        Ok(Err(error)) => error,
        Err(payload) => Error::new(POACH_PANICKED, text(&*payload).to_owned()),
    };
    keep(status, &message);
    status
}

fn keep(status: poach_status, message: &str) {
    let general = ALL.iter().find(|(each, _)| *each == status).map_or(c"", |(_, text)| text);
    let text = if message.is_empty() { general.to_bytes() } else { message.as_bytes() };
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len()).min(LONGEST - 1);
    let mut words = [0; LONGEST];
    words[..end].copy_from_slice(&text[..end]);
    // SAFETY: of this thread's alone, and nothing here has a reference to it; who reads it in C
    // does so before the next call that fails.
    LAST.with(|last| unsafe { last.get().write(words) });
}

/// What a panic says.
fn text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a panic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: *const c_char) -> &'static str {
        // SAFETY: both functions return strings of C's, which the tests' threads do not change
        // meanwhile.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap()
    }

    #[test]
    fn every_status_has_words_of_its_own() {
        for (at, (status, text)) in ALL.iter().enumerate() {
            assert_eq!(*status as usize, at);
            assert_eq!(words(poach_strerror(at as c_int)), text.to_str().unwrap());
        }
        assert_eq!(words(poach_strerror(-1)), words(poach_strerror(ALL.len() as c_int)));
    }

    #[test]
    fn an_error_is_kept_and_a_panic_is_one() {
        assert_eq!(guard(|| Ok(())), POACH_OK);
        assert_eq!(words(poach_last_error()), "");
        assert_eq!(guard(|| Err(Error::null("`this`"))), POACH_NULL);
        assert_eq!(words(poach_last_error()), "`this` is NULL");
        assert_eq!(guard(|| Err(POACH_FULL.into())), POACH_FULL);
        assert_eq!(words(poach_last_error()), "the pool is full");
        assert_eq!(guard(|| panic!("number {}", 5)), POACH_PANICKED);
        assert_eq!(words(poach_last_error()), "number 5");
        assert_eq!(guard(|| panic!("{}", "x".repeat(5000))), POACH_PANICKED);
        assert_eq!(words(poach_last_error()), "x".repeat(LONGEST - 1));
        assert_eq!(guard(|| panic!("cut\0here")), POACH_PANICKED);
        assert_eq!(words(poach_last_error()), "cut");
    }
}
