//! Every ordering and fence of the queues and pools, played weaker than it is written, and which of
//! them a scene refutes.
//!
//! ```console
//! $ cargo run --release -p poach-models --example orderings              # all of them
//! $ cargo run --release -p poach-models --example orderings split ring   # of the files with this in their path
//! $ cargo run --release -p poach-models --example orderings --scenes     # the scenes, as they are
//! $ cargo run --release -p poach-models --example orderings --short fifo  # the first search alone, of four seconds a scene
//! ```
//!
//! Each is tried in a process of its own, since what is weakened may be undefined behaviour. A
//! survivor needs its argument in `crates/models/orderings.txt`; one without makes the run fail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use poach_check::{Config, Demand, Orderings, Report, Strategy, Verdict, Weakening};
use poach_models::matrix::Case;
use poach_models::orderings::scenes;

mod source;

use source::Sources;

/// How a scene is searched, and for how many executions and seconds.
type Search = (Strategy, u64, u64);

const fn preemptions(bound: u32) -> Strategy {
    Strategy::Exhaustive { preemptions: Some(bound), reduce: true, prune: true }
}

/// The first search finds most, the others what is deeper.
const SEARCHES: [Search; 3] = [
    (preemptions(2), 20_000, 4),
    (Strategy::Random { seed: 1, executions: 10_000, depth: 4 }, 10_000, 5),
    (preemptions(3), 60_000, 10),
];
/// What is listed is what a scene's executions come to: it need not be searched far for that.
const LISTING: Search = (preemptions(2), 4_000, 4);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--without") => one(&arguments[1..], &SEARCHES),
        Some("--first") => one(&arguments[1..], &SEARCHES[..1]),
        Some("--scenes") => originals(),
        Some("--short") => all(&arguments[1..], "--first"),
        _ => all(&arguments, "--without"),
    }
}

fn explored(case: &Case, search: &Search, orderings: Orderings) -> Report {
    let (strategy, executions, seconds) = search;
    let config = Config {
        strategy: strategy.clone(),
        orderings,
        outlives_aborts: true,
        max_executions: *executions,
        max_time: Some(Duration::from_secs(*seconds)),
        ..case.config()
    };
    case.run(&config)
}

fn name(case: &Case) -> String {
    format!("{} ({}), {}", case.name, case.policy.name(), case.scene)
}

