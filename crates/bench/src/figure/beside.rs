//! A paper's figure, made from the rows of a document: a table of ours with what the paper says
//! below it, and the drawing.

use std::fmt::Write as _;

use anyhow::Result;

use super::bars::Axis;
use super::claims::{Claim, Claimed, claims};
use super::common::Svg;
use super::papers::{FIGURES, PaperFigure, Shows};
use super::{bars, curve, rates};
use crate::words::figure;
use crate::{Document, Ratio, Row, geometric_mean};

/// One of the papers' figures as a table.
pub(super) struct Beside {
    pub(super) figure: &'static PaperFigure,
    pub(super) lines: Vec<Line>,
}

/// A line of it.
pub(super) struct Line {
    pub(super) program: String,
    /// With an asterisk if they were more than the processors.
    pub(super) workers: String,
    pub(super) system: String,
    pub(super) value: String,
}

/// Each figure that `document` has the rows of.
pub(super) fn all(document: &Document) -> Vec<Beside> {
    FIGURES.iter().filter_map(|figure| figure.beside(document)).collect()
}

impl PaperFigure {
    /// The rows of `document` that it shows.
    fn rows<'d>(&self, document: &'d Document) -> impl Iterator<Item = &'d Row> {
        document.rows.iter().filter(|row| {
            let system = row.system.as_str();
            self.has(row.workers)
                && row.suite == self.suite
                && self.workloads.contains(&row.workload.as_str())
                && (self.systems.contains(&system) || self.ours.contains(&system))
        })
    }

    /// Whether `document` has something of what the paper compares: rows of the baseline, or of
    /// systems that the paper has not, are no figure of it.
    fn is_in(&self, document: &Document) -> bool {
        let alone = self.systems == [self.baseline];
        self.rows(document).any(|row| {
            let system = row.system.as_str();
            self.systems.contains(&system) && (alone || system != self.baseline)
        })
    }

    fn base<'d>(&self, document: &'d Document, row: &Row) -> Option<&'d Row> {
        let workers = if self.is_over_sequential() { 1 } else { row.workers };
        document.row(&row.suite, &row.workload, self.baseline, workers)
    }

    /// What the figure shows of a row, between the ends of its whisker.
    fn values(&self, document: &Document, row: &Row) -> Option<[f64; 3]> {
        match &self.shows {
            Shows::Rates | Shows::RateCurves(_) | Shows::StoreBuffer | Shows::Litmus => {
                Some([row.p10, row.median, row.p90])
            }
            Shows::CounterCurves(name) => Some([*row.counters.get(*name)?; 3]),
            Shows::Ratios | Shows::Times | Shows::TimeCurves => {
                let Ratio { low, value, high } = row.over(self.base(document, row)?)?;
                Some([low, value, high])
            }
            Shows::SpeedUps => {
                let one = document.row(&row.suite, &row.workload, &row.system, 1)?;
                let Ratio { low, value, high } = row.gain(one)?;
                (row.workers > 1).then_some([low, value, high])
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

    /// The figure as a table, or `None` if nothing of it was run.
    pub(super) fn beside(&'static self, document: &Document) -> Option<Beside> {
        if !self.is_in(document) {
            return None;
        }
        let line = |row: &Row| {
            Some(Line {
                program: row.workload.clone(),
                workers: format!("{}{}", row.workers, if row.oversubscribed { "*" } else { "" }),
                system: row.system.clone(),
                value: self.value(document, row)?,
            })
        };
        let mut lines: Vec<Line> = self.rows(document).filter_map(line).collect();
        if lines.is_empty() {
            return None;
        }
        if self.shows == Shows::Ratios {
            lines.extend(self.means(document));
        }
        Some(Beside { figure: self, lines })
    }

    fn value(&self, document: &Document, row: &Row) -> Option<String> {
        Some(match &self.shows {
            Shows::Ratios => {
                let [low, middle, high] = self.values(document, row)?;
                format!("{middle:.3}  ({low:.3} to {high:.3})")
            }
            Shows::Stolen => format!("{:.3} %", self.values(document, row)?[1]),
            Shows::CounterCurves(name) => format!("{:.4} {name}", row.counters.get(*name)?),
            Shows::StoreBuffer | Shows::Litmus => {
                let known = row.counters.get(crate::suites::processor::KNOWN);
                let known =
                    known.map_or_else(String::new, |known| format!(", {known} were expected"));
                format!("{} {} ({} to {}){known}", row.median, row.unit, row.p10, row.p90)
            }
            Shows::Rates | Shows::RateCurves(_) => {
                let mut text = format!(
                    "{} {} ({} to {})",
                    figure(row.median),
                    row.unit,
                    figure(row.p10),
                    figure(row.p90)
                );
                if let Some(ratio) = self.base(document, row).and_then(|base| row.over(base)) {
                    let Ratio { low, value, high } = ratio;
                    let _ = write!(
                        text,
                        ", {value:.3} of `{}`  ({low:.3} to {high:.3})",
                        self.baseline
                    );
                }
                text
            }
            Shows::Times | Shows::TimeCurves | Shows::SpeedUps => {
                let mut text = format!("{:.4} s", row.median);
                // Writing to a string does not fail.
                if let Some(alone) = self.base(document, row).filter(|_| self.is_over_sequential())
                {
                    let _ = write!(text, ", T_S/T_n {:.2}", alone.median / row.median);
                }
                let one = document.row(&row.suite, &row.workload, &row.system, 1);
                if let Some(one) = one.filter(|_| row.workers > 1) {
                    let _ = write!(text, ", T_1/T_n {:.2}", one.median / row.median);
                }
                text
            }
            Shows::Counters(names) => {
                let count = |name: &&str| {
                    let value = row.counters.get(*name);
                    let value = value.map_or("no".to_owned(), |value| format!("{value:.0}"));
                    format!("{value} {name}")
                };
                names.iter().map(count).collect::<Vec<_>>().join(", ")
            }
        })
    }

    /// The geometric mean of each system over the programs.
    fn means(&self, document: &Document) -> Vec<Line> {
        let mut lines = Vec::new();
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
                lines.push(Line {
                    program: "geometric mean".to_owned(),
                    workers: format!("{}{}", this.1, if row.oversubscribed { "*" } else { "" }),
                    system: this.0.to_owned(),
                    value: format!("{mean:.3}  of {}", ratios.len()),
                });
            }
        }
        lines
    }

    /// The figure as SVG, one for each number of workers, or a curve over them.
    pub(super) fn draw(&self, document: &Document) -> Result<Vec<(String, Svg)>> {
        let mut figures = Vec::new();
        if !self.is_in(document) {
            return Ok(figures);
        }
        let mut part = document.clone();
        part.rows = self.rows(document).cloned().collect();
        let mut workers: Vec<usize> = part.rows.iter().map(|row| row.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        if let Some(svg) = rates::draw(self, &part)? {
            figures.push((format!("{}.svg", self.name), svg));
            return Ok(figures);
        }
        if self.shows == Shows::TimeCurves {
            let svg = curve::each(&part, self.suite, self.title)?;
            figures.extend(svg.map(|svg| (format!("{}.svg", self.name), svg)));
            return Ok(figures);
        }
        let axis = match &self.shows {
            Shows::Ratios | Shows::Times | Shows::TimeCurves => {
                format!("Time, as a multiple of `{}`: lower is better.", self.baseline)
            }
            Shows::SpeedUps => "Speed-up over one worker: higher is better.".to_owned(),
            Shows::Stolen => "Stolen tasks, percent of all.".to_owned(),
            Shows::Counters(names) => names.first().copied().unwrap_or_default().to_owned(),
            Shows::CounterCurves(name) => (*name).to_owned(),
            Shows::Rates | Shows::RateCurves(_) | Shows::StoreBuffer | Shows::Litmus => {
                let unit = part.rows.first().map_or("", |row| row.unit.as_str());
                format!("{unit}: higher is better. None of the pools gives FIFO order.")
            }
        };
        let ratio = matches!(self.shows, Shows::Ratios | Shows::Times);
        let note = match &self.shows {
            Shows::Rates => rates::PERCENTILES,
            Shows::Stolen | Shows::Counters(_) => "Medians of counters; they have no whiskers.",
            _ => bars::INTERVAL,
        };
        let axis = Axis { name: &axis, ratio, note };
        if self.shows == Shows::SpeedUps {
            workers.retain(|&count| count > 1);
        }
        for count in workers {
            let values = |row: &Row| self.values(document, row);
            let svg = bars::draw_values(&part, self.suite, count, self.title, axis, &values)?;
            figures.extend(svg.map(|svg| (format!("{}-{count}-workers.svg", self.name), svg)));
        }
        Ok(figures)
    }
}

/// Each figure that `document` has the rows of, as tables for a terminal, and the papers' claims.
pub fn text(document: &Document) -> String {
    let mut text = String::new();
    for beside in all(document) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", beside.figure.title);
        for Line { program, workers, system, value } in &beside.lines {
            let _ = writeln!(text, "  {program:18} {workers:>5} {system:22} {value}");
        }
        for (of, says) in &beside.figure.paper {
            let _ = writeln!(text, "  the paper: {of}: {says}");
        }
        text.push('\n');
    }
    let claims = claims(document);
    if !claims.is_empty() {
        text.push_str("The papers' claims\n");
        for Claimed { figure, claim, ours, interval, why } in claims {
            let Claim { what, theirs, .. } = claim;
            let _ = writeln!(
                text,
                "  {what} ({figure})\n    theirs:   {theirs}\n    ours:     {ours}\n    interval: {interval}\n    why:      {why}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Plan, Request, Sample, Session, Suite, Unit};

    /// Made-up seconds of THE and THEP on two of Cilk's programs, and of FF-THE, which steals on
    /// one.
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
                case("fib", "asymmetric-the", 2, 1.0, 1.0),
                case("fib", "unfenced-the", 2, 1.0, 1.0),
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
        let beside = PaperFigure::find("fence-10").unwrap().beside(&document()).unwrap();
        let value = |program: &str, system: &str| {
            let is = |line: &&Line| line.program == program && line.system == system;
            beside.lines.iter().find(is).map(|line| line.value.as_str()).unwrap()
        };
        assert_eq!(value("fib", "thep"), "0.500  (0.500 to 0.500)");
        assert_eq!(value("heat", "thep"), "2.000  (2.000 to 2.000)");
        assert_eq!(value("geometric mean", "thep"), "1.000  of 2");
        assert_eq!(value("geometric mean", "asymmetric-the"), "0.500  of 1");
        assert!(PaperFigure::find("lace-5").unwrap().beside(&document()).is_none());
        let text = text(&document());
        assert!(text.contains("the paper: thep: 0.93 on average"), "{text}");
    }

    #[test]
    fn a_speed_up_is_that_over_the_same_system_with_one_worker() {
        let mut document = document();
        let mut row = document.rows.swap_remove(0);
        let mut rows = Vec::new();
        for (workload, system, workers, seconds) in [
            ("lace-fib", "leapfrog", 48, 9.0),
            ("lace-fib", "random", 1, 8.0),
            ("lace-fib", "random", 48, 0.5),
            ("fib", "sequential", 1, 9.0),
            ("fib", "split", 1, 8.0),
            ("fib", "split", 2, 0.5),
        ] {
            let suite = if workload == "fib" { "fork-join" } else { "simulate" };
            (row.suite, row.workload) = (suite.to_owned(), workload.to_owned());
            (row.system, row.workers) = (system.to_owned(), workers);
            row.median = seconds;
            row.samples = vec![seconds / 2.0, seconds, seconds * 2.0];
            rows.push(row.clone());
        }
        document.rows = rows;
        let figure = PaperFigure::find("lace-8").unwrap();
        let last = &document.rows[2];
        assert_eq!(figure.values(&document, last), Some([16.0; 3]));
        assert_eq!(figure.values(&document, &document.rows[1]), None);
        // Leapfrogging, which the others stand beside, is no sequential program.
        assert_eq!(figure.value(&document, last).unwrap(), "0.5000 s, T_1/T_n 16.00");
        let times = PaperFigure::find("lace-5").unwrap();
        assert_eq!(
            times.value(&document, &document.rows[5]).unwrap(),
            "0.5000 s, T_S/T_n 18.00, T_1/T_n 16.00"
        );
        let drawn = figure.draw(&document).unwrap();
        let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["lace-8-48-workers.svg"]);
        assert!(drawn[0].1.wide.contains("Speed-up over one worker"));
    }

    #[test]
    fn a_figure_is_shown_where_its_rows_are() {
        let titles = |document: &Document| -> Vec<&str> {
            all(document).iter().map(|beside| beside.figure.name).collect()
        };
        // Figure 1 has one worker, and these rows have two.
        assert_eq!(titles(&document()), ["fence-10"]);
        let mut one = document();
        one.rows.iter_mut().for_each(|row| row.workers = 1);
        assert_eq!(titles(&one), ["fence-1", "fence-10"]);
        // What only we have is no figure of the paper's.
        one.rows.retain(|row| ["the", "unfenced-the"].contains(&row.system.as_str()));
        assert_eq!(titles(&one), ["fence-1"]);
        assert!(PaperFigure::find("fence-10").unwrap().draw(&one).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_ratio_has_no_line_at_one_and_nothing_is_no_figure() {
        let axis = Axis { name: "stolen", ratio: false, note: "note" };
        let draw = |height: f64| {
            let values = |_: &Row| Some([height; 3]);
            bars::draw_values(&document(), "fork-join", 2, "title", axis, &values).unwrap()
        };
        assert_eq!(draw(0.0), None);
        let ratio = Axis { ratio: true, ..axis };
        let values = |_: &Row| Some([7.0; 3]);
        let with = bars::draw_values(&document(), "fork-join", 2, "title", ratio, &values);
        let lines = |svg: &str| svg.matches("<polyline").count();
        assert_eq!(lines(&with.unwrap().unwrap().wide), lines(&draw(7.0).unwrap().wide) + 1);
    }
}
