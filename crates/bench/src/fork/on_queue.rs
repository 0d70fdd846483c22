//! Fork-join on any of the papers' queues, so that queues can be compared with nothing else
//! changed: [`QueuePool`].
//!
//! This is the plain scheduler of the papers (Lace, Figure 1, with random stealing; the fence-free
//! paper's `CilkPlus`), with the same lines for every queue. A join pushes its second half, runs
//! the first, pops. Where the pop finds that the half was stolen, the worker takes other work until
//! it is done. Workers that find none give their processor away, and sleep only while the pool has
//! nothing to run at all.

mod job;

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Result, ensure};
use poach_deque::{ChaseLev, Owner, PrivateDeque, Split, Steal, The, Thep, Thief};
use poach_memory::{
    Asymmetric, Bounded, CachePadded, Full, Machine, Memory, Ordering, Resolved, Unbounded,
    Unfenced, Word,
};

pub(crate) use job::Job;

/// Fruitless looks at all victims after which a worker gives its processor away.
const LOOKS: u32 = 32;

/// A kind of queue.
pub(crate) trait Kind: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;
    /// Its owner's end.
    type Queue: exact::Exact<Job<Self>> + 'static;

    /// An empty one, or why this machine has none.
    fn queue() -> Result<Self::Queue>;
}

mod exact {
    use super::{
        Asymmetric, Bounded, ChaseLev, Full, Owner, PrivateDeque, Resolved, Split, The, Thep,
        Unbounded, Unfenced,
    };

    /// Queues that are known to hand out each task once.
    pub(crate) trait Exact<T>: Owner<T> {}

    /// Names the policies under which a queue is exact. `Unfenced` is exact if its maker's promise
    /// holds, given by `unsafe`, that no thief looks while the owner pops: a pool of one
    /// worker.
    macro_rules! exact {
        ($($queue:ident: $($policy:ty),*;)*) => {
            $($(impl<T: Send> Exact<T> for $queue<T, $policy> {})*)*
        };
    }

    exact! {
        ChaseLev: Full, Asymmetric, Bounded, Resolved;
        The: Full, Asymmetric, Bounded, Resolved, Unfenced;
        Thep: Full, Bounded, Resolved, Unbounded;
    }
    impl<T: Send> Exact<T> for poach_deque::Mutex<T> {}
    impl<T: Send> Exact<T> for PrivateDeque<T> {}
    impl<T: Send> Exact<T> for Split<T> {}
}

/// A thief's end of a queue.
type ThiefOf<K> = <<K as Kind>::Queue as Owner<Job<K>>>::Thief;

/// What the workers share.
struct Shared<K: Kind> {
    thieves: Box<[ThiefOf<K>]>,
    /// Programs that were handed in and have not ended. Workers look for work while it is not
    /// zero.
    running: CachePadded<<Machine as Memory>::Word>,
    stolen: CachePadded<<Machine as Memory>::Word>,
    aborted: CachePadded<<Machine as Memory>::Word>,
    state: Mutex<State<K>>,
    /// Told of a new program, of the end of one, and of the pool's.
    changed: Condvar,
}

struct State<K: Kind> {
    programs: VecDeque<Job<K>>,
    closing: bool,
}

impl<K: Kind> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State<K>>) -> MutexGuard<'g, State<K>> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    fn is_running(&self) -> bool {
        // Relaxed: a hint to go on looking; what is found is handed over by its queue.
        self.running.load(Ordering::Relaxed) != 0
    }
}

/// What thieves have done in a pool.
#[derive(Clone, Copy)]
pub(super) struct Steals {
    /// Jobs that were stolen.
    pub(super) stolen: u64,
    /// Steals that were given up because the thief could not tell whether the owner had the job.
    pub(super) aborted: u64,
}

impl Steals {
    pub(super) fn counters(self) -> Vec<(&'static str, u64)> {
        vec![("stolen", self.stolen), ("aborted", self.aborted)]
    }
}

/// Workers that run fork-join programs, each with a queue of the kind `K`.
pub(super) struct QueuePool<K: Kind> {
    shared: Arc<Shared<K>>,
    threads: Vec<JoinHandle<()>>,
}

/// A worker of a [`QueuePool`], as the halves of a join see it.
pub(crate) struct QueueWorker<K: Kind> {
    queue: K::Queue,
    index: usize,
    shared: Arc<Shared<K>>,
    random: Cell<u64>,
    /// Fruitless looks since there was work.
    looks: Cell<u32>,
}

