//! The family under the names and methods of the crate `crossbeam-deque`: change one `use` line.
//!
//! ```
//! // use crossbeam_deque::{Injector, Steal, Stealer, Worker};
//! use poach_deque::crossbeam::{Injector, Steal, Stealer, Worker};
//!
//! /// A task for a thread: from its own queue, from all threads' injector, or from another's queue.
//! fn find<T: Send>(local: &Worker<T>, global: &Injector<T>, others: &[Stealer<T>]) -> Option<T> {
//!     local.pop().or_else(|| {
//!         std::iter::repeat_with(|| {
//!             global
//!                 .steal_batch_and_pop(local)
//!                 .or_else(|| others.iter().map(Stealer::steal).collect())
//!         })
//!         .find(|steal| !steal.is_retry())
//!         .and_then(Steal::success)
//!     })
//! }
//!
//! let (local, global) = (Worker::new_lifo(), Injector::new());
//! global.push("task");
//! assert_eq!(find(&local, &global, &[]), Some("task"));
//! ```
//!
//! A LIFO worker is a [`ChaseLev`](crate::ChaseLev) deque with the [`Asymmetric`] policy, which is
//! sound wherever the system has a process-wide barrier and falls back to full fences elsewhere. A FIFO
//! worker is a [`Fifo`]. What differs from the original:
//!
//! - tasks must be `Send` to be pushed at all;
//! - queues grow and do not shrink.

use core::fmt;

use poach_memory::Asymmetric;

use crate::{AsymmetricCl, Fifo, Owner, Thief, chase_lev, fifo};

/// The most tasks that a batch has if the caller names no limit, and the most that go from a LIFO worker
/// to a FIFO one, since they are turned around on the way.
const MAX_BATCH: usize = 32;

enum Queue<T: Send> {
    Fifo(Fifo<T>),
    Lifo(AsymmetricCl<T>),
}

/// A worker's queue, FIFO or LIFO; see [`Owner`] for progress and cost.
pub struct Worker<T: Send> {
    queue: Queue<T>,
}

impl<T: Send> Worker<T> {
    /// A queue whose worker and thieves take the oldest task.
    pub fn new_fifo() -> Worker<T> {
        Worker { queue: Queue::Fifo(Fifo::new()) }
    }

    /// A queue whose worker takes the youngest task, and thieves the oldest.
    pub fn new_lifo() -> Worker<T> {
        Worker { queue: Queue::Lifo(AsymmetricCl::with_policy(Asymmetric::new())) }
    }

    /// A handle for thieves.
    pub fn stealer(&self) -> Stealer<T> {
        let queue = match &self.queue {
            Queue::Fifo(queue) => Thieves::Fifo(queue.thief()),
            Queue::Lifo(queue) => Thieves::Lifo(queue.thief()),
        };
        Stealer { queue }
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        match &self.queue {
            Queue::Fifo(queue) => queue.len(),
            Queue::Lifo(queue) => queue.len(),
        }
    }

    /// Adds a task. Ends the program if memory runs out.
    #[inline]
    pub fn push(&self, task: T) {
        match &self.queue {
            Queue::Fifo(queue) => queue.push(task),
            Queue::Lifo(queue) => queue.push(task),
        }
    }

    /// Takes a task.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        match &self.queue {
            Queue::Fifo(queue) => queue.pop(),
            Queue::Lifo(queue) => queue.pop(),
        }
    }

    fn is_lifo(&self) -> bool {
        matches!(self.queue, Queue::Lifo(_))
    }

    /// Takes over what a thief claimed from a first-in, first-out queue, and pops in that order.
    fn take_in_order(&self, claimed: impl DoubleEndedIterator<Item = T>) {
        match &self.queue {
            Queue::Fifo(queue) => claimed.for_each(|task| queue.push(task)),
            Queue::Lifo(queue) => claimed.rev().for_each(|task| queue.push(task)),
        }
    }
}

impl<T: Send> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Worker { .. }")
    }
}

type LifoThief<T> = chase_lev::Stealer<T, Asymmetric>;

enum Thieves<T: Send> {
    Fifo(fifo::Stealer<T>),
    Lifo(LifoThief<T>),
}

/// A thief's handle to a [`Worker`]'s queue. Any thread; lock-free; may outlive the worker.
pub struct Stealer<T: Send> {
    queue: Thieves<T>,
}

