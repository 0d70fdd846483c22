//! What `poach bench simulate` gives over what was measured, row by row.
//!
//! ```console
//! $ cargo run --release -p poach-bench --example simulated_over_measured -- NAME LOW HIGH MEASURED.json .. -- SIMULATED.json ..
//! ```
//!
//! A measured sample of several workers counts if a hand-over took `LOW` to `HIGH` nanoseconds
//! before and after it: a virtual machine's processors are moved. `NAME` is printed with each
//! table. Above 1 means that the simulation is slower.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use poach_bench::{Better, Document, Row, Summary};

/// Of one system: what was measured, what was simulated, and the ratio.
struct Compared {
    system: String,
    samples: usize,
    measured: f64,
    simulated: f64,
    ratio: f64,
}

fn rows(files: &[String]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for file in files {
        rows.extend(Document::load(Path::new(file))?.rows);
    }
    Ok(rows)
}

/// The suites' names of two simulated workloads.
fn name_in_suite(workload: &str) -> &str {
    match workload {
        "thief" => "thief-1",
        "steals" => "steals-1",
        _ => workload,
    }
}

/// The samples that count.
fn samples(row: &Row, low: f64, high: f64) -> Vec<f64> {
    let within = |counter: &str, at: usize| {
        let values = row.counter_samples.get(counter);
        values.and_then(|values| values.get(at)).is_some_and(|it| (low..=high).contains(it))
    };
    let counts = |at| {
        row.workers == 1 || within("hand_over_ns_before", at) && within("hand_over_ns_after", at)
    };
    row.samples
        .iter()
        .enumerate()
        .filter(|(at, _)| counts(*at))
        .map(|(_, sample)| *sample)
        .collect()
}

/// What a row is to its simulation; none if too few of its samples count, or nothing happened.
fn compare(row: &Row, simulated: &[Row], low: f64, high: f64) -> Option<Compared> {
    let samples = samples(row, low, high);
    let other = simulated.iter().find(|other| {
        (name_in_suite(&other.workload), &other.system, other.workers)
            == (row.workload.as_str(), &row.system, row.workers)
    })?;
    let measured = Summary::of(&samples)?.median;
    if samples.len() < 3 || measured == 0.0 || other.median == 0.0 {
        return None;
    }
    let ratio = match row.better {
        Better::Lower => other.median / measured,
        Better::Higher => measured / other.median,
    };
    let system = row.system.clone();
    Some(Compared { system, samples: samples.len(), measured, simulated: other.median, ratio })
}

/// How many pairs of systems are in the same order, and how many there are.
fn same_order(rows: &[Compared]) -> (usize, usize) {
    let pairs =
        rows.iter().enumerate().flat_map(|(at, a)| rows[at + 1..].iter().map(move |b| (a, b)));
    let same =
        |(a, b): &(&Compared, &Compared)| (a.measured < b.measured) == (a.simulated < b.simulated);
    (pairs.clone().filter(same).count(), pairs.count())
}

fn print(title: &str, rows: &[Compared]) {
    println!("\n{title}");
    for Compared { system, samples, measured, simulated, ratio } in rows {
        println!("  {system:18} {samples:4} {measured:12.4} {simulated:12.4}  {ratio:5.2}");
    }
    let (same, pairs) = same_order(rows);
    println!(
        "  {}; {same} of {pairs} pairs in the same order",
        spread(rows.iter().map(|row| row.ratio))
    );
}

fn spread(ratios: impl Iterator<Item = f64>) -> String {
    let mut all: Vec<f64> = ratios.collect();
    all.sort_by(f64::total_cmp);
    match (Summary::of(&all), all.as_slice()) {
        (Some(of), [low, .., high]) => format!("median {:.2}, {low:.2} to {high:.2}", of.median),
        _ => format!("{} rows", all.len()),
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "NAME LOW HIGH MEASURED.json .. -- SIMULATED.json ..";
    ensure!(arguments.len() > 3, "{usage}");
    let (name, files) = (&arguments[0], &arguments[3..]);
    let number = |at: usize| arguments[at].parse::<f64>().with_context(|| arguments[at].clone());
    let (low, high) = (number(1)?, number(2)?);
    let split = files.iter().position(|file| file == "--").context(usage)?;
    let (measured, simulated) = (rows(&files[..split])?, rows(&files[split + 1..])?);
    let mut groups = BTreeMap::<String, Vec<Compared>>::new();
    for row in &measured {
        if let Some(compared) = compare(row, &simulated, low, high) {
            let Row { suite, workload, workers, unit, .. } = row;
            let title = format!("{suite} {workload}, {workers} workers ({unit}), {name}");
            groups.entry(title).or_default().push(compared);
        }
    }
    for (title, rows) in &groups {
        print(title, rows);
    }
    let all: Vec<f64> = groups.values().flatten().map(|row| row.ratio).collect();
    let off = all.iter().filter(|&&ratio| !(1.0 / 1.5..=1.5).contains(&ratio)).count();
    println!(
        "\nall {} rows: {}; {off} off by more than 1.5",
        all.len(),
        spread(all.iter().copied())
    );
    Ok(())
}