impl<K: Kind> QueueWorker<K> {
    /// Runs `a` and `b`, perhaps in parallel, and returns both results.
    ///
    /// # Panics
    ///
    /// If either half panics, after both have ended, with the payload of `a` if both have.
    #[inline]
    pub(super) fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&Self) -> RA,
        B: FnOnce(&Self) -> RB + Send,
        RB: Send,
    {
        job::fork(self, a, b)
    }

    /// Works until the pool closes.
    fn work(&self) {
        let mut state = self.shared.lock();
        while !state.closing {
            if let Some(program) = state.programs.pop_front() {
                drop(state);
                program.run(self);
                // Relaxed: only a hint; the program's outcome is handed over by its frame.
                self.shared.running.fetch_sub(1, Ordering::Relaxed);
                state = self.shared.lock();
                self.shared.changed.notify_all();
            } else if self.shared.is_running() {
                drop(state);
                while self.shared.is_running() {
                    if let Some(job) = self.queue.pop() {
                        job.run(self);
                    }
                    self.help();
                }
                state = self.shared.lock();
            } else {
                state = self.shared.wait(state);
            }
        }
    }

    fn steal(&self) -> Option<Job<K>> {
        let thieves = &self.shared.thieves;
        let start = self.next_random() as usize % thieves.len();
        for victim in (start..thieves.len()).chain(0..start) {
            if victim == self.index {
                continue;
            }
            match thieves[victim].steal() {
                Steal::Success(job) => {
                    // Relaxed: a count.
                    self.shared.stolen.fetch_add(1, Ordering::Relaxed);
                    return Some(job);
                }
                Steal::Abort => {
                    // Relaxed: a count.
                    self.shared.aborted.fetch_add(1, Ordering::Relaxed);
                }
                Steal::Empty | Steal::Retry => {}
            }
        }
        None
    }

    /// Xorshift: which victim comes first.
    fn next_random(&self) -> u64 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x
    }

    #[inline]
    fn push(&self, job: Job<K>) {
        self.queue.push(job);
    }

    #[inline]
    fn pop(&self) -> Option<Job<K>> {
        self.queue.pop()
    }

    /// Steals a job and runs it; with none, waits a moment.
    #[cold]
    fn help(&self) {
        if let Some(job) = self.steal() {
            self.looks.set(0);
            job.run(self);
        } else if self.looks.get() < LOOKS {
            self.looks.set(self.looks.get() + 1);
            Machine::pause();
        } else {
            thread::yield_now();
        }
    }
}

