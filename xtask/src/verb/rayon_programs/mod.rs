//! `cargo xtask rayon-programs`: runs published programs that use rayon, unchanged but for the
//! patch, on the original core and on `compat/rayon-core`. It checks that their answers are the
//! same, and times both in turn.

mod inputs;
mod programs;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use walkdir::WalkDir;

use self::programs::{Answer, Program, programs};
use crate::published::{cargo, check_core, copy, unpack, write};
use crate::samples::quantile;
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How often each program is timed on each core, in turn, after one run of each to warm the
    /// caches.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// The number of threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// These packages alone.
    #[arg(long, value_delimiter = ',')]
    program: Vec<String>,
    /// Write the table and every sample to this directory.
    #[arg(long)]
    save: Option<PathBuf>,
}

/// The two cores, in the order of a pair of samples: the name, and whether the patch is under it.
const CORES: [(&str, bool); 2] = [("rayon", false), ("poach", true)];

/// What was measured of a program.
struct Measured {
    program: Program,
    /// Milliseconds on each core, one pair a round.
    samples: Vec<[f64; 2]>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0 && options.threads > 0, "--rounds and --threads are at least 1");
    let programs = programs();
    let known = |name: &String| programs.iter().any(|program| program.package == *name);
    if let Some(unknown) = options.program.iter().find(|name| !known(name)) {
        let names: Vec<_> = programs.iter().map(|program| &*program.package).collect();
        bail!("there is no program {unknown} here: --program takes {}", names.join(", "));
    }
    let scratch = workspace::target_directory()?.join("compat/programs");
    let input = scratch.join("input");
    inputs::make(&input)?;
    let mut measured = Vec::new();
    for program in programs {
        if options.program.is_empty() || options.program.contains(&program.package) {
            let executables = build(&program, &scratch)?;
            let runs = executables.map(|executable| Run {
                program: &program,
                executable,
                input: &input,
                output: scratch.join("output"),
                threads: options.threads,
            });
            let samples = compare(&runs, options.rounds)
                .with_context(|| format!("{} {}", program.package, program.version))?;
            measured.push(Measured { program, samples });
        }
    }
    let table = table(&measured, options);
    print!("{table}");
    if let Some(directory) = &options.save {
        write(&directory.join("programs.md"), table)?;
        write(&directory.join("programs.json"), samples(&measured, options)?)?;
    }
    Ok(())
}

/// Builds the program on both cores, with the newest dependencies that fit, as `cargo install`
/// does.
fn build(program: &Program, scratch: &Path) -> Result<[PathBuf; 2]> {
    let package = unpack(&program.package, &program.version, &scratch.join("asked"))?;
    let mut executables = Vec::new();
    for (core, patched) in CORES {
        let here = scratch.join(format!("{}-on-{core}", program.package));
        let target = scratch.join(format!("target-{core}"));
        copy(&package, &here, patched)?;
        cargo("update --quiet", &here, &target).run("no lock file could be made")?;
        check_core(&here, patched)?;
        cargo("build --release --quiet", &here, &target)
            .args(program.build.split_whitespace())
            .run(&format!("{} does not build on {core}", program.package))?;
        executables.push(target.join("release").join(&program.executable));
    }
    Ok([executables.remove(0), executables.remove(0)])
}

/// A program on one of the cores.
struct Run<'a> {
    program: &'a Program,
    executable: PathBuf,
    input: &'a Path,
    output: PathBuf,
    threads: usize,
}

impl Run<'_> {
    /// Runs it once: the milliseconds, and its answer.
    fn once(&self) -> Result<(f64, Vec<u8>)> {
        if self.output.exists() {
            fs::remove_dir_all(&self.output)?;
        }
        fs::create_dir_all(&self.output)?;
        if let Answer::Changes { of } = &self.program.answer {
            for path in files(&self.input.join(of))? {
                let to = self.output.join(path.strip_prefix(self.input)?);
                write(&to, fs::read(&path)?)?;
            }
        }
        let mut command = Command::new(&self.executable);
        command
            .args(self.arguments()?)
            .current_dir(&self.output)
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .stdin(Stdio::null());
        let start = Instant::now();
        let output = command
            .output()
            .with_context(|| format!("could not start {}", self.executable.display()))?;
        let time = start.elapsed().as_secs_f64() * 1e3;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "it ended with {}: {said}", output.status);
        let answer = match &self.program.answer {
            Answer::Text => output.stdout,
            Answer::Lines { except } => {
                let text = String::from_utf8_lossy(&output.stdout);
                let mut lines: Vec<&str> =
                    text.lines().filter(|line| !line.starts_with(&**except)).collect();
                lines.sort_unstable();
                lines.join("\n").into_bytes()
            }
            Answer::Files | Answer::Changes { .. } => {
                let mut all = Vec::new();
                for path in files(&self.output)? {
                    all.extend(path.to_string_lossy().bytes());
                    all.extend(fs::read(&path)?);
                }
                all
            }
        };
        ensure!(!answer.is_empty(), "it answered with nothing: {said}");
        Ok((time, answer))
    }

    fn arguments(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for argument in self.program.arguments.split_whitespace() {
            let filled = argument
                .replace(r"\x20", " ")
                .replace("{threads}", &self.threads.to_string())
                .replace("{input}", &self.input.to_string_lossy())
                .replace("{output}", &self.output.to_string_lossy());
            match filled.strip_suffix("/*") {
                Some(directory) => {
                    let files = files(Path::new(directory))?;
                    all.extend(files.iter().map(|path| path.to_string_lossy().into_owned()));
                }
                None => all.push(filled),
            }
        }
        Ok(all)
    }
}

