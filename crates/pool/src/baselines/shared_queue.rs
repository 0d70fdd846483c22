//! WS-MSQ and WS-LIFO: a pool for each consumer, each a queue or stack for all threads.
//!
//! Source: the SALSA paper, section 6.2. `consume` and `steal` are the same operation, on the
//! consumer's own pool or on another's. [`MsQueue`](crate::baselines::ws_msq) and
//! [`Stack`](crate::baselines::ws_lifo) are the two queues.
//!
//! A producer looks which consumers there are once in [`TURN`] puts.

use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use poach_memory::{CachePadded, Memory, Ordering, Word};

use super::hazard::{Domain, Hazards, Retention};
use crate::mechanism::{Consume, Mechanism, NoHandle, Produce};
use crate::registry::{Entries, try_box};

/// The most handles of each kind: as many as SALSA has consumers.
const MOST_HANDLES: usize = 1024;
/// Puts of a producer between two looks at the consumers: as many as one of SALSA's chunks holds.
const TURN: u32 = 1000;

/// A queue, or something like it, for all threads.
pub trait SharedQueue<T: Send, M: Memory>: Sized + Send + Sync {
    /// The node that holds a task.
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

    /// Takes a task. Counts its exchanges. Calls `announce` before it takes a task that may be the
    /// last: after it has seen that task, and before the exchange, a Release, that takes it.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn pop(
        &self,
        domain: &Domain<Self::Node, M>,
        hazards: &Hazards<Self::Node, M>,
        exchanges: &mut u64,
        announce: impl FnMut(),
    ) -> Option<T>;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn is_empty(&self, hazards: &Hazards<Self::Node, M>) -> bool;
}

struct Pool<Q, M: Memory> {
    queue: Q,
    announced: CachePadded<M::Word>,
}

struct Core<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    pools: Entries<Pool<Q, M>, M>,
    producers: Entries<(), M>,
    // After the pools: dropping them frees their own nodes, dropping this the retired ones.
    domain: Domain<Q::Node, M>,
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Core<T, M, Q> {
    /// Takes a task from a pool, if there is one, for the consumer of the pool `own`.
    #[inline(always)]
    fn take(
        &self,
        hazards: &Hazards<Q::Node, M>,
        from: &Pool<Q, M>,
        own: &Pool<Q, M>,
        announced: &mut u64,
        exchanges: &mut u64,
    ) -> Option<T> {
        from.queue.pop(&self.domain, hazards, exchanges, || {
            *announced += 2;
            // Release: step A of `policy`.
            own.announced.store(*announced, Ordering::Release);
        })
    }
}

pub struct SharedQueues<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    core: Arc<Core<T, M, Q>>,
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> SharedQueues<T, M, Q> {
    /// Pools; `None` where there is no memory.
    pub fn new() -> Option<Self> {
        Self::with_retention(Retention::USUAL)
    }

    /// Pools with `retention` for their threads' retired nodes; `None` if there is no memory.
    pub fn with_retention(retention: Retention) -> Option<Self> {
        let pools = Entries::new();
        pools.prepare(|_| Self::pool())?;
        let domain = Domain::new(retention);
        let core = Core { pools, producers: Entries::new(), domain };
        Some(SharedQueues { core: Arc::new(core) })
    }

    fn pool() -> Option<Pool<Q, M>> {
        Some(Pool { queue: Q::new()?, announced: CachePadded::new(M::Word::new(0)) })
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> fmt::Debug for SharedQueues<T, M, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedQueues")
            .field("pools", &self.core.pools.len())
            .finish_non_exhaustive()
    }
}

fn no_entry(entries: usize) -> NoHandle {
    if entries >= MOST_HANDLES {
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
        let Some((number, ())) = core.producers.claim(MOST_HANDLES, |_| Some(())) else {
            return Err(no_entry(core.producers.len()));
        };
        let Some(hazards) = core.domain.claim() else {
            core.producers.release(number);
            return Err(NoHandle::OutOfMemory);
        };
        Ok(QueueProducer { hazards, left: 0, number, core })
    }

    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        let core = Arc::clone(&self.core);
        let Some((number, pool)) = core.pools.claim(MOST_HANDLES, |_| Self::pool()) else {
            return Err(no_entry(core.pools.len()));
        };
        let announced = pool.announced.load(Ordering::Relaxed);
        let Some(hazards) = core.domain.claim() else {
            core.pools.release(number);
            return Err(NoHandle::OutOfMemory);
        };
        let own = NonNull::from(pool);
        Ok(QueueConsumer { hazards, own, number, announced, exchanges: 0, core })
    }

    fn pools(&self) -> usize {
        self.core.pools.len()
    }

    fn is_held(&self, pool: usize) -> bool {
        self.core.pools.is_held(pool)
    }

    fn changes(&self) -> u64 {
        self.core.pools.changes()
    }

    fn announced(&self, pool: usize) -> u64 {
        // Acquire: steps A and D of `policy`.
        self.core.pools.get(pool).map_or(0, |pool| pool.announced.load(Ordering::Acquire))
    }
}