impl<K: Kind> QueuePool<K> {
    /// Starts `threads` workers.
    ///
    /// # Errors
    ///
    /// If `threads` is 0, the machine has no such queue, or the system refuses a thread; those
    /// already started end.
    pub(super) fn new(threads: usize) -> Result<Self> {
        ensure!(threads > 0, "a pool of 0 threads cannot be made: use 1 or more");
        let queues: Vec<K::Queue> = (0..threads).map(|_| K::queue()).collect::<Result<_>>()?;
        let shared = Arc::new(Shared {
            thieves: queues.iter().map(Owner::thief).collect(),
            running: CachePadded::new(Word::new(0)),
            stolen: CachePadded::new(Word::new(0)),
            aborted: CachePadded::new(Word::new(0)),
            state: Mutex::new(State { programs: VecDeque::new(), closing: false }),
            changed: Condvar::new(),
        });
        let threads = Vec::with_capacity(threads);
        let mut pool = QueuePool { shared, threads };
        for (index, queue) in queues.into_iter().enumerate() {
            let shared = Arc::clone(&pool.shared);
            // Any odd number does; they only must differ.
            let random = Cell::new((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
            let looks = Cell::new(0);
            let thread = thread::Builder::new()
                .name(format!("on-queue-{index}"))
                .stack_size(256 << 20)
                .spawn(move || QueueWorker { queue, index, shared, random, looks }.work())?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Runs `f` on a worker and waits for its result.
    ///
    /// # Panics
    ///
    /// With `f`'s payload, if `f` panics.
    pub(super) fn run<R: Send>(&self, f: impl FnOnce(&QueueWorker<K>) -> R + Send) -> R {
        let outcome = job::lend(f, |program, done| {
            let mut state = self.shared.lock();
            // Relaxed: the workers read it after they have had the lock, or as a hint.
            self.shared.running.fetch_add(1, Ordering::Relaxed);
            state.programs.push_back(program);
            self.shared.changed.notify_all();
            while !done() {
                state = self.shared.wait(state);
            }
        });
        outcome.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// What thieves have done since the pool was made.
    pub(super) fn steals(&self) -> Steals {
        // Relaxed, both: counts.
        let stolen = self.shared.stolen.load(Ordering::Relaxed);
        let aborted = self.shared.aborted.load(Ordering::Relaxed);
        Steals { stolen, aborted }
    }
}

impl<K: Kind> Drop for QueuePool<K> {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // Workers catch the panics of what they run; no caller is left to tell of another
            // panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

    use super::super::systems;
    use super::*;
    use crate::promise;

    fn fib<K: Kind>(worker: &QueueWorker<K>, n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
        a + b
    }

    fn double_each<K: Kind>(worker: &QueueWorker<K>, numbers: &mut [u64]) {
        if let [number] = numbers {
            *number *= 2;
        } else {
            let (left, right) = numbers.split_at_mut(numbers.len() / 2);
            worker.join(|w| double_each(w, left), |w| double_each(w, right));
        }
    }

    /// Drops itself on the thread that is unwound to.
    struct Told<'a>(&'a Cell<u32>);

    impl Drop for Told<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    fn panics_travel<K: Kind>(pool: &QueuePool<K>) {
        let text = |run: &dyn Fn()| {
            let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            *payload.downcast_ref::<&str>().unwrap()
        };
        let first = || pool.run(|w| -> ((), u64) { w.join(|_| panic!("first"), |w| fib(w, 5)) });
        let second = || pool.run(|w| -> (u64, ()) { w.join(|w| fib(w, 5), |_| panic!("second")) });
        let both =
            || pool.run(|w| -> ((), ()) { w.join(|_| panic!("first"), |_| panic!("second")) });
        assert_eq!(text(&|| assert_eq!(first().1, 5)), "first");
        assert_eq!(text(&|| assert_eq!(second().0, 5)), "second");
        assert_eq!(text(&|| both().0), "first");
        // The result of the half that does not panic is dropped once.
        pool.run(|w| {
            let drops = Cell::new(0);
            let result = catch_unwind(AssertUnwindSafe(|| {
                w.join(|_| Told(&drops), |_| panic_any("second")).1
            }));
            assert!(result.is_err());
            assert_eq!(drops.get(), 1);
        });
        assert_eq!(pool.run(|w| fib(w, 5)), 5, "the pool goes on");
    }

    fn on<K: Kind>(most: usize) {
        promise::in_tests();
        if K::queue().is_err() {
            return;
        }
        let (n, expected) = if cfg!(miri) { (8, 21) } else { (17, 1597) };
        for threads in [1, 2, 3, 8] {
            if threads > most {
                break;
            }
            let pool = QueuePool::<K>::new(threads).unwrap();
            for _ in 0..if cfg!(miri) { 1 } else { 10 } {
                assert_eq!(pool.run(|w| fib(w, n)), expected);
            }
            let mut numbers: Vec<u64> = (0..if cfg!(miri) { 20 } else { 3000 }).collect();
            pool.run(|w| double_each(w, &mut numbers));
            assert!(numbers.iter().zip(0..).all(|(number, at)| *number == 2 * at));
            if threads == 1 {
                assert_eq!(pool.steals().stolen, 0);
            }
            panics_travel(&pool);
        }
    }

    #[test]
    fn every_kind_of_queue_has_the_same_results() {
        on::<systems::MutexKind>(8);
        on::<systems::TheKind>(8);
        on::<systems::FfTheKind>(8);
        on::<systems::UnfencedTheKind>(1);
        on::<systems::AsymmetricTheKind>(8);
        on::<systems::ThepKind>(8);
        on::<systems::ThepInfiniteKind>(8);
        on::<systems::ChaseLevKind>(8);
        on::<systems::FfClKind>(8);
        on::<systems::AsymmetricClKind>(8);
        on::<systems::ResolvedKind>(8);
        on::<systems::PrivateKind>(8);
        on::<systems::SplitQueueKind>(8);
    }

    #[test]
    fn a_worker_of_the_outside_of_a_join_and_threads_of_a_program() {
        let pool = QueuePool::<systems::ChaseLevKind>::new(2).unwrap();
        let found = pool.run(|w| {
            let (a, b) = w.join(|_| fib(w, 8), |w| w.join(|_| 0, |w| fib(w, 8)).1);
            thread::scope(|scope| scope.spawn(|| a + b).join().unwrap())
        });
        assert_eq!(found, 42);
    }

    #[test]
    fn no_threads_is_an_error() {
        let error = QueuePool::<systems::MutexKind>::new(0).err().unwrap();
        assert!(error.to_string().contains("0 threads"), "{error}");
    }
}
