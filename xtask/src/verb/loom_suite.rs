//! `cargo xtask loom-suite`: published tests for loom, on loom and on the module of `poach-check`
//! that has its names.
//!
//! The tests are loom's own and those of concurrent-queue. A crate named `loom` that consists of
//! `pub use poach_check::loom::*;` is put in loom's place by a `[patch.crates-io]` block, so that
//! no line of what is tested changes. A test must end as it does on loom, but for [`DIFFERENT`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::published::{cargo, read, unpacked, write};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The packages whose tests are run. Those of concurrent-queue take minutes.
    #[arg(long, value_delimiter = ',', default_value = "loom,concurrent-queue")]
    package: Vec<String>,
}

/// A published package with tests for loom.
struct Suite {
    name: &'static str,
    /// Lines of a manifest: what the tests need.
    needs: &'static str,
    /// The files of tests.
    tests: &'static [&'static str],
    /// The most preemptions of an execution; none if there is no bound.
    preemptions: Option<u32>,
    /// For the compiler, of every crate.
    flags: &'static str,
}

/// Lints are off, because an `unsafe` block around a function that is safe in `poach-check` is
/// unused, and some tests deny warnings.
const SUITES: [Suite; 2] = [
    Suite {
        name: "loom",
        needs: "loom = \"=0.7.2\"\n",
        // All but `futures`, for which there is no module.
        tests: &[
            "arc",
            "atomic",
            "atomic_int",
            "atomic_relaxed",
            "condvar",
            "deadlock",
            "double_panic_in_drop",
            "fence",
            "litmus",
            "mpsc",
            "mutex",
            "rwlock",
            "rwlock_regression1",
            "smoke",
            "spec",
            "thread_api",
            "thread_local",
            "unsafe_cell",
            "yield",
        ],
        preemptions: None,
        flags: "--cap-lints=allow",
    },
    Suite {
        name: "concurrent-queue",
        needs: "concurrent-queue = { version = \"=2.5.0\", features = [\"loom\"] }\nloom = \"=0.7.2\"\n",
        tests: &["loom"],
        // Without a bound loom comes to no end in a minute, and `poach-check` refuses 20 million
        // states.
        preemptions: Some(2),
        flags: "--cap-lints=allow --cfg loom",
    },
];

/// The tests of loom's own that pass on loom and fail on total store order, and why.
const DIFFERENT: [(&str, &str); 5] = [
    (
        "atomic_relaxed::check_ordering_invalid_1",
        "an ordering that is too weak for C11, and not for x86",
    ),
    (
        "atomic_relaxed::check_ordering_invalid_2",
        "an ordering that is too weak for C11, and not for x86",
    ),
    (
        "atomic::invalid_unsync_load_relaxed",
        "an ordering that is too weak for C11, and not for x86",
    ),
    (
        "spec::acq_rel",
        "two readers disagree on the order of two stores, which total store order forbids",
    ),
    (
        "atomic::lazy_static_arc_shutdown",
        "a static is gone at the end of an execution, and stays here",
    ),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let target = workspace::target_directory()?.join("loom-suite");
    for suite in &SUITES {
        if options.package.iter().any(|package| package == suite.name) {
            suite.compare(&target)?;
        }
    }
    Ok(())
}

