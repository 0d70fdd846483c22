//! The family under the names and methods of the crate `crossbeam-deque`: change one `use` line.
//!
//! ```
//! // use crossbeam_deque::{Injector, Steal, Stealer, Worker};
//! use poach_deque::crossbeam::{Injector, Steal, Stealer, Worker};
//!
//! /// A task for a thread: from its own queue, from all threads' injector, or from another's queue.
//! fn find<T>(local: &Worker<T>, global: &Injector<T>, others: &[Stealer<T>]) -> Option<T> {
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
//! A LIFO worker is a [`Biased`] deque with the [`Asymmetric`] policy. Its owner has no fence. A
//! thief makes one process-wide barrier for all tasks that are there, and only if the owner does
//! not answer it (without such a barrier both sides have full fences). A FIFO worker is a [`Fifo`],
//! an injector an [`Injector`](crate::Injector). Differences from the original: queues do not
//! shrink below what tasks have needed at one time, and an injector keeps the memory of its blocks,
//! and reuses it, until it is dropped.
//!
//! *Order.* One thread pushes to an injector and then loads a flag (`SeqCst`). Another stores to
//! the flag by a `SeqCst` read-modify-write and then calls `is_empty` or `steal`. They do not both
//! miss the other. With a worker's queue both sides need a fence, `fence(SeqCst)`, between the two,
//! as with the original.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use poach_memory::{Asymmetric, Machine, Ordering};

use crate::owners_end::OwnersEnd as _;
use crate::ring::{Claim, Claimed, MAX_CAPACITY};
use crate::{Biased, Fifo, biased, fifo};

/// The most tasks that a batch has if the caller names no limit.
const MAX_BATCH: usize = 32;

/// As above, for a batch of an injector of which the first is popped.
const MAX_INJECTED: usize = MAX_BATCH + 1;

type Lifo<T> = Biased<T, Asymmetric>;
type LifoThief<T> = biased::Thief<T, Asymmetric>;

enum Queue<T> {
    Fifo(Fifo<T>),
    Lifo(Lifo<T>),
}

/// A worker's queue, FIFO or LIFO; see [`Fifo`] and [`Biased`] for progress and cost.
pub struct Worker<T> {
    queue: Queue<T>,
}

impl<T> UnwindSafe for Worker<T> {}
impl<T> RefUnwindSafe for Worker<T> {}

impl<T> Worker<T> {
    /// A queue whose worker and thieves take the oldest task.
    pub fn new_fifo() -> Worker<T> {
        Worker { queue: Queue::Fifo(Fifo::new()) }
    }

    /// A queue whose worker takes the youngest task, and thieves the oldest.
    pub fn new_lifo() -> Worker<T> {
        Worker { queue: Queue::Lifo(Biased::with_policy(Asymmetric::new())) }
    }

    /// A handle for thieves.
    pub fn stealer(&self) -> Stealer<T> {
        let queue = match &self.queue {
            Queue::Fifo(queue) => Thief::Fifo(queue.thief()),
            Queue::Lifo(queue) => Thief::Lifo(queue.thief()),
        };
        Stealer { queue }
    }

    /// Whether there is no task.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    #[inline]
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
    #[inline(always)]
    pub fn pop(&self) -> Option<T> {
        let [tail, first] = match &self.queue {
            Queue::Fifo(queue) => queue.ends(),
            Queue::Lifo(queue) => queue.ends(),
        };
        // Relaxed, both: only the owner stores them.
        let (tail, first) = (tail.load(Ordering::Relaxed), first.load(Ordering::Relaxed));
        if tail == first {
            return None;
        }
        match &self.queue {
            Queue::Fifo(queue) => queue.pop_after(tail, first),
            Queue::Lifo(queue) => queue.pop_above_floor(tail),
        }
    }

