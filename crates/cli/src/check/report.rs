//! What `poach check` prints: text for people, or one JSON document.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Result;
use poach_check::litmus::{Found, Litmus, TESTS};
use poach_check::{Config, Consistency, Incomplete, Kind, Report, Verdict};
use poach_models::alone::Law;
use poach_models::matrix::{Case, Extent};
use serde_json::{Value, json};

/// The documents' version.
pub(super) const SCHEMA: u32 = 1;

/// One scene of one queue.
pub(super) struct Run {
    pub(super) scene: &'static str,
    pub(super) report: Report,
}

/// What was asked.
pub(super) struct Head<'a> {
    pub(super) algorithm: &'a str,
    pub(super) policy: &'a str,
    pub(super) consistency: Consistency,
    pub(super) store_buffer: u32,
    pub(super) egress: bool,
    pub(super) delta: Option<u64>,
    pub(super) stores_between: u32,
    pub(super) tasks: u32,
    pub(super) thieves: u32,
}

/// The answer about one queue.
pub(super) struct Document {
    value: Value,
    head: String,
}

/// A memory model's name.
fn memory(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Tso => "tso",
        Consistency::C11 => "c11",
    }
}

fn statistics(report: &Report) -> Value {
    json!({
        "executions": report.executions,
        "complete": report.complete,
        "completed": report.completed,
        "states": report.states,
        "pruned": report.known,
        "asleep": report.asleep,
        "steps": report.steps,
        "depth": report.depth,
        "restarts": report.restarts,
        "elapsed_s": report.elapsed.as_secs_f64(),
    })
}

fn why(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::Clean => None,
        Verdict::Violation(violation) => Some(violation.to_string()),
        Verdict::Incomplete(reason) => Some(reason.to_string()),
    }
}

/// The verdict on several runs: the worst.
fn worst(runs: &[Run]) -> &'static str {
    let words: Vec<&str> = runs.iter().map(|run| run.report.verdict.word()).collect();
    ["violation", "incomplete"].into_iter().find(|word| words.contains(word)).unwrap_or("clean")
}

impl Document {
    pub(super) fn of(head: &Head<'_>, runs: &[Run]) -> Self {
        let value = json!({
            "schema": SCHEMA,
            "algorithm": head.algorithm,
            "policy": head.policy,
            "memory": memory(head.consistency),
            "store_buffer": head.store_buffer,
            "egress": head.egress,
            "delta": head.delta,
            "stores_between": head.stores_between,
            "tasks": head.tasks,
            "thieves": head.thieves,
            "verdict": worst(runs),
            "executions": runs.iter().map(|run| run.report.executions).sum::<u64>(),
            "complete": runs.iter().all(|run| run.report.complete),
            "runs": runs.iter().map(run_value).collect::<Vec<_>>(),
        });
        let mut text = format!("{}, policy {}", head.algorithm, head.policy);
        match head.consistency {
            Consistency::C11 => text.push_str(", C11"),
            Consistency::Tso => {
                let _ = write!(text, ", S = {}", head.store_buffer);
                text.push_str(if head.egress { " and an egress slot" } else { ", no egress slot" });
            }
        }
        if let Some(delta) = head.delta {
            let _ = write!(text, ", delta {delta}");
        }
        let _ = write!(text, ", {} stores between pops", head.stores_between);
        Document { value, head: text }
    }

    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.value)? + "\n")
    }

    pub(super) fn text(&self, runs: &[Run]) -> String {
        let mut text = format!("{}\n", self.head);
        for run in runs {
            let report = &run.report;
            let _ = write!(text, "  {}: {}", run.scene, report.verdict.word());
            if let Some(why) = why(&report.verdict) {
                let _ = write!(text, ", {why}");
            }
            let _ = writeln!(
                text,
                "\n    {} executions ({} whole, {} pruned, {} asleep), {} states, depth {}, {:.2} s",
                report.executions,
                report.completed,
                report.known,
                report.asleep,
                report.states,
                report.depth,
                report.elapsed.as_secs_f64()
            );
            if let Some(example) = &report.counterexample {
                let _ = write!(text, "\n{example}");
            }
            if let Some(example) = &report.duplicate {
                let _ = write!(
                    text,
                    "\n    {} executions return a task more than once, which this queue allows. The \
                     shortest:\n\n{example}",
                    report.duplicates
                );
            }
        }
        text
    }
}

