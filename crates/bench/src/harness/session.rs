//! A session runs a suite: for each workload it prepares every system, then takes one sample of
//! each, round by round. The order is shuffled anew for each round, so that no system always
//! follows the same other. The order depends on the workload and the round alone.
//!
//! With the full inputs a sample is the mean of as many repetitions as take a tenth of a second of
//! work.
//!
//! Interleaving is within a workload, so that the inputs and pools of one workload at a time are in
//! memory. The first sample of each case warms it up and is thrown away. The document is behind a
//! lock that is held only to add a sample. Another thread may take a whole copy at any time, so a
//! run that is cut short leaves the samples that it had.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use poach_measure::coherence::hand_over_now;
use poach_measure::place::Topology;

use crate::figure::PaperFigure;

use super::case::{Better, Case, Request, Sample, Sampler, Size, Suite, Unit};
use super::document::{CaseName, Document};
use super::machine::Load;
use super::peer::Peer;

/// Tests run at once, and the workers of two sessions on two processors mostly wait for each other.
#[cfg(test)]
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What to run, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How large the inputs should be.
    pub size: Size,
    /// The numbers of workers to run with.
    pub workers: Vec<usize>,
    /// The workloads to run; all of them if empty.
    pub workloads: Vec<String>,
    /// The systems to run; all of them if empty.
    pub systems: Vec<String>,
    /// Outside programs that run as well.
    pub peers: Vec<Peer>,
    /// How many samples to take of each case.
    pub rounds: usize,
    /// Past this time no further round is begun, once each case has a sample.
    pub budget: Option<Duration>,
    /// The bytes of call stack that a thread has which asks for none.
    pub thread_stack: usize,
    /// Only the cases that one of these shows; all if there are none.
    pub figures: Vec<&'static PaperFigure>,
}

/// What the standard library gives, if the environment says nothing.
const THREAD_STACK: usize = 2 << 20;

impl Plan {
    /// Small inputs, up to five samples of each, within half a minute.
    pub fn quick() -> Self {
        Plan { size: Size::Quick, rounds: 5, budget: Some(Duration::from_secs(22)), ..Self::full() }
    }

    /// Inputs of about a second, eleven samples of each.
    pub fn full() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, Into::into);
        let workers = if cores == 1 { vec![1] } else { vec![1, cores] };
        Plan {
            size: Size::Full,
            workers,
            workloads: Vec::new(),
            systems: Vec::new(),
            peers: Vec::new(),
            rounds: 11,
            budget: None,
            thread_stack: THREAD_STACK,
            figures: Vec::new(),
        }
    }

    /// The systems that `suite` and the plan's peers have, whichever the plan asks for.
    pub fn systems_there(&self, suite: &dyn Suite) -> Vec<String> {
        let all = Plan { workloads: Vec::new(), systems: Vec::new(), ..self.clone() };
        let cases = all.cases(suite).unwrap_or_default();
        cases.into_iter().map(|case| case.system).collect()
    }

    /// The cases of `suite` that the plan asks for, in the order in which they run.
    ///
    /// # Errors
    ///
    /// If the plan names a workload or a system that there is not, or a number of workers is zero;
    /// the message says what there is.
    pub fn cases(&self, suite: &dyn Suite) -> Result<Vec<Case>> {
        ensure!(!self.workers.is_empty(), "no number of workers is given");
        ensure!(!self.workers.contains(&0), "a system needs at least one worker, not 0");
        ensure!(self.rounds > 0, "at least one round is needed, not 0");
        // Each number once: a case that is there twice would have twice its samples.
        let mut workers: Vec<usize> = Vec::new();
        for count in &self.workers {
            if !workers.contains(count) {
                workers.push(*count);
            }
        }
        let request = Request { size: self.size, workers, thread_stack: self.thread_stack };
        let mut cases = suite.cases(&request);
        let mut workloads: Vec<&'static str> = Vec::new();
        for case in &cases {
            if !workloads.contains(&case.workload) {
                workloads.push(case.workload);
            }
        }
        known("workload", &self.workloads, &workloads, suite.name())?;
        for (at, peer) in self.peers.iter().enumerate() {
            ensure!(
                !self.peers[..at].iter().any(|earlier| earlier.name == peer.name),
                "two peers have the name `{}`",
                peer.name
            );
            ensure!(
                !cases.iter().any(|case| case.system == peer.name),
                "the peer `{}` has the name of a system of the suite",
                peer.name
            );
            for workload in &workloads {
                let peers = request.workers.iter().map(|n| peer.case(workload, *n, self.size));
                cases.extend(peers);
            }
        }
        let mut systems: Vec<&str> = Vec::new();
        for case in &cases {
            if !systems.contains(&case.system.as_str()) {
                systems.push(&case.system);
            }
        }
        known("system", &self.systems, &systems, suite.name())?;
        let wanted =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        cases.retain(|case| wanted(&self.workloads, case.workload));
        // A peer that was named is wanted.
        let is_peer = |name: &str| self.peers.iter().any(|peer| peer.name == name);
        cases.retain(|case| wanted(&self.systems, &case.system) || is_peer(&case.system));
        let shown = |case: &Case| {
            let Case { workload, system, workers, .. } = case;
            self.figures.iter().any(|figure| figure.shows(workload, system, *workers))
        };
        cases.retain(|case| self.figures.is_empty() || is_peer(&case.system) || shown(case));
        // The peers were appended: bring the systems of each workload together again.
        cases.sort_by_key(|case| workloads.iter().position(|name| *name == case.workload));
        Ok(cases)
    }
}

