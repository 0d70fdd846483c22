//! The papers' own figures, redone: which runs each needs, and their figures beside ours.
//!
//! Sources: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors* (`fence-..`), and
//! van Dijk and van de Pol, *Lace* (`lace-..`). The fence-free paper prints its bars without numbers: what
//! stands here is what its text says of them.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::{bars, curve};
use crate::{Document, Row, geometric_mean};

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
    /// What is compared with that.
    pub systems: &'static [&'static str],
    /// With how many workers.
    pub workers: Workers,
    /// What it shows.
    shows: Shows,
    /// What the paper has there: of what, and what it says.
    paper: &'static [(&'static str, &'static str)],
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
enum Shows {
    /// Times as a multiple of the baseline's with as many workers.
    Ratios,
    /// The share of tasks that were stolen.
    Stolen,
    /// Seconds, and how many times as fast as the baseline and as with one worker.
    Times,
    /// Counters.
    Counters(&'static [&'static str]),
}

/// The programs of the fence-free paper's Table 1.
const CILK: [&str; 11] = [
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
const CLOSURES: [&str; 3] = ["closure-k-graph", "closure-random", "closure-torus"];
const LACE: [&str; 5] = ["fib", "uts-t2l", "uts-t3l", "queens", "matmul"];

/// Every figure that there is.
pub const FIGURES: [PaperFigure; 9] = [
    PaperFigure {
        name: "fence-1",
        title: "Fence-free, Figure 1: one worker without the fence in pop, over THE",
        suite: "fork-join",
        workloads: &CILK,
        baseline: "the",
        systems: &["asymmetric-the"],
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
        systems: &["thep", "thep-infinite", "ff-the", "ff-the-measured", "asymmetric-the"],
        workers: Workers::OneAndAll,
        shows: Shows::Ratios,
        paper: &[
            ("thep", "0.93 on average (Westmere-EX, 10 threads), 0.89 (Haswell, 4), 0.77 at best"),
            ("ff-the", "6 of 11 programs run at single-thread speed with the default delta"),
        ],
    },
    PaperFigure {
        name: "fence-11a",
        title: "Fence-free, Figure 11a: transitive closure, run time over Chase-Lev",
        suite: "graphs",
        workloads: &CLOSURES,
        baseline: "chase-lev",
        systems: &["ff-cl", "asymmetric-cl", "idempotent-lifo", "idempotent-deque"],
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
        systems: &["chase-lev", "ff-cl", "asymmetric-cl", "idempotent-lifo", "idempotent-deque"],
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
        workers: Workers::Exactly(&[1, 48]),
        shows: Shows::Times,
        paper: &[
            ("T_1/T_48", "fib 34.9, queens 47.7; uts-t3l 19.9 by leapfrogging"),
            ("uts-t3l", "37.8 by transitive leapfrogging (Wool), 38.3 at random"),
        ],
    },
    PaperFigure {
        name: "lace-8-counters",
        title: "Lace, Figure 7: 48 workers, simulated",
        suite: "simulate",
        workloads: &["lace-fib", "lace-uts-t3l", "lace-queens"],
        baseline: "leapfrog",
        systems: &["leapfrog"],
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

    /// The systems that must run for it.
    pub fn all_systems(&self) -> Vec<&'static str> {
        let mut systems = vec![self.baseline];
        systems.extend(self.systems.iter().filter(|system| **system != self.baseline));
        systems
    }

    /// The rows of `document` that it shows.
    fn rows<'d>(&self, document: &'d Document) -> impl Iterator<Item = &'d Row> {
        document.rows.iter().filter(|row| {
            row.suite == self.suite
                && self.workloads.contains(&row.workload.as_str())
                && self.systems.contains(&row.system.as_str())
        })
    }

    fn base<'d>(&self, document: &'d Document, row: &Row) -> Option<&'d Row> {
        let alone = self.baseline.ends_with("sequential");
        let workers = if alone { 1 } else { row.workers };
        document.row(&row.suite, &row.workload, self.baseline, workers)
    }

    /// What the figure shows of a row: p10, median and p90, or what takes their place.
    fn values(&self, document: &Document, row: &Row) -> Option<[f64; 3]> {
        let all = [row.p10, row.median, row.p90];
        match self.shows {
            Shows::Ratios | Shows::Times => {
                let base = self.base(document, row)?.median;
                (base > 0.0).then(|| all.map(|value| value / base))
            }
            Shows::Stolen => {
                let (stolen, tasks) = (row.counters.get("stolen")?, row.counters.get("tasks")?);
                (*tasks > 0.0).then(|| [100.0 * stolen / tasks; 3])
            }
            Shows::Counters(names) => {
                let first = *row.counters.get(*names.first()?)?;
                Some([first; 3])
            }
        }
    }

    /// The figure as a table for a terminal, or `None` if nothing of it was run.
    pub fn text(&self, document: &Document) -> Option<String> {
        let mut text = format!("{}\n", self.title);
        let mut any = false;
        for row in self.rows(document) {
            let Some([low, middle, high]) = self.values(document, row) else { continue };
            any = true;
            let mark = if row.oversubscribed { "*" } else { "" };
            let _ =
                write!(text, "  {:18} {:>4}{mark:1} {:22}", row.workload, row.workers, row.system);
            let _ = match self.shows {
                Shows::Ratios => writeln!(text, "{middle:8.3}  ({low:.3} to {high:.3})"),
                Shows::Stolen => writeln!(text, "{middle:8.3} %"),
                Shows::Times => {
                    let one = document.row(&row.suite, &row.workload, &row.system, 1);
                    let over = one.map_or(String::new(), |one| {
                        format!(", T_1/T_n {:.2}", one.median / row.median)
                    });
                    writeln!(text, "{:10.4} s  T_S/T_n {:.2}{over}", row.median, 1.0 / middle)
                }
                Shows::Counters(names) => {
                    let count = |name: &&str| {
                        let value = row.counters.get(*name).copied().unwrap_or(f64::NAN);
                        format!("{value:.0} {name}")
                    };
                    writeln!(text, "{}", names.iter().map(count).collect::<Vec<_>>().join(", "))
                }
            };
        }
        if self.shows == Shows::Ratios {
            text.push_str(&self.means(document));
        }
        for (of, says) in self.paper {
            let _ = writeln!(text, "  the paper: {of}: {says}");
        }
        any.then_some(text)
    }

    /// The geometric mean of each system over the programs.
    fn means(&self, document: &Document) -> String {
        let mut text = String::new();
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for row in self.rows(document) {
            let this = (row.system.as_str(), row.workers);
            if seen.contains(&this) || row.system == self.baseline {
                continue;
            }
            seen.push(this);
            let same = self.rows(document).filter(|r| (r.system.as_str(), r.workers) == this);
            let ratios: Vec<f64> =
                same.filter_map(|row| Some(self.values(document, row)?[1])).collect();
            if let Some(mean) = geometric_mean(ratios.iter().copied()) {
                let _ = writeln!(
                    text,
                    "  {:18} {:>4}  {:22}{mean:8.3}  of {}",
                    "geometric mean",
                    this.1,
                    this.0,
                    ratios.len()
                );
            }
        }
        text
    }

    /// The figure as SVG, one for each number of workers, or a curve over them.
    pub(super) fn draw(&self, document: &Document) -> Result<Vec<(String, String)>> {
        let mut part = document.clone();
        part.rows = self.rows(document).cloned().collect();
        let mut workers: Vec<usize> = part.rows.iter().map(|row| row.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let mut figures = Vec::new();
        if self.name == "lace-6" {
            let svg = curve::draw(&part, self.suite, &workers)?;
            figures.extend(svg.map(|svg| (format!("{}.svg", self.name), svg)));
            return Ok(figures);
        }
        let axis = match self.shows {
            Shows::Ratios | Shows::Times => format!("time, as a multiple of {}", self.baseline),
            Shows::Stolen => "stolen tasks, percent".to_owned(),
            Shows::Counters(names) => names.first().copied().unwrap_or_default().to_owned(),
        };
        for count in workers {
            let values = |row: &Row| self.values(document, row);
            let svg = bars::draw_values(&part, self.suite, count, self.title, &axis, &values)?;
            figures.extend(svg.map(|svg| (format!("{}-{count}-workers.svg", self.name), svg)));
        }
        Ok(figures)
    }
}

