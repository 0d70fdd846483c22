//! [loom](https://docs.rs/loom)'s names, on machines with store buffers and on that of C11: a
//! crate's loom tests run under TSO\[S\], under TSO without a bound, under sequential consistency,
//! and under C11. The package `compat/loom` is the last of these, for `[patch.crates-io]`.
//!
//! ```
//! // Instead of `use loom::...`:
//! use poach_check::loom;
//!
//! use loom::sync::Arc;
//! use loom::sync::atomic::{AtomicBool, Ordering};
//!
//! // Dekker: each thread says that it comes, and looks whether the other does.
//! fn entries(fence: bool) -> impl Fn() + Send + Sync + 'static {
//!     move || {
//!         let flags = Arc::new([(); 2].map(|()| AtomicBool::new(false)));
//!         let enter = move |flags: &[AtomicBool; 2], mine: usize| {
//!             flags[mine].store(true, Ordering::Release);
//!             if fence {
//!                 loom::sync::atomic::fence(Ordering::SeqCst);
//!             }
//!             !flags[1 - mine].load(Ordering::Acquire)
//!         };
//!         let shared = Arc::clone(&flags);
//!         let other = loom::thread::spawn(move || enter(&shared, 1));
//!         let first = enter(&flags, 0);
//!         assert!(!(first && other.join().unwrap()), "both have entered");
//!     }
//! }
//! loom::model(entries(true));
//! loom::model_on(loom::Machine::sequential(), entries(false));
//! let wrong = std::panic::catch_unwind(|| loom::model(entries(false))).unwrap_err();
//! let text = wrong.downcast_ref::<String>().unwrap();
//! assert!(text.contains("both have entered"));
//! assert!(text.contains("wrong under TSO without a bound, from TSO[1] on"));
//! ```
//!
//! # Which machine
//!
//! [`model()`] explores TSO without a bound, which has every execution that the other machines but
//! C11 have: what is right there is right on all of them. When it finds a violation it tries the
//! others, and says up to which bound the model is right. Nothing is read from the environment
//! (that is for `compat/loom`): a test's verdict is a function of its source. To choose a machine,
//! either change the line once more, to `use poach_check::loom::tso4 as loom;` ([`sequential`],
//! [`tso1`], [`tso2`], [`tso4`], [`tso8`]), or name a machine in the test: [`model_on`], or
//! [`model::BuilderOn::machine`].
//!
//! [`c11`] has loom's memory model, and the stores and `SeqCst` accesses that loom leaves out.
//!
//! # What differs from loom
//!
//! | | loom | here |
//! |---|---|---|
//! | memory | C11, without a bound on what is hidden | x86-TSO with a bound or without, or C11 |
//! | an ordering that is too weak for C11 but does on x86 | found | found under [`c11`] alone |
//! | a store that hides longer than S others | always possible | under TSO possible up to S |
//! | every execution | yes, without a bound on preemptions | yes; states that come again are not explored twice |
//! | a waiting loop | may end an execution by its length | waits until something that it has read changes |
//! | counterexample | a panic, a log | a table, and choices that replay it |
//! | `Condvar`, `Notify`, `park` | wake when notified (`Notify`: also without) | wake without a reason, too ([`spurious_wakeups`](model::BuilderOn::spurious_wakeups)); any waiter is notified ([`notify_any`](model::BuilderOn::notify_any)) |
//! | a timed wait | never times out | may at any moment |
//! | [`cell::UnsafeCell`] | races by C11 | races by the machine's model |
//! | [`sync::Arc`], [`alloc`] | a leak is found | a leak is found |
//! | a panic | ends the model | the same, or is a [result](model::BuilderOn::panics_are_results) |
//! | checkpoints | of the search | of the counterexample |
//!
//! A model is deterministic, as with loom: no clock, no random numbers, nothing kept from one
//! execution to the next that changes what the model does. What threads share without these names
//! is not seen.
//!
//! Complexity: exponential in the number of conflicting steps; see the [crate's page](crate).

pub mod alloc;
pub mod cell;
mod execution;
pub mod future;
pub mod model;
pub mod sync;
pub mod thread;
mod words;

#[doc(inline)]
pub use crate::__poach_lazy_static as lazy_static;
#[doc(inline)]
pub use crate::__poach_thread_local as thread_local;
#[doc(inline)]
pub use crate::MAX_THREADS;
pub use model::{Machine, model, model_on};

