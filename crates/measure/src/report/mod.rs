//! What was measured, as a document and as text.

mod text;

use core::num::NonZeroU64;
use std::fs;

use poach_memory::Profile;
use poach_memory::delta::{Bound, Maker, Processor, hidden_pops};
use serde::Serialize;

use crate::capacity::Capacity;
use crate::cost::Cost;
use crate::litmus::classic::Counts;
use crate::litmus::grid::{self, Column, Observation};
use crate::litmus::program::Target;
use crate::place::{Placement, Topology};

/// The version of the document; a field that changes its meaning or goes away raises it.
pub const SCHEMA: u32 = 1;

/// What was measured on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The processor's name.
    pub cpu: String,
    /// Its maker, display family and display model, if known.
    pub identity: Option<String>,
    /// The kernel's name and version.
    pub kernel: String,
    /// The processors that the process may use.
    pub processors: Vec<usize>,
    /// Whether a hypervisor says that it is there.
    pub virtual_machine: bool,
    /// The capacity that the maker documents, with the core's name.
    pub documented: Option<(u64, String)>,
    /// The bound that was seen on others of its kind before, and rests on enough rounds to be
    /// used.
    pub seen_before: Option<u64>,
}

impl Host {
    /// This one.
    pub fn here(topology: &Topology) -> Host {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let processor = Processor::here();
        let documented = processor.and_then(Processor::documented);
        let kernel = read("/proc/sys/kernel/osrelease");
        Host {
            cpu: field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            identity: processor.map(|p| {
                let maker = match p.maker {
                    Maker::Amd => "AMD",
                    Maker::Intel => "Intel",
                    _ => "another maker",
                };
                format!("{maker} family {:#x} model {:#x}", p.family, p.model)
            }),
            kernel: format!("{} {}", std::env::consts::OS, kernel.trim()).trim().to_owned(),
            processors: topology.processors.clone(),
            virtual_machine: field("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            documented: documented.map(|row| (row.capacity, row.core.to_owned())),
            seen_before: documented.and_then(|row| match row.bound {
                Bound::Seen(bound) => Some(bound),
                _ => None,
            }),
        }
    }
}

/// The bound on pops of a client with `stores` stores between them.
fn pops(capacity: Option<u64>, bound: Option<u64>, stores: u64) -> Option<NonZeroU64> {
    let (capacity, bound) = (capacity?, bound?);
    hidden_pops(capacity, bound.checked_sub(capacity)?, stores).ok()
}

/// The worker and the thief in one placement.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Where they ran.
    pub placement: Placement,
    /// Every point.
    pub points: Vec<Observation>,
}

/// Everything.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The machine.
    pub host: Host,
    /// Entries of the store buffer, if they could be measured.
    pub capacity: Option<u64>,
    /// The smallest reordering bound consistent with everything seen, if there is a capacity and
    /// it was looked for.
    pub bound: Option<u64>,
    /// The least bound that the violations alone show.
    pub shown: Option<u64>,
    /// The stores that wait at once behind a store that misses, including that store.
    pub held: Option<u64>,
    /// The sweeps.
    pub sweeps: Option<Capacity>,
    /// The worker and the thief, by placement.
    pub litmus: Vec<Run>,
    /// The columns of all placements together, against the bound and `capacity + 1`.
    pub columns: Vec<Column>,
    /// Violations that `capacity + 1` rules out.
    pub contradictions: Vec<Observation>,
    /// The classic tests.
    pub classic: Vec<Counts>,
    /// Delta for x = 1 to 8.
    pub safe_delta: Vec<u64>,
    /// What the fence costs.
    pub cost: Option<Cost>,
    /// The seed of everything random.
    pub seed: u64,
}

/// The columns with both predictions: of `capacity + 1`, which is `supposed`, and of the bound.
fn columns(
    points: &[Observation],
    supposed: u64,
    capacity: Option<u64>,
    bound: Option<u64>,
) -> Vec<Column> {
    let mut columns = grid::columns(points, supposed);
    for column in &mut columns {
        let hidden = match column.target {
            Target::Lines => bound.map(|bound| grid::safe_delta(bound, column.stores)),
            // Stores to one line join on their way to the cache.
            Target::Words | Target::One => {
                pops(capacity, bound, column.stores).map(NonZeroU64::get)
            }
        };
        column.predicted = hidden.unwrap_or(column.by_capacity);
    }
    columns
}

impl Document {
    /// The conclusions from what was measured.
    pub fn conclude(
        host: Host,
        sweeps: Option<Capacity>,
        litmus: Vec<Run>,
        classic: Vec<Counts>,
        seed: u64,
    ) -> Document {
        let capacity = match &sweeps {
            Some(sweeps) => sweeps.entries,
            None => host.documented.as_ref().map(|(capacity, _)| *capacity),
        };
        let points: Vec<Observation> =
            litmus.iter().flat_map(|run| run.points.iter().copied()).collect();
        let shown = grid::smallest_bound(&points, capacity);
        let supposed = capacity.map(|capacity| capacity + 1);
        let held = sweeps.as_ref().and_then(|sweeps| sweeps.behind.as_ref()?.held());
        // What was seen on others of its kind counts too: the worker and the thief find little on a
        // machine that is busy with something else.
        let least = [shown, held, host.seen_before].into_iter().flatten().max().unwrap_or(0);
        let looked = !litmus.is_empty() || held.is_some();
        let bound = supposed.filter(|_| looked).map(|supposed| supposed.max(least));
        let against = |f: fn(&[Observation], u64) -> Vec<Observation>| {
            supposed.map(|supposed| f(&points, supposed)).unwrap_or_default()
        };
        let safe_delta = (1..=8).filter_map(|x| pops(capacity, bound, x)).map(NonZeroU64::get);
        let safe_delta = safe_delta.collect();
        Document {
            schema: SCHEMA,
            capacity,
            bound,
            shown,
            held,
            columns: supposed.map(|s| columns(&points, s, capacity, bound)).unwrap_or_default(),
            contradictions: against(grid::contradictions),
            safe_delta,
            host,
            sweeps,
            litmus,
            classic,
            cost: None,
            seed,
        }
    }

