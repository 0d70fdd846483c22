//! What the handles of one [`TaskPool`](crate::TaskPool) share: its pools, its gates, its room, and who is
//! putting something.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poach_memory::{CachePadded, Machine, Memory, Ordering, Word};

use crate::gate::Gate;
use crate::policy::Policy;
use crate::salsa::Salsa;

/// A word that a producer sets while it is inside a put.
pub(crate) type Busy = CachePadded<<Machine as Memory>::Word>;

pub(crate) struct Shared<T: Send> {
    pub(crate) pools: Arc<Salsa<T>>,
    /// Where consumers sleep; closed with the pool.
    pub(crate) tasks: Gate,
    pub(crate) room: Option<Room>,
    producers: Mutex<Vec<Arc<Busy>>>,
    pub(crate) policy: Policy,
}

/// The capacity of a pool that has one.
pub(crate) struct Room {
    /// How many tasks are in the pool or about to be.
    held: CachePadded<<Machine as Memory>::Word>,
    capacity: u64,
    /// Where producers sleep.
    pub(crate) gate: Gate,
}

impl Room {
    pub(crate) fn new(capacity: usize) -> Room {
        let held = CachePadded::new(Word::new(0));
        Room { held, capacity: capacity as u64, gate: Gate::new(false) }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Takes room for one task, if there is any.
    pub(crate) fn reserve(&self) -> bool {
        // Relaxed: the count alone decides; tasks are published by the chunks.
        let mut held = self.held.load(Ordering::Relaxed);
        while held < self.capacity {
            match self.held.compare_exchange(held, held + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => held = now,
            }
        }
        false
    }

    pub(crate) fn release(&self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        self.gate.wake(1);
    }
}

impl<T: Send> Shared<T> {
    pub(crate) fn new(pools: Salsa<T>, room: Option<Room>, policy: Policy) -> Self {
        let (pools, tasks) = (Arc::new(pools), Gate::new(room.is_some()));
        Shared { pools, tasks, room, producers: Mutex::default(), policy }
    }

    /// The word of one producer more.
    pub(crate) fn new_producer(&self) -> Arc<Busy> {
        let busy: Arc<Busy> = Arc::new(CachePadded::new(Word::new(0)));
        self.producers().push(Arc::clone(&busy));
        busy
    }

    fn producers(&self) -> MutexGuard<'_, Vec<Arc<Busy>>> {
        // Pushing to or removing from the list leaves it whole whenever it panics.
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A producer is gone.
    pub(crate) fn forget(&self, busy: &Arc<Busy>) {
        self.producers().retain(|other| !Arc::ptr_eq(other, busy));
    }

    /// Whether the pool is closed and no put is under way: what is not in the pool now will never
    /// be.
    ///
    /// A put sets `busy`, issues the cheap end of a fence, and looks whether the pool is closed (a plain
    /// look at the gate says that it is not).
    /// This looks at that, issues the costly end, and looks at `busy`. So a put that it misses will
    /// find the pool closed; and one that it sees finished (Acquire, the put's Release) has its task
    /// in the pool.
    pub(crate) fn is_settled(&self) -> bool {
        if !self.tasks.is_closed() {
            return false;
        }
        self.tasks.heavy();
        self.producers().iter().all(|busy| busy.load(Ordering::Acquire) == 0)
    }
}
