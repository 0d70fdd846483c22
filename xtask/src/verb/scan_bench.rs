//! `cargo xtask scan-bench`: `poach scan`, the least that a walk can do, and other programs of this
//! machine, on one tree and in turn.
//!
//! The tree is a named directory, or a tree that is made from a seed and removed at the end.
//! A system is timed as users see it: from the start of its process to its end, with what it prints
//! thrown away. Before anything is timed, the totals of `poach scan` must be those of the floor
//! (`crates/scan/examples/floor.rs`), bytes included where the tree is from a seed, and its
//! maker's. Each round runs every system once, in an order of its own. Other programs are those of
//! [`PEERS`] that stand in a directory of `PATH`; which they are, and their versions, is printed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::run::Step;
use crate::samples::quantile;
use crate::workspace::target_directory;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The directory to walk. Without it a tree is grown from a seed.
    path: Option<PathBuf>,
    /// How many entries that tree has.
    #[arg(long, default_value_t = 420_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000), conflicts_with = "path")]
    entries: u64,
    /// From which seed it grows.
    #[arg(long, default_value_t = 1, conflicts_with = "path")]
    seed: u64,
    /// How often each system runs.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// The threads of each system that can be told how many [default: 2; with --cold, as many as
    /// the system itself takes].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    threads: Option<u32>,
    /// Drop what the system remembers of its disks before each run. Only root may.
    #[arg(long)]
    cold: bool,
    /// These systems alone, by their names in the table.
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    only: Vec<String>,
    /// Print one JSON document, with every sample, in place of the table.
    #[arg(long)]
    json: bool,
}

impl Options {
    /// The threads of each system that can be told how many; nothing, if each takes as many as it
    /// likes.
    fn threads(&self) -> Option<u32> {
        self.threads.or((!self.cold).then_some(2))
    }
}

/// A program that walks a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct System {
    name: String,
    command: Vec<String>,
    /// What comes after the directory.
    last: Option<String>,
    version: String,
}

/// Other programs: the flag that says how many threads, and their other arguments. The directory
/// comes last.
const PEERS: [(&str, &str, &[&str]); 6] = [
    ("pdu", "--threads", &["--silent-errors"]),
    ("diskus", "-j", &[]),
    ("dust", "-T", &["-d", "1", "-b"]),
    ("dua", "-t", &["aggregate"]),
    ("gdu", "-m", &["-n", "-p"]),
    ("du", "", &["-s"]),
];

/// The system whose time is 1 for the others: the fastest of the systems that have this name and a
/// number of threads.
const FLOOR: &str = "floor";
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

pub(crate) fn run(options: &Options) -> Result<()> {
    if cfg!(not(target_os = "linux")) {
        bail!("the floor walks on Linux only");
    }
    if options.cold {
        drop_caches()?;
    }
    // Not in `cargo build`'s time: whether there is anything to measure.
    if let Some(path) = &options.path {
        fs::read_dir(path).with_context(|| format!("cannot walk {}", path.display()))?;
    }
    Step::cargo("build --release --package poach-cli --bin poach")
        .run("the program does not build")?;
    Step::cargo("build --release --package poach-scan --example floor --example make-tree")
        .run("the floor does not build")?;
    let built = target_directory()?.join("release");
    let tree = Tree::new(options, &built)?;
    let systems = systems(options, &built, &env::var_os("PATH").unwrap_or_default())?;
    let found = agree(&built, &tree.path, tree.made.as_deref())?;
    let samples = measure(options, &systems, &tree.path)?;
    if options.json {
        println!("{:#}", document(options, &systems, &samples, &found));
    } else {
        println!("{}", table(options, &systems, &samples, &found));
    }
    Ok(())
}

/// The directory that is walked.
struct Tree {
    path: PathBuf,
    /// What its maker says of it, if it was made for this, and is to go.
    made: Option<String>,
}

impl Tree {
    fn new(options: &Options, built: &Path) -> Result<Tree> {
        if let Some(path) = &options.path {
            return Ok(Tree { path: path.clone(), made: None });
        }
        let name = format!("poach-scan-bench-{}", std::process::id());
        let mut tree = Tree { path: env::temp_dir().join(name), made: Some(String::new()) };
        let arguments = [options.entries.to_string(), options.seed.to_string()];
        eprintln!("growing {} entries from seed {}", arguments[0], arguments[1]);
        let mut maker = Command::new(built.join("examples/make-tree"));
        tree.made = Some(output(maker.arg(&tree.path).args(arguments))?);
        Ok(tree)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.made.is_some()
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("could not remove {}: {error}", self.path.display());
        }
    }
}

