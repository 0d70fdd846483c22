//! All mutants of the judged crates in one build, each tried by the tests that come to it.
//!
//! Each test is run once to see how long it takes and which mutants it comes to. A mutant is then
//! tried by those tests alone, until one fails ([`trial`](super::trial)). Each row of the model
//! checker is a test like others. The scratch directory keeps the results: a later run builds
//! nothing that has not changed, and runs no test again whose program is the same.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::trial::Trials;
use super::{Case, Journal, crate_root, package, wait, workspace_of};
use crate::mutate::Mutant;
use crate::mutate::journal::Passed;
use crate::mutate::together::{Woven, module, weave};
use crate::published::write;
use crate::workspace;

/// How often what does not compile is left out before the rest counts as broken.
const ROUNDS: usize = 60;
/// A test that takes longer tries no mutants.
const LONGEST: Duration = Duration::from_mins(1);
/// Runs the checker's rows.
const ROWS: &str = "rows";
/// Its package.
const CHECKER: &str = "poach-models";
/// What a package's code and tests are built with beside its default features: without them some of
/// its files are no part of it.
const FEATURES: [(&str, &str); 1] = [("poach-pool", "poach-pool/async")];

/// How far a run goes.
pub(super) struct Limits {
    /// When no further mutant is tried.
    pub(super) end: Option<Instant>,
    /// The longest time of a test that is used.
    pub(super) longest: Duration,
    /// Mutants tried at once.
    pub(super) jobs: usize,
    /// Whether survivors are tried again.
    pub(super) again: bool,
    /// The files whose mutants come first, in this order.
    pub(super) first: Vec<String>,
}

