//! `poach check`: the queues' own source on a simulated TSO[S] machine.

mod arguments;
mod file;
mod report;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use poach_check::{Buffer, Config, Report, Strategy, Verdict, parse_choices};
use poach_models::matrix::{Case, Extent, QUEUES, cases, delta};
use poach_models::{Algorithm, Policy, Scenario, Step, alone, check};

pub(crate) use arguments::Arguments;

use arguments::{Entries, MemoryModel, SceneName};

use crate::output::{AMISS, INTERRUPTED, USAGE, complain, print};
use crate::signals::on_interrupt;
use crate::typed::Typed;
use report::{CaseRow, Document, LitmusRow, Run};

/// Executions beyond which a search is refused unless it is bounded: some ten minutes.
const ENDLESS: f64 = 2e8;

/// Steals of a model, at most.
const MOST_STEALS: u32 = 60;

/// Entries of a store buffer and stores between two pops, at most: the words of a model are few.
const MOST_STORES: u32 = 100;

/// What the probes of an estimate may take, each.
const PROBE: Duration = Duration::from_millis(500);

/// The arguments make no sense.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

macro_rules! usage {
    ($($text:tt)*) => { return Err(Usage(format!($($text)*)).into()) };
}

pub(crate) fn run(arguments: &Arguments, typed: &Typed) -> ExitCode {
    match dispatch(arguments, typed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(AMISS),
        Err(error) => {
            complain("check", &format!("{error:#}"));
            ExitCode::from(if error.is::<Usage>() { USAGE } else { AMISS })
        }
    }
}

/// Whether all is well.
fn dispatch(arguments: &Arguments, typed: &Typed) -> Result<bool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    on_interrupt(move |_| {
        // Relaxed: the flag is all there is to see. The second time there is no waiting.
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    })?;
    let queue = QUEUES.iter().any(|queue| queue.name == arguments.subject);
    if arguments.memory == MemoryModel::C11 && !queue {
        usage!("--memory is for a single queue: {} has its own", arguments.subject);
    }
    let subject = arguments.subject.as_str();
    let refused = match subject {
        "all" => typed.other_than(&["quick", "full", "seconds", "json"]),
        "litmus" => typed.other_than(&["seconds", "json"]),
        "laws" => typed.other_than(&["json"]),
        file if file::is_litmus(file) => {
            typed.other_than(&["store-buffer", "egress", "seconds", "json"])
        }
        _ if queue => typed.among(&["quick", "full"]),
        _ => None,
    };
    if let Some(option) = refused {
        usage!("--{option} is not for {subject}: it would do nothing");
    }
    let egress = typed.among(&["egress"]).is_some();
    match subject {
        "all" => all(arguments, &stop),
        "litmus" => litmus(arguments, &stop),
        "laws" => laws(arguments),
        name if file::is_litmus(name) => file::run(name, arguments, egress, &stop),
        name => one(name, arguments, egress, &stop),
    }
}

/// The entries of a queue's store buffers.
fn entries(arguments: &Arguments) -> Result<u32> {
    match arguments.store_buffer {
        None => Ok(2),
        Some(Entries::Bounded(entries)) => Ok(entries),
        Some(Entries::Unbounded) => {
            usage!("--store-buffer unbounded is for litmus files: no delta would be large enough")
        }
    }
}

