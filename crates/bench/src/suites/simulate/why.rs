//! What limits a row: the words that cost most, by the source's own names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::Location;

use poach_simulate::{Cost, Outcome};

use crate::words::figure;
use crate::{Document, Sample};

/// Path, line, column and name of each access in the queues' and pools' sources.
const NAMES: &[(&str, u32, u32, &str)] = include!(concat!(env!("OUT_DIR"), "/names.rs"));

/// How many words of a row are named.
const MOST: usize = 8;

/// The prefix of counters that say what cost how much.
const PREFIX: &str = "why/";

/// The name of the word that is accessed at a place; else the place.
fn name(place: &Location<'_>) -> String {
    let known = NAMES.iter().find(|(path, line, column, _)| {
        (*line, *column) == (place.line(), place.column()) && place.file().ends_with(path)
    });
    known.map_or_else(
        || {
            let file = place.file().rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", place.line())
        },
        |(.., name)| (*name).to_owned(),
    )
}

/// Adds to a sample the costs of its words: the share of its role's time in percent, the share of
/// waits for others in the line's queue, and transfers for each of `operations`.
pub(super) fn account(sample: Sample, outcome: &Outcome, operations: f64) -> Sample {
    let mut by_name: BTreeMap<(&'static str, String), Cost> = BTreeMap::new();
    for site in &outcome.sites {
        let cost = by_name.entry((site.role, name(site.place))).or_default();
        cost.waited += site.cost.waited;
        cost.queued += site.cost.queued;
        cost.transfers += site.cost.transfers;
        cost.fills += site.cost.fills;
    }
    let mut all: Vec<_> = by_name.into_iter().collect();
    all.sort_by_key(|(_, cost)| std::cmp::Reverse((cost.waited, cost.transfers)));
    let mut sample = sample;
    for ((role, name), cost) in all.into_iter().take(MOST) {
        let threads = outcome.threads.iter().filter(|thread| thread.role == role);
        let time: u64 = threads.map(|thread| thread.end).sum();
        let share = |part: u64| 100.0 * part as f64 / time.max(1) as f64;
        let key = |what| format!("{PREFIX}{role}/{name}/{what}");
        sample = sample
            .count(&key("time"), share(cost.waited))
            .count(&key("queued"), share(cost.queued))
            .count(&key("transfers"), cost.transfers as f64 / operations)
            .count(&key("memory"), cost.fills as f64 / operations);
    }
    sample
}

/// What limits each row, as a table: for `--why`.
pub fn why(document: &Document) -> String {
    let mut text = String::new();
    for row in &document.rows {
        let mut words: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
        for (counter, value) in &row.counters {
            if let Some((word, what)) =
                counter.strip_prefix(PREFIX).and_then(|rest| rest.rsplit_once('/'))
            {
                words.entry(word).or_default().insert(what, *value);
            }
        }
        if words.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "{} on {}, {}: {} {}",
            row.workload,
            row.system,
            crate::words::workers(row.workers),
            figure(row.median),
            row.unit
        );
        let mut words: Vec<_> = words.into_iter().collect();
        let of = |word: &BTreeMap<&str, f64>, what| word.get(what).copied().unwrap_or(0.0);
        words.sort_by(|a, b| of(&b.1, "time").total_cmp(&of(&a.1, "time")));
        for (word, costs) in words {
            let (role, name) = word.split_once('/').unwrap_or(("", word));
            let _ = writeln!(
                text,
                "  {name:32} {:5.1} % of {role} time ({:.1} % in its queue), {:.2} transfers and {:.2} lines from memory a task",
                of(&costs, "time"),
                of(&costs, "queued"),
                of(&costs, "transfers"),
                of(&costs, "memory"),
            );
        }
    }
    text
}
