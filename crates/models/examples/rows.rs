//! The rows of some queues, each searched a little: whether a change of a queue's source is
//! noticed. `cargo xtask mutate` asks it.
//!
//! ```console
//! $ cargo run --release -p poach-models --example rows              # the names of the rows
//! $ cargo run --release -p poach-models --example rows salsa fifo/3 # the rows of salsa, the fourth of fifo; ends at the first that is not as expected
//! ```
//!
//! They are the quick matrix, under TSO and C11, and the scenes in which orderings are weakened.
//! What has more executions than are played counts as it looks until then: nothing here is a proof.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

use poach_check::{Config, Report, Verdict};
use poach_models::matrix::{Case, Extent, cases};
use poach_models::orderings::scenes;

/// Executions of a row.
const MOST: u64 = 4_000;
/// Of a row that must be refuted: more of them, since it ends where it is.
const MOST_REFUTED: u64 = 50_000;
const SECONDS: u64 = 20;

fn report(case: &Case) -> Report {
    let most = if case.expected.is_some() { MOST_REFUTED } else { MOST };
    let config = case.config();
    case.run(&Config {
        outlives_aborts: true,
        max_executions: config.max_executions.min(most),
        max_time: Some(Duration::from_secs(SECONDS)),
        ..config
    })
}

/// Whether it is as expected as far as it was searched.
fn fits(case: &Case, report: &Report) -> bool {
    let kind = match &report.verdict {
        Verdict::Violation(found) => Some(found.kind()),
        _ => None,
    };
    // A search that is cut short may not have come to a theft.
    let steals = report.stolen || !case.play.steals();
    kind == case.expected && (steals || !matches!(report.verdict, Verdict::Clean))
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let mut counts = HashMap::new();
    let rows = cases(Extent::Quick).into_iter().chain(scenes()).map(|case| {
        let count = counts.entry(case.name).or_insert(0_u32);
        *count += 1;
        (format!("{}/{}", case.name, *count - 1), case)
    });
    for (row, case) in rows {
        if names.is_empty() {
            println!("{row}");
            continue;
        }
        if !names.iter().any(|name| name == case.name || *name == row) {
            continue;
        }
        let report = report(&case);
        let fits = fits(&case, &report);
        println!(
            "{} {row} ({}), {:?} {}, {}: {:?}, {} executions, {:.2} s",
            if fits { "ok " } else { "BAD" },
            case.policy.name(),
            case.consistency,
            case.store_buffer,
            case.scene,
            report.verdict,
            report.executions,
            report.elapsed.as_secs_f64(),
        );
        if !fits {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