fn one(name: &str, arguments: &Arguments, egress: bool, stop: &Arc<AtomicBool>) -> Result<bool> {
    let Some(queue) = QUEUES.iter().find(|queue| queue.name == name) else {
        let names: Vec<&str> = QUEUES.iter().map(|queue| queue.name).collect();
        usage!(
            "there is no queue {name:?} to check: it is one of {}, or all, litmus, or laws",
            names.join(", ")
        );
    };
    let kind = match arguments.policy {
        Some(_) if !queue.algorithm.has_policy() => {
            usage!("{name} has no fence policy: leave --policy out")
        }
        Some(policy) => policy.kind(),
        None => queue.policy,
    };
    let weak = arguments.memory == MemoryModel::C11;
    if weak && kind.bounded() {
        usage!(
            "the policy {} is for total store order, and this is C11: add --policy full, asymmetric or \
             unbounded",
            kind.name()
        );
    }
    if weak && arguments.store_buffer.is_some() {
        usage!("--store-buffer is for --memory tso: the model of C11 has no store buffers");
    }
    if egress && (weak || arguments.store_buffer == Some(Entries::Bounded(0))) {
        usage!("--egress is for store buffers of one entry and more: here is none");
    }
    if arguments.delta.is_some() && !kind.bounded() {
        usage!("--delta is for the policies bounded and resolved, not for {}", kind.name());
    }
    let buffer = entries(arguments)?;
    let stores = arguments.stores_between.unwrap_or(u32::from(kind.bounded()));
    let bound = delta(buffer, arguments.egress.on(), stores);
    let delta = arguments.delta.unwrap_or(bound);
    // One task beyond the hidden tasks, and one task that a delta too small would give away.
    let most = if kind.bounded() { delta.max(bound).get().min(1000) as u32 + 1 } else { 3 };
    let tasks = arguments.tasks.unwrap_or(most);
    if tasks > 60 {
        usage!("--tasks {tasks} is too many: at most 60");
    }
    // A second pusher, and a pool's producer, are threads, too.
    let thieves = if queue.algorithm.is_shared() { 6 } else { 7 };
    if arguments.thieves > thieves {
        usage!("--thieves {} is too many: at most {thieves}", arguments.thieves);
    }
    let steals = arguments.steals.unwrap_or(2);
    if arguments.thieves.saturating_mul(steals) > MOST_STEALS {
        usage!(
            "{} thieves that steal {steals} times each make a history too long to explain: at most \
             {MOST_STEALS} steals in all",
            arguments.thieves
        );
    }
    if buffer > MOST_STORES {
        usage!("--store-buffer {buffer} is too many: at most {MOST_STORES}");
    }
    if let Some(stores) = arguments.stores_between.filter(|stores| *stores > MOST_STORES) {
        usage!("--stores-between {stores} is too many: at most {MOST_STORES}");
    }
    let scenes = scenes(arguments, queue.algorithm, tasks, stores)?;
    let config = config(arguments, stop)?;
    let policy = kind.with(delta);
    if matches!(config.strategy, Strategy::Exhaustive { preemptions: None, .. })
        && arguments.seconds.is_none()
    {
        for (scene, scenario) in &scenes {
            if queue.algorithm == Algorithm::Injector {
                refuse_waits(scene, scenario, weak)?;
            }
            refuse_endless(
                scene,
                scenario,
                |scenario, config| check(queue.algorithm, policy, scenario, config),
                &config,
            )?;
        }
    }
    let (began, mut runs) = (Instant::now(), Vec::new());
    for (scene, scenario) in scenes {
        // The time is for all of them.
        let max_time = config.max_time.map(|most| most.saturating_sub(began.elapsed()));
        let left = Config { max_time, ..config.clone() };
        let report = check(queue.algorithm, policy, &scenario, &left);
        let violated = matches!(report.verdict, Verdict::Violation(_));
        runs.push(Run { scene, report });
        if violated || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    if let Some(path) = &arguments.svg {
        let shown = runs
            .iter()
            .find_map(|run| run.report.counterexample.as_ref().or(run.report.duplicate.as_ref()));
        match shown {
            Some(example) => write_svg(path, &example.svg())?,
            None => complain("check", "there is no counterexample to draw: --svg wrote nothing"),
        }
    }
    let bounded = matches!(policy, Policy::Bounded { .. } | Policy::Resolved { .. });
    let head = report::Head {
        algorithm: name,
        policy: kind.name(),
        consistency: config.consistency,
        store_buffer: buffer,
        egress: arguments.egress.on(),
        delta: bounded.then_some(delta.get()),
        stores_between: stores,
        tasks,
        thieves: arguments.thieves,
    };
    let document = Document::of(&head, &runs);
    print(if arguments.json { document.json()? } else { document.text(&runs) }.as_bytes())?;
    Ok(runs
        .iter()
        .all(|run| run.report.verdict == Verdict::Clean || bounded_search(&run.report, &config)))
}

/// What the owner is made to do, one scene after the other.
fn scenes(
    arguments: &Arguments,
    algorithm: Algorithm,
    tasks: u32,
    stores: u32,
) -> Result<Vec<(&'static str, Scenario)>> {
    let thieves = arguments.thieves;
    let scene = |name: SceneName| {
        let usual = if name == SceneName::Pushes { 1 } else { 2 };
        let steals = arguments.steals.unwrap_or(usual);
        let scenario = match name {
            SceneName::Drain => Scenario::drain(tasks, stores, thieves, steals),
            SceneName::Brief => Scenario::brief(stores, thieves, steals),
            SceneName::Mixed => Scenario::mixed(stores, thieves, steals),
            SceneName::Echo => Scenario { stores, thieves, steals, ..Scenario::echo() },
            SceneName::Pushes => {
                let script = vec![Step::Push];
                Scenario { script, ..Scenario::drain(0, stores, thieves, steals) }
            }
        };
        (name.name(), scenario)
    };
    Ok(match arguments.scene {
        Some(name) if name != SceneName::Drain && arguments.tasks.is_some() => {
            usage!("--tasks is for the scene drain: {} has its own", name.name())
        }
        Some(name) => vec![scene(name)],
        None if arguments.tasks.is_some() || arguments.replay.is_some() => {
            vec![scene(SceneName::Drain)]
        }
        None if algorithm == Algorithm::Injector => vec![scene(SceneName::Pushes)],
        None => vec![scene(SceneName::Drain), scene(SceneName::Brief)],
    })
}

/// Refuses what is known not to end: each look of a thief of the injector's that waits, and each
/// pause of its pushes, is a choice.
fn refuse_waits(scene: &str, scenario: &Scenario, weak: bool) -> Result<()> {
    let steals = scenario.thieves * scenario.steals;
    if weak || scene != SceneName::Pushes.name() || steals > 1 {
        usage!(
            "the injector's scene {scene} with {steals} steals has more executions than end in minutes, which \
             --preemptions does not change: take the scene pushes with one steal and --memory tso, some executions \
             at random with --random 100000, or stop in time with --seconds 60"
        );
    }
    Ok(())
}

/// A search that was asked to be partial, and found nothing.
fn bounded_search(report: &Report, config: &Config) -> bool {
    use poach_check::Incomplete::{Preemptions, Random, Replay};
    match report.verdict {
        Verdict::Incomplete(Preemptions(_) | Random(_) | Replay) => {
            !config.stop.load(Ordering::Relaxed)
        }
        _ => false,
    }
}

fn config(arguments: &Arguments, stop: &Arc<AtomicBool>) -> Result<Config> {
    let strategy = if let Some(text) = &arguments.replay {
        match parse_choices(text) {
            Ok(choices) => Strategy::Replay(choices),
            Err(why) => usage!("--replay: {why}"),
        }
    } else if let Some(executions) = arguments.random {
        Strategy::Random { seed: arguments.seed.unwrap_or_else(seed), executions, depth: 3 }
    } else {
        Strategy::Exhaustive { preemptions: arguments.preemptions, reduce: true, prune: true }
    };
    Ok(Config {
        consistency: arguments.memory.consistency(),
        buffer: Buffer::Bounded(entries(arguments)?),
        egress: arguments.egress.on(),
        strategy,
        max_time: arguments.seconds.map(Duration::from_secs),
        stop: Arc::clone(stop),
        outlives_aborts: true,
        ..Config::default()
    })
}

/// A seed that differs from run to run; it is printed, so that the run can be had again.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
}

