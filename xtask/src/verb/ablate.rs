//! `cargo xtask ablate`: what each adaptive mechanism of the scheduler brings, by leaving it out.
//!
//! `crates/runtime/ablation.json` lists the mechanisms, each with the edit that leaves it out, and
//! the rows, which are runs of `poach bench`. All edits are made in one copy of the sources, so that
//! there is one program; a variable of its environment selects the mechanism that is missing. What
//! ships has no such switch. Each round runs each row with all mechanisms and without each in turn.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::test_cost::of_children;
use crate::published::{cargo, write};
use crate::samples::quantile;
use crate::workspace::{self, root, target_directory};

const LIST: &str = "crates/runtime/ablation.json";
const SOURCES: &str = "crates/runtime/src";
/// The seeds of what is computed, where each round has the next one.
const SEEDS: &str = "15";
const VARIABLE: &str = "POACH_LEFT_OUT";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds of each row that is measured; what is computed runs once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only mechanisms whose name contains this.
    #[arg(long, default_value = "")]
    mechanism: String,
    /// Only rows whose name contains this.
    #[arg(long, default_value = "")]
    row: String,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let list: Value = serde_json::from_str(&fs::read_to_string(root().join(LIST))?)?;
    let scratch = target_directory()?.join("ablation");
    let copy = scratch.join("tree");
    let mechanisms = list["mechanisms"].as_array().context("no mechanisms")?;
    // What `weave` writes is written once: what is written twice is compiled anew.
    let woven = weave(&copy, mechanisms)?;
    workspace::copy_if(&root(), &copy, |path| !woven.contains(&copy.join(path)))?;
    let target = scratch.join("build");
    cargo("build --release --features bench", &copy.join("crates/cli"), &target)
        .run("the program does not build with the edits")?;
    let program = target.join("release/poach");
    let chosen = |it: &&Value, part: &str| text(it, "name").contains(part);
    let rows = list["rows"].as_array().context("no rows")?;
    for row in rows.iter().filter(|row| chosen(row, &options.row)) {
        println!("\n| {} | time | processors' time |\n|---|---|---|", text(row, "name"));
        let rounds = if row["computed"] == true { 1 } else { options.rounds };
        let mut ratios: BTreeMap<usize, Vec<[f64; 2]>> = BTreeMap::new();
        for _ in 0..rounds {
            let whole = sample(&program, row, None)?;
            let left_out = mechanisms.iter().enumerate();
            for (number, _) in left_out.filter(|(_, it)| chosen(it, &options.mechanism)) {
                let without = sample(&program, row, Some(number))?;
                ratios.entry(number).or_default().push(without.over(&whole));
            }
        }
        for (number, ratios) in ratios {
            let [time, processors] = [0, 1].map(|which| shown(&ratios, which));
            println!("| {} | {time} | {processors} |", text(&mechanisms[number], "name"));
        }
    }
    Ok(())
}

/// Makes all edits in the copy. Returns the files that it has written.
fn weave(copy: &Path, mechanisms: &[Value]) -> Result<Vec<PathBuf>> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (number, mechanism) in mechanisms.iter().enumerate() {
        let [name, file, old, new] = ["name", "file", "old", "new"].map(|it| text(mechanism, it));
        let source = match files.get(file) {
            Some(source) => source.clone(),
            None => fs::read_to_string(root().join(SOURCES).join(file))?,
        };
        ensure!(source.matches(old).count() == 1, "{name}: {file} has not one `{old}`");
        let new = new.replace("LEFT_OUT", &format!("crate::left_out({number})"));
        files.insert(file, source.replace(old, &new));
    }
    let lib = fs::read_to_string(root().join(SOURCES).join("lib.rs"))?;
    let choice = format!(
        "{lib}
        pub(crate) fn left_out(mechanism: usize) -> bool {{
            static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
            let chosen = || std::env::var(\"{VARIABLE}\").ok()?.parse().ok();
            *CHOSEN.get_or_init(chosen) == Some(mechanism)
        }}"
    );
    files.insert("lib.rs", choice);
    let mut written = Vec::new();
    for (file, source) in files {
        written.push(copy.join(SOURCES).join(file));
        write(&written[written.len() - 1], source)?;
    }
    Ok(written)
}

/// A run of a row: the logarithms of its samples, lower is better, without those that are 0; and the
/// processors' time of the program.
struct Run {
    logarithms: Vec<f64>,
    processors: f64,
}

impl Run {
    /// The geometric mean of the samples' ratios, in pairs: of what is computed, those of one seed.
    /// And the ratio of the processors' times.
    fn over(&self, whole: &Run) -> [f64; 2] {
        let pairs = self.logarithms.iter().zip(&whole.logarithms);
        let count = pairs.len() as f64;
        let mean = pairs.map(|(without, with)| without - with).sum::<f64>() / count;
        [mean.exp(), self.processors / whole.processors]
    }
}

/// Runs a row once, without that mechanism.
fn sample(program: &Path, row: &Value, left_out: Option<usize>) -> Result<Run> {
    let before = of_children()?;
    let output = Command::new(program)
        .arg("bench")
        .args(text(row, "bench").split_whitespace())
        .args(["--rounds", if row["computed"] == true { SEEDS } else { "1" }, "--json"])
        .env(VARIABLE, left_out.map_or_else(String::new, |number| number.to_string()))
        .output()?;
    let processors = of_children()?.saturating_sub(before).as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` failed: {said}", text(row, "bench"));
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let cases = document["rows"].as_array().context("no rows")?;
    ensure!(!cases.is_empty(), "`{}` measured nothing", text(row, "bench"));
    let of_case = |case: &Value| {
        let sign = if case["better"] == "higher" { -1.0 } else { 1.0 };
        let samples = case["samples"].as_array().into_iter().flatten();
        let samples = samples.filter_map(Value::as_f64).filter(|sample| *sample > 0.0);
        samples.map(|sample| sign * sample.ln()).collect::<Vec<_>>()
    };
    Ok(Run { logarithms: cases.iter().flat_map(of_case).collect(), processors })
}

/// The median of the ratios and, of several, the least and the greatest.
fn shown(ratios: &[[f64; 2]], which: usize) -> String {
    let samples: Vec<f64> = ratios.iter().map(|ratio| ratio[which]).collect();
    let [least, median, most] = [0.0, 0.5, 1.0].map(|of| quantile(&samples, of));
    if median.is_nan() {
        return "none".to_owned();
    }
    if samples.len() == 1 {
        return format!("{median:.3}");
    }
    format!("{median:.2} ({least:.2} to {most:.2})")
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mechanism that is changed or removed takes its edit with it.
    #[test]
    fn each_edit_has_its_place() {
        let list = fs::read_to_string(root().join(LIST)).unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let mechanisms = list["mechanisms"].as_array().unwrap();
        weave(copy.path(), mechanisms).unwrap();
        let changed = fs::read_to_string(copy.path().join(SOURCES).join("worker/idle.rs")).unwrap();
        assert!(changed.contains("crate::left_out("));
        let mut missing = mechanisms.clone();
        missing[0]["old"] = "no such line".into();
        assert!(weave(copy.path(), &missing).is_err());
    }

    #[test]
    fn several_ratios_show_their_spread() {
        assert_eq!(shown(&[[1.0, 2.0]], 1), "2.000");
        assert_eq!(shown(&[[1.0, 3.0], [1.1, 2.0], [0.9, 1.0]], 1), "2.00 (1.00 to 3.00)");
    }
}
