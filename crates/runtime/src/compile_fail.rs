//! What must not compile, each beside a twin that does, so that it fails for the reason named.
//!
//! A token stays on its thread, and within the call that it was given to:
//!
//! ```compile_fail,E0277
//! fn f(worker: poach_runtime::Worker<'_>) {
//!     poach_runtime::join(move || drop(worker), || ());
//! }
//! ```
//! ```
//! fn f(worker: poach_runtime::Worker<'_>) {
//!     let index = worker.index();
//!     poach_runtime::join(move || drop(index), || ());
//! }
//! ```
//! ```compile_fail,E0521
//! let mut kept = None;
//! poach_runtime::worker(|w| kept = Some(w));
//! ```
//! ```
//! let mut kept = None;
//! poach_runtime::worker(|w| kept = Some(w.index()));
//! ```
//!
//! A worker made of an address is a promise:
//!
//! ```compile_fail,E0133
//! use poach_runtime::foreign::{slot_of, worker_at};
//! poach_runtime::worker(|w| worker_at(slot_of(&w)).index());
//! ```
//! ```
//! use poach_runtime::foreign::slot_of;
//! poach_runtime::worker(|w| slot_of(&w).is_aligned());
//! ```
//!
//! Nobody implements what a token lacks to be sent:
//!
//! ```compile_fail,E0603
//! struct Mine;
//! impl poach_runtime::task::half::UsesTheWorkerItIsGiven for Mine {}
//! ```
//! ```
//! struct Mine;
//! impl Clone for Mine {
//!     fn clone(&self) -> Mine {
//!         Mine
//!     }
//! }
//! ```
//!
//! A task of a scope does not borrow from the scope's body, nor does its scope leave it:
//!
//! ```compile_fail,E0373
//! poach_runtime::scope(|s| {
//!     let number = 1;
//!     s.spawn(|_| drop(&number));
//! });
//! ```
//! ```
//! let number = 1;
//! poach_runtime::scope(|s| {
//!     s.spawn(|_| drop(&number));
//! });
//! ```
//! ```compile_fail,E0521
//! let mut kept = None;
//! poach_runtime::scope(|s| kept = Some(s));
//! ```
//! ```
//! let mut kept = None;
//! poach_runtime::scope(|s| kept = Some(format!("{s:?}")));
//! ```
//!
//! What goes to another thread is `Send`, and what nobody waits for borrows nothing:
//!
//! ```compile_fail,E0277
//! poach_runtime::scope(|s| {
//!     let number = std::rc::Rc::new(1);
//!     s.spawn(move |_| drop(number));
//! });
//! ```
//! ```
//! poach_runtime::scope(|s| {
//!     let number = std::sync::Arc::new(1);
//!     s.spawn(move |_| drop(number));
//! });
//! ```
//! ```compile_fail,E0277
//! drop(poach_runtime::spawn_handle(|| std::rc::Rc::new(1)));
//! ```
//! ```
//! drop(poach_runtime::spawn_handle(|| std::sync::Arc::new(1)));
//! ```
//! ```compile_fail,E0597
//! let number = 1;
//! let borrowed = &number;
//! poach_runtime::spawn(move || drop(borrowed));
//! ```
//! ```
//! let borrowed = &1;
//! poach_runtime::spawn(move || drop(borrowed));
//! ```
