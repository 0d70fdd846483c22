//! The document for a terminal.

use std::fmt::Write as _;

use super::Document;
use crate::capacity::Pattern;
use crate::knee::Finding;

pub(super) fn render(document: &Document, columns: usize) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut text, document, columns.clamp(40, 200));
    text
}

fn write(text: &mut String, document: &Document, columns: usize) -> std::fmt::Result {
    let host = &document.host;
    writeln!(text, "{} ({})", host.cpu, host.identity.as_deref().unwrap_or("unknown model"))?;
    if let Some(sweeps) = &document.sweeps {
        for measured in &sweeps.patterns {
            match &measured.finding {
                Finding::Knee(knee) => writeln!(
                    text,
                    "{:28} knee at {} (confidence {:.2}, {}..{}), {:.1} ns before it",
                    measured.pattern.about(),
                    knee.at,
                    knee.confidence,
                    knee.between.0,
                    knee.between.1,
                    knee.before
                )?,
                Finding::None { why } => {
                    writeln!(text, "{:28} no knee: {why}", measured.pattern.about())?;
                }
            }
            if measured.pattern == Pattern::Lines {
                plot(text, &measured.sweep.levels(), columns)?;
            }
        }
    }
    if let Some(behind) = document.sweeps.as_ref().and_then(|sweeps| sweeps.behind.as_ref()) {
        writeln!(text, "\nbehind a store that misses there is room for")?;
        for measured in &behind.patterns {
            let room = match &measured.finding {
                Finding::Knee(knee) => format!("{} (confidence {:.2})", knee.at, knee.confidence),
                Finding::None { why } => format!("no end to it was found: {why}"),
            };
            writeln!(text, "  {:28} {room}", measured.pattern.about())?;
        }
    }
    for run in &document.litmus {
        writeln!(
            text,
            "\nworker and thief, placement {}: x violated, . clean, | predicted from the bound, : from \
             the capacity",
            run.placement.name()
        )?;
        for column in &document.columns {
            let mut row: Vec<(u64, bool)> = run
                .points
                .iter()
                .filter(|o| (o.point.stores, o.point.target) == (column.stores, column.target))
                .map(|o| (o.point.delta, o.violated()))
                .collect();
            row.sort_unstable();
            let room = columns.saturating_sub(40);
            let from = row.len().saturating_sub(room);
            let mut cells = String::new();
            let (mut passed, mut passed_capacity) = (false, column.by_capacity == column.predicted);
            for (delta, violated) in &row[from..] {
                if !passed_capacity && *delta >= column.by_capacity {
                    cells.push(':');
                    passed_capacity = true;
                }
                if !passed && *delta >= column.predicted {
                    cells.push('|');
                    passed = true;
                }
                cells.push(if *violated { 'x' } else { '.' });
            }
            let highest =
                row.iter().filter(|(_, violated)| *violated).map(|(delta, _)| *delta).max();
            writeln!(
                text,
                "L {:2} {:5} {cells}  highest {}, predicted {} (capacity {})",
                column.stores,
                column.target.name(),
                highest.map_or("none".to_owned(), |delta| delta.to_string()),
                column.predicted,
                column.by_capacity
            )?;
        }
    }
    if !document.classic.is_empty() {
        writeln!(text)?;
        for counts in &document.classic {
            let allowed = if counts.allowed { "allowed" } else { "forbidden" };
            writeln!(text, "{:5} {} of {} ({allowed})", counts.test, counts.seen, counts.runs)?;
        }
    }
    writeln!(text)?;
    if !document.safe_delta.is_empty() {
        let deltas: Vec<String> = document.safe_delta.iter().map(u64::to_string).collect();
        writeln!(text, "delta for x = 1..8: {}", deltas.join(" "))?;
    }
    if let Some(cost) = &document.cost {
        writeln!(
            text,
            "a push and a pop: {:.2} ns with a fence, {:.2} bounded, {:.2} bounded with the client's store",
            cost.full, cost.bounded, cost.bounded_without_fill
        )?;
    }
    for sentence in document.verdict() {
        writeln!(text, "{sentence}")?;
    }
    Ok(())
}

/// Rows of a plot.
const ROWS: usize = 10;

/// A plot of levels by length.
fn plot(text: &mut String, levels: &[f64], columns: usize) -> std::fmt::Result {
    let width = columns.saturating_sub(12).min(levels.len()).max(1);
    let low = levels.iter().copied().fold(f64::INFINITY, f64::min);
    let high = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !(low.is_finite() && high > low) {
        return Ok(());
    }
    let row_of = |column: usize| {
        let level = levels[column * levels.len() / width];
        (((level - low) / (high - low)) * (ROWS - 1) as f64).round() as usize
    };
    for row in (0..ROWS).rev() {
        let scale = low + (high - low) * row as f64 / (ROWS - 1) as f64;
        let line: String =
            (0..width).map(|column| if row_of(column) == row { '*' } else { ' ' }).collect();
        writeln!(text, "{scale:8.1} | {}", line.trim_end())?;
    }
    writeln!(text, "      ns +{}  1..{} stores", "-".repeat(width), levels.len())
}
