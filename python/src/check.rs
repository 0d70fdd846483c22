//! `poach.check`: the model checker, with the document of `poach check --json`.

#[path = "../../crates/cli/src/check/report.rs"]
#[expect(dead_code, reason = "the program's documents, without what it writes for people")]
mod report;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use poach_check::{Buffer, Config, Consistency, Report, Strategy, Verdict, parse_choices};
use poach_models::matrix::{self, Extent, PolicyKind, QUEUES, delta as bound};
use poach_models::{Scenario, alone, check as explore};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::background::watched;
use crate::json::{invalid, loads};
use crate::options::Names;
use report::{CaseRow, Document, Head, LitmusRow, Run};

/// The limit of a model's tasks, steals, store buffer entries and stores between two pops.
const MOST_TASKS: u32 = 60;
const MOST_STORES: u32 = 100;

/// A queue, and the options of its check.
struct Question {
    queue: matrix::Named,
    kind: PolicyKind,
    config: Config,
    store_buffer: u32,
    egress: bool,
    delta: NonZeroU64,
    stores: u32,
    tasks: u32,
    thieves: u32,
    scenes: Vec<(&'static str, Scenario)>,
}

/// Model-checks a queue's own source on a simulated machine with bounded store buffers. Returns the
/// document of `poach check --json`: `verdict` is clean, violation or incomplete.
///
/// `queue` is one of `poach.QUEUES`, or "all" (the matrix of queues and bounds, smaller with
/// `quick`), "litmus" (the litmus tests of the x86-TSO paper) or "laws". The search ends after
/// `seconds` with an incomplete result; None means no limit.
#[pyfunction]
#[pyo3(signature = (
    queue, /, *, policy=None, memory="tso", store_buffer=2, egress=true, delta=None, stores_between=None, tasks=None,
    thieves=1, steals=2, scenes=None, preemptions=None, random=None, seed=1, replay=None, seconds=60.0, quick=true
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, which names each")]
pub(crate) fn check<'py>(
    py: Python<'py>,
    queue: &str,
    policy: Option<&str>,
    memory: &str,
    store_buffer: u32,
    egress: bool,
    delta: Option<u64>,
    stores_between: Option<u32>,
    tasks: Option<u32>,
    thieves: u32,
    steals: u32,
    scenes: Option<Names>,
    preemptions: Option<u32>,
    random: Option<u64>,
    seed: u64,
    replay: Option<&str>,
    seconds: Option<f64>,
    quick: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let stop = Arc::new(AtomicBool::new(false));
    let max_time = seconds
        .map(|seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|error| invalid(format!("seconds: {seconds}: {error}")))
        })
        .transpose()?;
    let config = Config { stop: Arc::clone(&stop), max_time, ..Config::default() };
    // Relaxed: the flag carries no other data.
    let end = || stop.store(true, Ordering::Relaxed);
    let watch = |work: &(dyn Fn() -> Result<String> + Sync)| watched(py, end, |_| Ok(()), work);
    let document = match queue {
        "all" => watch(&|| all(&config, quick)),
        "litmus" => watch(&|| report::litmus_json(&LitmusRow::all(&config))),
        "laws" => watch(&|| report::laws_json(&alone::five_runs())),
        name => {
            let queue = QUEUES.iter().find(|queue| queue.name == name);
            let queue = *queue.ok_or_else(|| {
                let names = QUEUES.iter().map(|queue| queue.name).collect::<Vec<_>>().join(", ");
                invalid(format!(
                    "there is no queue {name:?}: it is one of {names}, or all, litmus, or laws"
                ))
            })?;
            let strategy = match (replay, random) {
                (Some(_), Some(_)) => return Err(invalid("replay, random: one of them")),
                (Some(choices), None) => Strategy::Replay(
                    parse_choices(choices).map_err(|error| invalid(format!("replay: {error}")))?,
                ),
                (None, Some(executions)) => Strategy::Random { seed, executions, depth: 3 },
                (None, None) => Strategy::Exhaustive { preemptions, reduce: true, prune: true },
            };
            let consistency = match memory {
                "tso" => Consistency::Tso,
                "c11" => Consistency::C11,
                _ => return Err(invalid(format!("memory: {memory:?} is none of tso, c11"))),
            };
            let kind = match policy {
                None => queue.policy,
                Some(_) if !queue.algorithm.has_policy() => {
                    return Err(invalid(format!("policy: {name} has none")));
                }
                Some(policy) => policy_kind(policy)?,
            };
            if consistency == Consistency::C11 && kind.bounded() {
                let kind = kind.name();
                return Err(invalid(format!(
                    "the policy {kind} is for total store order, and this is C11"
                )));
            }
            if delta.is_some() && !kind.bounded() {
                return Err(invalid(format!("delta: the policy {} has none", kind.name())));
            }
            let most = if queue.algorithm.is_shared() { 6 } else { 7 };
            limit("thieves", thieves, most)?;
            limit("thieves times steals", thieves.saturating_mul(steals), MOST_TASKS)?;
            limit("store_buffer", store_buffer, MOST_STORES)?;
            let stores = stores_between.unwrap_or(u32::from(kind.bounded()));
            limit("stores_between", stores, MOST_STORES)?;
            let least = bound(store_buffer, egress, stores);
            let delta = match delta.map(NonZeroU64::new) {
                None => least,
                Some(delta) => delta.ok_or_else(|| invalid("delta: at least 1"))?,
            };
            let enough =
                if kind.bounded() { delta.max(least).get().min(1000) as u32 + 1 } else { 3 };
            let tasks = tasks.unwrap_or(enough);
            limit("tasks", tasks, MOST_TASKS)?;
            let mut names = Names::all(scenes);
            if names.is_empty() {
                names = vec!["drain".to_owned(), "brief".to_owned()];
            }
            let scene = |name: &String| match name.as_str() {
                "drain" => Ok(("drain", Scenario::drain(tasks, stores, thieves, steals))),
                "brief" => Ok(("brief", Scenario::brief(stores, thieves, steals))),
                "mixed" => Ok(("mixed", Scenario::mixed(stores, thieves, steals))),
                "echo" => Ok(("echo", Scenario { stores, thieves, steals, ..Scenario::echo() })),
                _ => Err(invalid(format!("scenes: {name:?} is none of drain, brief, mixed, echo"))),
            };
            let scenes = names.iter().map(scene).collect::<PyResult<Vec<_>>>()?;
            let buffer = Buffer::Bounded(store_buffer);
            let config =
                Config { consistency, buffer, egress, strategy, outlives_aborts: true, ..config };
            let question = Question {
                queue,
                kind,
                config,
                store_buffer,
                egress,
                delta,
                stores,
                tasks,
                thieves,
                scenes,
            };
            watch(&|| one(&question))
        }
    };
    let document = document?.map_err(|error| PyRuntimeError::new_err(format!("{error:#}")))?;
    loads(py, document.as_bytes())
}

