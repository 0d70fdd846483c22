//! `cargo xtask mutate`: every small change by rule that ought to be noticed, and whether a test
//! notices it.
//!
//! Mutants are tried in a copy of the workspace under `target/mutate`, never in the workspace
//! itself. All are in one build, each as a choice of the running program ([`together`]); a mutant
//! that cannot be such a choice is reported as not tried. A journal keeps each mutant's verdict. So
//! a run can be interrupted and taken up again, and a file that has not changed is not tried twice.

mod together;
mod trial;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::mutate::journal::{Journal, Outcome, equivalents, fingerprint};
use crate::mutate::{Mutant, mutants};
use crate::workspace;

/// The sources that are judged.
const JUDGED: [&str; 9] = [
    "crates/deque/src",
    "crates/pool/src",
    "crates/memory/src",
    "crates/runtime/src",
    "crates/parallel/src",
    "crates/topology/src",
    "compat/rayon-core/src",
    "crates/scan/src",
    "crates/cli/src/scan",
];

/// Packages whose mutants are in one build, since the tests of each reach the others' code. One
/// build is of one workspace.
const BUILDS: [&[&str]; 4] = [
    &["crates/memory", "crates/deque", "crates/pool"],
    &["crates/runtime", "crates/parallel", "crates/topology"],
    &["compat/rayon-core"],
    &["crates/scan", "crates/cli"],
];

/// The mutants that are the same program, with their arguments.
const EQUIVALENTS: &str = "xtask/equivalent-mutants.txt";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this file, from the root of the workspace; may be given again.
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Print the mutants and try none.
    #[arg(long)]
    list: bool,
    /// Of N equal parts the K-th, from 1.
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Try those that have survived once more: what tests are added for.
    #[arg(long)]
    again: bool,
    /// Stop after N minutes; the next run goes on from there. With 0, print what is known already.
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Leave out tests that take longer than this number of seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    longest: f64,
    /// Mutants tried at once.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(k, n)| (1..=*n).contains(k)).ok_or_else(|| "K/N with K from 1 to N".to_owned())
}

/// A mutant, the file that it changes, and that file's text.
struct Case {
    path: String,
    source: String,
    /// The fingerprint of its code.
    fingerprint: String,
    mutant: Mutant,
    /// Whether it has an argument why nothing can notice it.
    explained: bool,
    /// Whether it is to be tried, and not there for the build alone.
    asked: bool,
}

impl Case {
    /// The directory of its package.
    fn directory(&self) -> &str {
        directory(&self.path)
    }

    /// Whether there is anything to find out about it; a survivor counts if it is to be tried
    /// `again`.
    fn is_open(&self, journal: &Journal, again: bool) -> bool {
        let known = journal.known(&self.mutant.key, &self.fingerprint);
        let again = again && !self.explained && known == Some(Outcome::Survived);
        self.asked && (known.is_none() || again)
    }
}

/// The directory of the package that a source file belongs to.
fn directory(path: &str) -> &str {
    path.split_once("/src/").map_or("", |(directory, _)| directory)
}

/// The root of the crate that a source file belongs to: a library's, or the program's.
fn crate_root(path: &str) -> String {
    let directory = directory(path);
    let root = if directory == "crates/cli" { "main.rs" } else { "lib.rs" };
    format!("{directory}/src/{root}")
}

/// The name of the package in a directory.
fn package(directory: &str) -> String {
    match directory.rsplit('/').next().unwrap_or_default() {
        name if directory.starts_with("compat/") => name.to_owned(),
        "poach" => "poach".to_owned(),
        name => format!("poach-{name}"),
    }
}