impl Limits {
    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// One test, or one row of the checker.
#[derive(Clone)]
pub(super) struct Test {
    pub(super) program: PathBuf,
    /// The program's content.
    build: String,
    pub(super) package: String,
    /// The package's directory.
    directory: PathBuf,
    pub(super) name: String,
    pub(super) took: Duration,
    /// When that was measured, in seconds since 1970.
    pub(super) at: f64,
    pub(super) reaches: HashSet<usize>,
    /// Whether it passes without a mutant, within the time that a test may take.
    good: bool,
}

impl Test {
    /// Runs this test, and others of the same program.
    pub(super) fn command(&self, others: &[&Test]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command.env("RUST_BACKTRACE", "0");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.package != CHECKER {
            command.args(["--exact", "--test-threads=1"]);
        }
        command.arg(&self.name).args(others.iter().map(|test| &test.name));
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    /// Whether it runs code in a memory that is a model: by its name (CONTRIBUTING.md, "Tests"), or
    /// one of a library's own.
    pub(super) fn is_model(&self) -> bool {
        let stem = self.program.file_name().unwrap_or_default().to_string_lossy();
        let library = stem.starts_with(&self.package.replace('-', "_"));
        self.package == CHECKER || self.name.starts_with("model_") || library
    }

    /// What tells this test from others and from itself when its program has changed.
    fn key(&self) -> String {
        format!("{} {} {}", self.program.display(), self.build, self.name)
    }
}

/// The time, in seconds since 1970.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
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

/// Writes the files with all their mutants, without the mutants that do not compile so. Returns the
/// keys of these. The keys that were found before are in the file `apart`, and new keys are added
/// to it after each round.
fn build(copy: &Path, target: &Path, cases: &[Case], apart: &Path) -> Result<HashSet<usize>> {
    let known = std::fs::read_to_string(apart).unwrap_or_default();
    let known: HashSet<String> = serde_json::from_str(&known).unwrap_or_default();
    let of = cases.first().map_or("", |case| workspace_of(case.directory()));
    let copied_workspace = copy.join(of);
    let roots: BTreeSet<String> = cases.iter().map(|case| crate_root(&case.path)).collect();
    let known = |case: &Case| known.contains(&case.mutant.key);
    let mut left_out: HashSet<usize> = cases
        .iter()
        .enumerate()
        .filter(|(_, case)| known(case))
        .map(|(place, _)| place + 1)
        .collect();
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
            files.insert(path, weave(source, &of));
        }
        // A crate's root is written once, with its module: what is written twice is compiled anew.
        for (path, woven) in files.iter().filter(|(path, _)| !roots.contains(**path)) {
            write(&copy.join(path), &woven.text)?;
        }
        for path in &roots {
            let root = std::fs::read_to_string(workspace::root().join(path))?;
            let text = files.get(path.as_str()).map_or(&root, |woven| &woven.text);
            write(&copy.join(path), format!("{text}{}", module(cases.len() + 1)))?;
        }
        // As a dependency, and with its unit tests, whose models may need more of a type than the
        // program.
        let check = |profile: &str| {
            let mut check = cargo(&copied_workspace, target);
            check.args(["check", "--message-format=json", "--lib", "--bins", "--profile", profile]);
            for package in packages(cases) {
                check.args(["-p", &package]);
            }
            documents(check.args(features(&packages(cases))))
        };
        let mut checked = check("dev")?;
        if checked.0 {
            checked = check("test")?;
        }
        let (good, documents) = checked;
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
            let blamed = |message: &Value, primary: bool| -> Vec<usize> {
                let spans = message["spans"].as_array().into_iter().flatten();
                let spans = spans.filter(|span| span["is_primary"] == primary);
                let of = |span: &Value| {
                    let path = Path::new(of).join(span["file_name"].as_str()?);
                    let woven = files.get(path.to_str()?)?;
                    let byte = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
                    let bytes: Range<usize> = byte("byte_start")..byte("byte_end");
                    let near = || if primary { woven.near(&bytes) } else { Vec::new() };
                    Some(woven.at(&bytes).map_or_else(near, |it| vec![it]))
                };
                spans.filter_map(of).flatten().collect()
            };
            let mut found = blamed(message, true);
            found.extend(blamed(message, false));
            // Where the choice is in no place of the error itself, a note names it: a variable that
            // is not set again, say.
            let mut notes = message["children"].as_array().into_iter().flatten();
            if found.is_empty()
                && let Some(named) =
                    notes.find_map(|note| Some(blamed(note, true)).filter(|it| !it.is_empty()))
            {
                found = named;
            }
            if found.is_empty() {
                message["rendered"].as_str().unwrap_or_default().clone_into(&mut strange);
            }
            left_out.extend(found);
        }
        let keys: BTreeSet<&str> =
            left_out.iter().map(|number| cases[number - 1].mutant.key.as_str()).collect();
        std::fs::write(apart, serde_json::to_string(&keys)?)?;
        eprintln!("mutate: {} cannot be in one build", left_out.len());
        // What one change spoils may show elsewhere.
        ensure!(
            left_out.len() > before,
            "no mutant is to blame that this does not compile:\n{strange}"
        );
    }
    bail!("the judged crates do not compile with all mutants after {ROUNDS} rounds")
}

/// The packages of the cases.
fn packages(cases: &[Case]) -> BTreeSet<String> {
    cases.iter().map(|case| package(case.directory())).collect()
}

/// The features of these packages.
fn features(packages: &BTreeSet<String>) -> impl Iterator<Item = String> + '_ {
    let of = FEATURES.iter().filter(|(package, _)| packages.contains(*package));
    of.map(|(_, feature)| format!("--features={feature}"))
}

