//! `cargo xtask test-cost`: what the tests cost on this machine. From an empty target folder to the
//! last test, and after a change in the runtime: the time, and the processors' time of the compiler
//! and of the tests.

use std::fs::{self, File};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::run::Step;
use crate::workspace::{root, target_directory};

/// What a change touches.
const CHANGED: &str = "crates/runtime/src/lib.rs";

/// How long something took: by the clock, and by the processors in all.
struct Took(Duration, Duration);

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Took(clock, processors) = self;
        write!(f, "{:7.1} s {:7.1} s", clock.as_secs_f64(), processors.as_secs_f64())
    }
}

pub(crate) fn run() -> Result<()> {
    let target = target_directory()?.join("test-cost");
    if target.exists() {
        fs::remove_dir_all(&target).context("the last run's builds cannot be removed")?;
    }
    let cargo =
        |arguments: &str| Step::cargo(arguments).env("CARGO_TARGET_DIR", &target.to_string_lossy());
    let build = timed(|| cargo("test --no-run").run("the tests do not build"))?;
    let built = cargo("test --no-run --message-format=json").output();
    let programs = built.lines().filter(|line| is_test_program(line)).count();
    ensure!(programs > 0, "there is no test program");
    let tests = timed(|| cargo("test").run_tests("a test fails").map(|_| ()))?;
    // Alone, the package's dependencies may have fewer features: they are built before the change.
    cargo("test --package poach-runtime --no-run").run("the tests do not build")?;
    File::options()
        .append(true)
        .open(root().join(CHANGED))
        .and_then(|file| file.set_modified(SystemTime::now()))
        .with_context(|| format!("could not touch {CHANGED}"))?;
    let package = "test --package poach-runtime";
    let rebuild = timed(|| cargo(&format!("{package} --no-run")).run("the tests do not build"))?;
    let retest = timed(|| cargo(package).run_tests("a test fails").map(|_| ()))?;
    eprintln!("\n{:36} {:>9} {:>9}", "", "clock", "processors");
    eprintln!("{:36} {build}", format!("build of {programs} test programs"));
    eprintln!("{:36} {tests}", "their tests, and those of documents");
    eprintln!("{:36} {rebuild}", "after a change in runtime: build");
    eprintln!("{:36} {retest}", "its tests");
    Ok(())
}

fn timed(act: impl FnOnce() -> Result<()>) -> Result<Took> {
    let (began, before) = (Instant::now(), of_children()?);
    act()?;
    Ok(Took(began.elapsed(), of_children()?.saturating_sub(before)))
}

/// The processors' time of all processes that this one has started and that have ended.
pub(super) fn of_children() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").context("Linux alone tells this time")?;
    // Behind the name, which may have blanks: the 14th and 15th field, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13).take(2);
    let ticks: u64 = fields.map(|field| field.parse().unwrap_or(0)).sum();
    Ok(Duration::from_millis(10 * ticks))
}

/// Whether this line of cargo's is about a program of tests.
fn is_test_program(line: &str) -> bool {
    serde_json::from_str::<Value>(line)
        .is_ok_and(|it| it["executable"].is_string() && it["profile"]["test"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_tests_are_told_from_others() {
        let line = r#"{"executable":"/a","profile":{"test":true}}"#;
        assert!(is_test_program(line));
        assert!(!is_test_program(&line.replace("true", "false")));
        assert!(!is_test_program(&line.replace("\"/a\"", "null")));
        assert!(!is_test_program("no JSON"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_that_computes_is_seen() {
        let loops = || {
            Step::program("sh").args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
        };
        let Took(_, processors) = timed(|| loops().run("a shell")).unwrap();
        assert!(processors > Duration::ZERO);
    }
}