/// Estimates a search from smaller searches, and refuses a search that would not end.
fn refuse_endless(
    scene: &str,
    scenario: &Scenario,
    run: impl Fn(&Scenario, &Config) -> Report,
    config: &Config,
) -> Result<()> {
    let probe = Config { max_time: Some(PROBE), shorten: 0, ..config.clone() };
    let mut known: Vec<f64> = Vec::new();
    let sizes: Vec<Scenario> = (1..=scenario.steals)
        .map(|steals| Scenario { steals, thieves: 1, ..scenario.clone() })
        .chain((2..=scenario.thieves).map(|thieves| Scenario { thieves, ..scenario.clone() }))
        .collect();
    let steps = sizes.len();
    for smaller in sizes {
        let report = run(&smaller, &probe);
        if matches!(report.verdict, Verdict::Violation(_)) {
            return Ok(());
        }
        let executions = report.executions as f64;
        if report.complete {
            known.push(executions);
            continue;
        }
        // What was begun is a lower bound; what is left multiplies at least as it did before.
        let growth = match known.as_slice() {
            [.., before, last] => (last / before).max(8.0),
            [last] => last.clamp(8.0, 200.0),
            [] => 200.0,
        };
        let left = (steps - known.len()) as f64;
        let estimate = known.last().map_or(executions, |last| executions.max(last * growth))
            * growth.powf(left - 1.0);
        // The first size alone does not fit the probe: how far does it reach?
        let estimate = if known.is_empty() {
            executions * f64::from(smaller.tasks.max(2)).powf(f64::from(smaller.tasks.max(2)) / 2.0)
        } else {
            estimate
        };
        if estimate > ENDLESS {
            usage!(
                "the scene {scene} with {} tasks, {} thieves and this store buffer has some {estimate:.0e} \
                 executions, too many to explore: bound it with --preemptions 3, take some at random \
                 with --random 1000000, or stop in time with --seconds 60",
                scenario.tasks,
                scenario.thieves
            );
        }
        return Ok(());
    }
    Ok(())
}