fn run_value(run: &Run) -> Value {
    let mut value = statistics(&run.report);
    value["scene"] = json!(run.scene);
    value["verdict"] = json!(run.report.verdict.word());
    value["why"] = json!(why(&run.report.verdict));
    value["kind"] = json!(match &run.report.verdict {
        Verdict::Violation(found) => Some(found.kind().name()),
        _ => None,
    });
    value["duplicates"] = json!(run.report.duplicates);
    let example = run.report.counterexample.as_ref().or(run.report.duplicate.as_ref());
    value["choices"] = json!(example.map(|example| example.choices.clone()));
    value
}

/// A row of the matrix, as found.
pub(super) struct CaseRow {
    pub(super) ok: bool,
    value: Value,
    line: String,
}

impl CaseRow {
    /// None of a search that was cut short, which has no place among those that ended. A violation
    /// that was found before the end of the time was found.
    pub(super) fn of(case: &Case, report: &Report) -> Option<Self> {
        use Incomplete::{Stopped, Time};
        if matches!(report.verdict, Verdict::Incomplete(Stopped | Time(_))) {
            return None;
        }
        let ok = case.as_expected(report);
        let expected = case.expected.map_or("clean", Kind::name);
        let found = match &report.verdict {
            Verdict::Violation(found) => found.kind().name(),
            verdict => verdict.word(),
        };
        let coverage = report.coverage().map_or_else(|| "-".to_owned(), |found| found.to_string());
        let delta = case.delta.map(core::num::NonZeroU64::get);
        let mut value = statistics(report);
        value["algorithm"] = json!(case.name);
        value["policy"] = json!(case.policy.name());
        value["memory"] = json!(memory(case.consistency));
        value["store_buffer"] = json!(case.store_buffer);
        value["stores_between"] = json!(case.stores);
        value["delta"] = json!(delta);
        value["scene"] = json!(case.scene);
        value["tasks"] = json!(case.scenario.tasks);
        value["expected"] = json!(expected);
        value["verdict"] = json!(report.verdict.word());
        value["found"] = json!(found);
        value["coverage"] = json!(report.coverage().map(|found| found.to_string()));
        value["stolen"] = json!(report.stolen);
        value["ok"] = json!(ok);
        let line = format!(
            "{:4} {:16} {:10} {:>3} {:>2} {:>5} {:9} {:>5} {:11} {:11} {:17} {:>10} {:>9} {:>7.2}",
            if ok { "ok" } else { "BAD" },
            case.name,
            case.policy.name(),
            match case.consistency {
                Consistency::Tso => case.store_buffer.to_string(),
                Consistency::C11 => "c11".to_owned(),
            },
            case.stores,
            delta.map_or_else(|| "-".to_owned(), |delta| delta.to_string()),
            case.scene,
            case.scenario.tasks,
            expected,
            found,
            coverage,
            report.executions,
            report.states,
            report.elapsed.as_secs_f64()
        );
        Some(CaseRow { ok, value, line })
    }
}

/// The matrix for people.
pub(super) fn matrix_text(rows: &[CaseRow], laws: &[Law], all: usize) -> String {
    let mut text = format!(
        "{:4} {:16} {:10} {:>3} {:>2} {:>5} {:9} {:>5} {:11} {:11} {:17} {:>10} {:>9} {:>7}\n",
        "",
        "algorithm",
        "policy",
        "S",
        "x",
        "delta",
        "scene",
        "tasks",
        "expected",
        "found",
        "coverage",
        "executions",
        "states",
        "s"
    );
    for row in rows {
        text.push_str(&row.line);
        text.push('\n');
    }
    let bad = rows.iter().filter(|row| !row.ok).count();
    if !laws.is_empty() {
        text.push('\n');
        text.push_str(&laws_text(laws));
    }
    let _ = writeln!(text, "\n{} of {all} rows as expected, {bad} not", rows.len() - bad);
    text
}