impl Suite {
    fn compare(&self, target: &Path) -> Result<()> {
        let Suite { name, needs, .. } = self;
        let stand_in = target.join(format!("stand-in-{name}"));
        self.stand_in(&stand_in)?;
        let manifest = format!(
            "[package]\nname = \"{name}-tests\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n[dependencies]\n{needs}"
        );
        // In single quotes TOML knows no escapes.
        let patch = format!("\n[patch.crates-io]\nloom = {{ path = '{}' }}\n", stand_in.display());
        let (original, ours) =
            (target.join(format!("{name}-on-loom")), target.join(format!("{name}-on-poach")));
        for (directory, patch) in [(&original, ""), (&ours, patch.as_str())] {
            write(&directory.join("src/lib.rs"), "")?;
            write(&directory.join("Cargo.toml"), format!("{manifest}{patch}"))?;
            let loom = unpacked(directory, "loom")?;
            let patched = loom == stand_in;
            ensure!(
                patched != patch.is_empty(),
                "{} takes loom from {}",
                directory.display(),
                loom.display()
            );
        }
        let published = unpacked(&original, name)?;
        let (mut same, mut seconds) = (0, [0.0; 2]);
        let mut differ = Vec::new();
        for test in self.tests {
            let mut verdicts =
                [&original, &ours].into_iter().zip(&mut seconds).map(|(directory, seconds)| {
                    let file = Path::new("tests").join(format!("{test}.rs"));
                    write(&directory.join(&file), read(&published.join(&file))?)?;
                    self.verdicts(directory, target, test, seconds)
                });
            let (theirs, ours) = (verdicts.next(), verdicts.next());
            let theirs = theirs.context("there are two")??;
            let ours = ours.context("there are two")??;
            ensure!(
                theirs.keys().eq(ours.keys()),
                "{name}: {test} has other tests here: {:?}, {:?}",
                theirs.keys(),
                ours.keys()
            );
            for (name, verdict) in theirs {
                if ours[&name] == verdict {
                    same += 1;
                } else {
                    differ.push(format!("{test}::{name}"));
                }
            }
        }
        let reason = |test: &String| DIFFERENT.iter().find(|(name, _)| test == name);
        for test in &differ {
            let (_, why) =
                reason(test).with_context(|| format!("{test} does not end as on loom"))?;
            eprintln!("loom-suite: {name}: {test} differs: {why}");
        }
        for (test, _) in DIFFERENT.iter().filter(|_| *name == "loom") {
            ensure!(differ.iter().any(|found| found == test), "{test} ends as it does on loom");
        }
        eprintln!(
            "loom-suite: {name}: {same} tests end alike, {} differ as expected; {:.0} s with loom, {:.0} s here",
            differ.len(),
            seconds[0],
            seconds[1]
        );
        Ok(())
    }

    /// The crate of loom's name.
    fn stand_in(&self, to: &Path) -> Result<()> {
        let explore = workspace::root().join("crates/check");
        let manifest = format!(
            "[package]\nname = \"loom\"\nversion = \"0.7.2\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\npoach-check = {{ path = '{}' }}\n",
            explore.display()
        );
        let mut source = "pub use poach_check::loom::*;\n".to_owned();
        if let Some(most) = self.preemptions {
            // Writing to a string does not fail.
            let _ = write!(
                source,
                "\npub fn model<F: Fn() + Sync + Send + 'static>(body: F) {{\n    \
                 let mut builder = model::Builder::new();\n    \
                 builder.preemption_bound = Some({most});\n    builder.check(body);\n}}\n"
            );
        }
        write(&to.join("Cargo.toml"), manifest)?;
        write(&to.join("src/lib.rs"), source)
    }

    /// How each test of a file ends; adds to `seconds` what they take without the build.
    fn verdicts(
        &self,
        directory: &Path,
        target: &Path,
        test: &str,
        seconds: &mut f64,
    ) -> Result<BTreeMap<String, String>> {
        let step = |verb: &str| {
            let step = cargo(verb, directory, target)
                .args(["--release", "--test", test])
                .env("RUSTFLAGS", self.flags);
            match self.preemptions {
                Some(most) => step.env("LOOM_MAX_PREEMPTIONS", &most.to_string()),
                None => step,
            }
        };
        step("test --no-run --quiet").run(&format!("{test} of {} does not compile", self.name))?;
        let began = Instant::now();
        let text = step("test").output();
        *seconds += began.elapsed().as_secs_f64();
        let verdicts: BTreeMap<_, _> = text.lines().filter_map(verdict).collect();
        ensure!(!verdicts.is_empty(), "no test of {test} of {} ended: {text}", self.name);
        Ok(verdicts)
    }
}

/// The test and its end, of a line in which a test program says how one has ended.
fn verdict(line: &str) -> Option<(String, String)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = test.strip_suffix(" - should panic").unwrap_or(test);
    Some((test.to_owned(), end.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_test_is_read() {
        let owned = |test: &str, end: &str| Some((test.to_owned(), end.to_owned()));
        assert_eq!(verdict("test a ... ok"), owned("a", "ok"));
        assert_eq!(verdict("test b - should panic ... FAILED"), owned("b", "FAILED"));
        for other in ["test result: ok. 12 passed", "a ... ok", ""] {
            assert_eq!(verdict(other), None, "{other}");
        }
    }
}
