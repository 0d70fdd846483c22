//! `poach-far uts`: the size of an unbalanced tree.

#[path = "../../../crates/bench/src/programs/uts/tree.rs"]
pub(crate) mod tree;

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use poach_far::{Error, World, sum};
use serde::{Deserialize, Serialize};

use super::{Checkpoints, Report, counted};
use tree::{Shape, Tree};

/// Count the nodes of an unbalanced tree (UTS), which are found by hashing.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Tree of the UTS sample list.
    #[arg(value_enum, ignore_case = true, default_value_t = Sample::T3)]
    tree: Sample,
    #[command(flatten)]
    checkpoints: Checkpoints,
    /// Each node takes so much longer, asleep: more ranks than processors then behave as if each
    /// had its own, which is what `simulate` is compared with.
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    asleep: u32,
}

thread_local! {
    /// How long this worker has yet to sleep for the nodes that it has run, in nanoseconds; less
    /// than nothing where it has slept too long.
    static OWED: Cell<i64> = const { Cell::new(0) };
}

/// Sleeps for a node, many nodes at once.
fn sleep(nanoseconds: u32) {
    let owed = OWED.get() + i64::from(nanoseconds);
    OWED.set(owed);
    if owed >= NAP {
        let began = Instant::now();
        thread::sleep(Duration::from_nanos(owed as u64));
        OWED.set(owed - began.elapsed().as_nanos() as i64);
    }
}

/// Nanoseconds of a sleep at least.
const NAP: i64 = 500_000;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Sample {
    /// Geometric, 4,130,071 nodes.
    #[value(name = "T1")]
    T1,
    /// Geometric, 4,117,769 nodes.
    #[value(name = "T2")]
    T2,
    /// Geometric, 96,793,510 nodes.
    #[value(name = "T2L")]
    T2L,
    /// Binomial, 4,112,897 nodes.
    #[value(name = "T3")]
    T3,
    /// Binomial, 111,345,631 nodes.
    #[value(name = "T3L")]
    T3L,
    /// Binomial, 2,793,220,501 nodes.
    #[value(name = "T3XXL")]
    T3XXL,
}

const T3XXL: Tree = Tree {
    shape: Shape::Binomial { root: 2000, many: 2, probability: 0.499_995 },
    seed: 316,
    nodes: 2_793_220_501,
};

impl Sample {
    pub(super) fn tree(self) -> Tree {
        match self {
            Sample::T1 => tree::T1,
            Sample::T2 => tree::T2,
            Sample::T2L => tree::T2L,
            Sample::T3 => tree::T3,
            Sample::T3L => tree::T3L,
            Sample::T3XXL => T3XXL,
        }
    }
}

/// A node as a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Node {
    state: [u8; 20],
    depth: u32,
}

impl Node {
    pub(super) fn root(tree: Tree) -> Node {
        Node::of(tree::Node::root(tree.seed))
    }

    fn of(tree::Node { state, depth }: tree::Node) -> Node {
        Node { state, depth }
    }

    /// The children of the node.
    #[inline]
    pub(super) fn children(self, shape: Shape) -> impl Iterator<Item = Node> {
        let node = tree::Node { state: self.state, depth: self.depth };
        (0..node.children(shape)).map(move |index| Node::of(node.child(index)))
    }
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let tree = arguments.tree.tree();
    let (shape, asleep) = (tree.shape, arguments.asleep);
    let seed = (world.rank() == 0).then(|| Node::root(tree));
    let mut job = world.job(seed);
    if let Some(path) = &arguments.checkpoints.checkpoint {
        let about = format!("uts {:?}", arguments.tree);
        job = job.checkpoint(path, arguments.checkpoints.every(), &about);
    }
    let outcome = job.run(sum::<u64>(), move |node: Node, context| {
        *context.result() += 1;
        if asleep > 0 {
            sleep(asleep);
        }
        for child in node.children(shape) {
            context.push(child);
        }
    })?;
    Ok(outcome.map(|outcome| counted(world, &outcome, "nodes", outcome.result, Some(tree.nodes))))
}
