//! The papers' figures that are curves over something else than workers: SALSA's, and the
//! fence-free paper's of a processor.

use anyhow::Result;

use super::common::{Svg, distinct};
use super::curve::{Curve, Panel, Words, draw_panels};
use super::papers::{Over, PaperFigure, Shows};
use crate::suites::processor::{CURVE, KNOWN, WRONG};
use crate::{Document, Row};

pub(super) const PERCENTILES: &str = "Whiskers: from p10 to p90 of the samples.";
const NO_FIFO: &str = "None of the pools gives FIFO order.";

/// The figure of these rows, or `None` if it is one of bars, or there are none.
pub(super) fn draw(figure: &PaperFigure, part: &Document) -> Result<Option<Svg>> {
    let cores = Some(part.machine.cores as f64).filter(|_| figure.memory.is_none());
    let words =
        |notes, x| Words { title: figure.title, notes, x, diagonal: false, cores, dots: false };
    match &figure.shows {
        Shows::RateCurves(over) => {
            let over = *over;
            let value = |row: &Row| Some([row.p10, row.median, row.p90]);
            let curves = curves(part, over, &value);
            let (x, cores) = match over {
                Over::Threads => ("threads", cores),
                Over::Chunks => ("tasks of a chunk, as a power of 2", None),
            };
            let notes = ["Million tasks a second: higher is better.", NO_FIFO, PERCENTILES];
            draw_panels(&Words { cores, ..words(&notes, x) }, &[alone(curves)])
        }
        Shows::CounterCurves(name) => {
            let value = |row: &Row| Some([*row.counters.get(*name)?; 3]);
            let curves = curves(part, Over::Threads, &value);
            let what = format!("{}: lower is better.", name.replace('_', " "));
            draw_panels(&words(&[&what, NO_FIFO], "threads"), &[alone(curves)])
        }
        Shows::StoreBuffer => {
            let notes = [
                "Nanoseconds of a run of stores and what drains them: the knee is at the buffer's last entry.",
            ];
            let words = Words { cores: None, ..words(&notes, "stores in a row") };
            draw_panels(&words, &[alone(store_buffer(part))])
        }
        Shows::Litmus => {
            let notes = [
                "Each dot: the deltas tested (upwards) where the known bound predicts that one (to the right) is safe.",
                "Below the line rounds may go wrong; on it and above none may.",
            ];
            let x = "delta that is safe by the known bound";
            let words = Words { diagonal: true, cores: None, dots: true, ..words(&notes, x) };
            draw_panels(&words, &[alone(litmus(part))])
        }
        _ => Ok(None),
    }
}

fn alone(curves: Vec<Curve>) -> Panel {
    Panel { name: String::new(), curves }
}

/// What a curve is called: the system, and what else the workload says of it.
fn label(row: &Row, over: Over) -> String {
    if over == Over::Chunks {
        return row
            .system
            .rsplit_once('-')
            .map_or(row.system.as_str(), |(stem, _)| stem)
            .to_owned();
    }
    let more = match row.workload.as_str() {
        name if name.ends_with("-unbalanced") => "unbalanced",
        name if name.ends_with("-pinned") => "bound to processors",
        "scattered" => "no affinity",
        "central" => "central allocation",
        _ => return row.system.clone(),
    };
    format!("{}, {more}", row.system)
}

fn curves(part: &Document, over: Over, value: &dyn Fn(&Row) -> Option<[f64; 3]>) -> Vec<Curve> {
    let labels: Vec<String> = part.rows.iter().map(|row| label(row, over)).collect();
    let of = |system: &str| {
        let rows = part.rows.iter().zip(&labels).filter(|(_, label)| *label == system);
        let points = rows.filter_map(|(row, _)| {
            let x = match over {
                Over::Threads => row.workers as f64,
                Over::Chunks => row.system.rsplit_once('-')?.1.parse::<f64>().ok()?.log2(),
            };
            Some((x, value(row)?))
        });
        Curve { system: system.to_owned(), points: points.collect() }
    };
    distinct(labels.iter().map(String::as_str)).into_iter().map(of).collect()
}

/// The curves that the counters of the first row have.
fn store_buffer(part: &Document) -> Vec<Curve> {
    let Some(row) = part.rows.first() else { return Vec::new() };
    let points: Vec<(&str, f64, f64)> = row
        .counters
        .iter()
        .filter_map(|(name, value)| {
            let (pattern, stores) = name.strip_prefix(CURVE)?.rsplit_once('/')?;
            Some((pattern, stores.parse().ok()?, *value))
        })
        .collect();
    let of = |pattern: &str| {
        let points = points.iter().filter(|point| point.0 == pattern);
        Curve {
            system: pattern.to_owned(),
            points: points.map(|(_, x, y)| (*x, [*y; 3])).collect(),
        }
    };
    distinct(points.iter().map(|point| point.0)).into_iter().map(of).collect()
}

/// A dot for each pair of a predicted and a tested delta: wrong, if a round of any of its points
/// was.
fn litmus(part: &Document) -> Vec<Curve> {
    let mut dots: Vec<(f64, f64, bool)> = Vec::new();
    for row in &part.rows {
        let known = row.counters.get(KNOWN).copied().unwrap_or(row.median).max(1.0);
        for (name, wrong) in &row.counter_samples {
            let point = name.strip_prefix(WRONG).and_then(|name| name.split_once('/'));
            let Some((Ok(stores), Ok(delta))) =
                point.map(|(stores, delta)| (stores.parse::<f64>(), delta.parse::<f64>()))
            else {
                continue;
            };
            let predicted = (known / (stores + 1.0)).ceil();
            let wrong = wrong.iter().any(|rounds| *rounds > 0.0);
            match dots.iter_mut().find(|dot| (dot.0, dot.1) == (predicted, delta)) {
                Some(dot) => dot.2 |= wrong,
                None => dots.push((predicted, delta, wrong)),
            }
        }
    }
    let of = |name: &str, which: bool| {
        let these = dots.iter().filter(|dot| dot.2 == which);
        Curve { system: name.to_owned(), points: these.map(|dot| (dot.0, [dot.1; 3])).collect() }
    };
    vec![of("no round went wrong", false), of("a round went wrong", true)]
}