/// The systems that were asked for, the floor first.
fn systems(options: &Options, built: &Path, path: &std::ffi::OsStr) -> Result<Vec<System>> {
    let threads = options.threads();
    let version = "of this commit".to_owned();
    let floor = |threads: u32| System {
        name: format!("{FLOOR}, {threads} threads"),
        command: vec![built.join("examples/floor").display().to_string()],
        last: Some(threads.to_string()),
        version: version.clone(),
    };
    let scan = |more: Option<&str>| System {
        name: ["poach scan"].into_iter().chain(more).collect::<Vec<_>>().join(" "),
        command: command(
            &built.join("poach"),
            Some("scan").into_iter().chain(more),
            ("--threads", threads),
        ),
        last: None,
        version: version.clone(),
    };
    // A disk may repay more threads than there are processors.
    let floors = threads.map_or_else(|| vec![2, 8, 32], |threads| vec![threads]);
    let mut systems: Vec<System> = floors.into_iter().map(floor).collect();
    systems.extend([None, Some("--all"), Some("--no-sizes")].map(scan));
    let mut missing = Vec::new();
    for (name, flag, arguments) in PEERS {
        let Some(file) = env::split_paths(path).map(|at| at.join(name)).find(|it| it.is_file())
        else {
            missing.push(name);
            continue;
        };
        let asked = Command::new(&file).arg("--version").output();
        let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let version = said.unwrap_or_default().lines().next().unwrap_or("unknown").to_owned();
        let threads = threads.filter(|_| !flag.is_empty());
        let command = command(&file, arguments.iter().copied(), (flag, threads));
        systems.push(System { name: name.to_owned(), command, last: None, version });
    }
    if !missing.is_empty() {
        eprintln!("not in PATH, so not measured: {}", missing.join(", "));
    }
    if let Some(unknown) =
        options.only.iter().find(|only| systems.iter().all(|system| system.name != **only))
    {
        let names: Vec<_> = systems.iter().map(|system| &*system.name).collect();
        bail!("there is no {unknown:?} here; there are: {}", names.join(", "));
    }
    systems.retain(|system| {
        options.only.is_empty() || is_floor(system) || options.only.contains(&system.name)
    });
    Ok(systems)
}

fn is_floor(system: &System) -> bool {
    system.name.starts_with(FLOOR)
}

fn command<'a>(
    program: &Path,
    arguments: impl Iterator<Item = &'a str>,
    (flag, threads): (&str, Option<u32>),
) -> Vec<String> {
    let mut command = vec![program.display().to_string()];
    command.extend(arguments.map(str::to_owned));
    command.extend(threads.into_iter().flat_map(|threads| [flag.to_owned(), threads.to_string()]));
    command
}

/// Compares what `poach scan` counts with what the floor counts; returns it as a line.
fn agree(built: &Path, path: &Path, made: Option<&str>) -> Result<String> {
    let floor = output(Command::new(built.join("examples/floor")).arg(path))?;
    let mut scan = Command::new(built.join("poach"));
    let scan = output(scan.arg("scan").arg(path).args(["--report", "summary", "--json"]))?;
    let scan = totals(&scan)?;
    // A name outside of a tree that was not made for this takes its share of a file's bytes from
    // the floor's sum.
    let compared = |said: &str| match made {
        Some(_) => said.trim().to_owned(),
        None => said.rsplit_once(", ").map_or(said, |(counts, _)| counts).to_owned(),
    };
    ensure!(
        compared(&floor) == compared(&scan),
        "the floor and `poach scan` disagree about {}, unless it changes: {:?} and {scan:?}",
        path.display(),
        floor.trim()
    );
    if let Some(made) = made {
        let (count, _) = made.split_once(" directories").unwrap_or(("none", ""));
        ensure!(
            scan.starts_with(&format!("{count} directories")),
            "{scan} of {count} directories that were made"
        );
    }
    Ok(scan)
}