/// Builds the tests, and lists them.
fn tests(copy: &Path, target: &Path, cases: &[Case]) -> Result<Vec<Test>> {
    let packages = packages(cases);
    let repository = copy.canonicalize()?;
    let copy = &repository.join(cases.first().map_or("", |case| workspace_of(case.directory())));
    let mut command = cargo(copy, target);
    command.args(["test", "--no-run", "--tests", "--message-format=json"]);
    for package in &packages {
        command.args(["-p", package]);
    }
    command.args(features(&packages));
    let (good, mut built) = documents(&mut command)?;
    ensure!(good, "the tests do not compile");
    // The checker runs the queues and the pools, and nothing of the runtime.
    if packages.contains("poach-deque") {
        let mut command = cargo(copy, target);
        command.args(["build", "-p", CHECKER, "--example", ROWS, "--message-format=json"]);
        let (good, rows) = documents(&mut command)?;
        ensure!(good, "the checker's rows do not compile");
        built.extend(rows.into_iter().filter(|it| it["target"]["name"] == ROWS));
    }
    let mut tests = Vec::new();
    for document in built {
        let Some(program) = document["executable"].as_str().map(PathBuf::from) else { continue };
        let manifest = Path::new(document["manifest_path"].as_str().unwrap_or_default());
        let directory = manifest.parent().unwrap_or(copy).to_owned();
        let inner = directory.strip_prefix(&repository).unwrap_or(&directory).to_string_lossy();
        let package = package(&inner);
        let mut list = Command::new(&program);
        if package != CHECKER {
            list.args(["--list", "--format=terse"]);
        }
        let output = list.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&std::fs::read(&program)?);
        let build = format!("{:016x}", hasher.finish());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let name = line.strip_suffix(": test").unwrap_or(line).to_owned();
            let (program, package, build) = (program.clone(), package.clone(), build.clone());
            let (took, at, reaches) = (Duration::ZERO, 0.0, HashSet::new());
            let directory = directory.clone();
            let good = false;
            tests.push(Test { program, build, package, directory, name, took, at, reaches, good });
        }
    }
    Ok(tests)
}

