//! A search of a graph by workers with a queue each.
//!
//! A worker visits the nodes of its queue until it is empty, then counts itself as idle and steals.
//! When all are idle the search is over: only owners push, and an idle owner's queue is empty. A
//! thief counts itself as busy only after a successful steal. Another thief that sees all idle at
//! that moment leaves early; what the first thief then finds it does alone. Nothing is left undone.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use poach_deque::{Owner, Steal, Thief};

use super::graph::Graph;

/// A node to visit.
pub(super) type Task = u32;

/// Nobody's parent: a node that has not been reached.
const UNREACHED: u32 = u32::MAX;

/// Fruitless looks after which a thief gives its processor away.
const LOOKS: u32 = 32;

/// What the workers have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Nodes that were visited, some perhaps twice.
    pub(super) tasks: u64,
    /// Those of them that were stolen.
    pub(super) stolen: u64,
    /// Steals that were given up for want of certainty.
    pub(super) aborted: u64,
}

pub(super) struct Search<'g> {
    graph: &'g Graph,
    /// Whether a node's first parent must stay the only one.
    tree: bool,
    /// From where each node was reached.
    parent: Vec<AtomicU32>,
}

impl<'g> Search<'g> {
    /// A search from node 0 that has not begun.
    pub(super) fn new(graph: &'g Graph, tree: bool) -> Self {
        let parent = (0..graph.nodes()).map(|_| AtomicU32::new(UNREACHED)).collect();
        Search { graph, tree, parent }
    }

    /// Whether the caller is to visit `to`.
    #[inline]
    fn claim(&self, from: u32, to: u32) -> bool {
        let parent = &self.parent[to as usize];
        // Relaxed, all three: a mark orders nothing. The queues hand the nodes over, and the marks
        // are read again when the threads have been joined.
        if parent.load(Ordering::Relaxed) != UNREACHED {
            return false;
        }
        if self.tree {
            let won =
                parent.compare_exchange(UNREACHED, from, Ordering::Relaxed, Ordering::Relaxed);
            return won.is_ok();
        }
        parent.store(from, Ordering::Relaxed);
        true
    }

    #[inline]
    fn visit(&self, node: u32, mut push: impl FnMut(u32)) {
        for to in self.graph.neighbours(node) {
            if self.claim(node, *to) {
                push(*to);
            }
        }
    }

    /// Searches with a stack and no queue; returns the seconds.
    pub(super) fn alone(&self) -> f64 {
        let start = Instant::now();
        self.claim(0, 0);
        let mut waiting = vec![0];
        while let Some(node) = waiting.pop() {
            self.visit(node, |to| waiting.push(to));
        }
        start.elapsed().as_secs_f64()
    }

    /// Searches with a worker for each queue; returns the seconds from the first worker's start to
    /// the last one's end.
    pub(super) fn together<O: Owner<Task>>(&self, queues: Vec<O>) -> (f64, Counts) {
        let thieves: Vec<O::Thief> = queues.iter().map(Owner::thief).collect();
        let idle = AtomicUsize::new(0);
        let ready = Barrier::new(queues.len());
        self.claim(0, 0);
        if let Some(first) = queues.first() {
            first.push(0);
        }
        // The workers read the clock: the thread that started them may wait for a processor
        // meanwhile.
        let done: Vec<(Instant, Instant, Counts)> = thread::scope(|scope| {
            let started: Vec<_> = queues
                .into_iter()
                .enumerate()
                .map(|(index, queue)| {
                    let (thieves, idle, ready) = (&thieves[..], &idle, &ready);
                    scope.spawn(move || {
                        ready.wait();
                        let start = Instant::now();
                        let counts = self.work(&queue, index, thieves, idle);
                        (start, Instant::now(), counts)
                    })
                })
                .collect();
            started
                .into_iter()
                .map(|worker| worker.join().expect("a worker has nothing to panic about"))
                .collect()
        });
        let mut counts = Counts::default();
        for (_, _, worker) in &done {
            counts.tasks += worker.tasks;
            counts.stolen += worker.stolen;
            counts.aborted += worker.aborted;
        }
        let first = done.iter().map(|(start, _, _)| *start).min();
        let last = done.iter().map(|(_, end, _)| *end).max();
        let seconds = first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        (seconds, counts)
    }

