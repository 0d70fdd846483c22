//! Work too small to share: the sum of a tree of 1,000 nodes, again and again, on two workers,
//! against the sequential program; and, for comparison, a tree that is worth sharing.
//!
//! `cargo run --release -p poach-runtime --example small_steals -- [ROUNDS] [MILLISECONDS]`
//!
//! Interleaved; a row gives the median, the least and the greatest of all rounds, and what the
//! thief has done meanwhile.

use std::hint::black_box;
use std::time::{Duration, Instant};

use poach_runtime::{ThreadPool, Worker};

struct Node {
    value: u64,
    children: Option<Box<(Node, Node)>>,
}

impl Node {
    /// A tree of `nodes` nodes, an odd number, as balanced as can be.
    fn new(nodes: u64) -> Node {
        let below = nodes - 1;
        let left = below / 2 - (below / 2 + 1) % 2;
        let children = (below > 0).then(|| Box::new((Node::new(left), Node::new(below - left))));
        Node { value: nodes, children }
    }

    fn sequential(&self) -> u64 {
        let below = self.children.as_ref().map_or(0, |c| c.0.sequential() + c.1.sequential());
        self.value.wrapping_add(below)
    }

    fn parallel(&self, mut worker: Worker<'_>) -> u64 {
        let Some(children) = &self.children else { return self.value };
        let (left, right) = (&children.0, &children.1);
        let (a, b) = worker.join(move |w| left.parallel(w), move |w| right.parallel(w));
        self.value.wrapping_add(a).wrapping_add(b)
    }
}

/// Nanoseconds a call, called for so long.
fn time(span: Duration, expected: u64, call: &dyn Fn() -> u64) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < span {
        for _ in 0..16 {
            assert_eq!(call(), expected);
        }
        calls += 16;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(9), |n| n.parse())?;
    let span = Duration::from_millis(arguments.next().map_or(Ok(100), |n| n.parse())?);
    let pool = ThreadPool::builder().num_threads(2).build()?;
    let one = ThreadPool::builder().num_threads(1).build()?;
    for nodes in [999, 99_999] {
        let tree = Node::new(nodes);
        let expected = tree.sequential();
        let within = |call: &(dyn Fn(Worker<'_>) -> f64 + Sync)| pool.run(call);
        let systems: [(&str, &dyn Fn() -> f64); 4] = [
            ("sequential", &|| time(span, expected, &|| black_box(&tree).sequential())),
            ("1 worker, from outside", &|| {
                time(span, expected, &|| one.run(|w| black_box(&tree).parallel(w)))
            }),
            ("2 workers, from outside", &|| {
                time(span, expected, &|| pool.run(|w| black_box(&tree).parallel(w)))
            }),
            ("2 workers, from within", &|| {
                within(&|_| {
                    let call = || poach_runtime::worker(|w| black_box(&tree).parallel(w));
                    time(span, expected, &call)
                })
            }),
        ];
        let mut times = vec![Vec::new(); systems.len()];
        let before = pool.stats();
        for _ in 0..rounds {
            for (system, times) in systems.iter().zip(&mut times) {
                times.push(system.1());
            }
        }
        println!("{nodes} nodes");
        let mut base = 0.0;
        for (system, times) in systems.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            let median = times[times.len() / 2];
            if base == 0.0 {
                base = median;
            }
            println!(
                "{:26} {median:10.0} ns a call  {:5.2} of sequential  ({:.0} to {:.0})",
                system.0,
                median / base,
                times[0],
                times[times.len() - 1]
            );
        }
        println!("{}\n", pool.stats().since(&before));
    }
    Ok(())
}
