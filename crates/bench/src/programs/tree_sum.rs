//! The sum over a binary tree in memory: a fork for every node with two children.
//!
//! What users write, as peers.md of spice and chili have it: a large tree, and one of a thousand
//! nodes that is over before a sleeping worker wakes.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

/// A node, and so a tree.
pub(crate) struct Node {
    pub(crate) value: u64,
    pub(crate) children: Option<Box<(Node, Node)>>,
}

impl Node {
    /// A tree of `nodes` nodes, an odd number, as balanced as it can be. Its values are the numbers
    /// from `first` on, and it is allocated in their order, which is the order of the visits.
    pub(crate) fn new(first: u64, nodes: u64) -> Self {
        let mut root = Node { value: first, children: None };
        root.grow(nodes);
        root
    }

    fn grow(&mut self, nodes: u64) {
        if nodes == 1 {
            return;
        }
        let below = nodes - 1;
        // Both halves have an odd number of nodes.
        let left = (below / 2) | 1;
        let leaf = |value| Node { value, children: None };
        let children = (leaf(self.value + 1), leaf(self.value + 1 + left));
        let children = self.children.insert(Box::new(children));
        children.0.grow(left);
        children.1.grow(below - left);
    }
}

/// The sum of a tree.
pub(crate) struct Sum<'t>(pub(crate) &'t Node);

impl Task for Sum<'_> {
    type Output = u64;

    fn run<F: Fork>(self, mut fork: F) -> u64 {
        match &self.0.children {
            None => self.0.value,
            Some(children) => {
                let (left, right) = fork.join(Sum(&children.0), Sum(&children.1));
                self.0.value + left + right
            }
        }
    }
}

/// The tree and its sum.
pub(crate) struct TreeSum<const SMALL: bool> {
    tree: Node,
    nodes: u64,
    /// How often a sample sums it up: a small tree's time would drown in the clock's.
    times: u32,
    result: Option<u64>,
}

impl<const SMALL: bool> Program for TreeSum<SMALL> {
    const NAME: &'static str = if SMALL { "tree-sum-1000" } else { "tree-sum" };

    fn memory(size: Size) -> u64 {
        // Two nodes are one piece of the heap, of 48 bytes with what the allocator adds.
        24 * nodes(SMALL, size)
    }

    fn new(size: Size) -> Self {
        let nodes = nodes(SMALL, size);
        let times = if SMALL { size.pick(3, 1000, 10_000, 10_000) } else { 1 };
        TreeSum { tree: Node::new(1, nodes), nodes, times, result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        let total =
            (0..self.times).map(|_| system.run(Sum(std::hint::black_box(&self.tree)))).sum();
        self.result = Some(total);
    }

    fn check(&self) -> Result<()> {
        let expected = u64::from(self.times) * (self.nodes * (self.nodes + 1) / 2);
        ensure!(self.result == Some(expected), "the sum is {expected}, not {:?}", self.result);
        Ok(())
    }
}

fn nodes(small: bool, size: Size) -> u64 {
    if small { 1001 } else { size.pick(1023, (1 << 20) - 1, 10_000_001, 100_000_001) }
}