    /// Takes over what a thief claimed from a first-in, first-out queue, and pops in that order.
    #[inline]
    fn take_in_order(&self, claimed: &mut (impl Claim<Item = T> + DoubleEndedIterator)) {
        let count = claimed.size_hint().0;
        match &self.queue {
            Queue::Fifo(queue) => queue.push_all(count, claimed),
            Queue::Lifo(queue) => queue.push_all(count, &mut claimed.rev()),
        }
    }

    /// Takes over what a thief claimed from a last-in, first-out queue, the oldest first, and pops
    /// the youngest first.
    #[inline]
    fn take_reversed(&self, claimed: &mut (impl Claim<Item = T> + DoubleEndedIterator)) {
        let count = claimed.size_hint().0;
        match &self.queue {
            Queue::Fifo(queue) => queue.push_all(count, &mut claimed.rev()),
            Queue::Lifo(queue) => queue.push_all(count, claimed),
        }
    }

    /// As [`take_in_order`](Worker::take_in_order), without the first, which is returned.
    #[inline]
    fn take_in_order_and_pop(
        &self,
        mut claimed: impl Claim<Item = T> + DoubleEndedIterator,
    ) -> Option<T> {
        let first = claimed.next();
        self.take_in_order(&mut claimed);
        first
    }

    /// As [`take_reversed`](Worker::take_reversed), without the youngest, which is returned.
    #[inline]
    fn take_reversed_and_pop(
        &self,
        mut claimed: impl Claim<Item = T> + DoubleEndedIterator,
    ) -> Option<T> {
        let last = claimed.next_back();
        self.take_reversed(&mut claimed);
        last
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Worker { .. }")
    }
}

enum Thief<T> {
    Fifo(fifo::Thief<T>),
    Lifo(LifoThief<T>),
}

/// A thief's handle to a [`Worker`]'s queue. Any thread; lock-free; may outlive the worker.
pub struct Stealer<T> {
    queue: Thief<T>,
}

impl<T> UnwindSafe for Stealer<T> {}
impl<T> RefUnwindSafe for Stealer<T> {}

impl<T> Stealer<T> {
    /// Whether there is no task.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.queue {
            Thief::Fifo(queue) => queue.is_empty(),
            Thief::Lifo(queue) => queue.is_empty(),
        }
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    #[inline]
    pub fn len(&self) -> usize {
        match &self.queue {
            Thief::Fifo(queue) => queue.len(),
            Thief::Lifo(queue) => queue.len(),
        }
    }

    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        match &self.queue {
            Thief::Fifo(queue) => Steal::from(queue.steal()),
            Thief::Lifo(queue) => Steal::from(queue.steal()),
        }
    }

    /// Moves some of the oldest tasks, about half of them and at most 32, to another worker.
    ///
    /// The worker then pops them in the order in which this queue's own worker would have. If it
    /// *is* this queue's own worker, nothing moves.
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
        let one = |task| dest.push(task);
        match &self.queue {
            Thief::Fifo(queue) => {
                let want = |all| half(all, limit);
                queue
                    .claim_for(sure(limit), want, one, |mut all| dest.take_in_order(&mut all))
                    .into()
            }
            Thief::Lifo(queue) => {
                let want = |open: u32| half(open.into(), limit) as u32;
                queue.claim_for(want, one, |mut all| dest.take_reversed(&mut all)).into()
            }
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
            Thief::Fifo(queue) => {
                let want = |all| half(all, limit);
                let several = |all: Claimed<'_, T, Machine>| dest.take_in_order_and_pop(all);
                first_of(queue.claim_for(sure(limit), want, Some, several))
            }
            Thief::Lifo(queue) => {
                let want = |open: u32| half(open.into(), limit) as u32;
                first_of(queue.claim_for(want, Some, |all| dest.take_reversed_and_pop(all)))
            }
        }
    }

    fn belongs_to(&self, worker: &Worker<T>) -> bool {
        match (&self.queue, &worker.queue) {
            (Thief::Fifo(thief), Queue::Fifo(owner)) => thief.belongs_to(owner),
            (Thief::Lifo(thief), Queue::Lifo(owner)) => thief.belongs_to(owner),
            _ => false,
        }
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        let queue = match &self.queue {
            Thief::Fifo(queue) => Thief::Fifo(queue.clone()),
            Thief::Lifo(queue) => Thief::Lifo(queue.clone()),
        };
        Stealer { queue }
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Stealer { .. }")
    }
}

