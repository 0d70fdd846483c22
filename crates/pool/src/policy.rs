//! Algorithm 2: how producers choose consumers and consumers victims, and when all pools are empty.
//!
//! [`Feeder`] and [`Taker`] work over any [`Mechanism`]; they add no shared word of their own.
//!
//! **Access lists.** A producer serves consumers, and a consumer robs them, in the order of their
//! [distance](Distance). Equally distant ones come in turn, each handle beginning with a different
//! one, so that N producers spread over N consumers. A list is made again when
//! [`Mechanism::changes`] has moved. A producer looks at that number when a pool refuses: once a
//! chunk, and in a mechanism without chunks once in a fixed number of puts. Pools without a
//! consumer come last: they are robbed, and served only if no pool has a consumer.
//!
//! **Balancing** (section 5.4). A pool without a spare chunk refuses. The producer then tries the
//! next pool, and only if all refuse does the nearest grow. So a consumer that falls behind gets no
//! more work.
//!
//! # Why `None` means empty
//!
//! `check_empty` (lines 30-36, section 5.5) must not be deceived by a task that comes to a pool it
//! has passed while the last one leaves a pool it has not reached yet. It answers `true` only if B
//! and C find no task, and D reads the same [announcements](Mechanism::announced) as A, and that
//! the pools are the same.
//!
//! | step | | |
//! |---|---|---|
//! | A | reads all announcements | Acquire |
//! | B, C | traverse all pools, and find each place for tasks empty, at an instant b or c of its own | Acquire |
//! | D | reads all announcements again, how many pools there are, and whether that has changed | Acquire |
//!
//! *Suppose that no task moves from pool to pool.* Then at the instant m between B and C no pool
//! held a task. For suppose that a task was at a place (a chunk, a queue) that B saw empty at b,
//! before m, and C at c, after m. Then tasks came there after b, and a consumer took the last of
//! them, x, before c. That consumer saw x after b, hence after A. It announced that after it saw x,
//! and before it took it: after A, and visibly to C, which saw the place without x. So D read
//! another number than A, and the answer is `false`. In terms of loads and stores: A cannot have
//! read that announcement. The announcement is a Release, so an Acquire load of it sees what its
//! consumer saw, x; but b came after A and did not see x.
//!
//! *SALSA's thieves move tasks.* A theft that began before A may take effect after it, with all
//! tasks that have come to the chunk since. But the thief's number is odd while the theft lasts,
//! and it announces each further step. So if A reads k odd numbers, and D reads the same ones, at
//! most k moves took effect between them, one of each of those thieves. Each move spoils at most
//! two of the pairs of consecutive traversals. 2k + 2 traversals have 2k + 1 such pairs, so one
//! pair has no move in it, and for that pair the argument above holds. k is almost always 0, and a
//! thief that stalls for ever in the middle of a theft stops no other consumer.
//!
//! *One pool* has one consumer, which is the one that looks: no other takes meanwhile. What B sees
//! empty has been so since A, so there was no task in the pool at A, and B suffices. A consumer
//! that comes meanwhile opens its own pool before it takes. A thread that sees a place without the
//! task it took sees the open pool too: D reads another number of pools, or another version of it.
//!
//! D sees every change of the number of pools. A consumer that takes over a pool goes on with the
//! numbers of the consumer before it.
//!
//! So an empty `get` is O(n), and the paper's O(n²): its consumers clear the indicator after the
//! event (see [`mechanism`](crate::mechanism)).
//!
//! A put is at the instant its last store reaches memory. Where the caller knows of a put, because
//! the two are one thread or have synchronised since, that instant has passed.
//!
//! # Foreign code
//!
//! A policy's distance is foreign code. It is called for each pool once each time the list is made,
//! before a task is taken. If it panics nothing has happened, and the caller still has the task to
//! be put. Without memory for a list, pools are served and robbed in the order of their numbers.

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

#[derive(Debug, Default)]
struct AccessList {
    /// Sorted. Empty where there is no memory for it.
    order: Vec<Entry>,
    /// How many pools there were.
    count: usize,
    /// The pool that comes first among equally distant ones, modulo `count`.
    first: usize,
    /// What the order was made for: [`Mechanism::changes`] and [`Mechanism::pools`].
    made_for: Option<(u64, usize)>,
}

/// A pool. Nearer ones compare less; those without a consumer compare greater than all others.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    left: bool,
    distance: u64,
    turn: usize,
}

