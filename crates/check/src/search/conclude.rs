//! What an execution's end means for the search, and what is reported in the end.

use super::{
    EAGER, End, Incomplete, Kind, Report, Search, Shortest, Strategy, Verdict, Violation, decode,
};
use crate::machine::MOST_IN_VAIN;

impl Search {
    pub(crate) fn conclude(&mut self, observed: &[u64]) {
        if self.end == Some(End::Probed) {
            return;
        }
        self.executions += 1;
        self.steps += (self.trace.len() - self.fixed.min(self.trace.len())) as u64;
        self.depth = self.depth.max(self.trace.len());
        if self.end == Some(End::Complete) {
            self.completed += 1;
            if !observed.is_empty() && !self.outcomes.contains(observed) {
                self.outcomes.insert(observed.to_vec());
            }
        }
        if let Some(violation) = self.found.take() {
            let length = self.trace.len();
            let steps = self.trace.iter().map(|event| event & !EAGER);
            let threads: Vec<usize> = steps
                .map(decode)
                .filter(|(kind, _)| matches!(kind, Kind::Step | Kind::GiveUp))
                .map(|(_, thread)| thread)
                .collect();
            let switches = threads.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let better = self
                .shortest
                .as_ref()
                .is_none_or(|best| (length, switches) < (best.length, best.switches));
            if better {
                if self.shortest.is_none() {
                    self.found_at = self.executions;
                }
                self.shortest =
                    Some(Shortest { length, switches, trace: self.trace.clone(), violation });
            }
        }
    }

    /// What replays the execution up to here.
    pub(crate) fn choices(&self) -> Vec<u8> {
        self.trace.clone()
    }

    pub(crate) fn report(&mut self) -> (Report, Option<(Violation, Vec<u8>)>) {
        let limit = self.limit();
        let exhaustive = matches!(self.config.strategy, Strategy::Exhaustive { .. });
        let complete =
            exhaustive && limit.is_none() && !self.left_out.preemptions && !self.left_out.waits;
        let complete = complete && !self.left_out.unexplored;
        let verdict = if let Some(best) = &self.shortest {
            Verdict::Violation(best.violation.clone())
        } else if complete {
            Verdict::Clean
        } else {
            Verdict::Incomplete(match (limit, &self.config.strategy) {
                (Some(limit), _) => limit,
                (None, Strategy::Random { seed, .. }) => Incomplete::Random(*seed),
                (None, Strategy::Replay(_)) => Incomplete::Replay,
                (None, Strategy::Exhaustive { preemptions: Some(bound), .. }) => {
                    Incomplete::Preemptions(*bound)
                }
                (None, _) if self.left_out.unexplored => Incomplete::Unexplored,
                (None, Strategy::Exhaustive { preemptions: None, .. }) => {
                    Incomplete::Waits(MOST_IN_VAIN)
                }
            })
        };
        let report = Report {
            verdict,
            complete,
            executions: self.executions,
            completed: self.completed,
            states: self.states.len() as u64,
            known: self.known,
            asleep: self.asleep,
            steps: self.steps,
            depth: self.depth,
            restarts: self.restarts,
            elapsed: self.started.elapsed(),
            outcomes: std::mem::take(&mut self.outcomes),
            stolen: self.stolen,
            demands: std::mem::take(&mut self.demands),
            duplicates: self.duplicates,
            counterexample: None,
            duplicate: None,
        };
        let shortest = self.shortest.take().map(|best| (best.violation, best.trace));
        (report, shortest)
    }
}
