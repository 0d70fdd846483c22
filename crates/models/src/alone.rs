//! Section 6 of *Fence-Free Work Stealing on Bounded TSO Processors*, the laws of order, as runs.
//!
//! The theorem says that a queue whose operations matter to each other as `take` and `steal` do on
//! a queue of one task must pay a fence, if every sequential execution of its specification can
//! occur. The fence-free queues escape because one cannot: a thief that runs alone does not take
//! the only task. It gets an abort (FF-THE, FF-CL), or never returns (THEP).

use core::fmt;
use core::num::NonZeroU64;

use poach_deque::{ChaseLev, The, Thep};
use poach_memory::{Bounded, Full, Resolved};

use super::{Deque, Subject};
use crate::any_policy::delta;
use poach_check::history::Outcome;
use poach_check::{Config, Report, Simulated, Threads, Verdict, Violation, explore, observe};

/// What became of a thief alone with a queue of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It took the task.
    Took,
    /// It was refused.
    Aborted,
    /// It found no task.
    Empty,
    /// It waits for ever.
    NeverReturns,
    /// Something else: see the report.
    Other,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fate::Took => "takes the task",
            Fate::Aborted => "gets an abort",
            Fate::Empty => "finds the queue empty",
            Fate::NeverReturns => "never returns",
            Fate::Other => "does something else",
        })
    }
}

fn alone<S: Subject>(make: impl Fn() -> S) -> (Fate, Report) {
    let report = explore(&Config::bounded(1, true), &|threads: &mut Threads| {
        let queue = make();
        queue.push(1);
        let thief = queue.thief();
        threads.spawn("thief", move || {
            let outcome = match S::steal(&thief) {
                Outcome::Task(_) => 1,
                Outcome::Abort => 2,
                Outcome::Empty => 3,
                Outcome::Retry | Outcome::Done => 4,
            };
            observe(0, outcome);
        });
        // The owner stays, and does nothing.
        threads.finally(move || drop(queue));
    });
    let fate = match (&report.verdict, report.outcomes.first().map(|seen| seen[0])) {
        (Verdict::Violation(Violation::Deadlock(_)), _) => Fate::NeverReturns,
        (Verdict::Clean, Some(1)) if report.outcomes.len() == 1 => Fate::Took,
        (Verdict::Clean, Some(2)) if report.outcomes.len() == 1 => Fate::Aborted,
        (Verdict::Clean, Some(3)) if report.outcomes.len() == 1 => Fate::Empty,
        _ => Fate::Other,
    };
    (fate, report)
}

/// One of the five runs.
#[derive(Clone, Debug)]
pub struct Law {
    /// The queue's name.
    pub name: &'static str,
    /// What must become of the thief.
    pub expected: Fate,
    /// What became of it.
    pub fate: Fate,
    /// The search.
    pub report: Report,
}

/// The five runs.
///
/// # Panics
///
/// If the simulated machine refuses a policy: it never does.
pub fn five_runs() -> Vec<Law> {
    const TSO: &str = "the simulated machine has all that the policy asks for";
    let least = || delta(NonZeroU64::MIN, true);
    let bounded = || Bounded::<Simulated>::new(least()).expect(TSO);
    let resolved = || Resolved::<Simulated>::new(least()).expect(TSO);
    let law = |name, expected, (fate, report)| Law { name, expected, fate, report };
    let chase_lev =
        || Deque(ChaseLev::<u64, Full, Simulated>::starting_at(Full, 64, 0).expect(TSO));
    vec![
        law("chase-lev", Fate::Took, alone(chase_lev)),
        law(
            "resolved",
            Fate::Took,
            alone(|| {
                Deque(ChaseLev::<u64, _, Simulated>::starting_at(resolved(), 64, 0).expect(TSO))
            }),
        ),
        law(
            "ff-the",
            Fate::Aborted,
            alone(|| Deque(The::<u64, _, Simulated>::starting_at(bounded(), 64, 0).expect(TSO))),
        ),
        law(
            "ff-cl",
            Fate::Aborted,
            alone(|| {
                Deque(ChaseLev::<u64, _, Simulated>::starting_at(bounded(), 64, 0).expect(TSO))
            }),
        ),
        law(
            "thep",
            Fate::NeverReturns,
            alone(|| Deque(Thep::<u64, _, Simulated>::starting_at(bounded(), 64, 0).expect(TSO))),
        ),
    ]
}
