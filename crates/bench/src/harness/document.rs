//! The one document that a run makes: the machine, and a row for each case with every sample.
//!
//! It is whole at any moment: a run that is cut short has a document of what it had measured, which
//! a later run may take up.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::case::{Better, Case, Sample};
use super::machine::Load;
use super::machine::Machine;
use super::statistics::{Ratio, Summary, ratio};

/// The version of the document's form, its field `schema`. The second has the rounds of samples,
/// the commands, and more of the machine; documents of the first are read as well.
pub const SCHEMA: u32 = 2;

/// Everything that a run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What it ran on.
    pub machine: Machine,
    /// The size of the inputs: `quick`, `full` or `paper`.
    pub size: String,
    /// Whether every sample that was asked for was taken, or failed.
    pub complete: bool,
    /// The commands that took the samples.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// A row for each case, in the order in which they ran.
    pub rows: Vec<Row>,
    /// What could not be measured, and why.
    pub failures: Vec<Failure>,
}

/// A command that took samples, and what else the machine did meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// As one would write it.
    pub line: String,
    /// When it began, in seconds since 1970 (UTC).
    pub began: u64,
    /// How many samples it took.
    pub samples: u64,
    /// The system's load average over a minute, when it began and when it ended.
    pub load: [f64; 2],
    /// The percentage of the processors' time that the hypervisor gave to others meanwhile.
    pub steal_percent: f64,
}

/// One workload under one system with one number of workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The suite's name.
    pub suite: String,
    /// The program.
    pub workload: String,
    /// The scheduler or queue.
    pub system: String,
    /// The threads that it used.
    pub workers: usize,
    /// What the samples are measured in.
    pub unit: String,
    /// Whether a lower or a higher sample is better.
    pub better: Better,
    /// Each sample, in the order in which they were taken.
    pub samples: Vec<f64>,
    /// The round in which each was taken: those of one workload with the same number were taken
    /// one after the other.
    #[serde(default)]
    pub rounds: Vec<u64>,
    /// How many times the workload ran for each sample, which is their mean: a sample is at least
    /// a tenth of a second of work.
    #[serde(default)]
    pub repetitions: Vec<u32>,
    /// The least sample.
    pub min: f64,
    /// The sample in the middle.
    pub median: f64,
    /// A tenth of the samples are below.
    pub p10: f64,
    /// A tenth of the samples are above.
    pub p90: f64,
    /// The median of each counter.
    pub counters: BTreeMap<String, f64>,
    /// The samples of each counter, one for each of `samples` in which it was counted.
    pub counter_samples: BTreeMap<String, Vec<f64>>,
    /// Whether there were more workers than processors.
    pub oversubscribed: bool,
}

/// A case that could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The suite's name.
    pub suite: String,
    /// The program.
    pub workload: String,
    /// The scheduler or queue.
    pub system: String,
    /// The threads that it was to use.
    pub workers: usize,
    /// What went wrong.
    pub message: String,
}

