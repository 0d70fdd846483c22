//! The papers' own figures, redone: which runs each needs, and their figures beside ours.
//!
//! Sources: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors* (`fence-..`), and
//! van Dijk and van de Pol, *Lace* (`lace-..`). The fence-free paper prints its bars without numbers: what
//! stands here is what its text says of them.

use anyhow::{Result, bail};

/// A figure or table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct PaperFigure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Which it is.
    pub title: &'static str,
    /// The suite that measures it.
    pub suite: &'static str,
    /// The programs in it.
    pub workloads: &'static [&'static str],
    /// What the others are a multiple of, with as many workers.
    pub baseline: &'static str,
    /// What the paper compares with that.
    pub systems: &'static [&'static str],
    /// What is shown with them though the paper has it not.
    pub ours: &'static [&'static str],
    /// With how many workers.
    pub workers: Workers,
    /// What it shows.
    pub(super) shows: Shows,
    /// What the paper has there: of what, and what it says.
    pub(super) paper: &'static [(&'static str, &'static str)],
}

/// With how many workers a figure is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One.
    One,
    /// One, and as many as there are processors.
    OneAndAll,
    /// These.
    Exactly(&'static [usize]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Times as a multiple of the baseline's with as many workers.
    Ratios,
    /// The share of tasks that were stolen.
    Stolen,
    /// Seconds, and how many times as fast as the baseline and as with one worker.
    Times,
    /// As a table the same; drawn, the time of the same system's one worker over that of so many.
    SpeedUps,
    /// Counters.
    Counters(&'static [&'static str]),
}

/// The programs of the fence-free paper's Table 1.
pub(super) const CILK: [&str; 11] = [
    "fib",
    "jacobi",
    "quicksort",
    "matmul",
    "integrate",
    "knapsack",
    "cholesky",
    "heat",
    "lud",
    "strassen",
    "fft",
];
pub(super) const CLOSURES: [&str; 3] = ["closure-k-graph", "closure-random", "closure-torus"];
pub(super) const LACE: [&str; 5] = ["fib", "uts-t2l", "uts-t3l", "queens", "matmul"];

