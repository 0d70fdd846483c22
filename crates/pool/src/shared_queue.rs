//! WS-MSQ and WS-LIFO: a pool for each consumer, each a queue or stack that anybody may use.
//!
//! Source: the SALSA paper, section 6.2. What a single-consumer pool needs, a multi-producer,
//! multi-consumer queue has: `consume` and `steal` are the same operation, on one's own pool or on
//! another's. [`MsQueue`](crate::ms_queue) and [`Stack`](crate::stack) are the two; this is what
//! they have in common.

use core::fmt;
use std::sync::Arc;

use poach_memory::{CachePadded, Memory, Ordering, Word};

use crate::hazard::{Domain, Hazards, Retention};
use crate::mechanism::{Consume, Mechanism, NoHandle, Produce};
use crate::registry::{Seats, try_box};

/// The most handles of each kind: as SALSA's consumers.
const MOST_HANDLES: usize = 1024;

/// A queue, or something like it, for all threads.
pub trait SharedQueue<T: Send, M: Memory>: Sized + Send + Sync {
    /// What a task is kept in.
    #[doc(hidden)]
    type Node: Send;

    /// An empty one; `None` where there is no memory.
    #[doc(hidden)]
    fn new() -> Option<Self>;

    #[doc(hidden)]
    fn node(task: T) -> Self::Node;

    /// The task of a node that was never pushed.
    #[doc(hidden)]
    fn into_task(node: Box<Self::Node>) -> T;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn push(&self, hazards: &Hazards<Self::Node, M>, node: Box<Self::Node>);

    /// A task, and whether it may have been the last. Counts its exchanges.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn pop(
        &self,
        domain: &Domain<Self::Node, M>,
        hazards: &Hazards<Self::Node, M>,
        exchanges: &mut u64,
    ) -> Option<(T, bool)>;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn is_empty(&self, hazards: &Hazards<Self::Node, M>) -> bool;
}

struct Pool<Q, M: Memory> {
    queue: Q,
    emptied: CachePadded<M::Word>,
}

struct Core<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    pools: Seats<Pool<Q, M>, M>,
    producers: Seats<(), M>,
    // After the pools: dropping them frees their own nodes, dropping this the retired ones.
    domain: Domain<Q::Node, M>,
}

/// Pools that are shared queues.
pub struct SharedQueues<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    core: Arc<Core<T, M, Q>>,
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> SharedQueues<T, M, Q> {
    /// Pools; `None` where there is no memory.
    pub fn new() -> Option<Self> {
        Self::with_retention(Retention::USUAL)
    }

    /// Pools whose threads keep so many nodes before they free some; `None` where there is no memory.
    pub fn with_retention(retention: Retention) -> Option<Self> {
        let pools = Seats::new();
        pools.prepare(|_| Self::pool())?;
        let core = Core { pools, producers: Seats::new(), domain: Domain::new(retention) };
        Some(SharedQueues { core: Arc::new(core) })
    }

    fn pool() -> Option<Pool<Q, M>> {
        Some(Pool { queue: Q::new()?, emptied: CachePadded::new(M::Word::new(0)) })
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> fmt::Debug for SharedQueues<T, M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueues")
            .field("pools", &self.core.pools.len())
            .finish_non_exhaustive()
    }
}

fn no_seat(seats: usize) -> NoHandle {
    if seats >= MOST_HANDLES {
        NoHandle::TooMany { limit: MOST_HANDLES }
    } else {
        NoHandle::OutOfMemory
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Mechanism<T> for SharedQueues<T, M, Q> {
    type Producer = QueueProducer<T, M, Q>;
    type Consumer = QueueConsumer<T, M, Q>;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        let core = Arc::clone(&self.core);
        let Some((number, ())) = core.producers.sit(MOST_HANDLES, |_| Some(())) else {
            return Err(no_seat(core.producers.len()));
        };
        let Some(hazards) = core.domain.sit() else {
            core.producers.leave(number);
            return Err(NoHandle::OutOfMemory);
        };
        Ok(QueueProducer { hazards, number, core })
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        let core = Arc::clone(&self.core);
        let Some((number, pool)) = core.pools.sit(MOST_HANDLES, |_| Self::pool()) else {
            return Err(no_seat(core.pools.len()));
        };
        let emptied = pool.emptied.load(Ordering::Relaxed);
        let Some(hazards) = core.domain.sit() else {
            core.pools.leave(number);
            return Err(NoHandle::OutOfMemory);
        };
        Ok(QueueConsumer { hazards, number, emptied, exchanges: 0, core })
    }

    fn pools(&self) -> usize {
        self.core.pools.len()
    }

    fn is_occupied(&self, pool: usize) -> bool {
        self.core.pools.is_occupied(pool)
    }

    fn changes(&self) -> u64 {
        self.core.pools.changes()
    }

    fn emptied(&self, pool: usize) -> u64 {
        // Acquire: see `salsa`'s; the traversal after it comes after it.
        self.core.pools.get(pool).map_or(0, |pool| pool.emptied.load(Ordering::Acquire))
    }
}

/// A producer of [`SharedQueues`].
pub struct QueueProducer<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    hazards: Hazards<Q::Node, M>,
    number: usize,
    core: Arc<Core<T, M, Q>>,
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> fmt::Debug for QueueProducer<T, M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueProducer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Produce<T> for QueueProducer<T, M, Q> {
    fn number(&self) -> usize {
        self.number
    }

    fn produce(&mut self, pool: usize, task: T) -> Result<(), T> {
        // A shared queue is never full.
        self.produce_force(pool, task)
    }

    fn produce_force(&mut self, pool: usize, task: T) -> Result<(), T> {
        let Some(pool) = self.core.pools.get(pool) else { return Err(task) };
        let node = try_box(Q::node(task)).map_err(|node| Q::into_task(Box::new(node)))?;
        pool.queue.push(&self.hazards, node);
        Ok(())
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Drop for QueueProducer<T, M, Q> {
    fn drop(&mut self) {
        self.core.domain.leave(&self.hazards);
        self.core.producers.leave(self.number);
    }
}

/// A consumer of [`SharedQueues`].
pub struct QueueConsumer<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    hazards: Hazards<Q::Node, M>,
    number: usize,
    emptied: u64,
    exchanges: u64,
    core: Arc<Core<T, M, Q>>,
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> fmt::Debug for QueueConsumer<T, M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueConsumer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Consume<T> for QueueConsumer<T, M, Q> {
    fn number(&self) -> usize {
        self.number
    }

    fn consume(&mut self) -> Option<T> {
        self.steal(self.number)
    }

    fn steal(&mut self, from: usize) -> Option<T> {
        let pool = self.core.pools.get(from)?;
        let (task, last) = pool.queue.pop(&self.core.domain, &self.hazards, &mut self.exchanges)?;
        if last && let Some(mine) = self.core.pools.get(self.number) {
            self.emptied += 1;
            // Release: who sees it counted sees the pop.
            mine.emptied.store(self.emptied, Ordering::Release);
        }
        Some(task)
    }

    fn is_empty(&mut self, pool: usize) -> bool {
        self.core.pools.get(pool).is_none_or(|pool| pool.queue.is_empty(&self.hazards))
    }

    fn exchanges(&self) -> u64 {
        self.exchanges
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Drop for QueueConsumer<T, M, Q> {
    fn drop(&mut self) {
        self.core.domain.leave(&self.hazards);
        self.core.pools.leave(self.number);
    }
}
