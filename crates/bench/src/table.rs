//! A document as tables for a terminal: one a suite and number of workers.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};

use crate::suites::deque::{OWNER, STEALS};
use crate::words::{figure, workers};
use crate::{Document, Row};

/// A line under the heading, and blanks between the columns.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The whole document as text, `width` columns wide.
pub fn render(document: &Document, width: u16) -> String {
    let mut text = String::new();
    let mut suites: Vec<&str> = Vec::new();
    for row in &document.rows {
        if !suites.contains(&row.suite.as_str()) {
            suites.push(&row.suite);
        }
    }
    for suite in suites {
        let _ = writeln!(text, "{suite}\n{}", table(document, suite, width));
    }
    for (failure, more) in document.causes() {
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let _ = writeln!(
            text,
            "failed: {} on {} with {}{more}: {}",
            failure.workload,
            failure.system,
            workers(failure.workers),
            failure.message
        );
    }
    if document.rows.iter().any(|row| row.oversubscribed) {
        let cores = document.machine.cores;
        let _ = writeln!(text, "* more workers than the {cores} processors of this machine");
    }
    if !document.complete {
        text.push_str("The run was cut short: this is what it had measured.\n");
    }
    text
}

fn table(document: &Document, suite: &str, width: u16) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_width(width);
    table.set_header(["workload", "workers", "system", "median", "min", "p10", "p90", "n", "×"]);
    for column in 3..9 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut last = ("", 0);
    for row in document.rows.iter().filter(|row| row.suite == suite) {
        let mark = if row.oversubscribed { "*" } else { "" };
        let place = (row.workload.as_str(), row.workers);
        let show = place != last;
        last = place;
        table.add_row([
            Cell::new(if show { row.workload.as_str() } else { "" }),
            Cell::new(if show { format!("{}{mark}", row.workers) } else { String::new() }),
            Cell::new(&row.system),
            Cell::new(format!("{} {}{}", figure(row.median), row.unit, also(row))),
            Cell::new(figure(row.min)),
            Cell::new(figure(row.p10)),
            Cell::new(figure(row.p90)),
            Cell::new(row.samples.len()),
            Cell::new(ratio(document, row)),
        ]);
    }
    table
}

/// Where there are thieves: what they got beside what the owner paid, and the other way round.
pub(crate) fn also(row: &Row) -> String {
    let count = |name: &str| row.counters.get(name).map(|value| figure(*value));
    match (row.unit.as_str(), count(STEALS), count(OWNER)) {
        ("ns", Some(steals), _) => format!(", {steals} M/s stolen"),
        ("M/s", Some(_), Some(owner)) => format!(", {owner} ns a push"),
        _ => String::new(),
    }
}

/// The ratio by which a row is better than the row that it is compared with, by its median.
fn ratio(document: &Document, row: &Row) -> String {
    let gain = document.beside(row).and_then(|base| row.gain(base));
    gain.filter(|gain| gain.value.is_finite())
        .map_or_else(String::new, |gain| format!("{:.2}", gain.value))
}
