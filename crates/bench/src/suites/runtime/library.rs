//! What Poach and rayon both have, under the names that their users write.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
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

/// Poach as it ships.
#[derive(Debug)]
pub(super) struct Poach(poach_runtime::ThreadPool, Threads);

impl Library for Poach {
    const NAME: &'static str = "split";

    fn new(workers: usize) -> Result<Self> {
        comparable(workers)?;
        need_stacks(stacks(workers, 8 << 20))?;
        let threads = Threads::default();
        let noted = threads.clone();
        let builder = poach_runtime::ThreadPool::builder().num_threads(workers);
        let pool = builder.on_start(move |_| noted.note()).build();
        Ok(Poach(pool.context("split: the pool could not be made")?, threads))
    }

    #[inline(always)]
    fn call<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.0.run(|_| f())
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
        poach_runtime::join(a, b)
    }

    #[inline(always)]
    fn scope<T: FnOnce() + Send>(tasks: u64, make: impl Fn(u64) -> T + Sync) {
        poach_runtime::scope(|scope| {
            for number in 0..tasks {
                let task = make(number);
                scope.spawn(move |_| task());
            }
        });
    }

    fn sort(numbers: &mut [u64], stable: bool) {
        let sort =
            if stable { poach_parallel::par_sort } else { poach_parallel::par_sort_unstable };
        sort(numbers);
    }

    fn worker() -> Option<usize> {
        poach_runtime::current_thread_index()
    }

    fn threads(&self) -> &Threads {
        &self.1
    }
}

/// The rayon crate.
#[derive(Debug)]
pub(super) struct Rayon(rayon::ThreadPool, Threads);

impl Library for Rayon {
    const NAME: &'static str = "rayon";

    fn new(workers: usize) -> Result<Self> {
        comparable(workers)?;
        need_stacks(stacks(workers, 2 << 20))?;
        let threads = Threads::default();
        let noted = threads.clone();
        let builder = rayon::ThreadPoolBuilder::new().num_threads(workers);
        let pool = builder.start_handler(move |_| noted.note()).build();
        Ok(Rayon(pool.context("rayon: the pool could not be made")?, threads))
    }

    #[inline(always)]
    fn call<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.0.install(f)
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
        rayon::join(a, b)
    }

    #[inline(always)]
    fn scope<T: FnOnce() + Send>(tasks: u64, make: impl Fn(u64) -> T + Sync) {
        rayon::scope(|scope| {
            for number in 0..tasks {
                let task = make(number);
                scope.spawn(move |_| task());
            }
        });
    }

    fn sort(numbers: &mut [u64], stable: bool) {
        if stable { numbers.par_sort() } else { numbers.par_sort_unstable() }
    }

    fn worker() -> Option<usize> {
        rayon::current_thread_index()
    }

    fn threads(&self) -> &Threads {
        &self.1
    }
}
