//! How far a search goes: what a claim that nothing is wrong has to say with it.

use std::fmt;

use crate::{Incomplete, Report, Verdict};

/// The executions that a search has covered, or has to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// All executions.
    Complete,
    /// Executions with at most this number of preemptions.
    Preemptions(u32),
    /// This number of executions, the first of the search.
    Executions(u64),
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Coverage::Complete => f.write_str("complete"),
            Coverage::Preemptions(bound) => write!(f, "to {bound} preemptions"),
            Coverage::Executions(count) => write!(f, "{count} executions"),
        }
    }
}

impl Report {
    /// What was covered; `None` if the search was cut short by something else than its bounds.
    pub fn coverage(&self) -> Option<Coverage> {
        match self.verdict {
            Verdict::Clean => Some(Coverage::Complete),
            Verdict::Incomplete(Incomplete::Preemptions(bound)) => {
                Some(Coverage::Preemptions(bound))
            }
            Verdict::Incomplete(Incomplete::Executions(_)) => {
                Some(Coverage::Executions(self.executions))
            }
            Verdict::Incomplete(_) | Verdict::Violation(_) => None,
        }
    }

    /// Whether nothing was found, in a search that covers `wanted`.
    ///
    /// # Errors
    ///
    /// What was found, or how far the search went in place of that.
    pub fn clean(&self, wanted: Coverage) -> Result<(), String> {
        if let Verdict::Violation(found) = &self.verdict {
            return Err(found.to_string());
        }
        let enough = match (self.coverage(), wanted) {
            (Some(Coverage::Complete), _) => true,
            (Some(Coverage::Preemptions(found)), Coverage::Preemptions(wanted)) => found >= wanted,
            (Some(Coverage::Executions(found)), Coverage::Executions(wanted)) => found >= wanted,
            _ => false,
        };
        let verdict = &self.verdict;
        if enough { Ok(()) } else { Err(format!("not {wanted}, but {verdict:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::TESTS;
    use crate::{Config, Strategy};

    #[test]
    fn a_bounded_search_is_never_called_complete() {
        let test = TESTS.iter().find(|test| test.name == "IRIW").expect("IRIW is there");
        let report = |config: &Config| test.run(config).report;
        let all = report(&Config::default());
        for wanted in [Coverage::Complete, Coverage::Preemptions(9), Coverage::Executions(1 << 40)]
        {
            assert_eq!(all.clean(wanted), Ok(()));
        }
        let few = report(&Config { max_executions: 2, ..Config::default() });
        assert_eq!(few.coverage(), Some(Coverage::Executions(2)));
        assert_eq!(few.clean(Coverage::Executions(2)), Ok(()));
        let strategy = Strategy::Exhaustive { preemptions: Some(0), reduce: true, prune: true };
        let no_switches = report(&Config { strategy, ..Config::default() });
        assert_eq!(no_switches.coverage(), Some(Coverage::Preemptions(0)));
        assert_eq!(no_switches.clean(Coverage::Preemptions(0)), Ok(()));
        for (report, wanted) in [
            (&few, Coverage::Complete),
            (&few, Coverage::Executions(3)),
            (&few, Coverage::Preemptions(0)),
            (&no_switches, Coverage::Complete),
            (&no_switches, Coverage::Preemptions(1)),
        ] {
            assert!(report.clean(wanted).is_err(), "{wanted}");
        }
    }
}