/// The totals of the document of a summary, as the floor says them.
fn totals(document: &str) -> Result<String> {
    let document: Value = serde_json::from_str(document).context("the summary is no JSON")?;
    let rows = document["reports"]["summary"]["rows"].as_array().context("it has no rows")?;
    let total = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["value"].as_u64()).with_context(|| format!("no total of {name}"))
    };
    Ok(format!(
        "{} directories, {} files, {} links, {} others, {} bytes",
        total("directories")?,
        total("files")?,
        total("symlinks")?,
        total("other")?,
        total("on disk")?
    ))
}

/// Seconds of each system, in its order, a sample a round.
fn measure(options: &Options, systems: &[System], path: &Path) -> Result<Vec<Vec<f64>>> {
    let mut samples = vec![Vec::new(); systems.len()];
    let mut rng = Rng::with_seed(options.seed);
    // One round more fills the caches.
    let first = u32::from(options.cold);
    for round in first..=options.rounds {
        let mut order: Vec<usize> = (0..systems.len()).collect();
        rng.shuffle(&mut order);
        for index in order {
            if options.cold {
                drop_caches()?;
            }
            let time = time(&systems[index], path)?;
            if round > 0 {
                samples[index].push(time.as_secs_f64());
            }
        }
        eprint!("\rround {round} of {}", options.rounds);
    }
    eprintln!();
    Ok(samples)
}

fn time(system: &System, path: &Path) -> Result<Duration> {
    let mut command = Command::new(&system.command[0]);
    command.args(&system.command[1..]).arg(path).args(&system.last);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("could not start {}", system.name))?;
    let time = start.elapsed();
    // One: it says that something could not be read.
    ensure!(matches!(status.code(), Some(0 | 1)), "{} ended with {status}", system.name);
    Ok(time)
}

fn drop_caches() -> Result<()> {
    ensure!(Command::new("sync").status()?.success(), "`sync` failed");
    fs::write(DROP_CACHES, "3")
        .with_context(|| format!("--cold writes to {DROP_CACHES}, which only root may"))
}

