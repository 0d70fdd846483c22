//! `poach check FILE.litmus`: a test of herd's for x86 on the machine with a bound.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, Result};
use poach_check::herd::{Quantifier, Test};
use poach_check::{Buffer, Config};
use serde_json::json;

use super::arguments::{Arguments, Entries};
use super::report::SCHEMA;
use super::{MOST_STORES, Usage};
use crate::output::print;

/// Whether a subject is a file of this kind.
pub(super) fn is_litmus(subject: &str) -> bool {
    Path::new(subject).extension().is_some_and(|extension| extension == "litmus")
}

/// Whether all is well: what the file requires or forbids is so, and what it asks has an answer.
pub(super) fn run(
    path: &str,
    arguments: &Arguments,
    egress_asked: bool,
    stop: &Arc<AtomicBool>,
) -> Result<bool> {
    let buffer = match arguments.store_buffer {
        None | Some(Entries::Unbounded) => Buffer::Unbounded,
        Some(Entries::Bounded(entries)) if entries > MOST_STORES => {
            return Err(Usage(format!(
                "--store-buffer {entries} is more than a processor has: at most {MOST_STORES}, or \
                 unbounded"
            ))
            .into());
        }
        Some(Entries::Bounded(entries)) => Buffer::Bounded(entries),
    };
    let bounded = matches!(buffer, Buffer::Bounded(1..));
    if egress_asked && !bounded {
        return Err(Usage(
            "--egress is behind a buffer with a bound: add --store-buffer".to_owned(),
        )
        .into());
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {path}"))?;
    let test = Test::parse(&text).map_err(|mistake| Usage(format!("{path}:{mistake}")))?;
    let egress = arguments.egress.on() && bounded;
    let config = Config {
        buffer,
        egress,
        max_time: arguments.seconds.map(Duration::from_secs),
        stop: Arc::clone(stop),
        ..Config::default()
    };
    let answer = test.run(&config);
    let machine = match buffer {
        Buffer::Unbounded => "x86-TSO, store buffers without a bound".to_owned(),
        Buffer::Bounded(0) => "sequential consistency".to_owned(),
        Buffer::Bounded(entries) => {
            let slot = if egress { " and an egress slot" } else { "" };
            format!("TSO[{entries}]: store buffers of {entries}{slot}")
        }
    };
    let (positive, negative) = answer.witnesses();
    if arguments.json {
        let document = json!({
            "schema": SCHEMA,
            "verdict": if !answer.conclusive {
                "incomplete"
            } else if amiss(test.quantifier(), answer.holds) {
                "violation"
            } else {
                "clean"
            },
            "executions": answer.report.executions,
            "complete": answer.report.complete,
            "litmus": {
                "name": test.name(),
                "kind": test.quantifier().kind(),
                "ok": answer.holds,
                "states": answer.states,
                "positive": positive,
                "negative": negative,
                "condition": answer.condition(),
                "observation": answer.observation(),
            },
            "store_buffer": match buffer {
                Buffer::Unbounded => json!("unbounded"),
                Buffer::Bounded(entries) => json!(entries),
            },
            "egress": egress,
            "elapsed_s": answer.report.elapsed.as_secs_f64(),
        });
        print((serde_json::to_string_pretty(&document)? + "\n").as_bytes())?;
    } else {
        let mut text = answer.text();
        let (executions, seconds) = (answer.report.executions, answer.report.elapsed.as_secs_f64());
        writeln!(text, "Machine {machine}; {executions} executions in {seconds:.3} s")?;
        if !answer.conclusive {
            writeln!(text, "Incomplete: {:?}", answer.report.verdict)?;
        }
        print(text.as_bytes())?;
    }
    Ok(answer.conclusive && !amiss(test.quantifier(), answer.holds))
}

/// `No` violates a file that requires or forbids; it answers a file that asks.
fn amiss(quantifier: Quantifier, holds: bool) -> bool {
    quantifier != Quantifier::Exists && !holds
}
