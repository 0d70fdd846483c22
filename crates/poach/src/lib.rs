//! Work stealing without fences: fork-join parallelism for Rust.
//!
//! ```
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() <= 1000 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     let (a, b) = poach::join(|| sum(left), || sum(right));
//!     a + b
//! }
//!
//! let numbers: Vec<u64> = (0..100_000).collect();
//! assert_eq!(sum(&numbers), 4_999_950_000);
//! ```
//!
//! | you have | use |
//! |---|---|
//! | two things to do | [`join`], or, where a fork must cost next to nothing, [`Worker::join`] |
//! | any number of things that borrow | [`scope`] |
//! | something that may take its time | [`spawn`] |
//! | your own number of threads, names, handlers | [`ThreadPool::builder`] |
//!
//! Functions called outside any pool use the global one, made at its first use with a worker for
//! each processor.

pub use poach_runtime::{
    BuildError, Builder, JoinHandle, MAX_THREADS, Scope, ThreadPool, Worker, join, scope, spawn,
    worker,
};
