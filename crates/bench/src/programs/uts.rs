//! Unbalanced tree search: the size of a tree whose every node is found by hashing, so nobody knows
//! which branch is large.
//!
//! Lace, section 4.1, runs T2L and T3L. [`tree`] says what the trees are.
//!
//! A task for every node; the children of a node are divided by halves. The trees are some
//! thousands of levels deep, so the call stacks must be large.

use std::ops::Range;

use anyhow::{Result, ensure};
use poach_simulate::forks::{End, Strand, Tree as TaskTree};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};
use crate::programs::Form;
use crate::suites::simulate::Play;

pub(crate) mod tree;

pub(crate) use tree::{Node, Shape};
use tree::{T1, T2, T2L, T3, T3L, Tree};

/// The number of nodes in the trees below these children.
struct Count<'t> {
    parent: &'t Node,
    children: Range<u32>,
    shape: Shape,
}

impl Task for Count<'_> {
    type Output = u64;

    fn run<F: Fork>(self, mut fork: F) -> u64 {
        let Count { parent, children, shape } = self;
        let Range { start, end } = children;
        if end - start > 1 {
            let middle = start + (end - start) / 2;
            let (a, b) = fork.join(
                Count { parent, children: start..middle, shape },
                Count { parent, children: middle..end, shape },
            );
            return a + b;
        }
        let node = parent.child(start);
        1 + below(&node, shape, fork)
    }
}

/// The number of nodes below `node`.
fn below<F: Fork>(node: &Node, shape: Shape, fork: F) -> u64 {
    match node.children(shape) {
        0 => 0,
        many => Count { parent: node, children: 0..many, shape }.run(fork),
    }
}

/// The tree with this seed, from its root.
struct Whole {
    shape: Shape,
    seed: u32,
}

impl Task for Whole {
    type Output = u64;

    fn run<F: Fork>(self, fork: F) -> u64 {
        1 + below(&Node::root(self.seed), self.shape, fork)
    }
}

/// Indices of the trees.
pub(crate) const GEOMETRIC_1: usize = 0;
pub(crate) const GEOMETRIC_2L: usize = 1;
pub(crate) const BINOMIAL_3L: usize = 2;

/// A tree and its size.
pub(crate) struct Uts<const KIND: usize> {
    tree: Tree,
    result: Option<u64>,
}

impl<const KIND: usize> Uts<KIND> {
    /// What the tree is made from, and its size.
    pub(crate) fn parameters(&self) -> (Shape, u32, u64) {
        (self.tree.shape, self.tree.seed, self.tree.nodes)
    }

    /// The same of the published tree of its kind.
    pub(crate) fn published() -> (Shape, u32, u64) {
        let Tree { shape, seed, nodes } = [T1, T2L, T3L][KIND];
        (shape, seed, nodes)
    }
}

impl<const KIND: usize> Program for Uts<KIND> {
    const NAME: &'static str = ["uts-t1", "uts-t2l", "uts-t3l"][KIND];

    const DEEP: bool = true;

