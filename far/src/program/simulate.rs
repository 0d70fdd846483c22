//! `poach-far simulate`: a tree of UTS on as many ranks as one likes.

use std::fmt::Write as _;

use poach_far::Stealing;
use poach_far::balance::Policy;
use poach_far::simulate::{Machine, Program, Simulation};
use serde_json::json;

use super::uts::{Node, Sample};
use super::{Report, Steal};

/// The load balancing on simulated ranks: how a tree of UTS would scale. Needs no launcher.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which tree.
    #[arg(value_enum, ignore_case = true, default_value_t = Sample::T3)]
    tree: Sample,
    /// How many ranks, of one worker each.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64,256,1024,4096", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    ranks: Vec<u32>,
    /// Ranks on a node.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    per_node: u32,
    /// L, in nanoseconds: from the end of sending to the beginning of receiving.
    #[arg(long, default_value_t = 1_500.0)]
    latency: f64,
    /// o: of sending, and of receiving.
    #[arg(long, default_value_t = 500.0)]
    overhead: f64,
    /// g: between two messages.
    #[arg(long, default_value_t = 500.0)]
    gap: f64,
    /// G: for a byte.
    #[arg(long, default_value_t = 0.1)]
    byte: f64,
    /// What a node of the tree costs, in nanoseconds.
    #[arg(long, default_value_t = 130.0)]
    node: f64,
    /// How long a rank works between two looks at the network.
    #[arg(long, default_value_t = 50_000.0)]
    quantum: f64,
}

struct Search {
    shape: super::uts::tree::Shape,
    cost: f64,
}

impl Program for Search {
    type Task = Node;

    fn run(&mut self, _: usize, node: Node, push: &mut dyn FnMut(Node)) -> f64 {
        node.children(self.shape).for_each(push);
        self.cost
    }
}

pub(super) fn run(arguments: &Arguments, steal: Steal, lifelines: bool) -> Report {
    let tree = arguments.tree.tree();
    let machine = Machine {
        latency: arguments.latency,
        overhead: arguments.overhead,
        gap: arguments.gap,
        byte: arguments.byte,
        quantum: arguments.quantum,
        jitter: 0.0,
    };
    let stealing = match steal {
        Steal::Messages => Stealing::Messages,
        Steal::Window => Stealing::Window,
    };
    let (mut rows, mut well) = (Vec::new(), true);
    let mut text =
        "ranks     seconds    speed-up  efficiency      steals   by lifeline      failed\n"
            .to_owned();
    for &ranks in &arguments.ranks {
        let policy = Policy { stealing, lifelines, ..Policy::default() };
        let program = Search { shape: tree.shape, cost: arguments.node };
        let simulation = Simulation::new(ranks as usize, machine, policy, program)
            .ranks_per_node(arguments.per_node as usize);
        match simulation.run(vec![Node::root(tree)]) {
            Ok((outcome, _)) => {
                well &= outcome.tasks == tree.nodes;
                let speed_up = outcome.work / outcome.elapsed;
                let balance = outcome.counters;
                let _ = writeln!(
                    text,
                    "{ranks:>5} {:>11.6} {speed_up:>11.2} {:>11.3} {:>11} {:>13} {:>11}",
                    outcome.elapsed / 1e9,
                    speed_up / f64::from(ranks),
                    balance.steals,
                    balance.lifeline_parcels,
                    balance.failed_steals,
                );
                rows.push(json!({
                    "ranks": ranks,
                    "elapsed_s": outcome.elapsed / 1e9,
                    "speed_up": speed_up,
                    "nodes": outcome.tasks,
                    "balance": balance,
                }));
            }
            Err(wrong) => {
                well = false;
                let _ = writeln!(text, "{ranks:>5} {wrong}");
                rows.push(json!({ "ranks": ranks, "error": wrong.to_string() }));
            }
        }
    }
    Report { text, document: json!({ "rows": rows }), well }
}
