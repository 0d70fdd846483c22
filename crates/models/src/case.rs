//! A row of the matrix: which queue, on which machine, in which scene, and what must be found.

use core::num::NonZeroU64;

use super::plays::Play;
use super::{Algorithm, Policy, Scenario};
use poach_check::{Config, Consistency, Coverage, Kind, Report, Strategy, Verdict};

/// A queue as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The queue.
    pub algorithm: Algorithm,
    /// The policy's kind: its delta is computed, or given.
    pub policy: PolicyKind,
}

/// A policy without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyKind {
    /// [`Policy::Full`].
    Full,
    /// [`Policy::Asymmetric`].
    Asymmetric,
    /// [`Policy::Bounded`].
    Bounded,
    /// [`Policy::Bounded`] that makes a store of its own at each pop.
    Filled,
    /// [`Policy::Resolved`].
    Resolved,
    /// [`Policy::Resolved`] that makes a store of its own at each pop.
    FilledResolved,
    /// [`Policy::Unbounded`].
    Unbounded,
    /// [`Policy::Displaced`].
    Displaced,
    /// [`Policy::Unfenced`].
    Unfenced,
    /// The queue has none.
    None,
}

impl PolicyKind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::Full => "full",
            PolicyKind::Asymmetric => "asymmetric",
            PolicyKind::Bounded => "bounded",
            PolicyKind::Filled => "filled",
            PolicyKind::Resolved => "resolved",
            PolicyKind::FilledResolved => "filled-resolved",
            PolicyKind::Unbounded => "unbounded",
            PolicyKind::Displaced => "displaced",
            PolicyKind::Unfenced => "unfenced",
            PolicyKind::None => "none",
        }
    }

    /// Whether it has a delta.
    pub fn bounded(self) -> bool {
        use PolicyKind::{Bounded, Filled, FilledResolved, Resolved};
        matches!(self, Bounded | Filled | Resolved | FilledResolved)
    }

    /// The policy, with `delta` if it wants one. But for [`Filled`](PolicyKind::Filled) and
    /// [`FilledResolved`](PolicyKind::FilledResolved) the queue makes no store of its own: the
    /// client's are the only ones between two pops.
    pub fn with(self, delta: NonZeroU64) -> Policy {
        match self {
            PolicyKind::Full | PolicyKind::None => Policy::Full,
            PolicyKind::Asymmetric => Policy::Asymmetric,
            PolicyKind::Bounded => Policy::Bounded { delta, fill: false },
            PolicyKind::Filled => Policy::Bounded { delta, fill: true },
            PolicyKind::Resolved => Policy::Resolved { delta, fill: false },
            PolicyKind::FilledResolved => Policy::Resolved { delta, fill: true },
            PolicyKind::Unbounded => Policy::Unbounded,
            PolicyKind::Displaced => Policy::Displaced,
            PolicyKind::Unfenced => Policy::Unfenced,
        }
    }
}

const fn named(name: &'static str, algorithm: Algorithm, policy: PolicyKind) -> Named {
    Named { name, algorithm, policy }
}

/// All queues that can be checked.
pub const QUEUES: &[Named] = &[
    named("chase-lev", Algorithm::ChaseLev, PolicyKind::Full),
    named("asymmetric-cl", Algorithm::ChaseLev, PolicyKind::Asymmetric),
    named("ff-cl", Algorithm::ChaseLev, PolicyKind::Bounded),
    named("resolved", Algorithm::ChaseLev, PolicyKind::Resolved),
    named("unfenced", Algorithm::ChaseLev, PolicyKind::Unfenced),
    named("the", Algorithm::The, PolicyKind::Full),
    named("ff-the", Algorithm::The, PolicyKind::Bounded),
    named("thep", Algorithm::Thep, PolicyKind::Bounded),
    named("split", Algorithm::Split, PolicyKind::None),
    named("split-stack", Algorithm::Stack, PolicyKind::None),
    named("biased", Algorithm::Biased, PolicyKind::Asymmetric),
    named("private", Algorithm::Private, PolicyKind::None),
    named("fifo", Algorithm::Fifo, PolicyKind::None),
    named("closed-fifo", Algorithm::ClosedFifo, PolicyKind::None),
    named("mutex", Algorithm::Mutex, PolicyKind::None),
    named("injector", Algorithm::Injector, PolicyKind::None),
    named("idempotent-lifo", Algorithm::IdempotentLifo, PolicyKind::None),
    named("idempotent-fifo", Algorithm::IdempotentFifo, PolicyKind::None),
    named("idempotent-deque", Algorithm::IdempotentDeque, PolicyKind::None),
    named("multiplicity", Algorithm::Multiplicity, PolicyKind::None),
    named("bwos-lifo", Algorithm::BwosLifo, PolicyKind::None),
    named("bwos-fifo", Algorithm::BwosFifo, PolicyKind::None),
    named("salsa", Algorithm::Salsa, PolicyKind::Asymmetric),
    named("salsa-cas", Algorithm::SalsaCas, PolicyKind::None),
    named("conc-bag", Algorithm::ConcBag, PolicyKind::None),
    named("ws-msq", Algorithm::WsMsq, PolicyKind::None),
    named("ws-lifo", Algorithm::WsLifo, PolicyKind::None),
];

