//! What the papers claim, and what the rows of a document say of it: a claim in the papers, theirs,
//! ours, its interval, and why they differ. All numbers of ours are made from the rows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::papers::{FIGURES, PaperFigure};
use crate::words::figure;
use crate::{Document, Ratio, Row};

/// A claim of a paper, as the figure that shows it has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) what: &'static str,
    pub(super) theirs: &'static str,
    /// Why ours differs: a sentence, or the name of one of [`REASONS`].
    why: &'static str,
    ours: Ours,
    /// What stands around our number.
    #[serde(default, rename = "as")]
    around: Option<&'static str>,
}

/// A workload, a system, and how many workers: without a number, the most that its suite has up to
/// the number of processors.
type Place = (&'static str, &'static str, Option<usize>);

/// What is read from the rows of the figure's suite. Workloads that are not named are the figure's.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Ours {
    /// One row over another.
    Ratio(Place, Place),
    /// One worker's time over this.
    SpeedUp(Place),
    /// One system over another: the geometric mean over workloads.
    Mean {
        system: &'static str,
        over: &'static str,
        #[serde(default)]
        workers: Option<usize>,
        #[serde(default)]
        programs: Option<Vec<&'static str>>,
    },
    /// A row's own value, from its least sample to its greatest.
    Value(Place),
    /// A counter of a row.
    Counter(Place, &'static str),
    /// The share of tasks that were stolen from this system.
    Stolen(&'static str),
    /// The workloads in which nothing was stolen from this system.
    NoneStolen(&'static str),
}

#[cfg(test)]
impl Claim {
    /// The workloads and the systems that it names.
    pub(super) fn names(&self) -> (Vec<&'static str>, Vec<&'static str>) {
        match &self.ours {
            Ours::Ratio(row, base) => (vec![row.0, base.0], vec![row.1, base.1]),
            Ours::SpeedUp(row) | Ours::Value(row) | Ours::Counter(row, _) => {
                (vec![row.0], vec![row.1])
            }
            Ours::Mean { system, over, programs, .. } => {
                (programs.clone().unwrap_or_default(), vec![system, over])
            }
            Ours::Stolen(system) | Ours::NoneStolen(system) => (Vec::new(), vec![system]),
        }
    }
}

/// Reasons that several claims have.
static REASONS: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../papers/reasons.json")).expect("reasons by their names")
});

/// A claim beside what was measured.
pub(super) struct Claimed {
    pub(super) figure: &'static str,
    pub(super) claim: &'static Claim,
    pub(super) ours: String,
    pub(super) interval: String,
    pub(super) why: &'static str,
}

/// The claims that `document` has rows of.
pub(super) fn claims(document: &Document) -> Vec<Claimed> {
    let all = FIGURES.iter().flat_map(|figure| figure.claims.iter().map(move |it| (figure, it)));
    let claimed = all.filter_map(|(figure, claim)| {
        let (ours, interval) = Rows::of(figure, document).say(&claim.ours)?;
        let ours = claim.around.map_or(ours.clone(), |around| around.replace("{}", &ours));
        let why = REASONS.get(claim.why).copied().unwrap_or(claim.why);
        Some(Claimed { figure: figure.name, claim, ours, interval, why })
    });
    claimed.collect()
}

/// What rows say: the value, and its interval.
type Said = Option<(String, String)>;

fn said(Ratio { low, value, high }: Ratio) -> (String, String) {
    let interval = if low < high {
        format!("{low:.3} to {high:.3}")
    } else {
        "none: too few samples, or all alike".to_owned()
    };
    (format!("{value:.3}"), interval)
}

/// The rows that a figure's claims are about.
struct Rows<'d> {
    document: &'d Document,
    figure: &'static PaperFigure,
    /// The most workers that its suite has without more than the processors.
    most: usize,
}

impl<'d> Rows<'d> {
    fn of(figure: &'static PaperFigure, document: &'d Document) -> Self {
        let of_suite = |row: &&Row| row.suite == figure.suite && !row.oversubscribed;
        let most = document.rows.iter().filter(of_suite).map(|row| row.workers).max().unwrap_or(1);
        Rows { document, figure, most }
    }

