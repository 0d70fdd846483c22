//! Lace's own machine and figures, to hold the simulation against.
//!
//! Source: Lace, section 4.2 and Figures 5 and 8: four AMD Opteron 6168 of two dies of six cores each.
//! Fork costs nothing here: what one worker takes for a task, by the paper, holds the fork.

use crate::Size;
use crate::fib::FibTree;
use crate::fork::Program as _;
use crate::queens::QueensTree;
use crate::replay::Replay;
use crate::replay::tree::Form;
use crate::uts::{BINOMIAL_3L, GEOMETRIC_2L, Uts, UtsTree};

/// Lines within a die, within a package and between packages. The paper has no such figures: these are
/// round ones of what is published for its processor, and can be changed by `--topology`.
pub(super) const TOPOLOGY: &str = "6:40,2:80,4:100";

/// A program of the paper's table.
pub(crate) struct Published {
    pub(crate) name: &'static str,
    /// `T_S`, in seconds.
    pub(super) sequential: f64,
    /// `T_1` and `T_48` by leapfrogging (Figure 5).
    pub(crate) leapfrog: (f64, f64),
    /// Of Wool, which leapfrogs transitively, and of Lace with random stealing (Figure 8).
    pub(super) transitive: Option<(f64, f64)>,
    pub(super) random: Option<(f64, f64)>,
    tree: fn(Size, f64) -> Box<dyn Replay>,
}

impl Published {
    /// The tree in Lace's form, with the work that makes one worker take `T_1` at the paper's size.
    pub(super) fn tree(&self, size: Size) -> Box<dyn Replay> {
        (self.tree)(size, self.leapfrog.0 * 1e12)
    }
}

/// The tasks that the paper says its programs have.
pub(crate) const QUEENS_TASKS: f64 = 171_129_071.0;

/// A tree of so much work that the paper's tree of its kind would take `whole` picoseconds.
fn uts<const KIND: usize>(size: Size, whole: f64) -> Box<dyn Replay> {
    let (_, _, tasks) = Uts::<KIND>::published();
    let (shape, seed, _) = match size {
        Size::Full | Size::Paper => Uts::<KIND>::published(),
        Size::Tiny | Size::Quick => Uts::<KIND>::new(size).parameters(),
    };
    Box::new(UtsTree { shape, seed, form: Form::Lace, unit: whole / tasks as f64 })
}

pub(crate) const TABLE: [Published; 4] = [
    Published {
        name: "lace-fib",
        sequential: 149.2,
        leapfrog: (144.0, 4.13),
        transitive: None,
        random: None,
        tree: |size, whole| {
            let unit = whole / FibTree { n: 50, grain: 2, unit: 0.0 }.strands();
            let (n, grain) = size.pick((16, 2), (40, 18), (50, 22), (50, 20));
            Box::new(FibTree { n, grain, unit })
        },
    },
    Published {
        name: "lace-uts-t2l",
        sequential: 84.5,
        leapfrog: (86.0, 1.81),
        transitive: None,
        random: None,
        tree: uts::<GEOMETRIC_2L>,
    },
    Published {
        name: "lace-uts-t3l",
        sequential: 43.11,
        leapfrog: (44.2, 2.23),
        transitive: Some((44.27, 1.172)),
        random: Some((44.26, 1.154)),
        tree: uts::<BINOMIAL_3L>,
    },
    Published {
        name: "lace-queens",
        sequential: 533.0,
        leapfrog: (602.0, 12.63),
        transitive: None,
        random: None,
        tree: |size, whole| {
            let n = size.pick(6, 11, 15, 15);
            Box::new(QueensTree { n, form: Form::Lace, unit: whole / QUEENS_TASKS })
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::engine::{Prices, Setting};
    use crate::replay::strategy::Strategy;

    #[test]
    fn one_worker_takes_what_the_paper_says() {
        // The whole of Fibonacci 50, most of it as strands.
        let fib = TABLE[0].tree(Size::Full);
        let topology = TOPOLOGY.parse().unwrap();
        let prices = Prices::default();
        let strategy = Strategy::Leapfrog;
        let setting = Setting { workers: 1, topology: &topology, prices, strategy, seed: 1 };
        let seconds = fib.replay(&setting).unwrap().makespan as f64 / 1e12;
        assert!((seconds / 144.0 - 1.0).abs() < 1e-3, "{seconds}");
    }
}