impl Document {
    pub(crate) fn new(size: &str) -> Self {
        Document {
            schema: SCHEMA,
            machine: Machine::here(),
            size: size.to_owned(),
            complete: false,
            commands: Vec::new(),
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// The row of a case, if it has a sample.
    pub fn row(&self, suite: &str, workload: &str, system: &str, workers: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.is(suite, workload, system, workers))
    }

    /// The sequential program of a row's workload.
    pub fn sequential(&self, row: &Row) -> Option<&Row> {
        self.row(&row.suite, &row.workload, "sequential", 1).filter(|base| base.unit == row.unit)
    }

    /// The row that a row is compared with: the sequential program if there is one, else the first
    /// system with the same number of workers. The latter is a baseline for bars that name it, and
    /// none for a speed-up.
    pub fn beside(&self, row: &Row) -> Option<&Row> {
        let first = || {
            self.rows.iter().find(|other| {
                (&other.suite, &other.workload, other.workers)
                    == (&row.suite, &row.workload, row.workers)
            })
        };
        self.sequential(row).or_else(first).filter(|base| base.unit == row.unit)
    }

    /// How many samples there are of a case.
    pub(crate) fn taken(&self, suite: &str, case: &CaseName) -> usize {
        self.rows.iter().find(|row| row.is_case(suite, case)).map_or(0, |row| row.samples.len())
    }

    /// Adds a sample that was taken in that round, as the mean of that number of repetitions.
    pub(crate) fn add(
        &mut self,
        suite: &str,
        case: &CaseName,
        sample: Sample,
        (round, repetitions): (u64, u32),
    ) {
        let at = self.rows.iter().position(|row| row.is_case(suite, case));
        let at = at.unwrap_or_else(|| {
            self.rows.push(Row::new(suite, case, self.machine.cores));
            self.rows.len() - 1
        });
        self.rows[at].add(sample, round, repetitions);
        if let Some(command) = self.commands.last_mut() {
            command.samples += 1;
        }
    }

    /// Brings the rows and failures of a workload into the order of its cases, whatever the order
    /// of their samples was.
    pub(crate) fn arrange(&mut self, suite: &str, cases: &[&CaseName]) {
        let rank = |row: &Row| cases.iter().position(|case| row.is_case(suite, case));
        let (places, mut rows): (Vec<usize>, Vec<Row>) = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| rank(row).is_some())
            .map(|(at, row)| (at, row.clone()))
            .unzip();
        rows.sort_by_key(rank);
        for (at, row) in places.into_iter().zip(rows) {
            self.rows[at] = row;
        }
        let rank = |failure: &Failure| {
            cases.iter().position(|case| {
                (failure.suite.as_str(), failure.workload.as_str()) == (suite, case.workload)
                    && (&failure.system, failure.workers) == (&case.system, case.workers)
            })
        };
        // Those of earlier workloads have no rank, and stay in front.
        self.failures.sort_by_key(rank);
    }

    pub(crate) fn fail(&mut self, suite: &str, case: &CaseName, error: &anyhow::Error) {
        self.failures.push(Failure {
            suite: suite.to_owned(),
            workload: case.workload.to_owned(),
            system: case.system.clone(),
            workers: case.workers,
            message: format!("{error:#}"),
        });
    }

    /// The failures, those of one workload that say the same as one: the first of them, and how
    /// many more there are. An input that does not fit is refused to every system alike.
    pub fn causes(&self) -> Vec<(&Failure, usize)> {
        let mut causes: Vec<(&Failure, usize)> = Vec::new();
        for failure in &self.failures {
            let same = |(first, _): &&mut (&Failure, usize)| {
                first.suite == failure.suite
                    && first.workload == failure.workload
                    && first.message == failure.message
            };
            match causes.iter_mut().find(same) {
                Some((_, more)) => *more += 1,
                None => causes.push((failure, 0)),
            }
        }
        causes
    }

    /// Notes that a command begins.
    pub(crate) fn begin(&mut self, line: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.commands.retain(|command| command.samples > 0);
        let load = Load::now().average;
        self.commands.push(Command {
            line: line.to_owned(),
            began: since.as_secs(),
            load: [load; 2],
            ..Command::default()
        });
    }

    /// The document as JSON.
    ///
    /// # Errors
    ///
    /// If a value is not a number, which no sample is.
    pub fn to_json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Writes the document so that there is a whole one at `path` at any moment: the old or the
    /// new.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, with its path.
    pub fn save(&self, path: &Path) -> Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        let write = || -> Result<()> {
            let mut builder = tempfile::Builder::new();
            let mut file = as_any_other(&mut builder).tempfile_in(directory)?;
            file.write_all(self.to_json()?.as_bytes())?;
            file.persist(path)?;
            Ok(())
        };
        write().with_context(|| format!("could not write {}", path.display()))
    }

    /// Reads a document that a run left.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not such a document, or has another version, with its path.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("could not read {}", path.display()))?;
        let document: Document = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a document of `poach bench`", path.display()))?;
        ensure!(
            (1..=SCHEMA).contains(&document.schema),
            "{} has schema {}, and this program knows 1 to {SCHEMA}",
            path.display(),
            document.schema
        );
        Ok(document)
    }
}

