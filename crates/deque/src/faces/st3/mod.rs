//! Two queues under the names and methods of the crate `st3`: change one `use` line.
//!
//! ```
//! // use st3::lifo::Worker;
//! use poach_deque::st3::lifo::Worker;
//!
//! let (worker, other) = (Worker::new(256), Worker::new(256));
//! worker.extend(0..4);
//! let thief = worker.stealer();
//! assert_eq!(thief.steal_and_pop(&other, |count| count / 2), Ok((1, 1)));
//! assert_eq!((worker.pop(), other.pop()), (Some(3), Some(0)));
//! ```
//!
//! A worker of [`lifo`] is a [`Biased`] deque with the [`Asymmetric`] policy, one of [`fifo`] a
//! [`Fifo`]; both keep the ring that they were made with, so a push can fail. These two let a thief
//! claim any number of the oldest tasks by one compare-and-swap, which is what a counted steal is.
//! A LIFO thief that wants more than is open asks for more, and takes what it then finds.
//!
//! What differs from the original: thieves do not exclude each other. A steal is
//! [`Busy`](StealError::Busy) only if another thread took tasks between its look and its exchange,
//! or while a [`Drain`](lifo::Drain) of the queue is alive, which is kept so because programs count
//! on it. A capacity is at most 2^30.

use poach_memory::{Asymmetric, CachePadded, Machine, Memory, Ordering, Word};

use crate::ring::{Claimed, MAX_CAPACITY};
use crate::{Biased, Fifo, biased};

mod flavour;

use core::fmt;
use flavour::flavour;

/// Why a steal moved nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StealError {
    /// There was no task, no room for one, or none was wanted.
    Empty,
    /// Another thread took tasks meanwhile, or a drain is going on: try again.
    Busy,
}

impl fmt::Display for StealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StealError::Empty => "nothing can be stolen: no task, no room for one, or none wanted",
            StealError::Busy => "another thread takes tasks from this queue: try again",
        })
    }
}

impl std::error::Error for StealError {}

/// Whether a drain of a queue goes on. Only the queue's worker writes it, and nothing rests on it
/// but what a thief answers.
struct Draining(CachePadded<<Machine as Memory>::Word>);

impl Default for Draining {
    fn default() -> Self {
        Draining(CachePadded::new(Word::new(0)))
    }
}

impl Draining {
    #[inline(always)]
    fn is_set(&self) -> bool {
        // Relaxed, here and below: nothing rests on it.
        self.0.load(Ordering::Relaxed) != 0
    }

    fn set(&self, draining: bool) {
        self.0.store(draining.into(), Ordering::Relaxed);
    }
}

/// What a claim says, in this module's words.
#[inline]
fn claimed<T>(
    claim: crate::traits::Steal<Claimed<'_, T, Machine>>,
) -> Result<Claimed<'_, T, Machine>, StealError> {
    match claim {
        crate::traits::Steal::Success(claimed) => Ok(claimed),
        crate::traits::Steal::Empty => Err(StealError::Empty),
        crate::traits::Steal::Retry | crate::traits::Steal::Abort => Err(StealError::Busy),
    }
}

/// A capacity as the rings have it.
///
/// # Panics
///
/// If it is above 2^30.
fn capacity(least: usize) -> usize {
    assert!(
        least <= MAX_CAPACITY,
        "a queue's capacity can be at most {MAX_CAPACITY} (2^30), and {least} is more"
    );
    least.next_power_of_two()
}

/// Workers that pop the youngest task.
pub mod lifo {
    use super::{Asymmetric, Biased, Claimed, Machine, biased, capacity, claimed};

    type Queue<T> = Biased<T, Asymmetric>;
    type Thief<T> = biased::Thief<T, Asymmetric>;

    fn queue<T>(least: usize) -> Queue<T> {
        match Biased::with_capacity(Asymmetric::new(), capacity(least)) {
            Ok(queue) => queue,
            Err(_) => crate::traits::out_of_memory::<T>(),
        }
    }

    /// Whether there is anything to claim.
    #[inline]
    fn look<T>(thief: &Thief<T>) -> Result<(), super::StealError> {
        match thief.look() {
            crate::traits::Steal::Success(()) => Ok(()),
            crate::traits::Steal::Empty => Err(super::StealError::Empty),
            crate::traits::Steal::Retry | crate::traits::Steal::Abort => {
                Err(super::StealError::Busy)
            }
        }
    }

    /// As many of the oldest tasks as `want` says of their number.
    #[inline]
    fn claim<T>(
        thief: &Thief<T>,
        want: impl FnOnce(usize) -> usize,
    ) -> Result<Claimed<'_, T, Machine>, super::StealError> {
        claimed(thief.claim_of_all(|count| u32::try_from(want(count as usize)).unwrap_or(u32::MAX)))
    }

    /// The owner's own claim: it opens the tasks rather than ask itself to.
    fn before_drain<T>(queue: &Queue<T>) {
        queue.open_all();
    }

    super::flavour!("youngest");
}

/// Workers that pop the oldest task.
pub mod fifo {
    use super::{Claimed, Fifo, Machine, capacity, claimed};

    type Queue<T> = Fifo<T>;
    type Thief<T> = crate::fifo::Thief<T>;

    fn queue<T>(least: usize) -> Queue<T> {
        match Fifo::with_capacity(capacity(least)) {
            Ok(queue) => queue,
            Err(_) => crate::traits::out_of_memory::<T>(),
        }
    }

    /// Whether there is anything to claim.
    #[inline]
    fn look<T>(thief: &Thief<T>) -> Result<(), super::StealError> {
        if thief.seems_empty() { Err(super::StealError::Empty) } else { Ok(()) }
    }

    /// As many of the oldest tasks as `want` says of their number.
    #[inline]
    fn claim<T>(
        thief: &Thief<T>,
        want: impl FnOnce(usize) -> usize,
    ) -> Result<Claimed<'_, T, Machine>, super::StealError> {
        claimed(thief.claim_unfenced(|count| want(count as usize) as u64))
    }

    /// The owner's own claim: it opens the queue rather than ask itself to.
    fn before_drain<T>(queue: &Queue<T>) {
        queue.open();
    }

    super::flavour!("oldest");
}
