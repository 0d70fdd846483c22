//! What a suite is made of.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;

/// A list of things to measure against each other.
pub trait Suite: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it measures, in a line.
    fn about(&self) -> &'static str;

    /// Every case there is, at this size and with these numbers of workers.
    ///
    /// Cheap: it is also asked in order to list them. Inputs and pools are made in the case's own
    /// preparation. The workloads come in the order in which they should run, and the systems of
    /// each workload with the baseline, if there is one, first.
    fn cases(&self, request: &Request) -> Vec<Case>;

    /// The numbers of workers to run with, if it is not 1 and the number of processors.
    fn workers(&self) -> Option<Vec<usize>> {
        None
    }
}

/// What a suite is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// How large the inputs should be.
    pub size: Size,
    /// The numbers of workers to run with. A sequential case has one worker, whatever is asked.
    pub workers: Vec<usize>,
    /// The bytes of call stack that the standard library gives a thread that asks for none. Where
    /// they are few, a system that cannot have larger stacks is left out of programs that need
    /// them.
    pub thread_stack: usize,
}

/// How large the inputs should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As small as it can be and still be the program: for tests.
    Tiny,
    /// A sample takes a few hundredths of a second, so that a whole suite fits half a minute.
    Quick,
    /// A sample takes about a second.
    Full,
    /// The input of the paper that the program comes from.
    Paper,
}

impl Size {
    /// The one of the four that this size calls for.
    pub fn pick<T>(self, tiny: T, quick: T, full: T, paper: T) -> T {
        match self {
            Size::Tiny => tiny,
            Size::Quick => quick,
            Size::Full => full,
            Size::Paper => paper,
        }
    }

    /// Its name in a document.
    pub fn name(self) -> &'static str {
        self.pick("tiny", "quick", "full", "paper")
    }
}

/// What a sample is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its name in a document and on a figure.
    pub name: &'static str,
    /// Whether a lower or a higher value is better.
    pub better: Better,
}

/// Whether a lower or a higher value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times are.
    Lower,
    /// Rates are.
    Higher,
}

impl Unit {
    /// Seconds for the whole.
    pub const SECONDS: Unit = Unit { name: "s", better: Better::Lower };
    /// Nanoseconds for one operation.
    pub const NANOSECONDS: Unit = Unit { name: "ns", better: Better::Lower };
    /// Microseconds for one operation.
    pub const MICROSECONDS: Unit = Unit { name: "us", better: Better::Lower };
    /// Millions of operations a second.
    pub const MILLIONS_PER_SECOND: Unit = Unit { name: "M/s", better: Better::Higher };
}

/// What one run of a case measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// In the case's unit.
    pub value: f64,
    /// Anything counted on the way: steals, forks, fences.
    pub counters: BTreeMap<String, f64>,
}

impl From<f64> for Sample {
    fn from(value: f64) -> Self {
        Sample { value, counters: BTreeMap::new() }
    }
}

impl Sample {
    /// The same sample with one thing more counted.
    #[must_use]
    pub fn count(mut self, name: &str, value: f64) -> Self {
        self.counters.insert(name.to_owned(), value);
        self
    }
}

/// Takes one sample. An error, such as a wrong result, ends the case.
pub type Sampler = Box<dyn FnMut() -> Result<Sample>>;

type Prepare = Box<dyn FnOnce() -> Result<Sampler>>;

/// One program under one system with one number of workers.
pub struct Case {
    /// The program, by its name in the papers, in lower case.
    pub workload: &'static str,
    /// The scheduler or queue that it runs on.
    pub system: String,
    /// The threads that it uses.
    pub workers: usize,
    /// What its samples are measured in.
    pub unit: Unit,
    /// Its samples are computed: nothing warms up, and its workers need no processors.
    pub(crate) computed: bool,
    pub(crate) prepare: Prepare,
}

impl Case {
    /// A case whose `prepare` makes the input and the pool, once, and gives back what takes a
    /// sample.
    pub fn new<F>(
        workload: &'static str,
        system: impl Into<String>,
        workers: usize,
        unit: Unit,
        prepare: impl FnOnce() -> Result<F> + 'static,
    ) -> Self
    where
        F: FnMut() -> Result<Sample> + 'static,
    {
        let prepare = || Ok(Box::new(prepare()?) as Sampler);
        let prepare = Box::new(prepare);
        Case { workload, system: system.into(), workers, unit, computed: false, prepare }
    }

    /// The same case, but its samples are computed, not measured: nothing warms up, and its workers
    /// need no processors.
    #[must_use]
    pub fn computed(mut self) -> Self {
        self.computed = true;
        self
    }

    /// A case that needs no preparation, and whose sample is the seconds that `run` takes.
    pub fn timed(
        workload: &'static str,
        system: impl Into<String>,
        workers: usize,
        mut run: impl FnMut() -> Result<()> + 'static,
    ) -> Self {
        let sampler = move || {
            let start = Instant::now();
            run()?;
            Ok(start.elapsed().as_secs_f64().into())
        };
        Self::new(workload, system, workers, Unit::SECONDS, || Ok(sampler))
    }
}