fn write_svg(path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg).with_context(|| format!("could not write {}", path.display()))
}

fn all(arguments: &Arguments, stop: &Arc<AtomicBool>) -> Result<bool> {
    let extent = match arguments {
        Arguments { quick: true, .. } => Extent::Quick,
        Arguments { full: true, .. } => Extent::Full,
        _ => Extent::Usual,
    };
    let cases = cases(extent);
    let (began, max_time) = (Instant::now(), arguments.seconds.map(Duration::from_secs));
    // Two searches side by side: each has a thread of its own, with its own machine.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut rows: Vec<(usize, CaseRow)> = std::thread::scope(|scope| {
        let worker = || {
            let mut rows = Vec::new();
            loop {
                // Relaxed: each number goes to one worker; nothing else is shared.
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = cases.get(at) else { return rows };
                // The time is for all of them.
                let left = max_time.map(|most| most.saturating_sub(began.elapsed()));
                if stop.load(Ordering::Relaxed) || left == Some(Duration::ZERO) {
                    return rows;
                }
                rows.extend(run_case(case, left, stop).map(|row| (at, row)));
            }
        };
        let count = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    rows.sort_by_key(|row| row.0);
    let stopped = rows.len() < cases.len();
    let rows: Vec<CaseRow> = rows.into_iter().map(|row| row.1).collect();
    let laws = if stopped { Vec::new() } else { alone::five_runs() };
    let text = if arguments.json {
        report::matrix_json(&rows, &laws, extent, !stopped)?
    } else {
        report::matrix_text(&rows, &laws, cases.len())
    };
    print(text.as_bytes())?;
    Ok(!stopped && rows.iter().all(|row| row.ok) && laws.iter().all(report::lawful))
}

fn run_case(case: &Case, max_time: Option<Duration>, stop: &Arc<AtomicBool>) -> Option<CaseRow> {
    let config =
        Config { max_time, stop: Arc::clone(stop), outlives_aborts: true, ..case.config() };
    // In a thread of its own, since a panic that cannot unwind is the last that a thread explores.
    let report = std::thread::scope(|scope| scope.spawn(|| case.run(&config)).join());
    CaseRow::of(case, &report.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

fn litmus(arguments: &Arguments, stop: &Arc<AtomicBool>) -> Result<bool> {
    let config = Config {
        max_time: arguments.seconds.map(Duration::from_secs),
        stop: Arc::clone(stop),
        ..Config::default()
    };
    let rows = LitmusRow::all(&config);
    let text =
        if arguments.json { report::litmus_json(&rows)? } else { report::litmus_text(&rows) };
    print(text.as_bytes())?;
    Ok(rows.iter().all(|row| row.ok))
}

fn laws(arguments: &Arguments) -> Result<bool> {
    let laws = alone::five_runs();
    let text = if arguments.json { report::laws_json(&laws)? } else { report::laws_text(&laws) };
    print(text.as_bytes())?;
    Ok(laws.iter().all(report::lawful))
}