/// The root of the workspace that a package belongs to, from the repository's.
fn workspace_of(directory: &str) -> &str {
    if directory.starts_with("compat/") { directory } else { "" }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root();
    let same = equivalents(&std::fs::read_to_string(root.join(EQUIVALENTS)).unwrap_or_default())?;
    let mut cases = all(&root, &options.file, &same)?;
    refuse_gone(&same, &cases)?;
    if let Some((part, parts)) = options.shard {
        for (place, case) in cases.iter_mut().filter(|case| case.asked).enumerate() {
            case.asked = (place + 1) % parts == part % parts;
        }
    }
    if options.list {
        cases.retain(|case| case.asked);
        for case in &cases {
            let (path, line) = (&case.path, case.mutant.line);
            println!("{path}:{line}: {}", case.mutant.change(&case.source));
        }
        println!("{} mutants", cases.len());
        return Ok(());
    }
    let scratch = workspace::target_directory()?.join("mutate");
    let mut journal = Journal::open(&scratch.join("journal.jsonl"))?;
    if options.minutes == Some(0) {
        cases.retain(|case| case.asked);
    } else {
        let mut builds: Vec<&[&str]> = BUILDS.to_vec();
        let others: BTreeSet<String> =
            cases.iter().map(|case| case.directory().to_owned()).collect();
        let others: Vec<[&str; 1]> = others.iter().map(|other| [other.as_str()]).collect();
        builds
            .extend(others.iter().filter(|it| !BUILDS.concat().contains(&it[0])).map(|it| &it[..]));
        let limits = together::Limits {
            end: options.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes)),
            longest: Duration::from_secs_f64(options.longest),
            jobs: options.jobs.max(1),
            again: options.again,
            first: options.file.clone(),
        };
        let mut judged = Vec::new();
        for build in builds {
            let within = |case: &Case| build.contains(&case.directory());
            let (these, rest) = cases.into_iter().partition::<Vec<_>, _>(within);
            cases = rest;
            let scratch = scratch.join(build.join("-").replace('/', "-"));
            together::judge(&root, &scratch, &these, &mut journal, &limits)?;
            judged.extend(these.into_iter().filter(|case| case.asked));
        }
        cases = judged;
    }
    let (table, survivors) = report(&cases, &journal, &same);
    println!("{table}");
    for key in needless(&cases, &journal) {
        eprintln!("mutate: it has an argument in {EQUIVALENTS}, and is caught: {key}");
    }
    if !survivors.is_empty() {
        bail!("{} survive and are not explained:\n{}", survivors.len(), survivors.join("\n"));
    }
    match cases.iter().filter(|case| case.is_open(&journal, false)).count() {
        0 => eprintln!("mutate: every mutant is caught, or explained"),
        untried => eprintln!("mutate: no survivor is unexplained; {untried} are not tried"),
    }
    Ok(())
}

/// Every mutant of the judged files and of the files that are `named` beside them. If any file is
/// named, the run asks only for the mutants of the named files.
fn all(root: &Path, named: &[String], same: &HashMap<String, String>) -> Result<Vec<Case>> {
    let mut paths = files(root)?;
    for path in named {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    let mut cases = Vec::new();
    for path in paths {
        let source = std::fs::read_to_string(root.join(&path))
            .with_context(|| format!("could not read {path}"))?;
        let asked = named.is_empty() || named.contains(&path);
        let fingerprint = fingerprint(&source);
        for mutant in mutants(&path, &source)? {
            let (path, source) = (path.clone(), source.clone());
            let fingerprint = fingerprint.clone();
            let explained = same.contains_key(&mutant.key);
            cases.push(Case { path, source, fingerprint, mutant, explained, asked });
        }
    }
    Ok(cases)
}

/// Refuses arguments about mutants that do not exist (any more): the code that they speak of has
/// changed.
fn refuse_gone(same: &HashMap<String, String>, cases: &[Case]) -> Result<()> {
    let there: BTreeSet<&str> = cases.iter().map(|case| case.mutant.key.as_str()).collect();
    let mut gone: Vec<&str> =
        same.keys().map(String::as_str).filter(|key| !there.contains(key)).collect();
    gone.sort_unstable();
    if !gone.is_empty() {
        bail!("{EQUIVALENTS} names mutants that do not exist any more:\n{}", gone.join("\n"));
    }
    Ok(())
}

/// The mutants that have an argument why nothing can notice them, and that a test has noticed.
fn needless<'a>(cases: &'a [Case], journal: &Journal) -> Vec<&'a str> {
    let caught =
        |case: &Case| journal.known(&case.mutant.key, &case.fingerprint) == Some(Outcome::Caught);
    let wrong = cases.iter().filter(|case| case.explained && caught(case));
    wrong.map(|case| case.mutant.key.as_str()).collect()
}

/// The files to judge, from the root of the workspace.
fn files(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for directory in JUDGED {
        for entry in walkdir::WalkDir::new(root.join(directory)).sort_by_file_name() {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                files.push(path);
            }
        }
    }
    let mut left_out = Vec::new();
    for path in &files {
        left_out.extend(test_modules(path, &std::fs::read_to_string(root.join(path))?));
    }
    files.retain(|path| !left_out.iter().any(|module| path.starts_with(module.as_str())));
    Ok(files)
}

/// The beginnings of the paths of modules that this file declares for tests alone: they are not
/// judged.
pub(crate) fn test_modules(path: &str, source: &str) -> Vec<String> {
    let directory = match path.rsplit_once('/') {
        Some((directory, "lib.rs" | "mod.rs")) => directory,
        _ => path.trim_end_matches(".rs"),
    };
    let mut for_tests = false;
    let mut modules = Vec::new();
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[cfg(") {
            for_tests = line.contains("test") && !line.contains("not(test)");
        } else if let Some((_, name)) =
            line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "))
            && for_tests
        {
            modules.extend([format!("{directory}/{name}.rs"), format!("{directory}/{name}/")]);
            for_tests = false;
        } else if !line.starts_with('#') && !line.starts_with("//") {
            for_tests = false;
        }
    }
    modules
}

/// Whether a child succeeds; `None` if it takes too long, when it and all that it started are
/// ended. What counts is how long this program has waited, so that a pause of both is none.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<bool>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if waited >= timeout {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = child.kill();
            child.wait()?;
            return Ok(None);
        }
        let step = (waited / 8).clamp(Duration::from_millis(1), Duration::from_millis(50));
        std::thread::sleep(step);
        waited += step;
    }
}

