//! All mutants of the judged crates in one build, each tried by the tests that come to it.
//!
//! Each test is run once to see how long it takes and which mutants it comes to. A mutant is then tried by those tests alone, the
//! short ones first, and by the rows of the model checker of the queues that come to it, until one fails.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::{Case, Journal, Outcome, fingerprint, wait};
use crate::mutate::Mutant;
use crate::mutate::together::{Woven, module, weave};
use crate::workspace;

/// How often what does not compile is left out before the rest counts as broken.
const ROUNDS: usize = 12;
/// A test that takes longer tries no mutants.
const LONGEST: Duration = Duration::from_secs(60);
/// What a test may take beyond twenty times what it took before.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the checker's rows of some queues.
const ROWS: &str = "rows";

/// One test, or the checker's rows of one queue.
struct Test {
    program: PathBuf,
    package: String,
    name: String,
    took: Duration,
    reaches: HashSet<usize>,
}

impl Test {
    fn command(&self, copy: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(copy.join("crates").join(self.package.trim_start_matches("poach-")));
        command.env("CARGO_MANIFEST_DIR", copy.join("crates").join(&self.package[6..]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.package == "poach-explore" {
            command.arg(&self.name);
        } else {
            command.args(["--exact", &self.name, "--test-threads=1"]);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

fn cargo(copy: &Path, target: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", target);
    cargo.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").stdin(Stdio::null());
    for package in ["memory", "deque", "runtime"] {
        cargo.args(["--config", &format!("profile.dev.package.poach-{package}.opt-level=1")]);
    }
    cargo
}

/// The documents that cargo prints.
fn documents(command: &mut Command) -> Result<(bool, Vec<Value>)> {
    let output = command.stderr(Stdio::inherit()).output().context("could not start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let documents = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok((output.status.success(), documents))
}

/// Writes the files with all their mutants, without those that do not compile so; which those are.
fn build(copy: &Path, target: &Path, cases: &[Case]) -> Result<HashSet<usize>> {
    let mut left_out = HashSet::new();
    let mut paths: Vec<&str> = cases.iter().map(|case| case.path.as_str()).collect();
    paths.dedup();
    for _ in 0..ROUNDS {
        let mut files: HashMap<&str, Woven> = HashMap::new();
        for &path in &paths {
            let of: Vec<(usize, &Mutant)> = cases
                .iter()
                .enumerate()
                .filter(|(place, case)| case.path == path && !left_out.contains(&(place + 1)))
                .map(|(place, case)| (place + 1, &case.mutant))
                .collect();
            let source = &cases.iter().find(|case| case.path == path).expect("it is one").source;
            let woven = weave(source, &of);
            write(copy, path, &woven.text)?;
            files.insert(path, woven);
        }
        for package in packages(cases) {
            let path = format!("crates/{}/src/lib.rs", &package[6..]);
            let root = std::fs::read_to_string(workspace::root().join(&path))?;
            let text = files.get(path.as_str()).map_or(&root, |woven| &woven.text);
            write(copy, &path, &format!("{text}{}", module(cases.len() + 1)))?;
        }
        let mut check = cargo(copy, target);
        check.args(["check", "--message-format=json", "--lib"]);
        for package in packages(cases) {
            check.args(["-p", &package]);
        }
        let (good, documents) = documents(&mut check)?;
        if good {
            eprintln!("mutate: {} of {} in one build", cases.len() - left_out.len(), cases.len());
            return Ok(left_out);
        }
        let (before, mut strange) = (left_out.len(), String::new());
        for document in documents {
            let message = &document["message"];
            if message["level"] != "error" {
                continue;
            }
            let blamed = |primary: bool| -> Vec<usize> {
                let spans = message["spans"].as_array().into_iter().flatten();
                let spans = spans.filter(|span| span["is_primary"] == primary);
                let of = |span: &Value| {
                    let woven = files.get(span["file_name"].as_str()?)?;
                    let byte = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
                    let bytes: Range<usize> = byte("byte_start")..byte("byte_end");
                    let near = || if primary { woven.near(&bytes) } else { Vec::new() };
                    Some(woven.at(&bytes).map_or_else(near, |it| vec![it]))
                };
                spans.filter_map(of).flatten().collect()
            };
            let mut found = blamed(true);
            found.extend(blamed(false));
            if found.is_empty() {
                message["rendered"].as_str().unwrap_or_default().clone_into(&mut strange);
            }
            left_out.extend(found);
        }
        eprintln!("mutate: {} cannot be in one build", left_out.len());
        // What one change spoils may show elsewhere.
        ensure!(
            left_out.len() > before,
            "no mutant is to blame that this does not compile:\n{strange}"
        );
    }
    bail!("the judged crates do not compile with all mutants after {ROUNDS} rounds")
}

fn write(copy: &Path, path: &str, text: &str) -> Result<()> {
    let path = copy.join(path);
    // What is the same is left alone: cargo goes by the time of the last change.
    if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    std::fs::write(path, text)?;
    Ok(())
}

/// The packages of the cases.
fn packages(cases: &[Case]) -> BTreeSet<String> {
    let name = |case: &Case| format!("poach-{}", case.path.split('/').nth(1).unwrap_or_default());
    cases.iter().map(name).collect()
}

/// The tests, each run once without a mutant.
fn tests(copy: &Path, target: &Path, cases: &[Case], scratch: &Path) -> Result<Vec<Test>> {
    let packages = packages(cases);
    let mut command = cargo(copy, target);
    command.args(["test", "--no-run", "--tests", "--message-format=json"]);
    for package in &packages {
        command.args(["-p", package]);
    }
    // On x86 a thief needs no fence: the queues' loom models are for processors on which it does.
    if packages.contains("poach-memory") {
        command.args(["-p", "poach-deque"]);
    }
    let (good, mut built) = documents(&mut command)?;
    ensure!(good, "the tests do not compile");
    let mut command = cargo(copy, target);
    command.args(["build", "-p", "poach-explore", "--example", ROWS, "--message-format=json"]);
    let (good, rows) = documents(&mut command)?;
    ensure!(good, "the checker's rows do not compile");
    built.extend(rows.into_iter().filter(|it| it["target"]["name"] == ROWS));
    let mut tests = Vec::new();
    for document in built {
        let Some(program) = document["executable"].as_str().map(PathBuf::from) else { continue };
        let manifest = document["manifest_path"].as_str().unwrap_or_default();
        let directory = Path::new(manifest).parent().and_then(|it| it.file_name());
        let package = format!("poach-{}", directory.unwrap_or_default().to_string_lossy());
        let mut list = Command::new(&program);
        if package != "poach-explore" {
            list.args(["--list", "--format=terse"]);
        }
        let output = list.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let name = line.strip_suffix(": test").unwrap_or(line).to_owned();
            let (program, package) = (program.clone(), package.clone());
            let (took, reaches) = (Duration::ZERO, HashSet::new());
            tests.push(Test { program, package, name, took, reaches });
        }
    }
    eprintln!("mutate: {} tests and queues", tests.len());
    let list = scratch.join("reached");
    tests.retain_mut(|test| {
        let _ = std::fs::remove_file(&list);
        let started = Instant::now();
        let mut command = test.command(copy);
        command.env("POACH_MUTANTS_REACHED", &list);
        let limit = if test.package == "poach-explore" { LONGEST * 30 } else { LONGEST };
        let good = command
            .spawn()
            .is_ok_and(|mut child| matches!(wait(&mut child, limit), Ok(Some(true))));
        test.took = started.elapsed();
        let reached = std::fs::read_to_string(&list).unwrap_or_default();
        test.reaches = reached.lines().filter_map(|line| line.parse().ok()).collect();
        if !good {
            eprintln!(
                "mutate: left out, since it fails or takes long: {} {}",
                test.package, test.name
            );
        }
        good && !test.reaches.is_empty()
    });
    tests.sort_by_key(|test| test.took);
    let all: Duration = tests.iter().map(|test| test.took).sum();
    eprintln!("mutate: {} of them come to mutants, {:.1} s in all", tests.len(), all.as_secs_f64());
    Ok(tests)
}

/// Tries every mutant that the journal does not know and that can be in one build with the others.
pub(super) fn judge(
    root: &Path,
    scratch: &Path,
    cases: &[Case],
    journal: &mut Journal,
) -> Result<()> {
    let known = |case: &Case| journal.known(&case.mutant.key, &fingerprint(&case.source)).is_some();
    if cases.iter().all(known) {
        return Ok(());
    }
    let copy = scratch.join("together");
    let target = workspace::target_directory()?;
    workspace::copy(root, &copy)?;
    let left_out = build(&copy, &target, cases)?;
    let tests = tests(&copy, &target, cases, scratch)?;
    for (place, case) in cases.iter().enumerate() {
        let (number, path, line) = (place + 1, &case.path, case.mutant.line);
        let print = fingerprint(&case.source);
        if left_out.contains(&number) || journal.known(&case.mutant.key, &print).is_some() {
            continue;
        }
        let started = Instant::now();
        let mut outcome = Outcome::Survived;
        let mut by = String::new();
        for test in tests.iter().filter(|test| test.reaches.contains(&number)) {
            let mut command = test.command(&copy);
            command.env("POACH_MUTANT", number.to_string());
            let mut child = command.spawn().context("a test could not be started")?;
            outcome = match wait(&mut child, test.took * 20 + GRACE)? {
                Some(true) => continue,
                Some(false) => Outcome::Caught,
                None => Outcome::TimedOut,
            };
            by = format!(" by {} {}", test.package, test.name);
            break;
        }
        let (change, seconds) = (case.mutant.change(&case.source), started.elapsed().as_secs_f64());
        println!("{number}/{} {path}:{line}: {change}: {outcome}{by}, {seconds:.1} s", cases.len());
        journal.note(&case.mutant.key, &print, outcome)?;
    }
    Ok(())
}