/// The deques that are sound, and that every scene of a deque fits. (Of a biased deque and of a
/// closed FIFO it would have more executions than end in a minute.)
pub(super) fn deques() -> impl Iterator<Item = Named> {
    use Algorithm::{Biased, ClosedFifo, Stack};
    QUEUES.iter().copied().filter(|queue| {
        !queue.algorithm.is_shared()
            && !matches!(queue.algorithm, Biased | ClosedFifo | Stack)
            && queue.policy != PolicyKind::Unfenced
    })
}

/// The paper's bound with the egress slot's entry: `ceil((S + slot) / (x + 1))`, at least 1.
pub fn delta(store_buffer: u32, egress: bool, stores: u32) -> NonZeroU64 {
    let entries = u64::from(store_buffer) + u64::from(egress);
    NonZeroU64::new(entries.div_ceil(u64::from(stores) + 1)).unwrap_or(NonZeroU64::MIN)
}

/// A row of the matrix.
#[derive(Clone, Debug)]
pub struct Case {
    /// The memory model.
    pub consistency: Consistency,
    /// The queue's name.
    pub name: &'static str,
    /// The queue.
    pub algorithm: Algorithm,
    /// The policy's kind.
    pub policy: PolicyKind,
    /// S.
    pub store_buffer: u32,
    /// Stores of the client between pops.
    pub stores: u32,
    /// Delta, where the policy has one.
    pub delta: Option<NonZeroU64>,
    /// What the model does, in a word.
    pub scene: &'static str,
    /// What the model does.
    pub scenario: Scenario,
    /// What must be found; `None` if it must be clean.
    pub expected: Option<Kind>,
    /// How far a clean row has to go.
    pub coverage: Coverage,
    /// Entries behind the store buffer.
    pub egress: u32,
    /// What the threads do, if not what the scenario says alone.
    pub play: Play,
}

impl Case {
    /// The machine that the case runs on.
    pub fn config(&self) -> Config {
        // A matrix wants to know whether there is a counterexample, not the shortest.
        let egress_entries = self.egress;
        let machine = Config::bounded(self.store_buffer, true);
        let consistency = self.consistency;
        let machine = Config { consistency, shorten: 0, egress_entries, ..machine };
        match self.coverage {
            Coverage::Complete => machine,
            Coverage::Preemptions(bound) => {
                let preemptions = Some(bound);
                let strategy = Strategy::Exhaustive { preemptions, reduce: true, prune: true };
                Config { strategy, ..machine }
            }
            Coverage::Executions(count) => Config { max_executions: count, ..machine },
        }
    }

    /// Explores it.
    pub fn run(&self, config: &Config) -> Report {
        let policy = self.policy.with(self.delta.unwrap_or(NonZeroU64::MIN));
        self.play.run(self.algorithm, policy, &self.scenario, config)
    }

    /// Whether a search found what it must find.
    pub fn as_expected(&self, report: &Report) -> bool {
        match (&report.verdict, self.expected) {
            (Verdict::Violation(found), expected) => expected == Some(found.kind()),
            (_, Some(_)) => false,
            // As much was covered as the row says, and in some execution a thief got a task.
            (_, None) => {
                report.clean(self.coverage).is_ok() && (report.stolen || !self.play.steals())
            }
        }
    }
}

/// What a queue without its fence does.
pub(super) const TWICE: Option<Kind> = Some(Kind::Duplicate);

pub(super) fn case(
    queue: Named,
    scene: &'static str,
    scenario: Scenario,
    store_buffer: u32,
    expected: Option<Kind>,
) -> Case {
    Case {
        consistency: Consistency::Tso,
        name: queue.name,
        algorithm: queue.algorithm,
        policy: queue.policy,
        store_buffer,
        stores: scenario.stores,
        delta: None,
        scene,
        scenario,
        expected,
        coverage: Coverage::Complete,
        egress: 1,
        play: Play::Tasks,
    }
}

pub(super) fn find(name: &str) -> Named {
    *QUEUES.iter().find(|queue| queue.name == name).expect("the matrix names queues of the list")
}
