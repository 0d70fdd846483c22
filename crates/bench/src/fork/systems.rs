//! What a fork-join program can run on.

use std::num::{NonZero, NonZeroU64};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use poach_deque::{AsymmetricCl, ChaseLev, FfCl, FfThe, PrivateDeque, ResolvedCl, The, Thep};
use poach_memory::{
    Asymmetric, Bounded, CachePadded, Delta, Machine, Resolved, Unbounded, Unfenced,
};
use poach_runtime::{ThreadPool, Worker};

use super::on_queue::{Job, Kind, QueuePool, QueueWorker};
use super::task::{Fork, Task};
use crate::need_stacks;
use crate::promise;

/// The call stack of each worker, in bytes: enough for the deepest program here. It is address
/// space, and memory only as far as it is used.
pub(super) const STACK: usize = 256 << 20;

/// What a thread has that cannot be given a larger one, unless the environment says otherwise.
const SMALL_STACK: usize = 2 << 20;

/// The bytes of address space that the call stacks of the workers take.
fn stacks(workers: usize, each: usize) -> u64 {
    workers.saturating_mul(each) as u64
}

/// A pool that runs tasks.
pub(crate) trait System: Sized + 'static {
    /// Its name on the command line and on the figures.
    const NAME: &'static str;

    /// A pool of `workers` threads, of which the calling thread may be one.
    fn new(workers: usize) -> Result<Self>;

    /// Runs a task and waits for its result.
    fn run<T: Task>(&self, task: T) -> T::Output;

    /// What it has counted since it was made.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
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

#[cfg(test)]
impl Split {
    pub(crate) fn pool(&self) -> &ThreadPool {
        &self.0
    }
}

impl System for Split {
    const NAME: &'static str = "split";