/// Does something with each of these, some at once, until the time is over or something fails.
fn each<T: Sync>(
    all: &[T],
    limits: &Limits,
    act: impl Fn(usize, &T) -> Result<()> + Sync,
) -> Result<()> {
    let queue = Mutex::new(all.iter());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..limits.jobs)
            .map(|job| {
                let (queue, act) = (&queue, &act);
                scope.spawn(move || -> Result<()> {
                    while !limits.is_over() {
                        let next = queue.lock().expect("nobody panics with it").next();
                        let Some(next) = next else { break };
                        act(job, next)?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker returns"))
    })
}

/// The tests that reach mutants and pass without one, the short tests first. Each is run unless it
/// is known which mutants it reaches. `None` if there was no time for all.
fn measured(tests: Vec<Test>, scratch: &Path, limits: &Limits) -> Result<Option<Vec<Test>>> {
    let path = scratch.join("tests.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let known: HashMap<String, Value> =
        rows.filter_map(|row| Some((row["test"].as_str()?.to_owned(), row))).collect();
    let limit = limits.longest.min(LONGEST);
    let (mut done, mut open) = (Vec::new(), Vec::new());
    for mut test in tests {
        let row = known.get(&test.key()).unwrap_or(&Value::Null);
        test.took = Duration::from_secs_f64(row["seconds"].as_f64().unwrap_or_default());
        test.at = row["at"].as_f64().unwrap_or_default();
        let reaches = row["reaches"].as_array().into_iter().flatten();
        test.reaches = reaches.filter_map(|number| Some(number.as_u64()? as usize)).collect();
        test.good = row["good"] == true;
        // A test that was stopped may have more time now.
        if test.good || test.took >= limit { done.push(test) } else { open.push(test) }
    }
    let all = done.len() + open.len();
    eprintln!("mutate: {all} tests and rows, of which {} are new", open.len());
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
    let (file, done) = (Mutex::new(file), Mutex::new(done));
    each(&open, limits, |job, test| {
        let mut test = test.clone();
        let list = scratch.join(format!("reached-{job}"));
        let _ = std::fs::remove_file(&list);
        let started = Instant::now();
        let mut command = test.command(&[]);
        command.env("POACH_MUTANTS_REACHED", &list);
        test.good = command
            .spawn()
            .is_ok_and(|mut child| matches!(wait(&mut child, limit), Ok(Some(true))));
        test.took = started.elapsed();
        let reached = std::fs::read_to_string(&list).unwrap_or_default();
        test.reaches = reached.lines().filter_map(|line| line.parse().ok()).collect();
        test.at = now();
        let row = json!({
            "test": test.key(),
            "at": test.at,
            "seconds": test.took.as_secs_f64(),
            "reaches": test.reaches,
            "good": test.good,
        });
        let mut file = file.lock().expect("nobody panics with it");
        writeln!(file, "{row}")?;
        done.lock().expect("nobody panics with it").push(test);
        Ok(())
    })?;
    let mut tests = done.into_inner().expect("nobody panics with it");
    if tests.len() < all {
        return Ok(None);
    }
    for test in tests.iter().filter(|test| !test.good) {
        let (package, name) = (&test.package, &test.name);
        eprintln!("mutate: left out, since it fails or takes long: {package} {name}");
    }
    tests.retain(|test| test.good && test.took <= limit && !test.reaches.is_empty());
    tests.sort_by_key(|test| test.took);
    let took: Duration = tests.iter().map(|test| test.took).sum();
    eprintln!(
        "mutate: {} of them come to mutants, {:.1} s in all",
        tests.len(),
        took.as_secs_f64()
    );
    Ok(Some(tests))
}

/// Tries every open mutant that can be in one build with the others, as far as the limits go.
pub(super) fn judge(
    root: &Path,
    scratch: &Path,
    cases: &[Case],
    journal: &mut Journal,
    limits: &Limits,
) -> Result<()> {
    if !cases.iter().any(|case| case.is_open(journal, limits.again)) {
        return Ok(());
    }
    let copy = scratch.join("copy");
    let target = workspace::target_directory()?;
    let mut woven: HashSet<String> = cases.iter().map(|case| case.path.clone()).collect();
    woven.extend(cases.iter().map(|case| crate_root(&case.path)));
    // What is woven is written by `build`: written twice, it would be compiled anew.
    workspace::copy_if(root, &copy, |path| !woven.contains(path))?;
    let apart = scratch.join("apart.json");
    let left_out = build(&copy, &target, cases, &apart)?;
    let tests = tests(&copy, &target, cases)?;
    let Some(tests) = measured(tests, scratch, limits)? else { return Ok(()) };
    let mut open: Vec<(usize, &Case)> = cases
        .iter()
        .enumerate()
        .map(|(place, case)| (place + 1, case))
        .filter(|(number, case)| !left_out.contains(number) && case.is_open(journal, limits.again))
        .collect();
    // What has an argument comes last: nothing notices it, after all the tests have run.
    let rank = |case: &Case| limits.first.iter().position(|path| *path == case.path);
    open.sort_by_key(|(_, case)| (case.explained, rank(case)));
    let trials = Trials::new(tests);
    let (started, tried) = (Instant::now(), AtomicUsize::new(0));
    let journal = Mutex::new(journal);
    each(&open, limits, |_, &(number, case)| {
        let begun = Instant::now();
        let (key, source) = (&case.mutant.key, &case.fingerprint);
        let before = journal.lock().expect("nobody panics with it").passed(key, source);
        let passed = Passed { longest: limits.longest.as_secs_f64(), at: now() };
        let (outcome, by) = trials.attempt(number, case, before)?;
        tried.fetch_add(1, Relaxed);
        let (path, line) = (&case.path, case.mutant.line);
        let (change, seconds) = (case.mutant.change(&case.source), begun.elapsed().as_secs_f64());
        println!("{number}/{} {path}:{line}: {change}: {outcome}{by}, {seconds:.1} s", cases.len());
        let mut journal = journal.lock().expect("nobody panics with it");
        journal.note(key, source, outcome, passed)
    })?;
    let (tried, minutes) = (tried.into_inner(), started.elapsed().as_secs_f64() / 60.0);
    eprintln!("mutate: {tried} tried in {minutes:.1} minutes");
    Ok(())
}
