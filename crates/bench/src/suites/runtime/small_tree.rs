//! `small-tree`: the sum of a tree that is too small to share, again and again.
//!
//! The calls come from within the pool, one after the other, so that nothing is measured but the
//! tree's forks and what thieves do about them. `tree-sum-1000` of the suite `fork-join` calls from
//! outside.

use std::cell::LazyCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::library::comparable;
use crate::fork::{Chili, Fork, Rayon, Sequential, Split, System, Task, counted};
use crate::programs::tree_sum::{Node, Sum};
use crate::{Case, Request, Sample, Size, Unit};

const NODES: u64 = 999;

/// The tree, the same for all systems, made when the first of them needs it.
type Tree = Rc<LazyCell<Node>>;

pub(super) fn cases(request: &Request, cases: &mut Vec<Case>) {
    let tree: Tree = Rc::new(LazyCell::new(|| Node::new(1, NODES)));
    let size = request.size;
    cases.push(case::<Sequential>(&tree, size, 1));
    for workers in &request.workers {
        cases.push(case::<Split>(&tree, size, *workers));
        cases.push(case::<Rayon>(&tree, size, *workers));
        cases.push(case::<Chili>(&tree, size, *workers));
    }
}

fn case<S: System>(tree: &Tree, size: Size, workers: usize) -> Case {
    let tree = Rc::clone(tree);
    let calls: u32 = size.pick(3, 20_000, 50_000, 50_000);
    Case::new("small-tree", S::NAME, workers, Unit::NANOSECONDS, move || {
        comparable(workers)?;
        let system = S::new(workers)?;
        Ok(move || {
            let before = system.counters();
            let (sum, seconds) = system.run(Again { tree: &tree, calls });
            check(sum, calls)?;
            let sample = Sample::from(seconds * 1e9 / f64::from(calls));
            Ok(counted(&system, before, sample))
        })
    })
}

fn check(sum: u64, calls: u32) -> Result<()> {
    let right = u64::from(calls) * (NODES * (NODES + 1) / 2);
    ensure!(sum == right, "{calls} sums of the tree make {right}, not {sum}");
    Ok(())
}

/// A number of sums one after the other: their sum, and the seconds they took.
struct Again<'t> {
    tree: &'t Node,
    calls: u32,
}

impl Task for Again<'_> {
    type Output = (u64, f64);

    fn run<F: Fork>(self, mut fork: F) -> (u64, f64) {
        let start = Instant::now();
        let mut sum = 0;
        for _ in 0..self.calls {
            let root = black_box(self.tree);
            sum += root.value;
            if let Some(children) = &root.children {
                let (left, right) = fork.join(Sum(&children.0), Sum(&children.1));
                sum += left + right;
            }
        }
        (sum, start.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_noticed() {
        let tree = Node::new(1, NODES);
        let (sum, _) = Sequential.run(Again { tree: &tree, calls: 2 });
        check(sum, 2).unwrap();
        assert!(check(sum, 3).is_err() && check(sum - 1, 2).is_err());
    }
}
