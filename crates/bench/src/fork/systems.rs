//! What a fork-join program can run on.

use std::num::NonZero;

use anyhow::{Context as _, Result};
use poach_runtime::{ThreadPool, Worker};

use super::{Fork, Task};

/// The call stack of each worker, in bytes: enough for the deepest program here. It is address space,
/// and memory only as far as it is used.
const STACK: usize = 256 << 20;

/// A pool that runs tasks.
pub(crate) trait System: Sized + 'static {
    /// Its name on the command line and on the figures.
    const NAME: &'static str;

    /// A pool of `workers` threads, of which the calling thread may be one.
    fn new(workers: usize) -> Result<Self>;

    /// Runs a task and waits for its result.
    fn run<T: Task>(&self, task: T) -> T::Output;
}

/// No pool: a join calls one half and then the other, so what is left is the sequential program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequential;

impl System for Sequential {
    const NAME: &'static str = "sequential";

    fn new(_workers: usize) -> Result<Self> {
        Ok(Sequential)
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        task.run(Sequential)
    }
}

impl Fork for Sequential {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        (a.run(Sequential), b.run(Sequential))
    }
}

/// Poach, on the split deque, passing the worker's token.
#[derive(Debug)]
pub(crate) struct Split(ThreadPool);

impl System for Split {
    const NAME: &'static str = "split";

    fn new(workers: usize) -> Result<Self> {
        let pool = ThreadPool::builder().threads(workers).stack_size(STACK).build();
        Ok(Split(pool.context("split: the pool could not be made")?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.run(|worker| task.run(worker))
    }
}

impl Fork for Worker<'_> {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        Worker::join(self, |worker| a.run(worker), |worker| b.run(worker))
    }
}

/// The rayon crate.
#[derive(Debug)]
pub(crate) struct Rayon(rayon::ThreadPool);

/// Rayon finds its worker in a thread-local variable.
#[derive(Debug)]
struct RayonFork;

impl System for Rayon {
    const NAME: &'static str = "rayon";

    fn new(workers: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).stack_size(STACK).build();
        Ok(Rayon(pool.context("rayon: the pool could not be made")?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.install(|| task.run(RayonFork))
    }
}

impl Fork for RayonFork {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        rayon::join(|| a.run(RayonFork), || b.run(RayonFork))
    }
}

/// The chili crate. The calling thread is one of its workers.
#[derive(Debug)]
pub(crate) struct Chili(chili::ThreadPool);

impl System for Chili {
    const NAME: &'static str = "chili";

    fn new(workers: usize) -> Result<Self> {
        let thread_count = Some(NonZero::new(workers).context("chili: no pool has 0 workers")?);
        let config = chili::Config { thread_count, ..chili::Config::default() };
        Ok(Chili(chili::ThreadPool::with_config(config)))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        task.run(&mut self.0.scope())
    }
}

impl Fork for &mut chili::Scope<'_> {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        chili::Scope::join(self, |scope| a.run(scope), |scope| b.run(scope))
    }
}
