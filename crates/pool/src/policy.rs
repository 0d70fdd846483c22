//! Which consumer a producer serves, whom a consumer robs, and when a pool is empty: Algorithm 2.
//!
//! [`Feeder`] and [`Taker`] work over any [`Mechanism`]; they add no shared word of their own.
//!
//! **Access lists.** A producer serves consumers, and a consumer robs them, in the order of their
//! [distance](Distance), and equally distant ones in turn from a different one for each, so that N
//! producers spread over N consumers. The lists follow consumers that come and go: they are made
//! again when [`Mechanism::changes`] has moved, which a producer looks at once a chunk. Pools whose
//! consumer has left come last: they are robbed, and served only where nobody else is.
//!
//! **Balancing** (section 5.4). A mechanism whose pool has no spare chunk refuses; the producer then
//! tries the next, and only if all refuse does the nearest grow. A consumer that falls behind has
//! no spare chunks, and gets no more work.
//!
//! # Why `None` means empty
//!
//! `check_empty` (lines 30-36, section 5.5) must not be deceived by a task that comes to a pool it
//! has passed while the last one leaves a pool it has not reached yet. It traverses all pools n
//! times, where n is the number of consumers, and answers `true` only if no traversal found a task
//! and no consumer *counted an event that may have emptied a pool*
//! ([`Mechanism::emptied`]) between the first reading of the counts and the last.
//!
//! Each of the n - 1 other consumers may have had one event that it has not counted yet. If none
//! counted, at most n - 1 events took place, hence none during one of the n traversals. A chunk that
//! had a task when that traversal began then had one, in the same pool, when the traversal came to
//! it; none was found; so no pool had a task when it began, which is an instant of this call. A
//! consumer that comes meanwhile makes the number of pools grow, which is read last.
//!
//! A put is at the instant its last store reaches memory. Where the caller knows of a put, because
//! the two are one thread or have synchronised since, that instant has passed.

use std::sync::Arc;

use crate::mechanism::{Consume, Mechanism, NoHandle, Produce};

/// How far a pool is from a producer or consumer; only the order counts. Called with the handle's
/// home (see [`Feeder::at`]) and the pool's number.
pub type Distance = Arc<dyn Fn(usize, usize) -> u64 + Send + Sync>;

/// The access lists' settings.
#[derive(Clone)]
#[non_exhaustive]
pub struct Policy {
    /// Whether a producer passes over consumers that have no spare chunk.
    pub balancing: bool,
    /// How distant pools are; all alike by default.
    pub distance: Distance,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { balancing: true, distance: Arc::new(|_, _| 0) }
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy").field("balancing", &self.balancing).finish_non_exhaustive()
    }
}

/// Pools in the order in which one handle goes to them.
#[derive(Debug, Default)]
struct AccessList {
    order: Vec<usize>,
    /// What the order was made for: [`Mechanism::changes`] and [`Mechanism::pools`].
    made_for: Option<(u64, usize)>,
}

impl AccessList {
    /// Makes the list again if consumers came or went. Keeps the old one where there is no memory.
    fn follow<T: Send, P: Mechanism<T>>(
        &mut self,
        pools: &P,
        distance: impl Fn(usize) -> u64,
        first: usize,
    ) {
        let now = (pools.changes(), pools.pools());
        if self.made_for == Some(now) {
            return;
        }
        let count = now.1;
        self.order.clear();
        if self.order.try_reserve(count).is_err() {
            return;
        }
        self.order.extend((0..count).map(|place| (first + place) % count));
        // Stable: equally distant ones stay in turn.
        self.order.sort_by_key(|&pool| (!pools.is_occupied(pool), distance(pool)));
        self.made_for = Some(now);
    }
}

/// A producer under a [`Policy`].
#[derive(Debug)]
pub struct Feeder<T: Send, P: Mechanism<T>> {
    end: P::Producer,
    nearest: usize,
    access: AccessList,
    home: usize,
    policy: Policy,
    pools: Arc<P>,
}