    fn at(&self, (workload, system, workers): Place) -> Option<&'d Row> {
        self.document.row(self.figure.suite, workload, system, workers.unwrap_or(self.most))
    }

    fn say(&self, ours: &Ours) -> Said {
        match ours {
            Ours::Ratio(row, base) => self.at(*row)?.over(self.at(*base)?).map(said),
            Ours::SpeedUp(place) => {
                let many = self.at(*place).filter(|row| row.workers > 1)?;
                let one = self.at((place.0, place.1, Some(1)))?;
                let (value, interval) = said(one.over(many)?);
                Some((format!("{value} on {}", many.workers), interval))
            }
            Ours::Mean { system, over, workers, programs } => {
                let ratio = |program: &&'static str| {
                    let row = self.at((program, system, *workers))?;
                    Some((*program, row.over(self.at((program, over, *workers))?)?))
                };
                let programs = programs.as_ref().unwrap_or(&self.figure.workloads);
                mean(&programs.iter().filter_map(ratio).collect::<Vec<_>>())
            }
            Ours::Value(place) => {
                let row = self.at(*place)?;
                let most = row.samples.iter().copied().fold(row.min, f64::max);
                Some((
                    format!("{} {}", row.median, row.unit),
                    format!("{} to {most} in {} samples", row.min, row.samples.len()),
                ))
            }
            Ours::Counter(place, name) => {
                let row = self.at(*place)?;
                let samples = row.counter_samples.get(*name)?;
                let (least, most) = ends(samples);
                let ours = format!("{} on {}", figure(*row.counters.get(*name)?), row.workers);
                let (least, most) = (figure(least), figure(most));
                Some((ours, format!("{least} to {most} in {} samples", samples.len())))
            }
            Ours::Stolen(system) => {
                let share = |(_, row): (&str, &Row)| {
                    let tasks = row.counters.get("tasks").filter(|tasks| **tasks > 0.0)?;
                    Some(100.0 * row.counters.get("stolen")? / tasks)
                };
                let shares: Vec<f64> = self.each(system).filter_map(share).collect();
                let (least, most) = ends(&shares);
                let ours = format!("{least:.3} to {most:.3} by graph");
                (!shares.is_empty()).then(|| (ours, COUNTERS.to_owned()))
            }
            // A clock tells little of a program of milliseconds; the count of steals tells it all.
            Ours::NoneStolen(system) => {
                let counts: Vec<(&str, f64)> = self
                    .each(system)
                    .filter_map(|(program, row)| Some((program, *row.counters.get("stolen")?)))
                    .collect();
                if self.most == 1 || counts.is_empty() {
                    return None;
                }
                let (of, most) = (counts.len(), self.most);
                let none = counts.into_iter().filter(|(_, stolen)| *stolen == 0.0);
                let names: Vec<&str> = none.map(|(program, _)| program).collect();
                let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let count = names.len();
                let ours = format!("{system}: {count} of {of} on {most} workers: {list}");
                Some((ours, COUNTERS.to_owned()))
            }
        }
    }

    /// The rows of a system with the most workers, by workload.
    fn each(&self, system: &'static str) -> impl Iterator<Item = (&'static str, &'d Row)> {
        let row =
            move |workload: &&'static str| Some((*workload, self.at((workload, system, None))?));
        self.figure.workloads.iter().filter_map(row)
    }
}

const COUNTERS: &str = "medians of counters";

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)))
}

/// Of the geometric mean over programs: the intervals of the programs as if their errors were
/// independent and their logarithms normal.
fn mean(ratios: &[(&str, Ratio)]) -> Said {
    let best = ratios.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let count = ratios.len() as f64;
    let log = ratios.iter().map(|(_, ratio)| ratio.value.ln()).sum::<f64>() / count;
    let spread = |ratio: &Ratio| (ratio.high / ratio.low).ln() / 2.0;
    let half = ratios.iter().map(|(_, ratio)| spread(ratio).powi(2)).sum::<f64>().sqrt() / count;
    let ratio = Ratio { value: log.exp(), low: (log - half).exp(), high: (log + half).exp() };
    let (value, interval) = said(ratio);
    let best = format!("{:.3} at best ({})", best.1.value, best.0);
    Some((format!("{value} on average over {} programs, {best}", ratios.len()), interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;
    use crate::harness::document::CaseName;

    fn document(rows: &[(&'static str, &str, f64, f64)]) -> Document {
        let mut document = Document::new("tiny");
        for (workload, system, seconds, stolen) in rows {
            let case = CaseName::of(&Case::timed(workload, *system, 2, || Ok(())));
            for round in 0..5 {
                let sample = crate::Sample::from(*seconds).count("stolen", *stolen);
                document.add("fork-join", &case, sample, (round, 1));
            }
        }
        document.machine.cores = 2;
        document.rows.iter_mut().for_each(|row| row.oversubscribed = false);
        document
    }

    #[test]
    fn claims_by_hand() {
        let claims = claims(&document(&[
            ("fib", "the", 2.0, 1.0),
            ("fib", "thep", 1.0, 1.0),
            ("fib", "ff-the", 4.0, 0.0),
            ("heat", "the", 1.0, 1.0),
            ("heat", "thep", 2.0, 1.0),
            ("heat", "ff-the", 1.0, 3.0),
        ]));
        assert_eq!(claims.len(), 2);
        assert_eq!(claims[0].ours, "1.000 on average over 2 programs, 0.500 at best (fib)");
        assert_eq!(
            claims[0].interval, "none: too few samples, or all alike",
            "all samples are alike"
        );
        assert_eq!(claims[1].ours, "ff-the: 1 of 2 on 2 workers: fib");
        assert!(claims.iter().all(|claim| !claim.why.is_empty() && !claim.claim.theirs.is_empty()));
    }

    #[test]
    fn the_interval_of_a_mean_is_narrower_than_those_of_its_programs() {
        let ratio = Ratio { value: 1.0, low: 0.9, high: 1.0 / 0.9 };
        let four = vec![("a", ratio); 4];
        assert_eq!(mean(&four).unwrap().1, "0.949 to 1.054");
        assert_eq!(mean(&[]), None);
    }
}