fn limit(what: &str, number: u32, most: u32) -> PyResult<()> {
    if number > most {
        return Err(invalid(format!(
            "{what}: {number} is more than a model can have: at most {most}"
        )));
    }
    Ok(())
}

fn policy_kind(name: &str) -> PyResult<PolicyKind> {
    const ALL: [PolicyKind; 6] = [
        PolicyKind::Full,
        PolicyKind::Asymmetric,
        PolicyKind::Bounded,
        PolicyKind::Resolved,
        PolicyKind::Unbounded,
        PolicyKind::Unfenced,
    ];
    ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let known = ALL.map(PolicyKind::name).join(", ");
        invalid(format!("policy: {name:?} is none of {known}"))
    })
}

/// The scenes of one queue, until one is violated.
fn one(question: &Question) -> Result<String> {
    let policy = question.kind.with(question.delta);
    let (began, mut runs) = (Instant::now(), Vec::new());
    for (scene, scenario) in &question.scenes {
        // The time limit is for all scenes together.
        let max_time = question.config.max_time.map(|most| most.saturating_sub(began.elapsed()));
        let left = Config { max_time, ..question.config.clone() };
        let report = explore(question.queue.algorithm, policy, scenario, &left);
        let violated = matches!(report.verdict, Verdict::Violation(_));
        runs.push(Run { scene, report });
        if violated || question.config.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let head = Head {
        algorithm: question.queue.name,
        policy: question.kind.name(),
        consistency: question.config.consistency,
        store_buffer: question.store_buffer,
        egress: question.egress,
        delta: question.kind.bounded().then_some(question.delta.get()),
        stores_between: question.stores,
        tasks: question.tasks,
        thieves: question.thieves,
    };
    Document::of(&head, &runs).json()
}

/// The matrix, row by row.
fn all(config: &Config, quick: bool) -> Result<String> {
    let extent = if quick { Extent::Quick } else { Extent::Usual };
    let cases = matrix::cases(extent);
    let mut rows = Vec::new();
    let began = Instant::now();
    for case in &cases {
        let left = config.max_time.map(|most| most.saturating_sub(began.elapsed()));
        if config.stop.load(Ordering::Relaxed) || left == Some(Duration::ZERO) {
            break;
        }
        let own = case.config();
        let max_time = left.into_iter().chain(own.max_time).min();
        let own = Config { stop: Arc::clone(&config.stop), outlives_aborts: true, max_time, ..own };
        // In a new thread, because a thread explores nothing after a panic that cannot unwind.
        let report: Report = std::thread::scope(|scope| scope.spawn(|| case.run(&own)).join())
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        rows.extend(CaseRow::of(case, &report));
    }
    let complete = rows.len() == cases.len();
    let laws = if complete { alone::five_runs() } else { Vec::new() };
    report::matrix_json(&rows, &laws, extent, complete)
}
