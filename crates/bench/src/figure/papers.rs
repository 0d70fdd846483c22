//! The papers' own figures, redone: what a figure is. `papers/*.json` lists them: which runs each
//! needs, what the paper has there, and which of its claims the rows are held against. The
//! fence-free paper and SALSA's print their bars and curves without numbers: what stands there is
//! what their text says of them.
//!
//! Sources: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors* (`fence-..`),
//! van Dijk and van de Pol, *Lace* (`lace-..`), Gidron et al., *SALSA* (`salsa-..`), and the
//! articles on Phanes (`phanes-..`).

use std::sync::LazyLock;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::claims::Claim;
use crate::{Simulate, Suite};

/// Every figure that there is.
pub static FIGURES: LazyLock<Vec<PaperFigure>> = LazyLock::new(|| {
    let papers = [
        include_str!("../../papers/fence-free.json"),
        include_str!("../../papers/lace.json"),
        include_str!("../../papers/salsa.json"),
        include_str!("../../papers/phanes.json"),
    ];
    let figures = |paper| serde_json::from_str::<Vec<PaperFigure>>(paper).expect("figures");
    papers.into_iter().flat_map(figures).collect()
});

/// A figure or table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title: which figure of which paper.
    pub title: &'static str,
    /// The suite that measures it.
    pub suite: &'static str,
    /// The machine that it is simulated on, as `--memory` names it.
    #[serde(default)]
    pub memory: Option<&'static str>,
    /// The programs in it.
    pub workloads: Vec<&'static str>,
    /// The system with which the others are compared, with the same number of workers.
    pub baseline: &'static str,
    /// What the paper compares with that.
    pub systems: Vec<&'static str>,
    /// What is shown with them though the paper has it not.
    #[serde(default)]
    pub ours: Vec<&'static str>,
    /// With how many workers.
    pub workers: Workers,
    /// What it shows.
    pub(super) shows: Shows,
    /// What the paper has there: of what, and what it says.
    pub(super) paper: Vec<(&'static str, &'static str)>,
    /// What the paper claims of it.
    #[serde(default)]
    pub(super) claims: Vec<Claim>,
}

/// With how many workers a figure is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workers {
    /// One.
    One,
    /// One, and as many as there are processors.
    OneAndAll,
    /// These.
    Exactly(Vec<usize>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shows {
    /// Times as a multiple of the baseline's with the same number of workers.
    Ratios,
    /// The share of tasks that were stolen.
    Stolen,
    /// Seconds, and how many times as fast as the baseline and as with one worker.
    Times,
    /// As a table the same; drawn, speed-ups over the number of workers as curves.
    TimeCurves,
    /// As a table the same. Drawn: the time of one worker over the time of n workers of the same
    /// system.
    SpeedUps,
    /// Counters.
    Counters(Vec<&'static str>),
    /// Values as they are, and as a multiple of the baseline's with the same number of workers.
    /// Drawn: as bars.
    Rates,
    /// The same, drawn as curves over the number of threads, or over the size of chunks.
    RateCurves(Over),
    /// A counter, drawn as curves over the number of threads.
    CounterCurves(&'static str),
    /// Nanoseconds over stores in a row.
    StoreBuffer,
    /// A dot for each pair of a predicted and a tested delta.
    Litmus,
}

/// What curves are drawn over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Over {
    /// Producers and consumers.
    Threads,
    /// The tasks of a chunk, which the system's name ends with.
    Chunks,
}

impl PaperFigure {
    /// The figure of this name.
    ///
    /// # Errors
    ///
    /// If there is none; the message says which there are.
    pub fn find(name: &str) -> Result<&'static PaperFigure> {
        if let Some(figure) = FIGURES.iter().find(|figure| figure.name == name) {
            return Ok(figure);
        }
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        bail!("there is no figure `{name}`: there is {}", names.join(", "))
    }

    /// The numbers of workers that it takes on a machine of `cores` processors.
    pub fn workers(&self, cores: usize) -> Vec<usize> {
        match &self.workers {
            Workers::Exactly(workers) => workers.clone(),
            Workers::OneAndAll if cores > 1 => vec![1, cores],
            Workers::One | Workers::OneAndAll => vec![1],
        }
    }

    /// Whether it shows rows with `workers` workers.
    pub fn has(&self, workers: usize) -> bool {
        match &self.workers {
            Workers::One => workers == 1,
            Workers::OneAndAll => true,
            Workers::Exactly(these) => these.contains(&workers),
        }
    }

    /// Whether the baseline is the sequential program, which has one worker.
    pub(super) fn is_over_sequential(&self) -> bool {
        self.baseline == "sequential"
    }

    /// Whether it shows the rows of such a case.
    pub fn shows(&self, workload: &str, system: &str, workers: usize) -> bool {
        let alone = system == self.baseline && self.is_over_sequential();
        (self.has(workers) || alone)
            && self.workloads.contains(&workload)
            && self.all_systems().contains(&system)
    }

    /// The suite that measures it, on the machine that it is simulated on.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn suite(&self) -> Result<Box<dyn Suite>> {
        match self.memory {
            Some(machine) => Ok(Box::new(Simulate::new(machine)?)),
            None => crate::find(self.suite),
        }
    }

    /// The systems that must run for it.
    pub fn all_systems(&self) -> Vec<&'static str> {
        let mut systems = vec![self.baseline];
        let others = self.systems.iter().chain(&self.ours);
        systems.extend(others.filter(|system| **system != self.baseline));
        systems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_figure_there_is_not() {
        let error = PaperFigure::find("lace-9").unwrap_err().to_string();
        assert!(error.contains("there is no figure `lace-9`: there is fence-1, "), "{error}");
    }

    #[test]
    fn a_figure_shows_what_its_claims_are_about() {
        for figure in FIGURES.iter() {
            for claim in &figure.claims {
                let (workloads, systems) = claim.names();
                for workload in workloads {
                    assert!(figure.workloads.contains(&workload), "{}: {workload}", figure.name);
                }
                for system in systems {
                    assert!(figure.all_systems().contains(&system), "{}: {system}", figure.name);
                }
            }
        }
    }
}