fn known(what: &str, asked: &[String], there: &[&str], suite: &str) -> Result<()> {
    for name in asked {
        if !there.contains(&name.as_str()) {
            bail!("the suite `{suite}` has no {what} `{name}`: it has {}", there.join(", "));
        }
    }
    Ok(())
}

/// What happens while a session runs, for a progress line.
#[derive(Clone, Debug)]
pub enum Event {
    /// The number of samples that will be taken, if the time lasts.
    Planned(usize),
    /// A sample of this workload and system, with this number of workers, is about to be taken.
    Sampling(&'static str, String, usize),
    /// A sample was taken, or need not be.
    Sampled,
    /// A workload is done: a good moment to save the document.
    WorkloadDone(&'static str),
}

/// A run of one or more suites, into one document.
#[derive(Debug)]
pub struct Session {
    plan: Plan,
    document: Mutex<Document>,
    stopped: AtomicBool,
    /// What the machine had done when it began.
    began: Load,
    /// The processors, where threads can be bound to them.
    topology: Option<Topology>,
}

impl Session {
    /// A session with an empty document.
    pub fn new(plan: Plan) -> Self {
        let document = Document::new(plan.size.name());
        Self::of(plan, document)
    }

    fn of(plan: Plan, document: Document) -> Self {
        let stopped = AtomicBool::new(false);
        let topology = Topology::here().ok();
        Session { plan, document: Mutex::new(document), stopped, began: Load::now(), topology }
    }

    /// A session that takes up `earlier`: only the samples that it lacks are taken.
    ///
    /// # Errors
    ///
    /// If the earlier run was made on another machine, by another build, or with other input sizes:
    /// its samples could not be compared with new ones.
    pub fn resume(plan: Plan, mut earlier: Document) -> Result<Self> {
        let fresh = Document::new(plan.size.name());
        ensure!(
            earlier.machine == fresh.machine,
            "the earlier run is of another machine or build ({}, {}) than this one ({}, {})",
            earlier.machine.cpu,
            earlier.machine.source(),
            fresh.machine.cpu,
            fresh.machine.source()
        );
        ensure!(
            earlier.size == fresh.size,
            "the earlier run has the input size `{}`, and this one `{}`",
            earlier.size,
            fresh.size
        );
        earlier.complete = false;
        earlier.failures.clear();
        earlier.schema = fresh.schema;
        Ok(Self::of(plan, earlier))
    }

    /// Notes the command whose samples are taken from now on, as one would write it.
    pub fn begin(&self, command: &str) {
        self.lock().begin(command);
    }

    /// A whole copy of the document as it is now. Any thread may ask.
    pub fn document(&self) -> Document {
        let mut document = self.lock().clone();
        if let Some(command) = document.commands.last_mut() {
            let now = Load::now();
            command.load[1] = now.average;
            command.steal_percent = now.steal_percent(self.began);
        }
        // A command that found all samples taken made no row.
        document.commands.retain(|command| command.samples > 0);
        document
    }

    /// Has [`run`](Session::run) return after the sample that it is taking. Any thread may ask.
    pub fn stop(&self) {
        // Relaxed: nothing else is read on the strength of the flag.
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Document> {
        self.document.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the cases of `suite` that the plan asks for.
    ///
    /// A case that cannot be prepared or sampled goes into the document's failures, and the others
    /// go on.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::cases`].
    pub fn run(&self, suite: &dyn Suite, watch: &dyn Fn(Event)) -> Result<()> {
        self.run_as(&self.plan, suite, watch)
    }

    /// As [`run`](Session::run), by another plan than the session's own, of the same input size:
    /// several suites in one session have several.
    ///
    /// # Errors
    ///
    /// As those of [`run`](Session::run), and if the size is another one.
    pub fn run_as(&self, plan: &Plan, suite: &dyn Suite, watch: &dyn Fn(Event)) -> Result<()> {
        #[cfg(test)]
        let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(plan.size == self.plan.size, "the inputs of one session have one size");
        let cases = plan.cases(suite)?;
        watch(Event::Planned(cases.len() * plan.rounds));
        self.lock().complete = false;
        let end = plan.budget.map(|budget| Instant::now() + budget);
        let mut groups = by_workload(cases);
        while let Some((workload, group)) = groups.pop_front() {
            // Each workload gets its share of what is left of the time.
            let deadline = end.map(|end| {
                let left = end.saturating_duration_since(Instant::now());
                Instant::now() + left.div_f64((groups.len() + 1) as f64)
            });
            self.run_workload((plan, suite.name(), workload), group, deadline, watch);
            if self.is_stopped() {
                return Ok(());
            }
            watch(Event::WorkloadDone(workload));
        }
        self.lock().complete = true;
        Ok(())
    }

    fn run_workload(
        &self,
        (plan, suite, workload): (&Plan, &str, &str),
        group: Vec<Case>,
        deadline: Option<Instant>,
        watch: &dyn Fn(Event),
    ) {
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut running: Vec<Running> =
            group.into_iter().map(|case| self.prepare((plan, suite), case, &late, watch)).collect();
        // Rounds of another run are other rounds, though they have the same place in a row.
        let run = self.lock().commands.len().saturating_sub(1) as u64 * ROUNDS_OF_A_RUN;
        for round in 0..plan.rounds {
            for at in order(workload, round, running.len()) {
                let case = &mut running[at];
                let enough = round < case.taken || (late() && case.taken.max(round) > 0);
                if !enough
                    && !self.is_stopped()
                    && let Some((sample, repetitions)) = self.sample(suite, case, watch)
                {
                    let of = (run + round as u64, repetitions);
                    self.lock().add(suite, &case.name, sample, of);
                }
                watch(Event::Sampled);
            }
            let names: Vec<&CaseName> = running.iter().map(|case| &case.name).collect();
            self.lock().arrange(suite, &names);
        }
    }

    /// Makes the input and the pool of a case that still lacks a sample, and warms it up.
    fn prepare(
        &self,
        (plan, suite): (&Plan, &str),
        case: Case,
        late: &dyn Fn() -> bool,
        watch: &dyn Fn(Event),
    ) -> Running {
        let name = CaseName::of(&case);
        let taken = self.lock().taken(suite, &name);
        let mut running = Running { name, sampler: None, taken };
        if taken < plan.rounds && !self.is_stopped() {
            match caught(case.prepare) {
                Ok(sampler) => running.sampler = Some(sampler),
                Err(error) => self.lock().fail(suite, &running.name, &error),
            }
            if !late() && !running.name.computed {
                self.sample(suite, &mut running, watch);
            }
        }
        running
    }

    /// What a word takes from one processor to another, now: beside samples of several workers,
    /// since a virtual machine's processors are moved.
    fn hand_over(&self) -> Option<f64> {
        self.topology.as_ref().and_then(hand_over_now)
    }

    /// Takes one sample of a case, and returns the number of repetitions of which it is the mean. A
    /// failure is noted, and ends the case.
    fn sample(
        &self,
        suite: &str,
        case: &mut Running,
        watch: &dyn Fn(Event),
    ) -> Option<(Sample, u32)> {
        let sampler = case.sampler.as_mut()?;
        let CaseName { workload, system, workers, .. } = &case.name;
        watch(Event::Sampling(workload, system.clone(), *workers));
        let measured = !case.name.computed;
        let least = if measured { least(self.plan.size) } else { Duration::ZERO };
        let together = measured && *workers > 1;
        let before = if together { self.hand_over() } else { None };
        match repeated(sampler, &case.name, least) {
            Ok((sample, repetitions)) => {
                let after = before.and_then(|_| self.hand_over());
                let sample = match before.zip(after) {
                    Some((before, after)) => sample
                        .count("hand_over_ns_before", before)
                        .count("hand_over_ns_after", after),
                    None => sample,
                };
                Some((sample, repetitions))
            }
            Err(error) => {
                case.sampler = None;
                self.lock().fail(suite, &case.name, &error);
                None
            }
        }
    }
}

/// More than a run has rounds.
const ROUNDS_OF_A_RUN: u64 = 1_000_000;

/// The least work that a sample is the measure of. Small inputs are for a first look, and for
/// tests: one run of each.
fn least(size: Size) -> Duration {
    let tenth = Duration::from_millis(100);
    size.pick(Duration::ZERO, Duration::ZERO, tenth, tenth)
}

/// Samples until `least` is reached, ten times that have passed with what is not timed, or
/// [`REPETITIONS`]; their mean.
fn repeated(sampler: &mut Sampler, name: &CaseName, least: Duration) -> Result<(Sample, u32)> {
    /// A limit, for samples that take no time.
    const REPETITIONS: usize = 10_000;
    let began = Instant::now();
    let mut work = Duration::ZERO;
    let mut samples: Vec<Sample> = Vec::new();
    loop {
        let start = Instant::now();
        let sample = caught(&mut *sampler)?;
        ensure!(sample.value.is_finite(), "its sample is {}, which is no figure", sample.value);
        // For a case in seconds its own time counts, without its preparation and checks.
        let own = (name.unit() == Unit::SECONDS.name)
            .then(|| Duration::try_from_secs_f64(sample.value).ok())
            .flatten();
        work += own.unwrap_or_else(|| start.elapsed());
        samples.push(sample);
        if work >= least || began.elapsed() >= 10 * least || samples.len() >= REPETITIONS {
            break;
        }
    }
    let count = samples.len();
    Ok((mean(samples, name.better()), count as u32))
}

/// The mean of samples of the same work: of rates that is the harmonic one, as if all of it had
/// been timed at once.
fn mean(mut samples: Vec<Sample>, better: Better) -> Sample {
    if samples.len() == 1 {
        return samples.remove(0);
    }
    let count = samples.len() as f64;
    let value = match better {
        Better::Lower => samples.iter().map(|sample| sample.value).sum::<f64>() / count,
        Better::Higher => count / samples.iter().map(|sample| sample.value.recip()).sum::<f64>(),
    };
    let mut counters: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, value) in samples.into_iter().flat_map(|sample| sample.counters) {
        let (sum, times) = counters.entry(name).or_default();
        (*sum, *times) = (*sum + value, *times + 1.0);
    }
    let counters = counters.into_iter().map(|(name, (sum, times))| (name, sum / times)).collect();
    Sample { value, counters }
}

/// The order in which the cases of a workload are sampled in a round: any of them is as likely as
/// any other.
fn order(workload: &str, round: usize, cases: usize) -> Vec<usize> {
    // FNV-1a, so that two workloads have two orders.
    let seed = workload.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut order: Vec<usize> = (0..cases).collect();
    fastrand::Rng::with_seed(seed ^ round as u64).shuffle(&mut order);
    order
}

/// Runs a part of a case; its panic is an error like any other.
fn caught<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("with something that is no text").to_owned();
        // What it panicked with is the case's, and so is the destructor of that.
        let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
        dropped.unwrap_or_else(std::mem::forget);
        bail!("it panicked: {text}")
    })
}