/// What the program prints.
fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("could not start {shown}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown} ended with {}: {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Median, tenth and ninth tenth, and the median over that of the fastest floor.
fn figures(systems: &[System], samples: &[Vec<f64>], index: usize) -> [f64; 4] {
    let of = |q| quantile(&samples[index], q);
    let floors = systems.iter().zip(samples).filter(|(system, _)| is_floor(system));
    let floor = floors.map(|(_, samples)| quantile(samples, 0.5)).min_by(f64::total_cmp);
    [of(0.5), of(0.1), of(0.9), of(0.5) / floor.unwrap_or(f64::NAN)]
}

/// How many threads each system has, in words.
fn threads_of_each(options: &Options) -> String {
    options.threads().map_or_else(
        || "as many threads as each takes".to_owned(),
        |threads| format!("{threads} threads"),
    )
}

fn table(options: &Options, systems: &[System], samples: &[Vec<f64>], found: &str) -> String {
    let state = if options.cold { "cold" } else { "warm" };
    let mut lines = vec![
        format!("{found}; {state}, {}, {} rounds", threads_of_each(options), options.rounds),
        String::new(),
        "| | median, ms | p10 | p90 | x floor | version |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for (index, system) in systems.iter().enumerate() {
        let [median, p10, p90, ratio] = figures(systems, samples, index);
        lines.push(format!(
            "| {} | {:.1} | {:.1} | {:.1} | {ratio:.2} | {} |",
            system.name,
            median * 1e3,
            p10 * 1e3,
            p90 * 1e3,
            system.version
        ));
    }
    lines.join("\n")
}

fn document(options: &Options, systems: &[System], samples: &[Vec<f64>], found: &str) -> Value {
    let rows = systems.iter().enumerate().map(|(index, system)| {
        let [median, p10, p90, ratio] = figures(systems, samples, index);
        json!({
            "system": system.name, "command": system.command, "version": system.version,
            "unit": "s", "samples": samples[index], "median": median, "p10": p10, "p90": p90, "over_floor": ratio,
        })
    });
    json!({
        "tree": found, "path": options.path, "seed": options.path.is_none().then_some(options.seed),
        "cold": options.cold, "threads": options.threads(), "rounds": options.rounds,
        "rows": rows.collect::<Vec<_>>(),
    })
}

// The programs that stand in for the peers are scripts of the shell.
#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn options(only: &[&str]) -> Options {
        Options {
            path: None,
            entries: 1_000,
            seed: 1,
            rounds: 3,
            threads: Some(4),
            cold: false,
            only: only.iter().map(ToString::to_string).collect(),
            json: false,
        }
    }

    /// A directory with a program of this name that does `script`.
    fn with_program(name: &str, script: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        directory
    }

    #[test]
    fn a_peer_is_measured_where_it_is_in_path_with_its_threads_and_its_version() {
        let directory = with_program("diskus", "echo diskus 9.9");
        let found = systems(&options(&["diskus"]), Path::new("x"), directory.path().as_os_str());
        let found = found.unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].name, found[0].last.as_deref()), ("floor, 4 threads", Some("4")));
        assert_eq!(found[1].command[1..], ["-j", "4"]);
        assert_eq!(found[1].version, "diskus 9.9");
    }

    #[test]
    fn from_a_cold_disk_each_takes_as_many_threads_as_it_likes() {
        let directory = with_program("diskus", "echo diskus 9.9");
        let cold = Options { cold: true, threads: None, ..options(&["diskus", "poach scan"]) };
        let found = systems(&cold, Path::new("x"), directory.path().as_os_str()).unwrap();
        let names: Vec<_> = found.iter().map(|system| &*system.name).collect();
        let floors = ["floor, 2 threads", "floor, 8 threads", "floor, 32 threads"];
        assert_eq!(names, [&floors[..], &["poach scan", "diskus"]].concat());
        assert_eq!(found[3].command[1..], ["scan"]);
        assert_eq!(found[4].command.len(), 1);
        // The fastest floor is what the others are compared with.
        let samples = [3.0, 1.0, 2.0, 1.5, 4.0].map(|seconds| vec![seconds]);
        assert_eq!(figures(&found, &samples, 3)[3].to_bits(), 1.5_f64.to_bits());
    }

    #[test]
    fn one_that_is_not_there_is_refused_with_what_there_is() {
        let directory = tempfile::tempdir().unwrap();
        let error = systems(&options(&["diskus"]), Path::new("x"), directory.path().as_os_str());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("\"diskus\"") && error.contains("poach scan, "), "{error}");
    }

    #[test]
    fn a_program_that_fails_ends_the_run_and_one_that_could_not_read_all_does_not() {
        let run = |script: &str| {
            let directory = with_program("du", script);
            let command = vec![directory.path().join("du").display().to_string()];
            let name = "du".to_owned();
            let system = System { name, command, last: None, version: String::new() };
            measure(&options(&[]), &[system], Path::new("/")).map(|samples| samples[0].len())
        };
        assert_eq!(run("exit 1").unwrap(), 3);
        assert!(run("exit 2").unwrap_err().to_string().contains("du ended with"));
    }

    #[test]
    fn totals_are_said_as_the_floor_says_them() {
        let rows =
            [("directories", 3), ("files", 2), ("symlinks", 1), ("other", 0), ("on disk", 9)];
        let rows = rows.map(|(name, value)| json!({ "name": name, "value": value }));
        let document = json!({ "reports": { "summary": { "rows": rows } } }).to_string();
        let said = "3 directories, 2 files, 1 links, 0 others, 9 bytes";
        assert_eq!(totals(&document).unwrap(), said);
        assert!(totals("{}").is_err());
    }

    #[test]
    fn a_row_is_the_median_over_the_floors() {
        let samples = [vec![2.0, 1.0, 9.0], vec![3.0, 2.5, 4.0]];
        let system = |name: &str| System {
            name: name.to_owned(),
            command: vec!["x".to_owned()],
            last: None,
            version: "1".to_owned(),
        };
        let systems = [system(FLOOR), system("du")];
        let found = figures(&systems, &samples, 1);
        assert_eq!(found.map(f64::to_bits), [3.0, 2.5, 4.0, 1.5].map(f64::to_bits));
        let table = table(&options(&[]), &systems, &samples, "2 files");
        assert!(table.ends_with("| du | 3000.0 | 2500.0 | 4000.0 | 1.50 | 1 |"), "{table}");
        let document = document(&options(&[]), &systems, &samples, "2 files");
        assert_eq!(document["rows"][1]["over_floor"], 1.5);
        assert_eq!(document["rows"][0]["samples"], json!([2.0, 1.0, 9.0]));
    }
}
