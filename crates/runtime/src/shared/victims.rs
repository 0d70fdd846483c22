//! The placement of a pool's workers and of their memory, and the order of each one's victims.
//!
//! # Memory
//!
//! A page lies on the node of the processor that first writes to it. The thread that makes the pool
//! makes each worker's task stack, queue and counters before any worker starts, because every
//! worker looks at all of them. So, if workers are bound, it uses a short-lived thread bound to the
//! worker's processor. The pages written to meanwhile are on the right node, and so are those that
//! the worker itself first writes to later (the task stack makes its slots ready as it grows). The
//! thread also has an arena of its own in most allocators, so it is not given memory that was used,
//! and placed, before.
//!
//! The alternative, that each worker makes its own, needs all workers to run before the pool is
//! made, which a spawn handler need not do; `mbind(2)` would be one more unsafe call.
//!
//! # Victims
//!
//! Each worker has its victims in groups of equal distance. It tries one of all victims, at random;
//! then all of the first group, beginning at random, then all of the second, and so on. Without an
//! order there is one group, whose first victim is random anyway.
//!
//! Without that first victim all idle workers of a group ask the same few near victims, whose tasks
//! are small by then. On a simulated machine of 48 processors (`poach bench simulate --memory
//! lace`) UTS takes 4 % less time with it, and a small tree a third (`docs/notebook/runtime.md`).

use std::cell::Cell;
use std::io;
use std::thread;

use poach_topology::Topology;

/// Bytes of call stack of such a short-lived thread.
const MAKERS_STACK: usize = 256 << 10;

/// The order in which a worker looks at the others for something to steal:
/// [`ThreadPoolBuilder::victims`](crate::ThreadPoolBuilder::victims).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Victims {
    /// All workers in turn, beginning with a random one.
    Random,
    /// One of all at random; then the nearest first. Equally near ones come in turn, beginning with
    /// a random one.
    Nearest,
}

/// The order in which one worker robs the others.
pub struct VictimOrder(Order);

enum Order {
    /// All others of `workers` workers, in one group.
    One { index: usize, workers: usize },
    /// The victims by distance.
    Nearest(Box<[Box<[u16]>]>),
}

/// Victims of equal distance.
#[derive(Clone, Copy)]
enum Group<'o> {
    /// All workers but this one, and their number.
    Others(usize, usize),
    Listed(&'o [u16]),
}

impl Group<'_> {
    fn len(self) -> usize {
        match self {
            Group::Others(_, others) => others,
            Group::Listed(victims) => victims.len(),
        }
    }

    fn victim(self, number: usize) -> usize {
        match self {
            Group::Others(index, _) => number + usize::from(number >= index),
            Group::Listed(victims) => usize::from(victims[number]),
        }
    }
}

impl VictimOrder {
    /// All others of `workers` in one group, which takes no memory.
    fn one(index: usize, workers: usize) -> VictimOrder {
        VictimOrder(Order::One { index, workers })
    }

    /// All others, by their distance from worker `index`; last the workers whose distance is not
    /// known.
    pub fn nearest<D: Copy + Ord>(
        index: usize,
        distance: &dyn Fn(usize, usize) -> Option<D>,
        workers: usize,
    ) -> VictimOrder {
        let others = (0..workers).filter(|&other| other != index);
        let mut others: Vec<_> =
            others.map(|other| (distance(index, other), other as u16)).collect();
        others.sort_unstable_by_key(|&(distance, other)| (distance.is_none(), distance, other));
        let group = |group: &[(Option<D>, u16)]| group.iter().map(|&(_, other)| other).collect();
        VictimOrder(Order::Nearest(others.chunk_by(|a, b| a.0 == b.0).map(group).collect()))
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let (one, listed) = match &self.0 {
            &Order::One { index, workers } => (Some(Group::Others(index, workers - 1)), &[][..]),
            Order::Nearest(groups) => (None, &**groups),
        };
        one.into_iter().chain(listed.iter().map(|victims| Group::Listed(victims)))
    }

    /// All other workers: one of all, then group by group. `random` selects where each begins.
    pub fn begun_at(&self, random: u64) -> impl Iterator<Item = usize> + '_ {
        let first = self.any(random >> 32);
        let grouped = self.groups().flat_map(move |group| {
            let start = random as usize % group.len().max(1);
            (start..group.len()).chain(0..start).map(move |number| group.victim(number))
        });
        first.into_iter().chain(grouped.filter(move |&victim| Some(victim) != first))
    }

    /// One of all victims, selected by `random`; none if there is one group, whose first victim is
    /// random anyway.
    fn any(&self, random: u64) -> Option<usize> {
        self.groups().nth(1)?;
        let all = self.groups().map(Group::len).sum::<usize>();
        let mut left = random as usize % all.max(1);
        let group = self.groups().find(|group| {
            let here = left < group.len();
            left -= if here { 0 } else { group.len() };
            here
        })?;
        Some(group.victim(left))
    }
}

