//! Simulations: virtual threads on the processors of a machine, from their start to the account of
//! what it cost.

use thiserror::Error;

use crate::describe::{Description, DescriptionError};
use crate::engine::with;
use crate::memory::fibers;
use crate::profile::{Count, Site};
use crate::run::Run;

type Body = Box<dyn FnOnce()>;

/// Virtual threads, and the machine that they will run on.
pub struct Simulation {
    description: Description,
    threads: Vec<(usize, &'static str, Body)>,
    seed: u64,
    limit: u64,
    central: Option<usize>,
}

/// Why a simulation has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The description has something that cannot be.
    #[error("{0}")]
    Description(String),
    /// A thread was to run on a processor that is not there.
    #[error(
        "thread {thread} is for processor {processor}, and the machine `{machine}` has {processors}: \
         more threads than processors cannot be simulated"
    )]
    Processor {
        /// The thread's number, from 0, in the order in which the threads were given.
        thread: usize,
        /// Its processor, from 0.
        processor: usize,
        /// How many the machine has.
        processors: usize,
        /// The machine's name.
        machine: String,
    },
    /// Two threads were to run on one processor.
    #[error("two threads are for processor {0}: each has one for itself")]
    Shared(usize),
    /// A simulated thread started a simulation.
    #[error("a simulated thread cannot run a simulation")]
    Nested,
    /// There is no memory for a thread's stack.
    #[error("no memory for the stacks of {0} threads")]
    Stacks(usize),
    /// A thread panicked.
    #[error("a {role} on processor {processor} panicked: {message}")]
    Panic {
        /// The thread's processor.
        processor: usize,
        /// The thread's role.
        role: &'static str,
        /// What it said.
        message: String,
    },
    /// More accesses than were allowed.
    #[error("no end after {accesses} accesses")]
    Limit {
        /// The limit.
        accesses: u64,
    },
}

impl From<DescriptionError> for Failure {
    fn from(error: DescriptionError) -> Self {
        Failure::Description(error.to_string())
    }
}

/// What a simulation took.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the last thread ended, in picoseconds.
    pub end: u64,
    /// How many accesses there were.
    pub accesses: u64,
    /// The threads, in the order of their processors.
    pub threads: Vec<Thread>,
    /// Places in the source by what they cost beyond hits, the costliest first.
    pub sites: Vec<Site>,
    /// What the program counted.
    pub counts: Vec<Count>,
}

/// A thread that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its processor.
    pub processor: usize,
    /// Its role.
    pub role: &'static str,
    /// When it ended, in picoseconds.
    pub end: u64,
    /// How many accesses it made.
    pub accesses: u64,
}

/// Instants within which threads begin, in picoseconds, if transfers vary at all.
const START: u64 = 100_000;

impl Simulation {
    /// No threads yet; seed 0, and no limit.
    pub fn new(description: &Description) -> Self {
        Simulation {
            description: description.clone(),
            threads: Vec::new(),
            seed: 0,
            limit: u64::MAX,
            central: None,
        }
    }

    /// What transfers and starts vary by.
    pub fn seed(&mut self, seed: u64) -> &mut Self {
        self.seed = seed;
        self
    }

    /// Ends with [`Failure::Limit`] after `accesses` accesses. What the threads own is leaked then.
    pub fn limit(&mut self, accesses: u64) -> &mut Self {
        self.limit = accesses;
        self
    }

    /// Puts all memory at the node of `processor`, rather than at that of the first processor to
    /// touch it.
    pub fn central(&mut self, processor: usize) -> &mut Self {
        self.central = Some(processor);
        self
    }

    /// A thread on `processor`; `role` stands in the account of costs.
    pub fn thread(
        &mut self,
        processor: usize,
        role: &'static str,
        body: impl FnOnce() + 'static,
    ) -> &mut Self {
        self.threads.push((processor, role, Box::new(body)));
        self
    }

    /// Runs all threads to their ends, on this thread of the system.
    ///
    /// # Errors
    ///
    /// [`Failure`]. What the threads own is leaked if one of them panics or the limit is reached.
    /// A thread that is then in a destructor which a panic runs stays there:
    /// [`std::thread::panicking`] is true from then on.
    pub fn run(self) -> Result<Outcome, Failure> {
        self.check()?;
        let mut run = Run::new(&self.description, self.seed);
        run.limit = self.limit;
        run.lines.central = self.central.map(|processor| run.lines.places.node_of(processor));
        let mut random = fastrand::Rng::with_seed(self.seed ^ 0x5eed);
        let mut bodies: Vec<Option<Body>> = Vec::new();
        bodies.resize_with(self.description.processors, || None);
        let count = self.threads.len();
        for (processor, role, body) in self.threads {
            let vary = self.description.jitter > 0.0;
            run.begin(processor, role, if vary { random.u64(..START) } else { 0 });
            bodies[processor] = Some(body);
        }
        fibers::run(Box::new(run), bodies).ok_or(Failure::Stacks(count))?;
        let Some(run) = with(|engine| engine.run.take()) else { return Err(Failure::Nested) };
        let accesses = run.accesses();
        let Run { processors, profile, failed, .. } = *run;
        if let Some(failure) = failed {
            return Err(failure);
        }
        let (sites, counts) = profile.finish();
        let threads: Vec<_> = processors
            .iter()
            .enumerate()
            .filter(|(_, it)| !it.role.is_empty() || it.clock > 0)
            .map(|(processor, it)| Thread {
                processor,
                role: it.role,
                end: it.clock,
                accesses: it.accesses,
            })
            .collect();
        let end = threads.iter().map(|thread| thread.end).max().unwrap_or(0);
        Ok(Outcome { end, accesses, threads, sites, counts })
    }

    fn check(&self) -> Result<(), Failure> {
        if with(|engine| engine.run.is_some()) {
            return Err(Failure::Nested);
        }
        self.description.check()?;
        let processors = self.description.processors;
        let mut taken = vec![false; processors];
        let all = self.threads.iter().map(|(processor, ..)| *processor).chain(self.central);
        for (thread, processor) in all.enumerate() {
            if processor >= processors {
                let machine = self.description.name.clone();
                return Err(Failure::Processor { thread, processor, processors, machine });
            }
            if thread < self.threads.len() && std::mem::replace(&mut taken[processor], true) {
                return Err(Failure::Shared(processor));
            }
        }
        Ok(())
    }
}

/// The running thread's clock, in picoseconds; 0 outside of a simulation.
pub fn now() -> u64 {
    with(|engine| engine.run.as_ref().map_or(0, |run| run.now()))
}

/// The running thread's processor; 0 outside of a simulation.
pub fn processor() -> usize {
    with(|engine| engine.run.as_ref().map_or(0, |run| run.current))
}

/// The running thread computes for this number of picoseconds.
pub fn work(picoseconds: u64) {
    with(|engine| {
        if let Some(run) = &mut engine.run {
            run.advance(picoseconds);
        }
    });
}

/// Counts something, for the account of the running thread's role.
pub fn count(what: &'static str, times: u64) {
    with(|engine| {
        if let Some(run) = &mut engine.run {
            let role = run.processors[run.current].role;
            run.profile.count(what, role, times);
        }
    });
}
