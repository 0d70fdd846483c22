//! Poach for C and C++.
//!
//! The functions of `include/poach.h`, which cbindgen writes from this crate; what of a fork is
//! inline stands in `include/poach/fork.h`.
//!
//! # What every function keeps to
//!
//! - *Errors are codes* ([`poach_status`]); what went wrong in words is
//!   [`poach_last_error`](status::poach_last_error)'s.
//! - *Nothing unwinds through the border.* A panic of Rust's is caught and is
//!   [`POACH_PANICKED`](poach_status::POACH_PANICKED). A C++ exception, or a thread's cancellation,
//!   that leaves a callback ends the process with a message, as does `longjmp` out of one, at the
//!   next call of the library's on that thread (`call`).
//! - *A callback carries a context pointer*, which this library does not look at.
//!
//! # Safety
//!
//! For all unsafe functions here:
//!
//! - A pointer is null, which is [`POACH_NULL`](poach_status::POACH_NULL), or points to what the
//!   function's documentation says, and is valid until the function returns.
//! - A callback's context has the type that the callback expects, and may be used on each thread on
//!   which the documentation says that the callback runs.

#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(clippy::doc_markdown, reason = "the comments are the header's, too")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the crate's documentation says it once for all functions"
)]

pub mod call;
pub mod deque;
pub mod fork;
pub mod lace;
pub mod lace2;
pub mod parallel;
pub mod pool;
pub mod scope;
pub mod spawn;
pub mod status;
pub mod task_pool;

pub use status::poach_status;

/// Compiles only if a value of the type can go to another thread.
pub(crate) const fn sent<T: Send>() {}

/// As [`sent`], and if several threads can use one.
pub(crate) const fn shared<T: Send + Sync>() {}