/// Half of the tasks, rounded up, but no more than the limit.
#[inline]
fn half(tasks: u64, limit: usize) -> u64 {
    tasks.div_ceil(2).min(limit as u64)
}

/// The number of tasks of which [`half`] is the limit. No queue has more than 2^30.
#[inline]
fn sure(limit: usize) -> u64 {
    2 * limit.min(MAX_CAPACITY) as u64
}

/// The first task of a claim, which has one at least.
#[inline(always)]
fn first_of<T>(steal: crate::traits::Steal<Option<T>>) -> Steal<T> {
    match steal {
        crate::traits::Steal::Success(Some(task)) => Steal::Success(task),
        crate::traits::Steal::Success(None) | crate::traits::Steal::Empty => Steal::Empty,
        crate::traits::Steal::Retry | crate::traits::Steal::Abort => Steal::Retry,
    }
}

/// A first-in, first-out queue that all threads share by reference; see
/// [`Injector`](crate::Injector).
pub struct Injector<T> {
    queue: crate::Injector<T>,
}

impl<T> UnwindSafe for Injector<T> {}
impl<T> RefUnwindSafe for Injector<T> {}

impl<T> Injector<T> {
    /// An empty injector.
    pub fn new() -> Injector<T> {
        Injector { queue: crate::Injector::new() }
    }

    /// Adds a task. Ends the program if memory runs out.
    #[inline]
    pub fn push(&self, task: T) {
        self.queue.push(task);
    }

    /// Takes the oldest task.
    #[inline]
    pub fn steal(&self) -> Steal<T> {
        Steal::from(self.queue.steal())
    }

    /// Moves some of the oldest tasks, about half of them and at most 32, to a worker, which pops
    /// them in order.
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
        let one = |task| dest.push(task);
        self.queue.claim_for(limit, one, |mut all| dest.take_in_order(&mut all)).into()
    }

    /// As [`steal_batch`](Injector::steal_batch), and pops the first of them, at most 33 in all.
    pub fn steal_batch_and_pop(&self, dest: &Worker<T>) -> Steal<T> {
        self.steal_batch_with_limit_and_pop(dest, MAX_INJECTED)
    }

    /// As [`steal_batch_and_pop`](Injector::steal_batch_and_pop), and no more than `limit` tasks.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
    pub fn steal_batch_with_limit_and_pop(&self, dest: &Worker<T>, limit: usize) -> Steal<T> {
        assert!(limit > 0, "a batch of at most 0 tasks is no batch: give a limit of at least 1");
        first_of(self.queue.claim_for(limit, Some, |all| dest.take_in_order_and_pop(all)))
    }

    /// Whether there is no task.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number of tasks. An estimate: see [`Thief::len`](crate::Thief::len).
    #[inline]
    pub fn len(&self) -> usize {
        self.queue.len()
    }
}

impl<T> Default for Injector<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Injector<T> {
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
}

impl<T> From<crate::traits::Steal<T>> for Steal<T> {
    fn from(steal: crate::traits::Steal<T>) -> Self {
        match steal {
            crate::traits::Steal::Success(task) => Steal::Success(task),
            crate::traits::Steal::Empty => Steal::Empty,
            crate::traits::Steal::Retry | crate::traits::Steal::Abort => Steal::Retry,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// If they do not, a pop of nothing asks which kind it has.
    #[test]
    fn both_kinds_of_queue_have_their_ends_at_the_same_places() {
        let (lifo, fifo) = (Lifo::<u64>::with_policy(Asymmetric::new()), Fifo::<u64>::new());
        assert_eq!(lifo.places_of_ends(), fifo.places_of_ends());
    }
}
