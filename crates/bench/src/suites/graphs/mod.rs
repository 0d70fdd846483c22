//! The suite `graphs`: transitive closure and spanning tree, straight on the queues.
//!
//! Source: the fence-free paper, section 8.2 and Figure 11, which takes the programs and the three
//! kinds of graph from Michael, Vechev and Saraswat, *Idempotent Work Stealing*. A task is a node
//! to visit: it marks each neighbour that is not marked and pushes it. Both programs bear a task
//! that is done twice, so the idempotent queues may run them too.
//!
//! - Transitive closure: the nodes that can be reached. A mark is a plain store, so two workers may
//!   both push a node.
//! - Spanning tree: each node's parent, set by a compare-and-swap, so one of them wins.
//!
//! The counters are those of Figure 11b: `stolen` tasks, and the `tasks` that they are a share of.

mod graph;
mod search;

use std::cell::OnceCell;
use std::rc::Rc;

use anyhow::{Result, anyhow};
use poach_deque::{
    AsymmetricCl, BwosFifo, BwosLifo, ChaseLev, FfCl, FfThe, IdempotentDeque, IdempotentFifo,
    IdempotentLifo, Multiplicity, Mutex, Owner, PrivateDeque, ResolvedCl, Split, The, Thep,
};
use poach_memory::{Asymmetric, Bounded, Machine, Resolved, Unbounded};

use self::graph::{Graph, Shape};
use self::search::{Search, Task};
use crate::fork::delta;
use crate::{Case, Request, Sample, Size, Suite, Unit, need_memory};

/// The suite `graphs`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graphs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Closure,
    Tree,
}

/// The workloads: what is asked of which graph.
const WORKLOADS: [(&str, Goal, Shape); 6] = [
    ("closure-k-graph", Goal::Closure, Shape::Regular),
    ("closure-random", Goal::Closure, Shape::Random),
    ("closure-torus", Goal::Closure, Shape::Torus),
    ("tree-k-graph", Goal::Tree, Shape::Regular),
    ("tree-random", Goal::Tree, Shape::Random),
    ("tree-torus", Goal::Tree, Shape::Torus),
];

impl Suite for Graphs {
    fn name(&self) -> &'static str {
        "graphs"
    }

    fn about(&self) -> &'static str {
        "transitive closure and spanning tree, straight on the queues"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        for (name, goal, shape) in WORKLOADS {
            let input = Input { name, goal, shape, size: request.size, made: Rc::default() };
            cases.push(input.sequential());
            for workers in &request.workers {
                on_each_queue(&input, *workers, &mut cases);
            }
        }
        cases
    }
}

/// A graph that several systems search in turn, made when the first needs it.
#[derive(Clone)]
struct Input {
    name: &'static str,
    goal: Goal,
    shape: Shape,
    size: Size,
    made: Rc<OnceCell<Result<Graph, String>>>,
}

impl Input {
    fn graph(&self) -> Result<&Graph> {
        let made = self.made.get_or_init(|| {
            let nodes = self.size.pick(2_500, 250_000, 1_000_000, 4_000_000);
            need_memory(64 * nodes as u64).map_err(|error| error.to_string())?;
            Ok(Graph::new(self.shape, nodes))
        });
        made.as_ref().map_err(|why| anyhow!("{why}"))
    }

    fn sequential(&self) -> Case {
        let input = self.clone();
        Case::new(self.name, "sequential", 1, Unit::SECONDS, move || {
            input.graph()?;
            Ok(move || {
                let search = Search::new(input.graph()?, input.goal == Goal::Tree);
                let seconds = search.alone();
                search.check()?;
                Ok(seconds.into())
            })
        })
    }

    fn on<O: Owner<Task> + 'static>(
        &self,
        system: &'static str,
        workers: usize,
        queue: fn() -> Result<O>,
        cases: &mut Vec<Case>,
    ) {
        if queue().is_err() {
            return;
        }
        let input = self.clone();
        cases.push(Case::new(self.name, system, workers, Unit::SECONDS, move || {
            input.graph()?;
            Ok(move || {
                let search = Search::new(input.graph()?, input.goal == Goal::Tree);
                let queues = (0..workers).map(|_| queue()).collect::<Result<Vec<O>>>()?;
                let (seconds, counts) = search.together(queues);
                search.check()?;
                Ok(Sample::from(seconds)
                    .count("tasks", counts.tasks as f64)
                    .count("stolen", counts.stolen as f64)
                    .count("aborted", counts.aborted as f64))
            })
        }));
    }
}

/// The queues of the papers that this machine can have; Chase-Lev, the baseline of Figure 11,
/// first.
fn on_each_queue(input: &Input, workers: usize, cases: &mut Vec<Case>) {
    type Resolving = ResolvedCl<Task>;
    type Expedited = AsymmetricCl<Task>;
    input.on("chase-lev", workers, || Ok(ChaseLev::<Task>::new()), cases);
    input.on("ff-cl", workers, || Ok(FfCl::<Task>::with_policy(Bounded::new(delta()?)?)), cases);
    input.on("asymmetric-cl", workers, || Ok(Expedited::with_policy(Asymmetric::new())), cases);
    input.on("resolved", workers, || Ok(Resolving::with_policy(Resolved::new(delta()?)?)), cases);
    input.on("the", workers, || Ok(The::<Task>::new()), cases);
    input.on("ff-the", workers, || Ok(FfThe::<Task>::with_policy(Bounded::new(delta()?)?)), cases);
    let thep = || Ok(Thep::<Task, Bounded<Machine>>::with_policy(Bounded::new(delta()?)?));
    input.on("thep", workers, thep, cases);
    let thep_infinite = || Ok(Thep::<Task, Unbounded>::with_policy(Unbounded));
    input.on("thep-infinite", workers, thep_infinite, cases);
    input.on("split", workers, || Ok(Split::<Task, Machine>::new()), cases);
    input.on("private", workers, || Ok(PrivateDeque::<Task, Machine>::new()), cases);
    input.on("mutex", workers, || Ok(Mutex::<Task, Machine>::new()), cases);
    input.on("idempotent-lifo", workers, || Ok(IdempotentLifo::<Task>::new()), cases);
    input.on("idempotent-fifo", workers, || Ok(IdempotentFifo::<Task>::new()), cases);
    input.on("idempotent-deque", workers, || Ok(IdempotentDeque::<Task>::new()), cases);
    input.on("multiplicity", workers, || Ok(Multiplicity::<Task>::new()), cases);
    input.on("bwos-lifo", workers, || Ok(BwosLifo::<Task>::new()), cases);
    input.on("bwos-fifo", workers, || Ok(BwosFifo::<Task>::new()), cases);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_has_not_run_is_found_out() {
        for (name, goal, shape) in WORKLOADS {
            let graph = Graph::new(shape, 2_500);
            let search = Search::new(&graph, goal == Goal::Tree);
            assert!(search.check().is_err(), "{name} passes without having run");
            search.alone();
            search.check().unwrap();
        }
    }
}