impl<T: Send> Stealer<T> {
    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        match &self.queue {
            Thieves::Fifo(queue) => queue.len(),
            Thieves::Lifo(queue) => queue.len(),
        }
    }

    /// Takes the oldest task.
    pub fn steal(&self) -> Steal<T> {
        match &self.queue {
            Thieves::Fifo(queue) => queue.steal(),
            Thieves::Lifo(queue) => queue.steal(),
        }
        .into()
    }

    /// Moves some of the oldest tasks, about half of them, to another worker.
    ///
    /// The worker then pops them in the order in which this queue's own worker would have. If it *is*
    /// this queue's own worker, nothing moves.
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        self.steal_batch_with_limit(dest, MAX_BATCH)
    }

    /// As [`steal_batch`](Stealer::steal_batch), and no more than `limit` tasks.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    pub fn steal_batch_with_limit(&self, dest: &Worker<T>, limit: usize) -> Steal<()> {
        assert!(limit > 0, "a batch of at most 0 tasks is no batch: give a limit of at least 1");
        if self.belongs_to(dest) {
            return if dest.is_empty() { Steal::Empty } else { Steal::Success(()) };
        }
        match &self.queue {
            Thieves::Fifo(queue) => Steal::from(queue.shared().claim(half(limit)))
                .map(|claimed| dest.take_in_order(claimed)),
            Thieves::Lifo(queue) if dest.is_lifo() => {
                onto(queue, dest, limit).map(|youngest| dest.push(youngest))
            }
            Thieves::Lifo(queue) => collect(queue, limit).map(|stolen| {
                stolen.into_iter().rev().flatten().for_each(|task| dest.push(task));
            }),
        }
    }

    /// As [`steal_batch`](Stealer::steal_batch), and pops the first of them.
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_batch_with_limit_and_pop(dest, MAX_BATCH)
    }

    /// As [`steal_batch_and_pop`](Stealer::steal_batch_and_pop), and no more than `limit` tasks.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    pub fn steal_batch_with_limit_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        assert!(limit > 0, "a batch of at most 0 tasks is no batch: give a limit of at least 1");
        if self.belongs_to(dest) {
            return dest.pop().map_or(Steal::Empty, Steal::Success);
        }
        match &self.queue {
            Thieves::Fifo(queue) => first_of(queue.shared().claim(half(limit)), dest),
            Thieves::Lifo(queue) if dest.is_lifo() => onto(queue, dest, limit),
            Thieves::Lifo(queue) => match collect(queue, limit) {
                Steal::Success(stolen) => {
                    let mut youngest_first = stolen.into_iter().rev().flatten();
                    let youngest = youngest_first.next();
                    youngest_first.for_each(|task| dest.push(task));
                    youngest.map_or(Steal::Empty, Steal::Success)
                }
                Steal::Empty => Steal::Empty,
                Steal::Retry => Steal::Retry,
            },
        }
    }

    fn belongs_to(&self, worker: &Worker<T>) -> bool {
        match (&self.queue, &worker.queue) {
            (Thieves::Fifo(thief), Queue::Fifo(owner)) => thief.belongs_to(owner),
            (Thieves::Lifo(thief), Queue::Lifo(owner)) => thief.belongs_to(owner),
            _ => false,
        }
    }
}

impl<T: Send> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        let queue = match &self.queue {
            Thieves::Fifo(queue) => Thieves::Fifo(queue.clone()),
            Thieves::Lifo(queue) => Thieves::Lifo(queue.clone()),
        };
        Stealer { queue }
    }
}

impl<T: Send> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Stealer { .. }")
    }
}

fn half(limit: usize) -> impl FnOnce(u64) -> u64 {
    move |length| length.div_ceil(2).min(limit as u64)
}

/// Pops the first of a claim from a first-in, first-out queue, and moves the rest.
fn first_of<T: Send, C: DoubleEndedIterator<Item = T>>(
    claimed: crate::Steal<C>,
    dest: &Worker<T>,
) -> Steal<T> {
    match Steal::from(claimed) {
        Steal::Success(mut claimed) => {
            let first = claimed.next();
            dest.take_in_order(claimed);
            first.map_or(Steal::Empty, Steal::Success)
        }
        Steal::Empty => Steal::Empty,
        Steal::Retry => Steal::Retry,
    }
}

/// Moves tasks one by one from one LIFO queue to another, all but the youngest, which it returns.
fn onto<T: Send>(queue: &LifoThief<T>, dest: &Worker<T>, limit: usize) -> Steal<T> {
    let wanted = queue.len().div_ceil(2).min(limit);
    let mut stolen = Steal::from(queue.steal());
    for _ in 1..wanted {
        let Steal::Success(youngest) = stolen else { break };
        let crate::Steal::Success(next) = queue.steal() else { return Steal::Success(youngest) };
        dest.push(youngest);
        stolen = Steal::Success(next);
    }
    stolen
}

