//! The processor to which each worker of a pool is bound.

use std::collections::BTreeMap;

use super::{Processor, Topology, TopologyError};

/// Where the workers of a pool are to run: `ThreadPoolBuilder::pin` of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placement {
    /// Wherever the system puts them, from moment to moment.
    #[default]
    Anywhere,
    /// Each on a processor of its own, close together: one cache is filled before the next, one
    /// node before the next. Under one cache the strongest cores come first, and every core has
    /// one worker before one has two. For work that shares much.
    Compact,
    /// Each on a processor of its own, far apart: the nodes, and the caches of a node, take turns.
    /// Every core has one worker before one has two, and the strongest cores come first. For work
    /// that is limited by caches and memory.
    Scatter,
    /// Worker `i` on the `i`-th of these.
    On(Vec<usize>),
}

/// `true` is [`Compact`](Placement::Compact), `false` [`Anywhere`](Placement::Anywhere).
impl From<bool> for Placement {
    fn from(pin: bool) -> Placement {
        if pin { Placement::Compact } else { Placement::Anywhere }
    }
}

impl Topology {
    /// The numbers of the workers' processors, in the order of the workers; `None` if they are not
    /// bound. If there are more workers than processors, the processors are used in turn again.
    ///
    /// # Errors
    ///
    /// [`TopologyError::Unknown`] or [`NoProcessor`](TopologyError::NoProcessor), if the placement
    /// names a processor that is not there, or none.
    pub fn place(
        &self,
        placement: &Placement,
        workers: usize,
    ) -> Result<Option<Vec<usize>>, TopologyError> {
        let order = match placement {
            Placement::Anywhere => return Ok(None),
            Placement::Compact => self.compact(),
            Placement::Scatter => self.scatter(),
            Placement::On(ids) => {
                ids.iter().try_for_each(|&id| self.processor(id).map(|_| ()))?;
                ids.clone()
            }
        };
        if order.is_empty() {
            return Err(TopologyError::NoProcessor);
        }
        Ok(Some(order.into_iter().cycle().take(workers).collect()))
    }

    fn compact(&self) -> Vec<usize> {
        let nodes = self.grouped().into_iter().flatten().flatten();
        nodes.map(|processor| processor.id).collect()
    }

    fn scatter(&self) -> Vec<usize> {
        let nodes = self.grouped().into_iter().map(in_turn).collect();
        let mut order = in_turn(nodes);
        // Stable: whatever has the same rank keeps taking turns.
        order.sort_by_key(|processor| rank(processor));
        order.into_iter().map(|processor| processor.id).collect()
    }

    /// The processors of each cache of each node: within a cache by their rank, caches and nodes by
    /// that of their best.
    fn grouped(&self) -> Vec<Vec<Vec<&Processor>>> {
        let mut nodes: BTreeMap<_, BTreeMap<_, Vec<&Processor>>> = BTreeMap::new();
        for processor in &self.processors {
            let node = nodes.entry((processor.package, processor.node)).or_default();
            node.entry(processor.cache).or_default().push(processor);
        }
        let mut nodes: Vec<Vec<Vec<_>>> =
            nodes.into_values().map(|caches| caches.into_values().collect()).collect();
        for node in &mut nodes {
            for cache in &mut *node {
                cache.sort_by_key(|processor| rank(processor));
            }
            // Stable, both: the lower number comes first among equals. No group is empty.
            node.sort_by_key(|cache| rank(cache[0]));
        }
        nodes.sort_by_key(|node| rank(node[0][0]));
        nodes
    }
}

/// First threads before second ones: a second thread adds less than even a weak core of its own.
fn rank(processor: &Processor) -> (usize, usize) {
    (processor.thread, processor.class)
}

/// The first of each list, then the second of each, and so on.
fn in_turn<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    loop {
        let before = merged.len();
        merged.extend(lists.iter_mut().filter_map(Iterator::next));
        if merged.len() == before {
            return merged;
        }
    }
}