/// Each scene with its orderings as they are written.
fn originals() -> ExitCode {
    let mut good = true;
    for (number, case) in scenes().iter().enumerate() {
        let report = explored(case, &SEARCHES[2], Orderings::AsWritten);
        let refuted = matches!(report.verdict, Verdict::Violation(_));
        good &= !refuted;
        println!(
            "{number:3} {}: {:?}, {} executions, {:.2} s{}",
            name(case),
            report.verdict,
            report.executions,
            report.elapsed.as_secs_f64(),
            if report.stolen || !case.play.steals() { "" } else { ", and no thief gets anything" },
        );
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One weakening, in a process of its own: `file line column demand`, then the numbers of its
/// scenes. Says which refutes it.
fn one(arguments: &[String], searches: &[Search]) -> ExitCode {
    let [file, line, column, demand, numbers @ ..] = arguments else { return ExitCode::FAILURE };
    let (Ok(line), Ok(column), Some(demand)) =
        (line.parse(), column.parse(), Demand::named(demand))
    else {
        return ExitCode::FAILURE;
    };
    let weakening = Weakening { file: file.clone(), line, column, demand };
    let scenes = scenes();
    for search in searches {
        for case in numbers.iter().filter_map(|number| scenes.get(number.parse::<usize>().ok()?)) {
            let report = explored(case, search, Orderings::Without(weakening.clone()));
            if let Verdict::Violation(found) = &report.verdict {
                println!("{}: {:?}, {} executions", name(case), found.kind(), report.executions);
                return ExitCode::SUCCESS;
            }
        }
    }
    ExitCode::SUCCESS
}

/// What became of a weakening.
enum Fate {
    Refuted(String),
    Alive,
}

fn all(paths: &[String], how: &str) -> ExitCode {
    let scenes = scenes();
    let wanted = |weakening: &Weakening| {
        weakening.file.starts_with("crates/")
            && (paths.is_empty() || paths.iter().any(|path| weakening.file.contains(path.as_str())))
    };
    let listed = Mutex::new(BTreeMap::<Weakening, Vec<(Duration, usize)>>::new());
    each(scenes.len(), |number| {
        let report = explored(&scenes[number], &LISTING, Orderings::Listed);
        let mut listed = listed.lock().expect("nobody panics with it");
        for weakening in report.demands.into_iter().filter(|demand| wanted(demand)) {
            listed.entry(weakening).or_default().push((report.elapsed, number));
        }
    });
    let listed: Vec<_> = listed.into_inner().expect("nobody panics with it").into_iter().collect();
    eprintln!("{} orderings and fences in {} scenes", listed.len(), scenes.len());
    let fates = Mutex::new(BTreeMap::new());
    each(listed.len(), |at| {
        let (weakening, scenes) = &listed[at];
        let mut scenes = scenes.clone();
        scenes.sort();
        let fate = tried(weakening, &scenes, how);
        match &fate {
            Fate::Refuted(how) => eprintln!("{weakening}: {how}"),
            Fate::Alive => eprintln!("{weakening}: ALIVE in {} scenes", scenes.len()),
        }
        fates.lock().expect("nobody panics with it").insert(weakening.clone(), fate);
    });
    report(&fates.into_inner().expect("nobody panics with it"), paths.is_empty())
}

/// Does something for each number below `count`, as many at once as there are processors.
fn each(count: usize, act: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    // Relaxed: a number for each.
                    let number = next.fetch_add(1, Relaxed);
                    if number >= count {
                        return;
                    }
                    act(number);
                }
            });
        }
    });
}

fn tried(weakening: &Weakening, scenes: &[(Duration, usize)], how: &str) -> Fate {
    let program = std::env::current_exe().expect("a running program has a path");
    let place = [weakening.line.to_string(), weakening.column.to_string()];
    let output = Command::new(program)
        .args([how, &weakening.file])
        .args(place)
        .arg(weakening.demand.name())
        .args(scenes.iter().map(|(_, number)| number.to_string()))
        .stderr(Stdio::piped())
        .output()
        .expect("a program can run itself");
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(how) => Fate::Refuted(how.to_owned()),
        None if output.status.success() => Fate::Alive,
        None => {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = error.lines().find(|line| !line.trim().is_empty()).unwrap_or("").to_owned();
            Fate::Refuted(format!("the process ends, {}: {line}", output.status))
        }
    }
}

/// The table by file, and the survivors that nobody has argued.
fn report(fates: &BTreeMap<Weakening, Fate>, whole: bool) -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Sources::new(&root);
    let argued = sources.argued();
    let mut rows = BTreeMap::<&str, [usize; 3]>::new();
    let (mut open, mut keys) = (Vec::new(), BTreeSet::new());
    for (weakening, fate) in fates {
        let row = rows.entry(&weakening.file).or_default();
        row[0] += 1;
        let key = sources.key(weakening);
        match fate {
            Fate::Refuted(_) => row[1] += 1,
            Fate::Alive if argued.contains(&key) => row[2] += 1,
            Fate::Alive => open.push(format!("{key}\n    line {}", weakening.line)),
        }
        if matches!(fate, Fate::Alive) {
            keys.insert(key);
        }
    }
    println!("| file | orderings and fences | refuted | argued | neither |\n|---|---|---|---|---|");
    for (file, [count, refuted, same]) in rows {
        println!("| {file} | {count} | {refuted} | {same} | {} |", count - refuted - same);
    }
    for key in argued.difference(&keys).filter(|_| whole) {
        open.push(format!("{key}\n    is argued, and is refuted or not there"));
    }
    for line in &open {
        println!("{line}");
    }
    if open.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