/// A case while its workload runs.
struct Running {
    name: CaseName,
    /// None once it has failed, or if it needs no sample.
    sampler: Option<Sampler>,
    /// The samples that an earlier run took.
    taken: usize,
}

fn by_workload(cases: Vec<Case>) -> VecDeque<(&'static str, Vec<Case>)> {
    let mut groups: VecDeque<(&'static str, Vec<Case>)> = VecDeque::new();
    for case in cases {
        match groups.back_mut() {
            Some((workload, group)) if *workload == case.workload => group.push(case),
            _ => groups.push_back((case.workload, vec![case])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_has_an_order_of_its_own_that_is_the_same_in_every_run() {
        let orders: Vec<_> = (0..40).map(|round| order("fib", round, 5)).collect();
        for (round, order_) in orders.iter().enumerate() {
            let mut sorted = order_.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
            assert_eq!(*order_, order("fib", round, 5));
        }
        // Each case comes first in some round, and last in another.
        for case in 0..5 {
            assert!(orders.iter().any(|order| order[0] == case), "{case}");
            assert!(orders.iter().any(|order| order[4] == case), "{case}");
        }
        assert_ne!(order("fib", 0, 20), order("queens", 0, 20));
    }

    fn sampler(value: f64) -> Sampler {
        let mut steals = 0.0;
        Box::new(move || {
            steals += 1.0;
            Ok(Sample::from(value).count("steals", steals))
        })
    }

    #[test]
    fn a_sample_is_the_mean_of_as_many_repetitions_as_make_a_tenth_of_a_second() {
        let name = CaseName::of(&Case::timed("fib", "split", 1, || Ok(())));
        let (sample, count) = repeated(&mut sampler(0.03), &name, least(Size::Full)).unwrap();
        assert_eq!((count, sample.counters["steals"]), (4, 2.5));
        assert!((sample.value - 0.03).abs() < 1e-12);
        for size in [Size::Tiny, Size::Quick] {
            assert_eq!(repeated(&mut sampler(1e-9), &name, least(size)).unwrap().1, 1);
        }
        assert_eq!(repeated(&mut sampler(7.0), &name, least(Size::Full)).unwrap().1, 1);
    }

    #[test]
    fn a_mean_of_rates_is_that_of_the_whole_work() {
        // A million in a second and a million in half a second: two in one and a half.
        let samples = vec![Sample::from(1.0), Sample::from(2.0)];
        assert!((mean(samples.clone(), Better::Higher).value - 4.0 / 3.0).abs() < 1e-12);
        assert!((mean(samples, Better::Lower).value - 1.5).abs() < 1e-12);
    }
}
