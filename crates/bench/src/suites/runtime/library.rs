//! What Poach and rayon both have, under the names that their users write.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use poach_parallel::{par_sort, par_sort_unstable};
use rayon::slice::ParallelSliceMut;

use crate::need_stacks;

/// A runtime with scopes, joins and calls from outside.
pub(super) trait Library: Sized + Sync + 'static {
    /// Its name on the command line and on the figures.
    const NAME: &'static str;

    /// A pool of `workers` threads, as it ships.
    fn new(workers: usize) -> Result<Self>;

    /// Runs `f` as a worker of the pool, on the calling thread if the library does so, and returns
    /// its result.
    fn call<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R;

    /// Runs `f` on a thread of the pool and waits for its result.
    fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R;

    /// Both halves, and the results of both. In a pool.
    fn join<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send)
    -> (A, B);

    /// A scope with `tasks` tasks, each made by `make` from its number, and the wait for their end.
    /// In a pool.
    fn scope<T: FnOnce() + Send>(tasks: u64, make: impl Fn(u64) -> T + Sync);

    /// Sorts with the function of that name, or the unstable one. In a pool.
    fn sort(numbers: &mut [u64], stable: bool);

    /// The number of the current worker of the pool.
    fn worker() -> Option<usize>;

    /// The pool's own threads, as far as they have started.
    fn threads(&self) -> &Threads;
}

/// The numbers by which the system knows a pool's threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads(Arc<Mutex<Vec<u32>>>);

impl Threads {
    /// Called by each thread as it starts.
    fn note(&self) {
        #[cfg(target_os = "linux")]
        if let Ok(number) = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        }
    }

    pub(super) fn numbers(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The bytes of address space that the call stacks of the workers take.
fn stacks(workers: usize, each: u64) -> u64 {
    each.saturating_mul(workers as u64)
}

/// Whether Poach can have `workers` workers. Others try to start them, and end the process where
/// the system has no room for their stacks.
pub(super) fn comparable(workers: usize) -> Result<()> {
    let most = poach_runtime::config::MAX_THREADS;
    ensure!(workers <= most, "a pool of Poach has {most} workers at most, not {workers}");
    Ok(())
}

macro_rules! libraries {
    ($(
        $(#[$about:meta])*
        $name:ident = $label:literal, $source:ident, $pool:ty, $stack:expr;
        make: |$workers:ident, $started:ident| $make:expr;
        call: |$called:ident, $f:ident| $call:expr;
        sort: |$numbers:ident, $stable:ident| $sort:expr;
    )*) => {$(
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $name($pool, Threads);

        impl Library for $name {
            const NAME: &'static str = $label;

            fn new($workers: usize) -> Result<Self> {
                comparable($workers)?;
                need_stacks(stacks($workers, $stack))?;
                let threads = Threads::default();
                let noted = threads.clone();
                let $started = move |_: usize| noted.note();
                let pool = $make.context(concat!($label, ": the pool could not be made"))?;
                Ok($name(pool, threads))
            }

            #[inline(always)]
            fn call<R: Send>(&self, $f: impl FnOnce() -> R + Send) -> R {
                let $called = &self.0;
                $call
            }

            #[inline(always)]
            fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
                self.0.install(f)
            }

            #[inline(always)]
            fn join<A: Send, B: Send>(
                a: impl FnOnce() -> A + Send,
                b: impl FnOnce() -> B + Send,
            ) -> (A, B) {
                $source::join(a, b)
            }

            #[inline(always)]
            fn scope<T: FnOnce() + Send>(tasks: u64, make: impl Fn(u64) -> T + Sync) {
                $source::scope(|scope| {
                    for number in 0..tasks {
                        let task = make(number);
                        scope.spawn(move |_| task());
                    }
                });
            }

            fn sort($numbers: &mut [u64], $stable: bool) {
                $sort;
            }

            fn worker() -> Option<usize> {
                $source::current_thread_index()
            }

            fn threads(&self) -> &Threads {
                &self.1
            }
        }
    )*};
}

libraries! {
    /// Poach as it ships.
    Poach = "split", poach_runtime, poach_runtime::ThreadPool, 8 << 20;
    make: |workers, started| {
        poach_runtime::ThreadPool::builder().num_threads(workers).on_start(started).build()
    };
    call: |pool, f| pool.run(|_| f());
    sort: |numbers, stable| {
        if stable { par_sort(numbers) } else { par_sort_unstable(numbers) }
    };

    /// The rayon crate.
    Rayon = "rayon", rayon, rayon::ThreadPool, 2 << 20;
    make: |workers, started| {
        rayon::ThreadPoolBuilder::new().num_threads(workers).start_handler(started).build()
    };
    call: |pool, f| pool.install(f);
    sort: |numbers, stable| {
        if stable { numbers.par_sort() } else { numbers.par_sort_unstable() }
    };
}