/// Gives the file the permissions of any new file: readers of the page may read the samples.
#[cfg(unix)]
fn as_any_other<'b, 'p, 's>(
    builder: &'b mut tempfile::Builder<'p, 's>,
) -> &'b mut tempfile::Builder<'p, 's> {
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
}

/// Elsewhere a temporary file is as any other.
#[cfg(not(unix))]
fn as_any_other<'b, 'p, 's>(
    builder: &'b mut tempfile::Builder<'p, 's>,
) -> &'b mut tempfile::Builder<'p, 's> {
    builder
}

/// What a row is known by.
#[derive(Clone, Debug)]
pub(crate) struct CaseName {
    pub(crate) workload: &'static str,
    pub(crate) system: String,
    pub(crate) workers: usize,
    unit: &'static str,
    better: Better,
    pub(crate) computed: bool,
}

impl CaseName {
    pub(crate) fn unit(&self) -> &'static str {
        self.unit
    }

    pub(crate) fn better(&self) -> Better {
        self.better
    }

    pub(crate) fn of(case: &Case) -> Self {
        CaseName {
            workload: case.workload,
            system: case.system.clone(),
            workers: case.workers,
            unit: case.unit.name,
            better: case.unit.better,
            computed: case.computed,
        }
    }
}

impl Row {
    fn new(suite: &str, case: &CaseName, cores: usize) -> Self {
        Row {
            suite: suite.to_owned(),
            workload: case.workload.to_owned(),
            system: case.system.clone(),
            workers: case.workers,
            unit: case.unit.to_owned(),
            better: case.better,
            samples: Vec::new(),
            rounds: Vec::new(),
            repetitions: Vec::new(),
            min: 0.0,
            median: 0.0,
            p10: 0.0,
            p90: 0.0,
            counters: BTreeMap::new(),
            counter_samples: BTreeMap::new(),
            oversubscribed: case.workers > cores && !case.computed,
        }
    }

    fn is(&self, suite: &str, workload: &str, system: &str, workers: usize) -> bool {
        self.suite == suite
            && self.workload == workload
            && self.system == system
            && self.workers == workers
    }

    pub(crate) fn is_case(&self, suite: &str, case: &CaseName) -> bool {
        self.is(suite, case.workload, &case.system, case.workers)
    }

    /// How this row compares with another: its median over the other's. Samples that were taken in
    /// the same rounds are compared round by round.
    pub fn over(&self, base: &Row) -> Option<Ratio> {
        let paired = !self.rounds.is_empty()
            && self.rounds.len() == self.samples.len()
            && self.rounds == base.rounds;
        ratio(&self.samples, &base.samples, paired)
    }

    /// How many times as good as another row this one is.
    pub fn gain(&self, base: &Row) -> Option<Ratio> {
        let ratio = self.over(base).filter(|ratio| ratio.low > 0.0)?;
        Some(if self.better == Better::Lower { ratio.inverse() } else { ratio })
    }

    fn add(&mut self, sample: Sample, round: u64, repetitions: u32) {
        self.samples.push(sample.value);
        self.rounds.push(round);
        self.repetitions.push(repetitions);
        for (name, value) in sample.counters {
            self.counter_samples.entry(name).or_default().push(value);
        }
        let medians = self.counter_samples.iter().filter_map(|(name, values)| {
            Summary::of(values).map(|summary| (name.clone(), summary.median))
        });
        self.counters = medians.collect();
        if let Some(summary) = Summary::of(&self.samples) {
            (self.min, self.median) = (summary.min, summary.median);
            (self.p10, self.p90) = (summary.p10, summary.p90);
        }
    }
}
