//! The three kinds of graph of the fence-free paper, section 8.2, each undirected.

use std::collections::VecDeque;
use std::ops::Range;

/// A kind of graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each node is connected to K = 6 others: those at three random distances before and after it.
    Regular,
    /// Twice as many edges as nodes, between random nodes; so some nodes cannot be reached.
    Random,
    /// A square grid whose edges are joined.
    Torus,
}

/// A graph, the neighbours of each node in a row.
pub(super) struct Graph {
    /// Where the neighbours of each node begin, and those of the last one end.
    starts: Vec<u32>,
    neighbours: Vec<u32>,
    /// How far each node is from node 0 in steps, or `u32::MAX` if it cannot be reached.
    pub(super) distance: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes` nodes, rounded down to a square if it is a torus. Always the same one.
    pub(super) fn new(shape: Shape, nodes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(82);
        let side = nodes.isqrt();
        let nodes = if shape == Shape::Torus { side * side } else { nodes };
        let edges: Vec<(usize, usize)> = match shape {
            Shape::Regular => {
                let far = |_| random.usize(1..nodes / 2);
                let mut distances: Vec<usize> = (0..3).map(far).collect();
                // One of one step: so that every node can be reached.
                distances[0] = 1;
                let around = |node| distances.iter().map(move |far| (node, (node + far) % nodes));
                (0..nodes).flat_map(around).collect()
            }
            Shape::Random => {
                (0..2 * nodes).map(|_| (random.usize(..nodes), random.usize(..nodes))).collect()
            }
            Shape::Torus => (0..nodes)
                .flat_map(|node| {
                    let (row, column) = (node / side, node % side);
                    let right = row * side + (column + 1) % side;
                    let below = (row + 1) % side * side + column;
                    [(node, right), (node, below)]
                })
                .collect(),
        };
        Graph::from_edges(nodes, &edges)
    }

    fn from_edges(nodes: usize, edges: &[(usize, usize)]) -> Self {
        let mut starts = vec![0u32; nodes + 1];
        for (a, b) in edges {
            starts[a + 1] += 1;
            starts[b + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0u32; 2 * edges.len()];
        for (a, b) in edges {
            for (from, to) in [(a, b), (b, a)] {
                neighbours[next[*from] as usize] = *to as u32;
                next[*from] += 1;
            }
        }
        let mut graph = Graph { starts, neighbours, distance: vec![u32::MAX; nodes] };
        graph.measure();
        graph
    }

    /// Breadth first, from node 0: independent of the searches that are measured.
    fn measure(&mut self) {
        let mut waiting = VecDeque::from([0u32]);
        let mut distance = std::mem::take(&mut self.distance);
        distance[0] = 0;
        while let Some(node) = waiting.pop_front() {
            for to in self.neighbours(node) {
                if distance[*to as usize] == u32::MAX {
                    distance[*to as usize] = distance[node as usize] + 1;
                    waiting.push_back(*to);
                }
            }
        }
        self.distance = distance;
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.distance.len()
    }

    /// The nodes that an edge joins to this one.
    pub(super) fn neighbours(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.neighbours
            [Range { start: self.starts[at] as usize, end: self.starts[at + 1] as usize }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_shape() {
        let regular = Graph::new(Shape::Regular, 1000);
        assert!((0..1000).all(|node| regular.neighbours(node).len() == 6));
        assert!(regular.distance.iter().all(|far| *far != u32::MAX));
        let torus = Graph::new(Shape::Torus, 120);
        assert_eq!(torus.nodes(), 100);
        assert!((0..100).all(|node| torus.neighbours(node).len() == 4));
        assert_eq!(torus.distance.iter().max(), Some(&10));
        let random = Graph::new(Shape::Random, 1000);
        let ends: usize = (0..1000).map(|node| random.neighbours(node).len()).sum();
        assert_eq!(ends, 4000);
        assert!(random.distance.iter().filter(|far| **far != u32::MAX).count() > 500);
    }

    #[test]
    fn edges_go_both_ways() {
        let graph = Graph::new(Shape::Random, 500);
        for node in 0..500 {
            assert!(graph.neighbours(node).iter().all(|to| graph.neighbours(*to).contains(&node)));
        }
    }
}