pub mod lazy_static {
    //! What [`lazy_static!`](super::lazy_static!) makes.

    pub use super::thread::{AccessError, Lazy};
}

/// Explores the alternatives of the execution from here on, after [`stop_exploring`].
pub fn explore() {
    crate::engine::exploring(Exploring::Yes);
}

/// Explores no alternatives from here on, until [`explore`]. The search is then not complete.
pub fn stop_exploring() {
    crate::engine::exploring(Exploring::No);
}

/// Explores no alternatives of the execution from here on. The search is then not complete.
pub fn skip_branch() {
    crate::engine::exploring(Exploring::Skips);
}

use crate::search::Exploring;

pub mod hint {
    //! What a waiting loop tells the machine.

    /// As [`yield_now`](super::thread::yield_now).
    #[track_caller]
    pub fn spin_loop() {
        crate::raw::pause();
    }

    /// Says that this cannot be reached.
    ///
    /// # Safety
    ///
    /// A model may call it at will: it panics.
    ///
    /// # Panics
    ///
    /// If it is reached.
    #[track_caller]
    #[expect(unsafe_code, reason = "it is unsafe in loom's interface")]
    pub unsafe fn unreachable_unchecked() -> ! {
        unreachable!("unreachable_unchecked was reached")
    }
}

macro_rules! machines {
    ($($(#[$doc:meta])* $name:ident = $bound:expr;)*) => {$(
        $(#[$doc])*
        pub mod $name {
            pub use super::{
                MAX_THREADS, Machine, alloc, cell, explore, future, hint, lazy_static, model_on,
                skip_branch, stop_exploring, sync, thread, thread_local,
            };

            pub mod model {
                //! How a model is checked on this machine.

                pub use super::super::model::{Machine, model_on};

                /// How a model is checked on this machine.
                pub type Builder = super::super::model::BuilderOn<{ $bound }>;
            }

            /// Explores every execution of a model on this machine.
            ///
            /// # Panics
            ///
            /// As [`BuilderOn::check`](super::model::BuilderOn::check).
            pub fn model<F>(model: F)
            where
                F: Fn() + Sync + Send + 'static,
            {
                model::Builder::new().check(model);
            }
        }
    )*};
}

machines! {
    /// The same names under the memory model of C11.
    c11 = super::super::model::C11;
    /// The same names under sequential consistency.
    sequential = 0;
    /// The same names under TSO\[1\].
    tso1 = 1;
    /// The same names under TSO\[2\].
    tso2 = 2;
    /// The same names under TSO\[4\].
    tso4 = 4;
    /// The same names under TSO\[8\].
    tso8 = 8;
}

/// Values that each thread of a model has for itself: as [`std::thread_local!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __poach_thread_local {
    () => {};
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = const $init:block; $($rest:tt)*) => {
        $crate::__poach_thread_local!($(#[$attribute])* $visible static $name: $type = $init);
        $crate::__poach_thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::__poach_thread_local!($(#[$attribute])* $visible static $name: $type = $init);
        $crate::__poach_thread_local!($($rest)*);
    };
    ($(#[$attribute:meta])* $visible:vis static $name:ident: $type:ty = $init:expr) => {
        $(#[$attribute])*
        $visible static $name: $crate::loom::thread::LocalKey<$type> =
            $crate::loom::thread::LocalKey::__new(|| $init);
    };
}

/// Statics that are made anew in each execution: as the crate `lazy_static`'s.
#[doc(hidden)]
#[macro_export]
macro_rules! __poach_lazy_static {
    () => {};
    ($(#[$attribute:meta])* $visible:vis static ref $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $(#[$attribute])*
        #[allow(missing_copy_implementations, non_camel_case_types, dead_code)]
        $visible struct $name {
            private: (),
        }
        $(#[$attribute])*
        $visible static $name: $name = $name { private: () };
        impl ::core::ops::Deref for $name {
            type Target = $type;
            fn deref(&self) -> &$type {
                static LAZY: $crate::loom::thread::Lazy<$type> =
                    $crate::loom::thread::Lazy::__new(|| $init);
                LAZY.get()
            }
        }
        $crate::__poach_lazy_static!($($rest)*);
    };
}
