//! What several tests of both cores use.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon_core::{ThreadPool, ThreadPoolBuilder, join};

pub(crate) fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// The message that `f` panics with.
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(f)).err().expect("it panics");
    payload.downcast_ref::<&'static str>().expect("it panics with a message")
}

pub(crate) fn fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}