/// Every figure that there is.
pub const FIGURES: [PaperFigure; 9] = [
    PaperFigure {
        name: "fence-1",
        title: "Fence-free, Figure 1: one worker without the fence in pop, over THE",
        suite: "fork-join",
        workloads: &CILK,
        baseline: "the",
        systems: &["asymmetric-the"],
        ours: &[],
        workers: Workers::One,
        shows: Shows::Ratios,
        paper: &[("all", "the fence is up to about 25 % of the time (Haswell)")],
    },
    PaperFigure {
        name: "fence-10",
        title: "Fence-free, Figure 10: run time over THE",
        suite: "fork-join",
        workloads: &CILK,
        baseline: "the",
        systems: &["thep", "thep-infinite", "ff-the", "ff-the-measured", "ff-the-4"],
        ours: &["asymmetric-the"],
        workers: Workers::OneAndAll,
        shows: Shows::Ratios,
        paper: &[
            ("thep", "0.93 on average (Westmere-EX, 10 threads), 0.89 (Haswell, 4), 0.77 at best"),
            ("ff-the", "6 of 11 programs run at single-thread speed with the default delta"),
            ("ff-the-4", "all programs but lud are stolen from"),
        ],
    },
    PaperFigure {
        name: "fence-11a",
        title: "Fence-free, Figure 11a: transitive closure, run time over Chase-Lev",
        suite: "graphs",
        workloads: &CLOSURES,
        baseline: "chase-lev",
        systems: &["ff-cl", "idempotent-lifo", "idempotent-deque"],
        ours: &["asymmetric-cl"],
        workers: Workers::OneAndAll,
        shows: Shows::Ratios,
        paper: &[
            ("ff-cl", "0.83 on average, about 0.67 on the torus (Haswell)"),
            ("idempotent-lifo", "about 0.67 on the torus; all fence-free queues are alike"),
        ],
    },
    PaperFigure {
        name: "fence-11b",
        title: "Fence-free, Figure 11b: transitive closure, share of stolen tasks in percent",
        suite: "graphs",
        workloads: &CLOSURES,
        baseline: "chase-lev",
        systems: &["chase-lev", "ff-cl", "idempotent-lifo", "idempotent-deque"],
        ours: &["asymmetric-cl"],
        workers: Workers::OneAndAll,
        shows: Shows::Stolen,
        paper: &[(
            "all",
            "the vast majority of the work is the owners'; ff-cl's share is not zero",
        )],
    },
    PaperFigure {
        name: "lace-5",
        title: "Lace, Figure 5: seconds and speed-ups",
        suite: "fork-join",
        workloads: &LACE,
        baseline: "sequential",
        systems: &["sequential", "split", "private"],
        ours: &[],
        workers: Workers::OneAndAll,
        shows: Shows::Times,
        paper: &[
            ("fib 50", "T_S 149.2, T_1 144, T_48 4.13 (T_1/T_48 34.9); private 208, 5.22 (39.8)"),
            ("uts-t2l", "T_S 84.5, T_1 86.0, T_48 1.81 (47.4); private 86.1, 1.83 (47.0)"),
            ("uts-t3l", "T_S 43.11, T_1 44.2, T_48 2.23 (19.9); private 44.8, 2.55 (17.5)"),
            ("queens 15", "T_S 533, T_1 602, T_48 12.63 (47.7); private 541, 11.34 (47.7)"),
            ("matmul 4096", "T_S 773, T_1 781, T_48 16.46 (47.5); private 774, 16.34 (47.4)"),
        ],
    },
    PaperFigure {
        name: "lace-6",
        title: "Lace, Figure 6: speed-up over workers",
        suite: "fork-join",
        workloads: &["fib", "uts-t3l"],
        baseline: "sequential",
        systems: &["sequential", "split", "private"],
        ours: &[],
        workers: Workers::OneAndAll,
        shows: Shows::Times,
        paper: &[("all", "fib goes on to 48 workers; uts-t3l is held back after 16")],
    },
    PaperFigure {
        name: "lace-7",
        title: "Lace, Figure 7: counters of the split deque",
        suite: "fork-join",
        workloads: &LACE,
        baseline: "split",
        systems: &["split"],
        ours: &[],
        workers: Workers::OneAndAll,
        shows: Shows::Counters(&["steals", "leaps", "grows", "shrinks"]),
        paper: &[
            ("fib 50, 48 workers", "865 steals, 50,569 leaps, 70,789 grows, 97,750 shrinks"),
            ("uts-t2l", "4,554; 82,440; 72,222; 57,701"),
            ("uts-t3l", "158,566; 4,443,432; 2,173,006; 846,509"),
            ("queens 15", "1,964; 6,053; 5,694; 6,618"),
            ("matmul 4096", "2,492; 12,456; 13,081; 9,911"),
        ],
    },
    PaperFigure {
        name: "lace-8",
        title: "Lace, Figures 5 and 8: 48 workers, simulated, by the way of waiting",
        suite: "simulate",
        workloads: &["lace-fib", "lace-uts-t3l", "lace-queens"],
        baseline: "published-sequential",
        systems: &[
            "published-sequential",
            "published-leapfrog",
            "leapfrog",
            "published-transitive",
            "transitive",
            "published-random",
            "random",
        ],
        ours: &[],
        workers: Workers::Exactly(&[1, 48]),
        shows: Shows::SpeedUps,
        paper: &[
            ("T_1/T_48", "fib 34.9, queens 47.7; uts-t3l 19.9 by leapfrogging"),
            ("uts-t3l", "37.8 by transitive leapfrogging (Wool), 38.3 at random"),
        ],
    },
    PaperFigure {
        name: "lace-7-simulated",
        title: "Lace, Figure 7: counters of 48 simulated workers",
        suite: "simulate",
        workloads: &["lace-fib", "lace-uts-t3l", "lace-queens"],
        baseline: "leapfrog",
        systems: &["leapfrog"],
        ours: &[],
        workers: Workers::Exactly(&[48]),
        shows: Shows::Counters(&["steals", "leaps", "grows", "shrinks", "depth"]),
        paper: &[
            ("fib 50", "865 steals, 50,569 leaps, 70,789 grows, 97,750 shrinks"),
            ("uts-t3l", "158,566; 4,443,432; 2,173,006; 846,509; depth 6,500 to 12,500"),
            ("queens 15", "1,964; 6,053; 5,694; 6,618"),
        ],
    },
];

impl PaperFigure {
    /// The figure of this name.
    ///
    /// # Errors
    ///
    /// If there is none; the message says which there are.
    pub fn find(name: &str) -> Result<&'static PaperFigure> {
        if let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) {
            return Ok(figure);
        }
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        bail!("there is no figure `{name}`: there is {}", names.join(", "))
    }

    /// The numbers of workers that it takes on a machine of so many processors.
    pub fn workers(&self, cores: usize) -> Vec<usize> {
        match self.workers {
            Workers::Exactly(workers) => workers.to_vec(),
            Workers::OneAndAll if cores > 1 => vec![1, cores],
            Workers::One | Workers::OneAndAll => vec![1],
        }
    }

    /// Whether it shows rows with so many workers.
    pub fn has(&self, workers: usize) -> bool {
        match self.workers {
            Workers::One => workers == 1,
            Workers::OneAndAll => true,
            Workers::Exactly(these) => these.contains(&workers),
        }
    }

    /// The systems that must run for it.
    pub fn all_systems(&self) -> Vec<&'static str> {
        let mut systems = vec![self.baseline];
        let others = self.systems.iter().chain(self.ours);
        systems.extend(others.filter(|system| **system != self.baseline));
        systems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;

    #[test]
    fn what_figure_there_is_not() {
        let error = PaperFigure::find("lace-9").unwrap_err().to_string();
        assert!(error.contains("there is no figure `lace-9`: there is fence-1, "), "{error}");
    }

    #[test]
    fn every_figure_asks_for_what_its_suite_has() {
        for figure in &FIGURES {
            let suite = crate::find(figure.suite).unwrap();
            let workers = figure.workers(2);
            let size = crate::Size::Full;
            let cases = suite.cases(&Request { size, workers, thread_stack: 2 << 20 });
            for workload in figure.workloads {
                assert!(cases.iter().any(|case| case.workload == *workload), "{workload}");
            }
            let baseline = cases.iter().any(|case| case.system == figure.baseline);
            assert!(baseline, "{}: {}", figure.name, figure.baseline);
        }
    }
}