    fn new(workers: usize) -> Result<Self> {
        need_stacks(stacks(workers, STACK))?;
        let pool = ThreadPool::builder().num_threads(workers).stack_size(STACK).build();
        Ok(Split(pool.context("split: the pool could not be made")?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.run(|worker| task.run(worker))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.stats().total().fields().collect()
    }
}

/// Poach as a user of rayon would call it, by `poach::join`, which finds its worker in a
/// thread-local variable.
#[derive(Debug)]
pub(crate) struct PoachJoin(ThreadPool);

/// See [`PoachJoin`].
#[derive(Debug)]
struct JoinFork;

impl System for PoachJoin {
    const NAME: &'static str = "poach-join";

    fn new(workers: usize) -> Result<Self> {
        need_stacks(stacks(workers, STACK))?;
        let pool = ThreadPool::builder().num_threads(workers).stack_size(STACK).build();
        Ok(PoachJoin(pool.context("poach-join: the pool could not be made")?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.run(|_worker| task.run(JoinFork))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.stats().total().fields().collect()
    }
}

impl Fork for JoinFork {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        poach_runtime::join(|| a.run(JoinFork), || b.run(JoinFork))
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
        need_stacks(stacks(workers, STACK))?;
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
        need_stacks(stacks(workers, SMALL_STACK))?;
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

/// A queue of the papers, under the plain scheduler that is the same for all of them.
pub(crate) struct OnQueue<K: Kind>(QueuePool<K>);

fn queue_pool<K: Kind>(workers: usize) -> Result<QueuePool<K>> {
    need_stacks(stacks(workers, STACK))?;
    QueuePool::new(workers).with_context(|| format!("{}: the pool could not be made", K::NAME))
}

impl<K: Kind> System for OnQueue<K> {
    const NAME: &'static str = K::NAME;

    fn new(workers: usize) -> Result<Self> {
        Ok(OnQueue(queue_pool(workers)?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.run(|worker| task.run(worker))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.0.steals().counters()
    }
}

/// FF-THE with the delta [`LEAST`], whose workers make stores before each pop.
pub(crate) struct OnSpacedQueue {
    pool: QueuePool<FfTheFourKind>,
    /// How many; reckoned once, for `cpuid` leaves a virtual machine.
    stores: usize,
}

impl OnSpacedQueue {
    /// Whether this machine can have it.
    pub(super) fn is_possible() -> bool {
        FfTheFourKind::queue().is_ok()
    }
}

impl System for OnSpacedQueue {
    const NAME: &'static str = FfTheFourKind::NAME;

    fn new(workers: usize) -> Result<Self> {
        Ok(OnSpacedQueue { stores: spacing()?, pool: queue_pool(workers)? })
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        let stores = self.stores;
        self.pool.run(|worker| task.run(Spaced { worker, stores }))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.pool.steals().counters()
    }
}

impl<K: Kind> Fork for &QueueWorker<K> {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        QueueWorker::join(self, |worker| a.run(worker), |worker| b.run(worker))
    }
}

/// The bound of this processor; the queue makes the store between two pops that a bound needs.
pub(crate) fn delta() -> Result<Delta> {
    promise::delta(0)
}

/// The least delta of the fence-free paper, section 8.1: its authors read that their programs make
/// stores enough between two pops.
const LEAST: NonZeroU64 = NonZeroU64::new(4).unwrap();

/// The stores between two pops, each to a cache line of its own, with which [`LEAST`] is a bound on
/// this processor. Of `spacing + 1` buffered stores one is a pop's, and no two coalesce: only
/// stores in a row to one line do.
///
/// # Errors
///
/// If the number of stores that the processor may buffer is not known.
fn spacing() -> Result<usize> {
    Ok(promise::held()?.get().div_ceil(LEAST.get()).saturating_sub(1) as usize)
}

/// The cache lines that a thread stores to: no fewer than [`spacing`] may ask for.
const LINES: usize = 64;

thread_local! {
    static ELSEWHERE: [CachePadded<AtomicU64>; LINES] =
        const { [const { CachePadded::new(AtomicU64::new(0)) }; LINES] };
}

/// What this processor's queue with the delta [`LEAST`] is made with.
fn spaced() -> Result<Bounded<Machine>> {
    let stores = spacing()?;
    ensure!(stores <= LINES, "a delta of {LEAST} takes {stores} stores here, more than {LINES}");
    Ok(Bounded::new(promise::spaced(LEAST))?)
}

/// A worker that makes [`spacing`] stores before each pop.
///
/// A join pops once its first half is done; so the stores are the end of that half. A pop that
/// finds nothing takes the queue's lock, and no store is buffered after that. A join that waits
/// pops again, and finds nothing: its own half was stolen, and all older tasks were stolen before.
struct Spaced<'w> {
    worker: &'w QueueWorker<FfTheFourKind>,
    stores: usize,
}

/// Makes the stores when it goes, also where the half panics.
struct Stores(usize);

impl Drop for Stores {
    #[inline(always)]
    fn drop(&mut self) {
        ELSEWHERE.with(|lines| {
            for line in &lines[..self.0.min(LINES)] {
                // Release, not Relaxed, so that no compiler moves it before the last pop's store or
                // joins two of them; what it writes means nothing to anyone.
                line.store(0, Ordering::Release);
            }
        });
    }
}

impl Fork for Spaced<'_> {
    #[inline(always)]
    fn join<A: Task, B: Task>(&mut self, a: A, b: B) -> (A::Output, B::Output) {
        let stores = self.stores;
        self.worker.join(
            move |worker| {
                let _stores = Stores(stores);
                a.run(Spaced { worker, stores })
            },
            move |worker| b.run(Spaced { worker, stores }),
        )
    }
}

macro_rules! kinds {
    ($($see:vis $kind:ident = $name:literal: $queue:ty, $make:expr;)*) => {$(
        #[doc = concat!("The queue `", $name, "`.")]
        $see struct $kind;

        impl Kind for $kind {
            const NAME: &'static str = $name;
            type Queue = $queue;

            fn queue() -> Result<Self::Queue> {
                Ok($make)
            }
        }
    )*};
}

kinds! {
    pub(crate) MutexKind = "mutex": poach_deque::Mutex<Job<Self>, Machine>, poach_deque::Mutex::new();
    pub(crate) TheKind = "the": The<Job<Self>>, The::new();
    pub(crate) FfTheKind = "ff-the": FfThe<Job<Self>>, The::with_policy(Bounded::new(delta()?)?);
    pub(crate) FfTheMeasuredKind = "ff-the-measured": FfThe<Job<Self>>, The::with_policy(Bounded::new(promise::measured()?)?);
    // Only `OnSpacedQueue` may have workers on it.
    FfTheFourKind = "ff-the-4": FfThe<Job<Self>>, The::with_policy(spaced()?);
    pub(crate) UnfencedTheKind = "unfenced-the": The<Job<Self>, Unfenced>, The::with_policy(promise::alone());
    pub(crate) AsymmetricTheKind = "asymmetric-the": The<Job<Self>, Asymmetric<Machine>>, The::with_policy(Asymmetric::new());
    pub(crate) ThepKind = "thep": Thep<Job<Self>, Bounded<Machine>>, Thep::with_policy(Bounded::new(delta()?)?);
    pub(crate) ThepInfiniteKind = "thep-infinite": Thep<Job<Self>, Unbounded>, Thep::with_policy(Unbounded);
    pub(crate) ChaseLevKind = "chase-lev": ChaseLev<Job<Self>>, ChaseLev::new();
    pub(crate) FfClKind = "ff-cl": FfCl<Job<Self>>, ChaseLev::with_policy(Bounded::new(delta()?)?);
    pub(crate) AsymmetricClKind = "asymmetric-cl": AsymmetricCl<Job<Self>>, ChaseLev::with_policy(Asymmetric::new());
    pub(crate) ResolvedKind = "resolved": ResolvedCl<Job<Self>>, ChaseLev::with_policy(Resolved::new(delta()?)?);
    pub(crate) PrivateKind = "private": PrivateDeque<Job<Self>, Machine>, PrivateDeque::new();
    pub(crate) SplitQueueKind = "split-queue": poach_deque::Split<Job<Self>, Machine>, poach_deque::Split::new();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaced_pops_leave_as_many_hidden_as_the_least_delta() {
        promise::in_tests();
        let hidden = |stores: usize| promise::held().unwrap().get().div_ceil(stores as u64 + 1);
        let spacing = spacing().unwrap();
        assert_eq!(hidden(spacing), LEAST.get());
        assert!(hidden(spacing - 1) > LEAST.get());
        assert!(spacing <= LINES);
    }

    #[test]
    fn each_first_half_ends_with_the_stores() {
        struct Half;
        impl Task for Half {
            type Output = usize;
            fn run<F: Fork>(self, _fork: F) -> usize {
                written()
            }
        }
        /// The lines of this thread that were written since they were last marked.
        fn written() -> usize {
            ELSEWHERE.with(|lines| {
                // Relaxed: they are this thread's.
                lines.iter().filter(|line| line.load(Ordering::Relaxed) == 0).count()
            })
        }
        promise::in_tests();
        if !OnSpacedQueue::is_possible() {
            return;
        }
        let stores = spacing().unwrap();
        let system = OnSpacedQueue::new(1).unwrap();
        let (first, second) = system.pool.run(|worker| {
            ELSEWHERE.with(|lines| {
                for line in lines {
                    line.store(1, Ordering::Relaxed);
                }
            });
            Spaced { worker, stores }.join(Half, Half)
        });
        assert_eq!((first, second), (0, stores));
    }
}