/// The files below a directory, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in WalkDir::new(directory).sort_by_file_name() {
        let entry = entry?;
        if entry.file_type().is_file() {
            all.push(entry.into_path());
        }
    }
    Ok(all)
}

/// Milliseconds on each core, one pair a round, after a first run of each; each run's answer is the
/// first one's.
fn compare(runs: &[Run<'_>; 2], rounds: usize) -> Result<Vec<[f64; 2]>> {
    let (_, expected) = runs[0].once()?;
    let mut samples = Vec::new();
    for round in 0..=rounds {
        let mut pair = [0.0; 2];
        // The second run may find warmer caches, so the cores take turns.
        for core in [round % 2, 1 - round % 2] {
            let (time, answer) =
                runs[core].once().with_context(|| format!("on {}", CORES[core].0))?;
            ensure!(
                answer == expected,
                "its answer on {} is not its first one on rayon:\n{}\n-- and was --\n{}",
                CORES[core].0,
                beginning(&answer),
                beginning(&expected)
            );
            pair[core] = time;
        }
        if round > 0 {
            samples.push(pair);
        }
    }
    Ok(samples)
}

fn beginning(answer: &[u8]) -> String {
    String::from_utf8_lossy(&answer[..answer.len().min(2_000)]).into_owned()
}

/// The tenth, the half and nine tenths of the samples below.
fn quantiles(samples: impl Iterator<Item = f64>) -> [f64; 3] {
    let samples: Vec<f64> = samples.collect();
    [0.1, 0.5, 0.9].map(|share| quantile(&samples, share))
}

impl Measured {
    /// Milliseconds on a core.
    fn times(&self, core: usize) -> [f64; 3] {
        quantiles(self.samples.iter().map(|pair| pair[core]))
    }

    /// The speed on Poach as a multiple of that on rayon, by pairs.
    fn speeds(&self) -> [f64; 3] {
        quantiles(self.samples.iter().map(|[rayon, poach]| rayon / poach))
    }
}

fn table(measured: &[Measured], options: &Options) -> String {
    let mut table = format!(
        "Milliseconds, {} threads: medians of {} runs in turn (a tenth of the runs were below, a tenth above).\n\n\
         | program | what it does | rayon | Poach | speed, as a multiple of rayon's |\n|---|---|---|---|---|\n",
        options.threads, options.rounds
    );
    for row in measured {
        let [rayon, poach] = [0, 1]
            .map(|core| row.times(core))
            .map(|[p10, p50, p90]| format!("{p50:.1} ({p10:.1}, {p90:.1})"));
        let [p10, p50, p90] = row.speeds();
        let Program { package, version, task, .. } = &row.program;
        let _ = writeln!(
            table,
            "| {package} {version} | {task} | {rayon} | {poach} | {p50:.2} ({p10:.2}, {p90:.2}) |"
        );
    }
    table
}

fn samples(measured: &[Measured], options: &Options) -> Result<String> {
    let programs: Vec<_> = measured
        .iter()
        .map(|row| {
            let Program { package, version, task, .. } = &row.program;
            json!({ "package": package, "version": version, "task": task, "samples": row.samples })
        })
        .collect();
    let document = json!({
        "unit": "ms",
        "cores": CORES.map(|(name, _)| name),
        "threads": options.threads,
        "programs": programs,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_eleven() {
        let of_eleven = quantiles((0..11).rev().map(f64::from));
        assert_eq!(of_eleven.map(|time| time as u64), [1, 5, 9]);
    }

    #[test]
    fn an_unknown_program_is_refused_with_the_names() {
        let options = Options { rounds: 1, threads: 1, program: vec!["du".into()], save: None };
        let error = run(&options).unwrap_err().to_string();
        assert!(error.contains("du") && error.contains("tokei"), "{error}");
    }

    /// What the README's table of programs was made from: each has a sample of both cores a round.
    #[test]
    fn the_kept_samples_are_whole() {
        for run in fs::read_dir(workspace::root().join("bench/runs")).unwrap().flatten() {
            let Ok(text) = fs::read_to_string(run.path().join("programs.json")) else {
                continue;
            };
            let document: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["cores"], json!(CORES.map(|(name, _)| name)));
            let programs = document["programs"].as_array().unwrap();
            assert!(!programs.is_empty(), "{}", run.path().display());
            for program in programs {
                let samples: Vec<[f64; 2]> =
                    serde_json::from_value(program["samples"].clone()).unwrap();
                assert!(samples.len() >= 10, "{}", program["package"]);
                assert!(samples.as_flattened().iter().all(|&time| time > 0.0));
            }
        }
    }
}