/// Takes tasks one by one from a LIFO queue, the oldest first.
fn collect<T: Send>(queue: &LifoThief<T>, limit: usize) -> Steal<[Option<T>; MAX_BATCH]> {
    let wanted = queue.len().div_ceil(2).min(limit).min(MAX_BATCH);
    Steal::from(queue.steal()).map(|oldest| {
        let mut stolen = [const { None }; MAX_BATCH];
        stolen[0] = Some(oldest);
        for place in stolen.iter_mut().take(wanted).skip(1) {
            let crate::Steal::Success(task) = queue.steal() else { break };
            *place = Some(task);
        }
        stolen
    })
}

/// A first-in, first-out queue that all threads share by reference; see [`Injector`](crate::Injector).
pub struct Injector<T: Send> {
    queue: crate::Injector<T>,
}

impl<T: Send> Injector<T> {
    /// An empty injector.
    pub fn new() -> Injector<T> {
        Injector { queue: crate::Injector::new() }
    }

    /// Adds a task. Ends the program if memory runs out.
    pub fn push(&self, task: T) {
        self.queue.push(task);
    }

    /// Takes the oldest task.
    pub fn steal(&self) -> Steal<T> {
        self.queue.steal().into()
    }

    /// Moves some of the oldest tasks, about half of them, to a worker, which pops them in order.
    pub fn steal_batch(&self, dest: &Worker<T>) -> Steal<()> {
        self.steal_batch_with_limit(dest, MAX_BATCH)
    }

    /// As [`steal_batch`](Injector::steal_batch), and no more than `limit` tasks.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    pub fn steal_batch_with_limit(&self, dest: &Worker<T>, limit: usize) -> Steal<()> {
        assert!(limit > 0, "a batch of at most 0 tasks is no batch: give a limit of at least 1");
        Steal::from(self.queue.claim(|| half(limit)(self.queue.estimate())))
            .map(|claimed| dest.take_in_order(claimed))
    }

    /// As [`steal_batch`](Injector::steal_batch), and pops the first of them.
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_batch_with_limit_and_pop(dest, MAX_BATCH)
    }

    /// As [`steal_batch_and_pop`](Injector::steal_batch_and_pop), and no more than `limit` tasks.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    pub fn steal_batch_with_limit_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        assert!(limit > 0, "a batch of at most 0 tasks is no batch: give a limit of at least 1");
        first_of(self.queue.claim(|| half(limit)(self.queue.estimate())), dest)
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
}

impl<T: Send> Default for Injector<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> fmt::Debug for Injector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Injector { .. }")
    }
}

/// What came of an attempt to steal. No policy of this face aborts, so there is no word for it.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Steal<T> {
    /// The queue was empty at the time.
    Empty,
    /// At least one task was stolen.
    Success(T),
    /// Another thread was in the way: try again.
    Retry,
}

impl<T> Steal<T> {
    /// Whether the queue was empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Steal::Empty)
    }

    /// Whether a task was stolen.
    pub fn is_success(&self) -> bool {
        matches!(self, Steal::Success(_))
    }

    /// Whether to try again.
    pub fn is_retry(&self) -> bool {
        matches!(self, Steal::Retry)
    }

    /// The task, if there is one.
    pub fn success(self) -> Option<T> {
        match self {
            Steal::Success(task) => Some(task),
            Steal::Empty | Steal::Retry => None,
        }
    }

    /// This, if it is a success; else what `next` says, but a retry if either was one and neither a
    /// success.
    pub fn or_else<F>(self, next: F) -> Steal<T>
    where
        F: FnOnce() -> Steal<T>,
    {
        match self {
            Steal::Success(_) => self,
            Steal::Empty => next(),
            Steal::Retry => match next() {
                Steal::Success(task) => Steal::Success(task),
                Steal::Empty | Steal::Retry => Steal::Retry,
            },
        }
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Steal<U> {
        match self {
            Steal::Success(task) => Steal::Success(change(task)),
            Steal::Empty => Steal::Empty,
            Steal::Retry => Steal::Retry,
        }
    }
}

impl<T> From<crate::Steal<T>> for Steal<T> {
    fn from(steal: crate::Steal<T>) -> Self {
        match steal {
            crate::Steal::Success(task) => Steal::Success(task),
            crate::Steal::Empty => Steal::Empty,
            crate::Steal::Retry | crate::Steal::Abort => Steal::Retry,
        }
    }
}

impl<T> fmt::Debug for Steal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Steal::Empty => "Empty",
            Steal::Success(_) => "Success(..)",
            Steal::Retry => "Retry",
        })
    }
}

/// The first success; if there is none, a retry if one was among them.
impl<T> FromIterator<Steal<T>> for Steal<T> {
    fn from_iter<I: IntoIterator<Item = Steal<T>>>(steals: I) -> Self {
        let mut none = Steal::Empty;
        for steal in steals {
            match steal {
                Steal::Success(_) => return steal,
                Steal::Retry => none = Steal::Retry,
                Steal::Empty => {}
            }
        }
        none
    }
}