    /// All points of all placements.
    fn points(&self) -> Vec<Observation> {
        self.litmus.iter().flat_map(|run| run.points.iter().copied()).collect()
    }

    /// The profile for programs that run here, if both the capacity and violations were seen.
    pub fn profile(&self) -> Option<Profile> {
        let measured = self.sweeps.as_ref().and_then(|sweeps| sweeps.entries)?;
        self.shown?;
        Profile::new(Processor::here()?, measured, self.bound?).ok()
    }

    /// The bound for a client that promises no store.
    pub fn pops(&self) -> Option<NonZeroU64> {
        pops(self.capacity, self.bound, 0)
    }

    /// The conclusions, a sentence each.
    pub fn verdict(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(sweeps) = &self.sweeps {
            said.push(match (sweeps.entries, &self.host.documented) {
                (Some(entries), Some((documented, core))) if entries == *documented => {
                    format!("The store buffer has {entries} entries, as is documented for {core}.")
                }
                (Some(entries), Some((documented, core))) => format!(
                    "The store buffer shows {entries} entries, and {documented} are documented for \
                     {core}: trust neither before it is known why."
                ),
                (Some(entries), None) => format!(
                    "The store buffer has {entries} entries; none are documented for this processor."
                ),
                (None, _) => format!(
                    "No capacity could be measured: {}.",
                    sweeps.why_not.as_deref().unwrap_or("there was no knee")
                ),
            });
        }
        if let (Some(held), Some(capacity)) = (self.held, self.capacity) {
            said.push(format!(
                "Behind a store that misses there is room for {} more, so {held} are on their way at once: \
                 besides the {capacity} of the store buffer there are {} between it and the cache, where the \
                 paper's processors have one.",
                held - 1,
                held.saturating_sub(capacity)
            ));
        }
        if !self.litmus.is_empty() {
            said.push(match (self.shown, self.capacity) {
                (None, _) => "No violation was seen at all, so the litmus test says nothing about the \
                              bound: run it longer, or on two cores."
                    .to_owned(),
                (Some(shown), Some(capacity)) if shown > capacity + 1 => {
                    format!("Loads overtook at least {shown} stores, more than capacity + 1.")
                }
                (Some(shown), Some(capacity)) => format!(
                    "Loads overtook at least {shown} stores, and nothing contradicts capacity + 1 = {}.",
                    capacity + 1
                ),
                (Some(shown), None) => format!("Loads overtook at least {shown} stores."),
            });
            let lost: u64 =
                self.points().iter().map(|o| o.outcome.losses + o.outcome.disordered).sum();
            if lost > 0 {
                said.push(format!(
                    "{lost} tasks were lost or out of order, which no bound explains."
                ));
            }
        }
        if let (true, Some(before)) = (self.exceeds(), self.host.seen_before) {
            said.push(format!(
                "That is more than the {before} of Poach's table: no program should rest on \
                 Delta::documented here. Please tell its makers."
            ));
        }
        if let (Some(bound), false) = (self.bound, self.litmus.is_empty()) {
            said.push(format!(
                "The bound is {bound} or more, by all that was seen here{}.",
                if self.host.seen_before == Some(bound) && self.shown.max(self.held) < Some(bound) {
                    " and on others of its kind before"
                } else {
                    ""
                }
            ));
        }
        for counts in self.classic.iter().filter(|counts| !counts.allowed && counts.seen > 0) {
            said.push(format!(
                "{} came about {} times: this is no total store order.",
                counts.test, counts.seen
            ));
        }
        if self.host.virtual_machine {
            said.push(
                "This is a virtual machine: it may be moved to another processor, where this does not hold."
                    .to_owned(),
            );
        }
        said.push("Testing shows violations; it never proves that there are none.".to_owned());
        said
    }

    /// Whether more was seen than the table of bounds says.
    fn exceeds(&self) -> bool {
        self.host.seen_before.is_some_and(|before| self.shown.max(self.held) > Some(before))
    }

    /// Whether all is as it should be: a capacity, equal to the documented one, a bound that was
    /// seen and does not exceed the table's, and nothing that total store order forbids.
    pub fn well(&self) -> bool {
        let capacity = self.sweeps.as_ref().is_none_or(|sweeps| match &self.host.documented {
            Some((documented, _)) => sweeps.entries == Some(*documented),
            None => sweeps.entries.is_some(),
        });
        let litmus = self.litmus.is_empty() || self.shown.is_some();
        let odd = self.points().iter().any(|o| o.outcome.losses + o.outcome.disordered > 0);
        capacity
            && litmus
            && !odd
            && !self.exceeds()
            && self.classic.iter().all(|c| c.allowed || c.seen == 0)
    }

    /// As one JSON document.
    ///
    /// # Errors
    ///
    /// If a number cannot be written: a time that is none.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The report as text, for a terminal with `columns` columns.
    pub fn to_text(&self, columns: usize) -> String {
        text::render(self, columns)
    }
}