/// Each figure that `document` has the rows of, as tables for a terminal, and the papers' claims.
pub fn text(document: &Document) -> String {
    let tables = FIGURES.iter().filter_map(|figure| figure.text(document));
    let mut text: String = tables.map(|table| table + "\n").collect();
    let claims = claims(document);
    if !claims.is_empty() {
        text.push_str("The papers' claims\n");
        for (claim, paper, ours) in claims {
            let _ = writeln!(text, "  {claim}\n    the paper: {paper}\n    here:      {ours}");
        }
    }
    text
}

/// What the papers claim of their queues, what they say, and what the rows of `document` say.
pub(super) fn claims(document: &Document) -> Vec<(&'static str, &'static str, String)> {
    let most = |suite: &str| {
        let rows = document.rows.iter().filter(|row| row.suite == suite && !row.oversubscribed);
        rows.map(|row| row.workers).max().unwrap_or(1)
    };
    let ratios = |suite: &str, programs: &[&str], system: &str, base: &str| -> Vec<(String, f64)> {
        let workers = most(suite);
        let ratio = |program: &&str| {
            let one = document.row(suite, program, system, workers)?.median;
            Some(((*program).to_owned(), one / document.row(suite, program, base, workers)?.median))
        };
        programs.iter().filter_map(ratio).collect()
    };
    let summary = |suite: &str, ratios: &[(String, f64)]| {
        let mean = geometric_mean(ratios.iter().map(|(_, ratio)| *ratio))?;
        let best = ratios.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let workers = most(suite);
        Some(format!(
            "{mean:.3} of its time on average over {} programs, {:.3} at best ({}), {workers} \
             workers",
            ratios.len(),
            best.1,
            best.0
        ))
    };
    let mut claims = Vec::new();
    for (claim, paper, suite, programs, system, base) in [
        (
            "THEP against THE, Cilk's programs",
            "0.93 (Westmere-EX) and 0.89 (Haswell), 0.77 at best",
            "fork-join",
            &CILK[..],
            "thep",
            "the",
        ),
        (
            "FF-CL against Chase-Lev, transitive closure",
            "0.83 on average, 0.67 on the torus",
            "graphs",
            &CLOSURES[..],
            "ff-cl",
            "chase-lev",
        ),
        (
            "split against private, Lace's programs",
            "T_48 of split over private: 0.79 to 1.11",
            "fork-join",
            &LACE[..],
            "split-queue",
            "private",
        ),
    ] {
        let ratios = ratios(suite, programs, system, base);
        if let Some(ours) = summary(suite, &ratios) {
            claims.push((claim, paper, ours));
        }
    }
    for system in ["ff-the", "ff-the-measured"] {
        let workers = most("fork-join");
        // A clock tells little of a program of milliseconds; the count of steals tells it all.
        let stolen: Vec<(&str, f64)> = CILK
            .iter()
            .filter_map(|program| {
                let row = document.row("fork-join", program, system, workers)?;
                Some((*program, *row.counters.get("stolen")?))
            })
            .collect();
        if workers > 1 && !stolen.is_empty() {
            let none = stolen.iter().filter(|(_, stolen)| *stolen == 0.0);
            let names: Vec<&str> = none.map(|(name, _)| *name).collect();
            let ours = format!(
                "{system}: thieves got nothing in {} of {} with {workers} workers: {}",
                names.len(),
                stolen.len(),
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            );
            claims.push((
                "FF-THE's thieves give up near the owner",
                "nothing is stolen in 6 of 11 programs with the default delta",
                ours,
            ));
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Plan, Request, Sample, Session, Suite, Unit};

    /// Made-up seconds of THE and THEP on two of Cilk's programs, and of FF-THE, which steals on one.
    struct MadeUp;

    impl Suite for MadeUp {
        fn name(&self) -> &'static str {
            "fork-join"
        }

        fn about(&self) -> &'static str {
            "made up"
        }

        fn cases(&self, _request: &Request) -> Vec<Case> {
            let case = |workload, system: &str, workers, seconds, stolen| {
                Case::new(workload, system, workers, Unit::SECONDS, move || {
                    Ok(move || Ok(Sample::from(seconds).count("stolen", stolen)))
                })
                .computed()
            };
            vec![
                case("fib", "the", 2, 2.0, 1.0),
                case("fib", "thep", 2, 1.0, 1.0),
                case("fib", "ff-the", 2, 4.0, 0.0),
                case("heat", "the", 2, 1.0, 1.0),
                case("heat", "thep", 2, 2.0, 1.0),
                case("heat", "ff-the", 2, 1.0, 3.0),
            ]
        }
    }

    fn document() -> Document {
        let session = Session::new(Plan { workers: vec![2], rounds: 1, ..Plan::quick() });
        session.run(&MadeUp, &|_| {}).unwrap();
        session.document()
    }

    #[test]
    fn ratios_and_means_by_hand() {
        let text = PaperFigure::find("fence-10").unwrap().text(&document()).unwrap();
        let line = |program: &str, system: &str| {
            let has = |line: &&str| line.contains(program) && line.contains(system);
            text.lines().find(has).unwrap_or_default().to_owned()
        };
        assert!(line("fib", "thep").contains("0.500"), "{text}");
        assert!(line("heat", "thep").contains("2.000"), "{text}");
        assert!(line("geometric mean", "thep").contains("1.000"), "{text}");
        assert!(text.contains("the paper: thep: 0.93 on average"), "{text}");
        assert!(PaperFigure::find("lace-5").unwrap().text(&document()).is_none());
    }

    #[test]
    fn claims_by_hand() {
        let claims = claims(&document());
        assert_eq!(claims.len(), 2);
        assert!(claims[0].2.starts_with("1.000 of its time on average over 2 programs, 0.500"));
        assert!(claims[1].2.contains("in 1 of 2 with 2 workers: fib"), "{}", claims[1].2);
    }

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