/// A producer of [`SharedQueues`].
pub struct QueueProducer<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    hazards: Hazards<Q::Node, M>,
    left: u32,
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

    /// Without `grow` a producer's first call is refused, and then one after every [`TURN`] others,
    /// so that the policy looks again which consumer is nearest.
    fn prepare(&mut self, _pool: usize, grow: bool) -> bool {
        if grow {
            return true;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(TURN);
        left.is_some()
    }

    fn produce_force(&mut self, pool: usize, task: T) -> Result<(), T> {
        let Some(shared) = self.core.pools.get(pool) else { return Err(task) };
        let node = try_box(Q::node(task)).map_err(|node| Q::into_task(Box::new(node)))?;
        shared.queue.push(&self.hazards, node);
        Ok(())
    }
}

impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Drop for QueueProducer<T, M, Q> {
    fn drop(&mut self) {
        self.core.domain.release(&self.hazards);
        self.core.producers.release(self.number);
    }
}

pub struct QueueConsumer<T: Send, M: Memory, Q: SharedQueue<T, M>> {
    hazards: Hazards<Q::Node, M>,
    own: NonNull<Pool<Q, M>>,
    number: usize,
    /// Its `announced` word. Even, as no task ever moves.
    announced: u64,
    exchanges: u64,
    core: Arc<Core<T, M, Q>>,
}

// SAFETY: `own` leads into the registry that `core` keeps, whose content is `Sync`.
unsafe impl<T: Send, M: Memory, Q: SharedQueue<T, M>> Send for QueueConsumer<T, M, Q> {}

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
        // SAFETY: the pool lives in the registry that `core` keeps.
        let own = unsafe { self.own.as_ref() };
        let Self { core, hazards, announced, exchanges, .. } = self;
        core.take(hazards, own, own, announced, exchanges)
    }

    fn steal(&mut self, from: usize) -> Option<T> {
        // SAFETY: the pool lives in the registry that `core` keeps.
        let own = unsafe { self.own.as_ref() };
        let Self { core, hazards, announced, exchanges, .. } = self;
        core.take(hazards, core.pools.get(from)?, own, announced, exchanges)
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
        self.core.pools.release(self.number);
        self.core.domain.release(&self.hazards);
    }
}

#[cfg(all(test, not(miri)))]
mod models {
    use std::cell::RefCell;
    use std::rc::Rc;

    use crate::models::clean;
    use poach_check::{Simulated, Threads};
    use poach_memory::Cell;

    use super::*;

    /// The smallest queue: it holds one task, a number that is not 0.
    struct One(<Simulated as Memory>::Word);

    impl SharedQueue<u64, Simulated> for One {
        type Node = u64;

        fn new() -> Option<Self> {
            Some(One(Word::new(0)))
        }

        fn node(task: u64) -> u64 {
            task
        }

        fn into_task(node: Box<u64>) -> u64 {
            *node
        }

        fn push(&self, _: &Hazards<u64, Simulated>, node: Box<u64>) {
            self.0.store(*node, Ordering::Release);
        }

        fn pop(
            &self,
            _: &Domain<u64, Simulated>,
            _: &Hazards<u64, Simulated>,
            _: &mut u64,
            mut announce: impl FnMut(),
        ) -> Option<u64> {
            let task = self.0.load(Ordering::Acquire);
            if task == 0 {
                return None;
            }
            announce();
            let (release, relaxed) = (Ordering::Release, Ordering::Relaxed);
            self.0.compare_exchange(task, 0, release, relaxed).ok()
        }

        fn is_empty(&self, _: &Hazards<u64, Simulated>) -> bool {
            self.0.load(Ordering::Acquire) == 0
        }
    }

    type Place = <Simulated as Memory>::Cell<u32>;

    #[test]
    fn who_reads_an_announcement_knows_what_its_consumer_saw() {
        let model = |threads: &mut Threads| {
            let queues = SharedQueues::<u64, Simulated, One>::new().expect("memory");
            let (queues, place) = (Arc::new(queues), Rc::new(Place::new(0)));
            let mut producer = queues.producer().expect("memory");
            let mut consumer = queues.consumer().expect("memory");
            let (producers, consumers) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(None)));
            let (writes, keep) = (Rc::clone(&place), Rc::clone(&producers));
            threads.spawn("producer", move || {
                writes.with_mut(|_| ());
                assert!(producer.produce_force(0, 7).is_ok());
                *keep.borrow_mut() = Some(producer);
            });
            let keep = Rc::clone(&consumers);
            threads.spawn("consumer", move || {
                consumer.consume();
                *keep.borrow_mut() = Some(consumer);
            });
            let (reads, pools) = (Rc::clone(&place), Arc::clone(&queues));
            threads.spawn("looker", move || {
                if pools.announced(0) != 0 {
                    reads.with(|_| ());
                }
            });
            threads.finally(move || drop((queues, place, producers, consumers)));
        };
        clean(model);
    }
}