/// The table by file, and the survivors that nobody explains.
fn report(
    cases: &[Case],
    journal: &Journal,
    same: &HashMap<String, String>,
) -> (String, Vec<String>) {
    let mut text = "| file | mutants | caught | timed out | same program | survive | not tried |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut survivors = Vec::new();
    let mut paths: Vec<&str> = cases.iter().map(|case| case.path.as_str()).collect();
    paths.dedup();
    for path in paths {
        let (mut all, mut caught, mut late, mut equal, mut left) = (0, 0, 0, 0, 0);
        let mut untried = 0;
        for case in cases.iter().filter(|case| case.path == path) {
            let key = &case.mutant.key;
            match journal.known(key, &case.fingerprint) {
                None if case.explained => equal += 1,
                None => untried += 1,
                Some(Outcome::Caught) => caught += 1,
                Some(Outcome::TimedOut) => late += 1,
                Some(Outcome::Survived) if same.contains_key(key) => equal += 1,
                Some(Outcome::Survived) => {
                    left += 1;
                    let change = case.mutant.change(&case.source);
                    survivors.push(format!("{key}\n    line {}: {change}", case.mutant.line));
                }
            }
            all += 1;
        }
        writeln!(text, "| {path} | {all} | {caught} | {late} | {equal} | {left} | {untried} |")
            .expect("a string takes all text");
    }
    (text, survivors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::journal::Passed;

    #[test]
    fn a_survivor_is_reported_unless_it_is_explained() {
        let source =
            "fn f(x: u32) -> bool {\n    x == 3\n}\nfn g(x: u32) -> bool {\n    x != 4\n}\n";
        let path = "src/lib.rs".to_owned();
        let (caught, survivor) =
            ("src/lib.rs: comparison: x == 3", "src/lib.rs: comparison: x != 4");
        let mut cases: Vec<Case> = mutants(&path, source)
            .unwrap()
            .into_iter()
            .filter(|mutant| [caught, survivor].contains(&mutant.key.as_str()))
            .map(|mutant| Case {
                path: path.clone(),
                source: source.to_owned(),
                fingerprint: fingerprint(source),
                mutant,
                explained: false,
                asked: true,
            })
            .collect();
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&directory.path().join("journal.jsonl")).unwrap();
        assert!(cases.len() == 2 && cases.iter().all(|case| case.is_open(&journal, false)));
        for (key, outcome) in [(caught, Outcome::Caught), (survivor, Outcome::Survived)] {
            journal.note(key, &fingerprint(source), outcome, Passed::default()).unwrap();
        }
        assert!(!cases.iter().any(|case| case.is_open(&journal, false)));
        let (table, survivors) = report(&cases, &journal, &HashMap::new());
        let found: Vec<&str> = survivors.iter().map(|text| text.lines().next().unwrap()).collect();
        assert_eq!(found, [survivor], "{table}");
        let same = HashMap::from([(survivor.to_owned(), "said".to_owned())]);
        let (table, survivors) = report(&cases, &journal, &same);
        assert!(survivors.is_empty(), "{table}");
        assert!(needless(&cases, &journal).is_empty());
        // The argument for a caught mutant is wrong.
        cases.iter_mut().find(|case| case.mutant.key == caught).unwrap().explained = true;
        assert_eq!(needless(&cases, &journal), [caught]);
    }

    #[test]
    fn every_argument_is_about_a_mutant_that_exists() {
        let root = workspace::root();
        let text = std::fs::read_to_string(root.join(EQUIVALENTS)).unwrap();
        let mut same = equivalents(&text).unwrap();
        let cases = all(&root, &[], &same).unwrap();
        refuse_gone(&same, &cases).unwrap();
        assert_eq!(cases.iter().filter(|case| case.explained).count(), same.len());
        let gone = "crates/deque/src/papers/the.rs: left out: what_it_never_had();";
        same.insert(gone.to_owned(), "said".to_owned());
        let refused = refuse_gone(&same, &cases).unwrap_err().to_string();
        assert!(refused.contains(gone), "{refused}");
    }

    #[test]
    fn the_files_that_are_judged_are_there_and_a_shard_is_a_part() {
        let files = files(&workspace::root()).unwrap();
        for directory in JUDGED {
            assert!(files.iter().any(|file| file.starts_with(directory)), "{directory}");
        }
        let source = "#[cfg(all(test, not(miri)))]\npub(crate) mod model;\nmod visit;\n";
        let left_out = ["a/src/sleep/model.rs", "a/src/sleep/model/"];
        assert_eq!(test_modules("a/src/sleep/mod.rs", source), left_out);
        assert!(!files.iter().any(|file| file.ends_with("/model.rs")), "{files:?}");
        assert_eq!(shard("2/3"), Ok((2, 3)));
        for wrong in ["0/3", "4/3", "3", "a/b"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }
}