impl<T: Send, P: Mechanism<T>> Feeder<T, P> {
    /// A producer whose home (a NUMA node, say) is `home`.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub fn at(pools: &Arc<P>, policy: Policy, home: usize) -> Result<Self, NoHandle> {
        let end = pools.producer()?;
        Ok(Feeder {
            end,
            nearest: 0,
            access: AccessList::default(),
            home,
            policy,
            pools: Arc::clone(pools),
        })
    }

    /// Puts a task (lines 22-29). As wait-free as the mechanism's `produce`.
    ///
    /// # Errors
    ///
    /// Gives the task back where there is no memory for it.
    #[inline]
    pub fn put(&mut self, task: T) -> Result<(), T> {
        match self.end.produce(self.nearest, task) {
            Ok(()) => Ok(()),
            Err(task) => self.place(task),
        }
    }

    /// The nearest pool has refused: lines 24-28.
    #[cold]
    fn place(&mut self, mut task: T) -> Result<(), T> {
        let distance = |pool| (self.policy.distance)(self.home, pool);
        self.access.follow(&*self.pools, distance, self.end.number());
        self.nearest = self.access.order.first().copied().unwrap_or(0);
        if self.policy.balancing {
            for &pool in &self.access.order {
                // Nobody is there to empty it: it is served only if it is the only one.
                if !self.pools.is_occupied(pool) {
                    break;
                }
                match self.end.produce(pool, task) {
                    Ok(()) => return Ok(()),
                    Err(back) => task = back,
                }
            }
        }
        self.end.produce_force(self.nearest, task)
    }
}

/// A consumer under a [`Policy`].
#[derive(Debug)]
pub struct Taker<T: Send, P: Mechanism<T>> {
    end: P::Consumer,
    access: AccessList,
    home: usize,
    policy: Policy,
    /// The counts that `check_empty` read first.
    counts: Vec<u64>,
    pools: Arc<P>,
}

impl<T: Send, P: Mechanism<T>> Taker<T, P> {
    /// A consumer whose home (a NUMA node, say) is `home`.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub fn at(pools: &Arc<P>, policy: Policy, home: usize) -> Result<Self, NoHandle> {
        let end = pools.consumer()?;
        Ok(Taker {
            end,
            access: AccessList::default(),
            home,
            policy,
            counts: Vec::new(),
            pools: Arc::clone(pools),
        })
    }

    /// Takes a task, or finds that there was none at an instant of this call (lines 11-21).
    /// Lock-free: it goes on as long as it sees that there is a task, or that others take some.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        match self.end.consume() {
            Some(task) => Some(task),
            None => self.look_further(),
        }
    }

    #[cold]
    fn look_further(&mut self) -> Option<T> {
        loop {
            if let Some(task) = self.steal() {
                return Some(task);
            }
            if self.check_empty() {
                return None;
            }
            if let Some(task) = self.end.consume() {
                return Some(task);
            }
        }
    }

    /// Lines 17-19.
    fn steal(&mut self) -> Option<T> {
        let me = self.end.number();
        let distance = |pool| (self.policy.distance)(self.home, pool);
        self.access.follow(&*self.pools, distance, me + 1);
        let victims = self.access.order.iter().filter(|&&pool| pool != me);
        victims.copied().find_map(|pool| self.end.steal(pool))
    }

    /// Lines 30-36: whether there was an instant in this call at which no pool held a task.
    pub fn check_empty(&mut self) -> bool {
        self.check_empty_by(|consumers| consumers)
    }

    /// As [`check_empty`](Taker::check_empty), with as many traversals as `traversals` says for a
    /// number of consumers. Fewer than that number are wrong: models ask for them, to see the
    /// mistake caught.
    pub fn check_empty_by(&mut self, traversals: impl Fn(usize) -> usize) -> bool {
        let pools = &*self.pools;
        let count = pools.pools();
        self.counts.clear();
        self.counts.extend((0..count).map(|pool| pools.emptied(pool)));
        let counts = &self.counts;
        let unchanged = || (0..count).all(|pool| pools.emptied(pool) == counts[pool]);
        for _ in 0..traversals(count) {
            if !(0..count).all(|pool| self.end.is_empty(pool)) || !unchanged() {
                return false;
            }
        }
        pools.pools() == count
    }

    /// How many atomic read-modify-writes the mechanism has done for this handle.
    pub fn exchanges(&self) -> u64 {
        self.end.exchanges()
    }
}
