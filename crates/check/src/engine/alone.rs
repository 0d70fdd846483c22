//! Waiting threads: a thread that runs alone, because it gives up or because the search finds out
//! when it does; and the state in which all threads wait for ever. See `machine::waits`.

use std::panic::Location;

use super::{End, Engine, Op, Probe, Turn, Violation};
use crate::machine::{Look, Patience};

pub(super) enum Alone {
    Probe(Probe),
    Rounds(u32),
}

impl Engine {
    #[cold]
    pub(super) fn request_alone(&mut self, op: Op, site: &'static Location<'static>) -> Turn {
        let current = self.current;
        let Some(Alone::Probe(probe)) = &mut self.alone else {
            return Turn::Done(self.perform(current));
        };
        let found = if probe.over {
            Some(probe.patience())
        } else if matches!(op, Op::Pause) {
            probe.pause()
        } else {
            match self.machine.only_looks(current, op) {
                Ok(Some(loc)) if !probe.look(Look { loc, value: 0, site }) => {
                    Some(probe.patience())
                }
                Ok(_) => None,
                Err(()) => Some(probe.patience()),
            }
        };
        match found {
            None => {
                let seen = self.machine.sees(current, op);
                Turn::Done(seen.unwrap_or_else(|| self.perform(current)))
            }
            Some(patience) => {
                self.probed(patience);
                self.next = None;
                Turn::Suspend
            }
        }
    }

    pub(super) fn probed(&mut self, patience: Patience) {
        if let Some(Alone::Probe(probe)) = self.alone.take() {
            self.machine.learn_patience(probe.hash, patience);
            self.search.end = Some(End::Probed);
        }
    }

    /// The running thread does something that is no step. It has given up, if it is being probed.
    pub(super) fn probes(&mut self) -> bool {
        match &mut self.alone {
            Some(Alone::Probe(probe)) => {
                probe.over = true;
                true
            }
            _ => false,
        }
    }

    /// Nobody can move, and not everybody has ended.
    #[cold]
    pub(super) fn stuck(&mut self) {
        let stuck = (0..self.machine.count)
            .filter(|&thread| !matches!(self.machine.threads[thread].pending, Op::Finished))
            .map(|thread| {
                let model = &self.machine.threads[thread];
                let what = match model.pending {
                    Op::Pause => "waits in a loop",
                    _ => "waits",
                };
                let name = self.search.names[thread];
                format!("{name} {what} at {}", crate::trace::place(model.site))
            })
            .collect::<Vec<_>>();
        self.search.violate(Violation::Deadlock(stuck.join("; ")));
    }
}