    fn new(size: Size) -> Self {
        // Trees of the same kind that a test or a quick run has the time for. Their sizes come from
        // a traversal with a stack of its own.
        let of = |shape, seed| Tree { shape, seed, nodes: count_with_a_list(shape, seed) };
        let fixed = |limit| of(Shape::GeometricFixed { branching: 4.0, limit }, 19);
        let cyclic = |limit| of(Shape::GeometricCyclic { branching: 6.0, limit }, 502);
        let binomial = |root| of(Shape::Binomial { root, many: 5, probability: 0.19 }, 7);
        let tree = match KIND {
            GEOMETRIC_1 => match size {
                Size::Tiny => fixed(4),
                Size::Quick => fixed(8),
                Size::Full | Size::Paper => T1,
            },
            GEOMETRIC_2L => match size {
                Size::Tiny => cyclic(3),
                Size::Quick => cyclic(12),
                Size::Full => T2,
                Size::Paper => T2L,
            },
            _ => match size {
                Size::Tiny => binomial(20),
                Size::Quick => binomial(10_000),
                Size::Full => T3,
                Size::Paper => T3L,
            },
        };
        Uts { tree, result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        self.result = Some(system.run(Whole { shape: self.tree.shape, seed: self.tree.seed }));
    }

    fn tree(&self, seconds: f64) -> Option<Box<dyn Play>> {
        let Tree { shape, seed, nodes } = self.tree;
        let unit = seconds * 1e12 / nodes as f64;
        Some(Box::new(UtsTree { shape, seed, form: Form::Halves, unit }))
    }

    fn check(&self) -> Result<()> {
        let expected = self.tree.nodes;
        ensure!(self.result == Some(expected), "there are {expected} nodes, not {:?}", self.result);
        Ok(())
    }
}

/// The size of a tree, found without recursion.
fn count_with_a_list(shape: Shape, seed: u32) -> u64 {
    let mut nodes = 0;
    let mut waiting = vec![Node::root(seed)];
    while let Some(node) = waiting.pop() {
        nodes += 1;
        waiting.extend((0..node.children(shape)).map(|index| node.child(index)));
    }
    nodes
}

/// An unbalanced tree: all time goes into hashing, a node's state each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UtsTree {
    pub(crate) shape: Shape,
    pub(crate) seed: u32,
    pub(crate) form: Form,
    /// Picoseconds a node.
    pub(crate) unit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum UtsTask {
    /// All that is below this node.
    Below(Node),
    /// These children of the node, and what is below them.
    Children { parent: Node, start: u16, end: u16 },
    /// The strand after a join.
    After,
}

impl UtsTree {
    fn children(&self, parent: Node) -> Range<u16> {
        0..parent.children(self.shape) as u16
    }

    fn made(&self, nodes: u32, end: End<UtsTask>) -> Strand<UtsTask> {
        Strand { work: (f64::from(nodes) * self.unit) as u64, inner: 0, end }
    }

    /// As this crate's program: the task of a child hashes it, and an only child is no fork.
    fn halves(&self, mut parent: Node, mut range: Range<u16>, mut nodes: u32) -> Strand<UtsTask> {
        while range.len() == 1 {
            parent = parent.child(range.start.into());
            nodes += 1;
            range = self.children(parent);
        }
        if range.is_empty() {
            return self.made(nodes, End::Done);
        }
        let Range { start, end } = range;
        let middle = start + (end - start) / 2;
        let part = |start, end| UtsTask::Children { parent, start, end };
        let (first, second) = (part(start, middle), part(middle, end));
        self.made(nodes, End::Fork { first, second, after: UtsTask::After })
    }

    /// As Lace's: the parent hashes each child and spawns it.
    fn spawns(&self, parent: Node, range: Range<u16>) -> Strand<UtsTask> {
        let Range { start, end } = range;
        if start == end {
            return self.made(0, End::Done);
        }
        let second = UtsTask::Below(parent.child(start.into()));
        let first = UtsTask::Children { parent, start: start + 1, end };
        self.made(1, End::Fork { first, second, after: UtsTask::After })
    }
}

impl TaskTree for UtsTree {
    type Task = UtsTask;

    fn root(&self) -> UtsTask {
        UtsTask::Below(Node::root(self.seed))
    }

    fn strand(&self, task: UtsTask) -> Strand<UtsTask> {
        let (parent, range) = match task {
            UtsTask::After => return self.made(0, End::Done),
            UtsTask::Below(node) => (node, self.children(node)),
            UtsTask::Children { parent, start, end } => (parent, start..end),
        };
        match self.form {
            Form::Halves => self.halves(parent, range, 0),
            Form::Lace => self.spawns(parent, range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sizes_of_the_small_sample_trees() {
        for tree in [T1, T2, T3] {
            assert_eq!(count_with_a_list(tree.shape, tree.seed), tree.nodes, "{tree:?}");
        }
    }
}