/// The matrix for programs: `complete` if every row of this extent has ended.
pub(super) fn matrix_json(
    rows: &[CaseRow],
    laws: &[Law],
    extent: Extent,
    complete: bool,
) -> Result<String> {
    let ok = rows.iter().all(|row| row.ok) && laws.iter().all(lawful);
    let verdict = if !ok {
        "violation"
    } else if complete {
        "clean"
    } else {
        "incomplete"
    };
    let document = json!({
        "schema": SCHEMA,
        "verdict": verdict,
        "executions": rows.iter().filter_map(|row| row.value["executions"].as_u64()).sum::<u64>(),
        "extent": match extent {
            Extent::Quick => "quick",
            Extent::Usual => "usual",
            Extent::Full => "full",
        },
        "complete": complete,
        "rows": rows.iter().map(|row| &row.value).collect::<Vec<_>>(),
        "laws": laws.iter().map(law_value).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Whether a thief alone fares as the theorem says.
pub(super) fn lawful(law: &Law) -> bool {
    law.fate == law.expected
}

fn law_value(law: &Law) -> Value {
    let mut value = statistics(&law.report);
    value["algorithm"] = json!(law.name);
    value["expected"] = json!(law.expected.to_string());
    value["found"] = json!(law.fate.to_string());
    value["ok"] = json!(lawful(law));
    value
}

/// The five runs of section 6 for people.
pub(super) fn laws_text(laws: &[Law]) -> String {
    let mut text = "A thief alone with a queue of one task:\n".to_owned();
    for law in laws {
        let _ = writeln!(
            text,
            "{:4} {:10} {:16} ({} executions)",
            if lawful(law) { "ok" } else { "BAD" },
            law.name,
            law.fate.to_string(),
            law.report.executions
        );
    }
    text
}

/// The five runs of section 6 for programs.
pub(super) fn laws_json(laws: &[Law]) -> Result<String> {
    let document = json!({
        "schema": SCHEMA,
        "verdict": if laws.iter().all(lawful) { "clean" } else { "violation" },
        "executions": laws.iter().map(|law| law.report.executions).sum::<u64>(),
        "complete": true,
        "laws": laws.iter().map(law_value).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A litmus test, as found.
pub(super) struct LitmusRow {
    pub(super) ok: bool,
    /// Whether the search went far enough for an answer.
    conclusive: bool,
    value: Value,
    line: String,
}

fn allowed(yes: bool) -> &'static str {
    if yes { "allowed" } else { "forbidden" }
}

impl LitmusRow {
    /// Runs the tests. The time of `config` is for all of them.
    pub(super) fn all(config: &Config) -> Vec<Self> {
        let began = Instant::now();
        let run = |test: &Litmus| {
            let max_time = config.max_time.map(|most| most.saturating_sub(began.elapsed()));
            Self::of(test, &test.run(&Config { max_time, ..config.clone() }))
        };
        TESTS.iter().map(run).collect()
    }

    fn of(test: &Litmus, found: &Found) -> Self {
        // An outcome that occurs is allowed, however far the search went. An outcome that does not
        // occur is forbidden only if every execution was covered.
        let conclusive = found.occurred || found.report.complete;
        let ok = conclusive && found.occurred == test.allowed;
        let answer = if conclusive { allowed(found.occurred) } else { "unknown" };
        let mut value = statistics(&found.report);
        value["name"] = json!(test.name);
        value["expected"] = json!(allowed(test.allowed));
        value["found"] = json!(answer);
        value["ok"] = json!(ok);
        let line = format!(
            "{:4} {:16} {:9} {:9} {:>6}",
            match (conclusive, ok) {
                (false, _) => "-",
                (true, true) => "ok",
                (true, false) => "BAD",
            },
            test.name,
            allowed(test.allowed),
            answer,
            found.report.executions
        );
        LitmusRow { ok, conclusive, value, line }
    }
}

/// The litmus tests for people.
pub(super) fn litmus_text(rows: &[LitmusRow]) -> String {
    let mut text =
        format!("{:4} {:16} {:9} {:9} {:>6}\n", "", "test", "x86-TSO", "found", "executions");
    for row in rows {
        text.push_str(&row.line);
        text.push('\n');
    }
    text
}

/// The litmus tests for programs.
pub(super) fn litmus_json(rows: &[LitmusRow]) -> Result<String> {
    let verdict = if rows.iter().any(|row| row.conclusive && !row.ok) {
        "violation"
    } else if rows.iter().all(|row| row.ok) {
        "clean"
    } else {
        "incomplete"
    };
    let document = json!({
        "schema": SCHEMA,
        "verdict": verdict,
        "executions": rows.iter().filter_map(|row| row.value["executions"].as_u64()).sum::<u64>(),
        "complete": rows.iter().all(|row| row.value["complete"] == true),
        "tests": rows.iter().map(|row| &row.value).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