    fn work<O: Owner<Task>>(
        &self,
        queue: &O,
        index: usize,
        thieves: &[O::Thief],
        idle: &AtomicUsize,
    ) -> Counts {
        let mut counts = Counts::default();
        loop {
            while let Some(node) = queue.pop() {
                counts.tasks += 1;
                self.visit(node, |to| queue.push(to));
            }
            // Relaxed, all: a count of idle workers; see the module's comment.
            idle.fetch_add(1, Ordering::Relaxed);
            let mut looks = 0;
            let node = loop {
                if idle.load(Ordering::Relaxed) == thieves.len() {
                    return counts;
                }
                if let Some(node) = steal(index, thieves, &mut counts) {
                    break node;
                }
                // The owner of a private deque answers requests when it pops.
                if let Some(node) = queue.pop() {
                    break node;
                }
                looks += 1;
                if looks < LOOKS {
                    std::hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            };
            idle.fetch_sub(1, Ordering::Relaxed);
            counts.tasks += 1;
            self.visit(node, |to| queue.push(to));
        }
    }

    /// Compares the marks with the distances that the graph knows.
    ///
    /// # Errors
    ///
    /// The first node whose mark is wrong.
    pub(super) fn check(&self) -> Result<()> {
        // Relaxed: the workers have been joined.
        let parent = |node: usize| self.parent[node].load(Ordering::Relaxed);
        for (node, distance) in self.graph.distance.iter().enumerate() {
            let reached = parent(node) != UNREACHED;
            let reachable = *distance != u32::MAX;
            ensure!(
                reached == reachable,
                "node {node} was {}reached, and can{} be",
                if reached { "" } else { "not " },
                if reachable { "" } else { "not" }
            );
            let from = parent(node);
            let edge =
                node == 0 || !reached || self.graph.neighbours(from).contains(&(node as u32));
            ensure!(edge, "node {node} was reached from {from}, and no edge joins them");
        }
        if self.tree { self.check_tree() } else { Ok(()) }
    }

    /// That the parents lead to node 0 from everywhere.
    fn check_tree(&self) -> Result<()> {
        let mut rooted = vec![false; self.graph.nodes()];
        rooted[0] = true;
        let mut path = Vec::new();
        for start in 0..self.graph.nodes() {
            // Relaxed: the workers have been joined.
            let parent = |node: usize| self.parent[node].load(Ordering::Relaxed) as usize;
            if parent(start) == UNREACHED as usize {
                continue;
            }
            let mut node = start;
            while !rooted[node] {
                path.push(node);
                ensure!(path.len() <= rooted.len(), "the parents of node {start} go in a circle");
                node = parent(node);
            }
            for node in path.drain(..) {
                rooted[node] = true;
            }
        }
        Ok(())
    }
}

/// A task of any other worker.
fn steal<T: Thief<Task>>(index: usize, thieves: &[T], counts: &mut Counts) -> Option<Task> {
    for step in 1..thieves.len() {
        match thieves[(index + step) % thieves.len()].steal() {
            Steal::Success(node) => {
                counts.stolen += 1;
                return Some(node);
            }
            Steal::Abort => counts.aborted += 1,
            Steal::Empty | Steal::Retry => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::graph::Shape;
    use super::*;

    #[test]
    fn a_circle_and_a_parent_that_is_no_neighbour_are_found() {
        let graph = Graph::new(Shape::Torus, 100);
        let search = Search::new(&graph, true);
        search.alone();
        search.check().unwrap();
        let (a, b) = (55u32, graph.neighbours(55)[0]);
        search.parent[a as usize].store(b, Ordering::Relaxed);
        search.parent[b as usize].store(a, Ordering::Relaxed);
        assert!(search.check().unwrap_err().to_string().contains("circle"));
        search.parent[a as usize].store(99, Ordering::Relaxed);
        assert!(search.check().unwrap_err().to_string().contains("no edge joins them"));
    }
}