impl AccessList {
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
        // If `distance` panics, the unfinished list must not count as made.
        self.made_for = None;
        (self.count, self.first) = (now.1, first);
        self.order.clear();
        if self.order.try_reserve(self.count).is_err() {
            return;
        }
        for turn in 0..self.count {
            let pool = self.pool_in(turn);
            let left = !pools.is_held(pool);
            self.order.push(Entry { left, distance: distance(pool), turn });
        }
        self.order.sort_unstable();
        self.made_for = Some(now);
    }

    fn pool_in(&self, turn: usize) -> usize {
        (self.first + turn) % self.count
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.count)
            .map(|place| self.pool_in(self.order.get(place).map_or(place, |entry| entry.turn)))
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

    pub(crate) fn another(&self) -> Result<Self, NoHandle> {
        Feeder::at(&self.pools, self.policy.clone(), self.home)
    }

    /// Puts a task (lines 22-29). As wait-free as the mechanism's `produce`.
    ///
    /// # Errors
    ///
    /// Gives the task back where there is no memory for it.
    #[inline]
    pub fn put(&mut self, task: T) -> Result<(), T> {
        if self.prepare() { self.end.produce_force(self.nearest, task) } else { Err(task) }
    }

    /// Without the task, which may be large. `false` where there is no memory for a place.
    #[inline(always)]
    pub(crate) fn prepare(&mut self) -> bool {
        self.end.prepare(self.nearest, false) || self.find_place()
    }

    #[inline(always)]
    pub(crate) fn end(&mut self) -> &mut P::Producer {
        &mut self.end
    }

    /// The nearest pool has no place: lines 24-28.
    #[cold]
    #[inline(never)]
    fn find_place(&mut self) -> bool {
        let distance = |pool| (self.policy.distance)(self.home, pool);
        self.access.follow(&*self.pools, distance, self.end.number());
        self.nearest = self.access.iter().next().unwrap_or(0);
        if self.policy.balancing {
            for pool in self.access.iter() {
                // No consumer is there to empty it: it is served only if it is the only one.
                if !self.pools.is_held(pool) {
                    break;
                }
                if self.end.prepare(pool, false) {
                    return true;
                }
            }
        }
        self.end.prepare(self.nearest, true)
    }
}

/// A consumer under a [`Policy`].
#[derive(Debug)]
pub struct Taker<T: Send, P: Mechanism<T>> {
    pub(crate) end: P::Consumer,
    access: AccessList,
    home: usize,
    policy: Policy,
    pub(crate) pools: Arc<P>,
}

impl<T: Send, P: Mechanism<T>> Taker<T, P> {
    /// A consumer whose home (a NUMA node, say) is `home`.
    ///
    /// # Errors
    ///
    /// [`NoHandle`].
    pub fn at(pools: &Arc<P>, policy: Policy, home: usize) -> Result<Self, NoHandle> {
        let end = pools.consumer()?;
        Ok(Taker { end, access: AccessList::default(), home, policy, pools: Arc::clone(pools) })
    }

    pub(crate) fn number(&self) -> usize {
        self.end.number()
    }

    pub(crate) fn settle(&mut self, home: usize) {
        if self.home != home {
            (self.home, self.access.made_for) = (home, None);
        }
    }

    /// Takes a task, or finds that there was none at an instant of this call (lines 11-21).
    /// Lock-free: retries while a task is visible or others make progress.
    #[inline]
    pub fn get(&mut self) -> Option<T> {
        match self.end.consume() {
            Some(task) => Some(task),
            None => {
                self.look_further(&mut (), |end, ()| end.consume(), |end, (), from| end.steal(from))
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn look_further<R, A>(
        &mut self,
        place: &mut A,
        consume: impl Fn(&mut P::Consumer, &mut A) -> Option<R>,
        steal: impl Fn(&mut P::Consumer, &mut A, usize) -> Option<R>,
    ) -> Option<R> {
        loop {
            // Lines 17-19.
            let me = self.end.number();
            let distance = |pool| (self.policy.distance)(self.home, pool);
            self.access.follow(&*self.pools, distance, me + 1);
            let stolen = {
                let mut victims = self.access.iter().filter(|&pool| pool != me);
                victims.find_map(|pool| steal(&mut self.end, place, pool))
            };
            if stolen.is_some() {
                return stolen;
            }
            if self.check_empty() {
                return None;
            }
            let own = consume(&mut self.end, place);
            if own.is_some() {
                return own;
            }
        }
    }

    /// Lines 30-36: whether there was an instant in this call when no pool held a task. Looks at
    /// each of the n pools twice, and twice more for each theft that is under way; once if n is 1.
    pub fn check_empty(&mut self) -> bool {
        let pools = &*self.pools;
        // In this order, and the other way round at the end.
        let (changes, count) = (pools.changes(), pools.pools());
        // Step A. No number ever falls, so equal sums mean equal numbers.
        let (mut sum, mut moving) = (0_u64, 0);
        for number in (0..count).map(|pool| pools.announced(pool)) {
            sum = sum.wrapping_add(number);
            moving += (number % 2) as usize;
        }
        // B and C, and more if tasks are being moved; B alone if no other consumer takes.
        let rounds = if count == 1 { 1 } else { 2 * moving + 2 };
        for _ in 0..rounds {
            if !(0..count).all(|pool| self.end.is_empty(pool)) {
                return false;
            }
        }
        // Step D.
        let again = (0..count).map(|pool| pools.announced(pool)).fold(0, u64::wrapping_add);
        again == sum && pools.pools() == count && pools.changes() == changes
    }

    /// How many atomic read-modify-writes the mechanism has done for this handle.
    pub fn exchanges(&self) -> u64 {
        self.end.exchanges()
    }
}
