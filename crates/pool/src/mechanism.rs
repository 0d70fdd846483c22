//! What a pool of single-consumer pools can do: the paper's Algorithm 1, as a trait.
//!
//! The mechanism manages the tasks that arrive at one consumer and lets others steal them (section
//! 4); [`crate::policy`] says which consumer a producer serves and from whom a consumer steals.
//!
//! | paper | here |
//! |---|---|
//! | `produce`, `produceForce` | [`Produce`] |
//! | `consume`, `steal` | [`Consume`] |
//! | `isEmpty` | [`Consume::is_empty`] |
//! | `setIndicator`, `checkIndicator` | [`Mechanism::announced`], read before and after |
//!
//! **The indicator turned round.** In the paper each pool has a bit for each consumer. The consumer
//! that has emptied the pool clears all of them *afterwards*. `checkEmpty` sets its own bit and
//! looks whether it stays set, in n traversals, as up to n - 1 consumers may not have cleared it
//! yet. Here each consumer *announces*, in a word that it alone writes, that it is about to take a
//! task that may be a pool's last, after it has seen that task. `check_empty` reads all the words
//! before and after. So a last task costs one plain store in place of n stores to lines that others
//! write, and two traversals are enough for every n: see [`policy`](crate::policy).

use std::fmt::Debug;
use std::sync::Arc;

/// Why no handle was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoHandle {
    /// As many handles of the kind are in use as a pool can have.
    TooMany {
        /// How many that is.
        limit: usize,
    },
    /// There is no memory for it.
    OutOfMemory,
}

impl std::fmt::Display for NoHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoHandle::TooMany { limit } => write!(
                f,
                "the pool has {limit} handles of this kind in use, and no room for more: drop one first"
            ),
            NoHandle::OutOfMemory => f.write_str("there is no memory for another handle"),
        }
    }
}

impl std::error::Error for NoHandle {}

/// A set of single-consumer pools, numbered from 0, each for one consumer at a time.
///
/// A pool stays when its consumer leaves: others steal from it, and the next new consumer takes it
/// over. There is at least one, so that producers can begin before the first consumer.
pub trait Mechanism<T: Send>: Debug + Send + Sync + Sized {
    /// One producer's handle.
    type Producer: Produce<T>;
    /// One consumer's handle.
    type Consumer: Consume<T>;

    /// A handle to put tasks.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle>;

    /// A handle to take tasks.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle>;

    /// The number of pools, counted from 0: no other holds a task. May shrink when consumers leave.
    fn pools(&self) -> usize;

    /// Whether a consumer has `pool` now: a hint.
    fn is_held(&self, pool: usize) -> bool;

    /// A number that grows some time after a consumer has come or gone: a hint for access lists. It
    /// never falls. If [`pools`](Mechanism::pools) can shrink, every change of it changes this
    /// number at once, even if `pools` then returns to an earlier value.
    fn changes(&self) -> u64;

    /// A number of announcements by the consumer of `pool`. It never falls. It is odd while that
    /// consumer may be moving tasks from one pool to another.
    ///
    /// - A consumer announces before it takes a task that may be a pool's last: after it has seen
    ///   that very task there, and visibly to all that see the pool without the task.
    /// - It makes the number odd before it moves tasks, and even again afterwards. Between two
    ///   steps of the move that may each leave a pool empty it announces again.
    fn announced(&self, pool: usize) -> u64;
}

/// The producer's half of Algorithm 1. Wait-free but for memory allocation, unless an
/// implementation says otherwise.
pub trait Produce<T>: Send {
    /// The number of this producer's entry. No two producers share a number at one time.
    fn number(&self) -> usize;

    /// Makes a place in `pool` for the next task, unless a chunk that was begun earlier, for any
    /// pool, has one. Returns whether there is a place. Without `grow` the answer is `false` if
    /// `pool` is full, as far as it can be, or if it is time to look which pool is nearest; with
    /// `grow` it is `false` only if there is no memory.
    fn prepare(&mut self, pool: usize, grow: bool) -> bool;

    /// Puts `task` into `pool`, or into the pool for which the last chunk was begun.
    ///
    /// # Errors
    ///
    /// Gives the task back if there is no [place](Produce::prepare) for it.
    #[inline]
    fn produce(&mut self, pool: usize, task: T) -> Result<(), T> {
        if self.prepare(pool, false) { self.produce_force(pool, task) } else { Err(task) }
    }

    /// Puts `task` into `pool`, which grows if need be.
    ///
    /// # Errors
    ///
    /// Gives the task back where there is no memory for it.
    fn produce_force(&mut self, pool: usize, task: T) -> Result<(), T>;
}

/// The consumer's half of Algorithm 1. Lock-free.
pub trait Consume<T>: Send {
    /// The number of the pool that is this consumer's.
    fn number(&self) -> usize;

    /// Takes a task from this consumer's pool, if it finds one.
    fn consume(&mut self) -> Option<T>;

    /// Moves tasks from pool `from` to this consumer's, and returns one of them, if it finds any.
    fn steal(&mut self, from: usize) -> Option<T>;

    /// Whether `pool` holds no task. `true` means that each task that was ever in the pool had been
    /// taken or moved when this call looked at its place. May return `false` of a pool that is just
    /// being changed.
    fn is_empty(&mut self, pool: usize) -> bool;

    /// How many atomic read-modify-writes this handle has done: the paper's "CAS operations".
    fn exchanges(&self) -> u64;
}
