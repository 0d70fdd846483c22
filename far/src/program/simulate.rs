//! `poach-far simulate`: a tree of UTS on as many ranks as one likes.

use std::fmt::Write as _;
use std::path::PathBuf;

use poach_far::Stealing;
use poach_far::balance::Policy;
use poach_far::simulate::{Machine, Program, Simulation};
use serde_json::{Value, json};

use super::curves::{Curve, draw};
use super::uts::{Node, Sample};
use super::{Report, Steal};

/// Simulate the load balancing of a UTS tree on many ranks. Needs no launcher.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Tree of the UTS sample list.
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
    /// By messages and by windows, one after the other.
    #[arg(long)]
    both: bool,
    /// Draw speed-up over ranks, into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
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

/// A simulation as JSON, and as a line of the table; its speed-up, if it has an end.
struct Row {
    document: Value,
    text: String,
    speed_up: Option<f64>,
}

fn simulate(arguments: &Arguments, ranks: u32, stealing: Stealing, lifelines: bool) -> Row {
    let tree = arguments.tree.tree();
    let policy = Policy { stealing, lifelines, ..Policy::default() };
    let program = Search { shape: tree.shape, cost: arguments.node };
    let simulation = Simulation::new(ranks as usize, arguments.machine(), policy, program)
        .ranks_per_node(arguments.per_node as usize);
    let outcome = match simulation.run(vec![Node::root(tree)]) {
        Ok((outcome, _)) if outcome.tasks == tree.nodes => outcome,
        Ok((outcome, _)) => {
            let error = format!("{} nodes, and should be {}", outcome.tasks, tree.nodes);
            return Row::wrong(ranks, &error);
        }
        Err(wrong) => return Row::wrong(ranks, &wrong.to_string()),
    };
    let (speed_up, balance) = (outcome.work / outcome.elapsed, outcome.counters);
    let text = format!(
        "{ranks:>5} {:>11.6} {speed_up:>11.2} {:>11.3} {:>11} {:>13} {:>11} {:>13}",
        outcome.elapsed / 1e9,
        speed_up / f64::from(ranks),
        balance.steals,
        balance.lifeline_parcels,
        balance.failed_steals,
        balance.bytes,
    );
    let document = json!({
        "ranks": ranks,
        "elapsed_s": outcome.elapsed / 1e9,
        "speed_up": speed_up,
        "nodes": outcome.tasks,
        "balance": balance,
    });
    Row { document, text, speed_up: Some(speed_up) }
}

impl Row {
    fn wrong(ranks: u32, error: &str) -> Row {
        let document = json!({ "ranks": ranks, "error": error });
        Row { document, text: format!("{ranks:>5} {error}"), speed_up: None }
    }
}

impl Arguments {
    fn machine(&self) -> Machine {
        Machine {
            latency: self.latency,
            overhead: self.overhead,
            gap: self.gap,
            byte: self.byte,
            quantum: self.quantum,
            jitter: 0.0,
        }
    }

    /// What the drawing says of what was assumed.
    fn assumptions(&self) -> String {
        let Machine { latency, overhead, gap, byte, quantum, .. } = self.machine();
        format!(
            "L {latency} ns, o {overhead} ns, g {gap} ns, G {byte} ns; {} ns a node, {quantum} ns between looks, {} ranks a node",
            self.node, self.per_node
        )
    }
}

pub(super) fn run(arguments: &Arguments, steal: Steal, lifelines: bool) -> Report {
    let ways = if arguments.both { vec![Steal::Messages, Steal::Window] } else { vec![steal] };
    let (mut rows, mut curves, mut well) = (Vec::new(), Vec::new(), true);
    let mut text = String::new();
    for way in ways {
        let (stealing, name) = match way {
            Steal::Messages => (Stealing::Messages, "messages"),
            Steal::Window => (Stealing::Window, "window"),
        };
        let _ = writeln!(
            text,
            "by {name}\nranks     seconds    speed-up  efficiency      steals   by lifeline      failed         bytes"
        );
        let mut points = Vec::new();
        for &ranks in &arguments.ranks {
            let row = simulate(arguments, ranks, stealing, lifelines);
            well &= row.speed_up.is_some();
            points.extend(row.speed_up.map(|speed_up| (f64::from(ranks), speed_up)));
            let _ = writeln!(text, "{}", row.text);
            let mut document = row.document;
            document["steal"] = json!(name);
            rows.push(document);
        }
        curves.push(Curve { name: format!("by {name}"), points });
    }
    if let Some(file) = &arguments.svg {
        let tree = arguments.tree.tree();
        let title = format!("UTS {:?}, {} nodes, simulated", arguments.tree, tree.nodes);
        let svg = draw(&title, &arguments.assumptions(), &curves);
        if let Err(error) = std::fs::write(file, svg) {
            well = false;
            super::say(&format!("cannot write {}: {error}", file.display()));
        }
    }
    Report { text, document: json!({ "rows": rows }), well }
}
