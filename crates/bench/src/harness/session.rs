//! A session runs a suite: for each workload it prepares every system, then takes one sample of each,
//! round by round.
//!
//! Interleaving is within a workload, so that the inputs and pools of one workload at a time are in
//! memory. The first sample of each case warms it up and is thrown away. The document is behind a
//! lock that is held only to add a sample: another thread may take a whole copy at any time, which is
//! how a run cut short leaves what it had.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::case::{Case, Request, Sample, Sampler, Size, Suite};
use super::document::{CaseName, Document};
use super::peer::Peer;

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
    /// If the plan names a workload or a system that there is not, or a number of workers is zero; the
    /// message says what there is.
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
        // Whoever names a peer wants it.
        let is_peer = |name: &str| self.peers.iter().any(|peer| peer.name == name);
        cases.retain(|case| wanted(&self.systems, &case.system) || is_peer(&case.system));
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
    /// So many samples will be taken, if the time lasts.
    Planned(usize),
    /// A sample of this workload and system, with so many workers, is about to be taken.
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
}

impl Session {
    /// A session with an empty document.
    pub fn new(plan: Plan) -> Self {
        let document = Document::new(plan.size.name());
        Session { plan, document: Mutex::new(document), stopped: AtomicBool::new(false) }
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
            "the earlier run is of another machine or build ({}, commit {}) than this one ({}, \
             commit {})",
            earlier.machine.cpu,
            earlier.machine.commit,
            fresh.machine.cpu,
            fresh.machine.commit
        );
        ensure!(
            earlier.size == fresh.size,
            "the earlier run has the input size `{}`, and this one `{}`",
            earlier.size,
            fresh.size
        );
        earlier.complete = false;
        earlier.failures.clear();
        let document = Mutex::new(earlier);
        Ok(Session { plan, document, stopped: AtomicBool::new(false) })
    }

    /// A whole copy of the document as it is now. Any thread may ask.
    pub fn document(&self) -> Document {
        self.lock().clone()
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
    /// A case that cannot be prepared or sampled goes into the document's failures, and the others go
    /// on.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::cases`].
    pub fn run(&self, suite: &dyn Suite, watch: &dyn Fn(Event)) -> Result<()> {
        let cases = self.plan.cases(suite)?;
        watch(Event::Planned(cases.len() * self.plan.rounds));
        self.lock().complete = false;
        let end = self.plan.budget.map(|budget| Instant::now() + budget);
        let mut groups = by_workload(cases);
        while let Some((workload, group)) = groups.pop_front() {
            // Each workload gets its share of what is left of the time.
            let deadline = end.map(|end| {
                let left = end.saturating_duration_since(Instant::now());
                Instant::now() + left.div_f64((groups.len() + 1) as f64)
            });
            self.run_workload(suite.name(), group, deadline, watch);
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
        suite: &str,
        group: Vec<Case>,
        deadline: Option<Instant>,
        watch: &dyn Fn(Event),
    ) {
        let late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut running: Vec<Running> =
            group.into_iter().map(|case| self.prepare(suite, case, &late, watch)).collect();
        for round in 0..self.plan.rounds {
            for case in &mut running {
                let enough = round < case.taken || (late() && case.taken.max(round) > 0);
                if !enough
                    && !self.is_stopped()
                    && let Some(sample) = self.sample(suite, case, watch)
                {
                    self.lock().add(suite, &case.name, sample);
                }
                watch(Event::Sampled);
            }
        }
    }

    /// Makes the input and the pool of a case that still lacks a sample, and warms it up.
    fn prepare(
        &self,
        suite: &str,
        case: Case,
        late: &dyn Fn() -> bool,
        watch: &dyn Fn(Event),
    ) -> Running {
        let name = CaseName::of(&case);
        let taken = self.lock().taken(suite, &name);
        let mut running = Running { name, sampler: None, taken };
        if taken < self.plan.rounds && !self.is_stopped() {
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

    /// Takes one sample of a case; one that fails is noted, and ends the case.
    fn sample(&self, suite: &str, case: &mut Running, watch: &dyn Fn(Event)) -> Option<Sample> {
        let sampler = case.sampler.as_mut()?;
        let CaseName { workload, system, workers, .. } = &case.name;
        watch(Event::Sampling(workload, system.clone(), *workers));
        let sample = caught(sampler).and_then(|sample| {
            ensure!(sample.value.is_finite(), "its sample is {}, which is no figure", sample.value);
            Ok(sample)
        });
        match sample {
            Ok(sample) => Some(sample),
            Err(error) => {
                case.sampler = None;
                self.lock().fail(suite, &case.name, &error);
                None
            }
        }
    }
}

/// Runs a part of a case; its panic is an error like any other.
fn caught<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        bail!("it panicked: {}", text.unwrap_or("with something that is no text"))
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
