//! The rows of `poach check all --full`, or those of some scenes, and the table of scenes: the
//! largest clean row of each.
//!
//! ```console
//! $ cargo run --release -p poach-check --example scenes                 # all rows under TSO
//! $ cargo run --release -p poach-check --example scenes -- --quick      # those of the quick matrix
//! $ cargo run --release -p poach-check --example scenes -- --c11 robbed # under C11, of the scenes with this in their name
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use poach_check::{Consistency, Report};
use poach_models::matrix::{Case, Extent, cases};

/// What a line of the table says.
#[derive(Default)]
struct Scene {
    clean: usize,
    refuted: usize,
    largest: Option<(String, Report)>,
}

fn name(case: &Case) -> String {
    match case.consistency {
        Consistency::Tso => {
            format!("{} ({}), S = {}", case.name, case.policy.name(), case.store_buffer)
        }
        Consistency::C11 => format!("{} ({})", case.name, case.policy.name()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let names: Vec<&String> = arguments.iter().filter(|name| !name.starts_with("--")).collect();
    let memory = if has("--c11") { Consistency::C11 } else { Consistency::Tso };
    let wanted = |case: &&Case| {
        case.consistency == memory
            && (names.is_empty() || names.iter().any(|name| case.scene.contains(name.as_str())))
    };
    let mut table = BTreeMap::<&str, Scene>::new();
    let (mut rows, mut good) = (0, 0);
    let extent = if has("--quick") { Extent::Quick } else { Extent::Full };
    for case in cases(extent).iter().filter(wanted) {
        let report = case.run(&case.config());
        let fits = case.as_expected(&report);
        rows += 1;
        good += usize::from(fits);
        eprintln!(
            "{} {}, {}: {:?}, {} executions, {:.2} s",
            if fits { "ok " } else { "BAD" },
            case.scene,
            name(case),
            report.verdict,
            report.executions,
            report.elapsed.as_secs_f64()
        );
        let scene = table.entry(case.scene).or_default();
        if case.expected.is_some() {
            scene.refuted += 1;
            continue;
        }
        scene.clean += 1;
        if scene.largest.as_ref().is_none_or(|(_, largest)| largest.states < report.states) {
            scene.largest = Some((name(case), report));
        }
    }
    println!(
        "| scene | clean rows | refuted rows | largest | states | executions | coverage | s |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (scene, Scene { clean, refuted, largest }) in &table {
        let Some((name, report)) = largest else { continue };
        let coverage = report.coverage().map_or_else(|| "none".to_owned(), |far| far.to_string());
        println!(
            "| {scene} | {clean} | {refuted} | {name} | {} | {} | {coverage} | {:.2} |",
            report.states,
            report.executions,
            report.elapsed.as_secs_f64()
        );
    }
    println!("{good} of {rows} rows as expected");
    if good == rows { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
