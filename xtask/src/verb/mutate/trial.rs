//! One mutant against the tests that come to it: in which order, several at once, and how long.
//!
//! First come the tests that have caught others of the same file. Then the short tests of each
//! program run in one process, since most of the cost of such a test is its process. If one of them
//! fails, each runs alone, and a test that fails alone has caught the mutant. The long tests come
//! last. A survivor that is tried again runs only the tests that it has not passed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::together::Test;
use super::{Case, Outcome, wait};
use crate::mutate::journal::Passed;

/// What a test may take beyond ten times what it took before.
const GRACE: Duration = Duration::from_secs(5);
/// The same of a short test, if the machine is not too busy for it.
const SHORT_GRACE: Duration = Duration::from_secs(1);
/// A test is short that takes no longer.
const SHORT: Duration = Duration::from_millis(60);
/// Short tests in one process take no longer together.
const TOGETHER: Duration = Duration::from_millis(300);
/// Tests that have caught others and come first, each alone.
const KILLERS: usize = 12;
/// What it costs to start a process.
const START: f64 = 0.005;

/// The tests, and which have caught mutants.
pub(super) struct Trials {
    tests: Vec<Test>,
    /// Of each file, the tests that have caught mutants of it; what was caught lately weighs more.
    killers: Mutex<HashMap<String, HashMap<usize, f64>>>,
}

impl Trials {
    pub(super) fn new(tests: Vec<Test>) -> Self {
        Trials { tests, killers: Mutex::new(HashMap::new()) }
    }

    /// What becomes of a mutant, and by which test.
    pub(super) fn attempt(
        &self,
        number: usize,
        case: &Case,
        passed: Option<Passed>,
    ) -> Result<(Outcome, String)> {
        for step in self.steps(number, case, passed) {
            let found = match self.run(number, &step)? {
                Outcome::Survived => None,
                outcome if step.len() == 1 => Some((step[0], outcome)),
                _ => self.alone(number, &step)?,
            };
            if let Some((at, outcome)) = found {
                let mut killers = self.killers.lock().expect("nobody panics with it");
                let killers = killers.entry(case.path.clone()).or_default();
                for weight in killers.values_mut() {
                    *weight *= 0.9;
                }
                *killers.entry(at).or_default() += 1.0;
                let Test { package, name, .. } = &self.tests[at];
                return Ok((outcome, format!(" by {package} {name}")));
            }
        }
        Ok((Outcome::Survived, String::new()))
    }

    /// The tests to run, those of one step in one process.
    fn steps(&self, number: usize, case: &Case, passed: Option<Passed>) -> Vec<Vec<usize>> {
        let models = case.mutant.is_for_models(&case.source);
        let is_new = |test: &Test| {
            passed.is_none_or(|it| test.at > it.at || test.took.as_secs_f64() > it.longest)
        };
        let useful = |test: &Test| {
            test.reaches.contains(&number) && is_new(test) && (!models || test.is_model())
        };
        let of_file = self.killers.lock().expect("nobody panics with it").get(&case.path).cloned();
        let of_file = of_file.unwrap_or_default();
        let mut first: Vec<(usize, f64)> = of_file
            .into_iter()
            .filter(|(at, _)| useful(&self.tests[*at]))
            .map(|(at, weight)| (at, weight / (self.tests[at].took.as_secs_f64() + START)))
            .collect();
        first.sort_by(|a, b| b.1.total_cmp(&a.1));
        first.truncate(KILLERS);
        let mut rest = Vec::new();
        let mut open: BTreeMap<&Path, (Duration, Vec<usize>)> = BTreeMap::new();
        for (at, test) in self.tests.iter().enumerate() {
            if !useful(test) || first.iter().any(|(it, _)| *it == at) {
                continue;
            }
            if test.took > SHORT {
                rest.push((test.took, vec![at]));
                continue;
            }
            let (took, group) = open.entry(&test.program).or_default();
            *took += test.took;
            group.push(at);
            if *took > TOGETHER {
                rest.extend(open.remove(test.program.as_path()));
            }
        }
        rest.extend(open.into_values());
        rest.sort_by_key(|(took, _)| *took);
        first.into_iter().map(|(at, _)| vec![at]).chain(rest.into_iter().map(|it| it.1)).collect()
    }

    /// The first of some tests that does not pass alone.
    fn alone(&self, number: usize, step: &[usize]) -> Result<Option<(usize, Outcome)>> {
        for &at in step {
            let outcome = self.run(number, &[at])?;
            if outcome != Outcome::Survived {
                return Ok(Some((at, outcome)));
            }
        }
        Ok(None)
    }

    /// Some tests of one program, in one process.
    fn run(&self, number: usize, step: &[usize]) -> Result<Outcome> {
        let took: Duration = step.iter().map(|at| self.tests[*at].took).sum();
        let limit = |grace| took * 10 + grace;
        let soon = limit(if took > TOGETHER { GRACE } else { SHORT_GRACE });
        let within = |mutant: usize, limit| {
            let others: Vec<&Test> = step[1..].iter().map(|at| &self.tests[*at]).collect();
            let mut command = self.tests[step[0]].command(&others);
            command.env("POACH_MUTANT", mutant.to_string());
            let mut child = command.spawn().context("a test could not be started")?;
            wait(&mut child, limit)
        };
        let mut passes = within(number, soon)?;
        // No mutant has the number 0: where the same tests take long without one, the machine is
        // busy.
        if passes.is_none() && soon < limit(GRACE) && within(0, soon / 4)? != Some(true) {
            passes = within(number, limit(GRACE))?;
        }
        Ok(match passes {
            Some(true) => Outcome::Survived,
            Some(false) => Outcome::Caught,
            None => Outcome::TimedOut,
        })
    }
}