/// A worker's random numbers, which select the first victim. Xorshift.
pub struct Random(Cell<u64>);

impl Random {
    /// Those of worker `index`, which differ from the others'.
    pub fn of(index: usize) -> Random {
        // Any odd number will do.
        Random(Cell::new((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1))
    }

    /// The next one.
    pub fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x
    }
}

/// The processors of a pool's workers, and their victims' order.
pub(crate) struct Plan {
    /// The number of workers, spare ones included.
    pub(crate) slots: usize,
    /// Each regular worker's processor, if they are bound. Spare ones are not bound.
    pub(crate) processors: Option<Vec<usize>>,
    /// By distance, if that is the order.
    pub(crate) topology: Option<Topology>,
}

impl Plan {
    /// The plan without any constraint.
    pub(crate) fn anywhere(slots: usize) -> Plan {
        Plan { slots, processors: None, topology: None }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The processor that worker `index` is bound to, if it is.
    pub(crate) fn processor(&self, index: usize) -> Option<usize> {
        self.processors.as_ref()?.get(index).copied()
    }

    /// Makes the data that worker `index` uses most, near to it.
    pub(crate) fn near<T: Send>(
        &self,
        index: usize,
        make: impl FnOnce() -> T + Send,
    ) -> io::Result<T> {
        let Some(processor) = self.processor(index) else {
            return Ok(make());
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(MAKERS_STACK);
            let made = thread.spawn_scoped(scope, || {
                poach_topology::bind(processor)?;
                Ok(make())
            })?;
            made.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
        })
    }

    pub(crate) fn victim_order(&self, index: usize) -> VictimOrder {
        let Some(topology) = &self.topology else {
            return VictimOrder::one(index, self.slots);
        };
        let of = |worker| topology.processor(self.processor(worker)?).ok();
        let distance = |from, to| Some(topology.distance(of(from)?, of(to)?));
        VictimOrder::nearest(index, &distance, self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poach_topology::Distance;
    use poach_topology::Placement;

    /// Eight workers in two caches of four, two threads a core; and spare ones.
    fn distance(from: usize, to: usize) -> Option<Distance> {
        if from.max(to) >= 8 {
            return None;
        }
        Some(if from / 2 == to / 2 {
            Distance::Core
        } else if from / 4 == to / 4 {
            Distance::Cache
        } else {
            Distance::Remote(20)
        })
    }

    #[test]
    fn the_order_holds_every_other_worker_once_and_after_one_of_all_the_nearer_ones_first() {
        let order = VictimOrder::nearest(5, &distance, 10);
        let group = |&other: &usize| match other {
            4 => 0,
            6 | 7 => 1,
            0..4 => 2,
            _ => 3,
        };
        let mut first = [0; 10];
        for random in 0..90 {
            let order: Vec<usize> = order.begun_at(random << 32 | random).collect();
            assert!(order[1..].is_sorted_by_key(group), "{order:?}");
            first[order[0]] += 1;
            let mut all = order;
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3, 4, 6, 7, 8, 9]);
        }
        assert_eq!(first, [10, 10, 10, 10, 10, 0, 10, 10, 10, 10]);
    }

    #[test]
    fn a_group_begins_anywhere() {
        let starts = |order: &VictimOrder| {
            let mut starts: Vec<_> = (0..3).map(|random| order.begun_at(random).next()).collect();
            starts.sort_unstable();
            starts
        };
        assert_eq!(starts(&VictimOrder::one(1, 4)), [Some(0), Some(2), Some(3)]);
    }

    #[test]
    fn the_nearest_are_first_by_default_where_it_is_known_who_they_are() {
        let topology = Topology::flat(&[0, 1]).unwrap();
        let has_distances = |placement, victims| {
            let plan = Plan::new(3, 2, &placement, victims, Some(topology.clone())).unwrap();
            plan.topology.is_some()
        };
        assert!(has_distances(Placement::Compact, None));
        assert!(has_distances(Placement::Compact, Some(Victims::Nearest)));
        assert!(!has_distances(Placement::Compact, Some(Victims::Random)));
        assert!(!has_distances(Placement::Anywhere, None));
    }

    #[test]
    fn a_worker_alone_has_no_victims() {
        assert_eq!(VictimOrder::one(0, 1).begun_at(3).count(), 0);
        assert_eq!(VictimOrder::nearest(0, &distance, 1).begun_at(3).count(), 0);
    }
}
