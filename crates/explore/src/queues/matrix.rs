//! The matrix of `poach check all`: what must be clean, and what must be refuted.

use core::num::NonZeroU64;

use super::plays::Play;
use super::{Algorithm, Policy, Scenario, Step};
use crate::{Config, Coverage, Kind, Report, Strategy, Verdict};

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
    /// [`Policy::Unbounded`].
    Unbounded,
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
            PolicyKind::Unbounded => "unbounded",
            PolicyKind::Unfenced => "unfenced",
            PolicyKind::None => "none",
        }
    }

    /// Whether it has a delta.
    pub fn bounded(self) -> bool {
        matches!(self, PolicyKind::Bounded | PolicyKind::Filled | PolicyKind::Resolved)
    }

    /// The policy, with `delta` if it wants one. But for [`Filled`](PolicyKind::Filled) the queue makes no store of
    /// its own: the client's are the only ones between two pops.
    pub fn with(self, delta: NonZeroU64) -> Policy {
        match self {
            PolicyKind::Full | PolicyKind::None => Policy::Full,
            PolicyKind::Asymmetric => Policy::Asymmetric,
            PolicyKind::Bounded => Policy::Bounded { delta, fill: false },
            PolicyKind::Filled => Policy::Bounded { delta, fill: true },
            PolicyKind::Resolved => Policy::Resolved { delta, fill: false },
            PolicyKind::Unbounded => Policy::Unbounded,
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
    named("mutex", Algorithm::Mutex, PolicyKind::None),
    named("injector", Algorithm::Injector, PolicyKind::None),
    named("idempotent-lifo", Algorithm::IdempotentLifo, PolicyKind::None),
    named("idempotent-fifo", Algorithm::IdempotentFifo, PolicyKind::None),
    named("idempotent-deque", Algorithm::IdempotentDeque, PolicyKind::None),
    named("salsa", Algorithm::Salsa, PolicyKind::Asymmetric),
    named("salsa-cas", Algorithm::SalsaCas, PolicyKind::None),
    named("conc-bag", Algorithm::ConcBag, PolicyKind::None),
    named("ws-msq", Algorithm::WsMsq, PolicyKind::None),
    named("ws-lifo", Algorithm::WsLifo, PolicyKind::None),
];

/// The paper's bound with the egress slot's entry: `ceil((S + slot) / (x + 1))`, at least 1.
pub fn delta(store_buffer: u32, egress: bool, stores: u32) -> NonZeroU64 {
    let entries = u64::from(store_buffer) + u64::from(egress);
    NonZeroU64::new(entries.div_ceil(u64::from(stores) + 1)).unwrap_or(NonZeroU64::MIN)
}

/// A row of the matrix.
#[derive(Clone, Debug)]
pub struct Case {
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
        let machine = Config { shorten: 0, egress_entries, ..machine };
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

fn rows(
    queue: Named,
    stores: u32,
    delta: Option<NonZeroU64>,
    sizes: &[u32],
    expected: Option<Kind>,
    quick: bool,
) -> Vec<Case> {
    let mut rows = Vec::new();
    for &store_buffer in sizes {
        let scenes = [
            ("drain", Scenario::drain(3, stores, 1, 2)),
            if quick {
                ("brief", Scenario::brief(stores, 1, 2))
            } else {
                ("mixed", Scenario::mixed(stores, 1, 2))
            },
        ];
        for (scene, scenario) in scenes {
            rows.push(Case {
                name: queue.name,
                algorithm: queue.algorithm,
                policy: queue.policy,
                store_buffer,
                stores,
                delta,
                scene,
                scenario,
                expected,
                coverage: Coverage::Complete,
                egress: 1,
                play: Play::Tasks,
            });
        }
    }
    rows
}

pub(super) fn case(
    queue: Named,
    scene: &'static str,
    scenario: Scenario,
    store_buffer: u32,
    expected: Option<Kind>,
) -> Case {
    Case {
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

/// What has no owner: SALSA, which needs its fence, and the injector.
///
/// Two threads push into the injector and one steals: 384,858 executions, complete. With one steal more, by a pusher,
/// the search does not end in minutes, since each look of a thief that waits for a push is a choice. So that scene is
/// left to loom and to the tests of the injector, and this one is played with the smallest buffers alone.
fn shared(sizes: &[u32], quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let robbed = Scenario::drain(2, 0, 1, if quick { 1 } else { 2 });
    let policies =
        [(PolicyKind::Full, None), (PolicyKind::Asymmetric, None), (PolicyKind::Unfenced, TWICE)];
    for &size in sizes {
        for (policy, expected) in policies {
            let salsa = Named { policy, ..find("salsa") };
            cases.push(case(salsa, "robbed", robbed.clone(), size, expected));
        }
    }
    let pushes = Scenario { script: vec![Step::Push], ..Scenario::drain(0, 0, 1, 1) };
    for size in if quick { 1..=1 } else { 1..=2 } {
        cases.push(case(find("injector"), "pushes", pushes.clone(), size, None));
    }
    cases
}

pub(super) fn find(name: &str) -> Named {
    *QUEUES.iter().find(|queue| queue.name == name).expect("the matrix names queues of the list")
}

/// Tasks of the largest model without stores between pops.
const MOST_TASKS: u64 = 6;

/// The rows of FF-THE and FF-CL: clean at the bound, refuted one below; without stores between pops,
/// refuted at every delta that leaves a thief something to steal of up to six tasks.
pub fn bounds(
    sizes: &(impl Iterator<Item = u32> + Clone),
    stores: &(impl Iterator<Item = u32> + Clone),
) -> Vec<Case> {
    let mut rows = Vec::new();
    for name in ["ff-the", "ff-cl"] {
        let queue = find(name);
        for store_buffer in sizes.clone() {
            for x in stores.clone() {
                let case = |delta: NonZeroU64, tasks: u64, expected| Case {
                    name,
                    algorithm: queue.algorithm,
                    policy: queue.policy,
                    store_buffer,
                    stores: x,
                    delta: Some(delta),
                    scene: "drain",
                    scenario: Scenario::drain(tasks as u32, x, 1, 2),
                    expected,
                    coverage: Coverage::Complete,
                    egress: 1,
                    play: Play::Tasks,
                };
                if x == 0 {
                    // Coalescing hides any number of pops: a delta that does not keep thieves off
                    // altogether is too small.
                    let hopeless = (1..=MOST_TASKS - 2).filter_map(NonZeroU64::new);
                    rows.extend(hopeless.map(|delta| case(delta, delta.get() + 2, TWICE)));
                    continue;
                }
                let bound = delta(store_buffer, true, x);
                rows.push(case(bound, bound.get() + 1, None));
                if let Some(below) = NonZeroU64::new(bound.get() - 1) {
                    rows.push(case(below, bound.get() + 1, TWICE));
                } else {
                    // Delta 0 is no policy's: a thief that trusts what it sees is `Unfenced`.
                    rows.push(Case {
                        policy: PolicyKind::Unfenced,
                        delta: None,
                        ..case(bound, 2, TWICE)
                    });
                }
            }
        }
    }
    rows
}

/// The matrix: `quick` for a smaller one, that ends within half a minute.
pub fn cases(quick: bool) -> Vec<Case> {
    let sizes: &[u32] = if quick { &[1, 2] } else { &[1, 2, 3, 4] };
    let mut cases = Vec::new();
    for name in ["chase-lev", "asymmetric-cl", "the", "split", "private", "fifo", "mutex"] {
        cases.extend(rows(find(name), 0, None, sizes, None, quick));
    }
    for name in ["idempotent-lifo", "idempotent-fifo", "idempotent-deque"] {
        cases.extend(rows(find(name), 0, None, sizes, None, quick));
    }
    let the_asymmetric = Named { name: "the", policy: PolicyKind::Asymmetric, ..find("the") };
    cases.extend(rows(the_asymmetric, 0, None, sizes, None, quick));
    // The same without their fences.
    for name in ["chase-lev", "the"] {
        let queue = Named { policy: PolicyKind::Unfenced, ..find(name) };
        let mut unfenced = rows(queue, 0, None, sizes, TWICE, quick);
        unfenced.retain(|case| case.scene == "drain");
        cases.extend(unfenced);
    }
    // THEP at every delta, and with none at all.
    for delta in 1..=3 {
        cases.extend(rows(find("thep"), 0, NonZeroU64::new(delta), &sizes[..1], None, quick));
    }
    let unbounded = Named { policy: PolicyKind::Unbounded, ..find("thep") };
    cases.extend(rows(unbounded, 0, None, sizes, None, quick));
    // An owner that stays and does not pop: the thief must learn all it needs from the one echo.
    for &size in sizes {
        let echo = Scenario::echo();
        cases.push(case(unbounded, "echo", echo.clone(), size, None));
        let delta = NonZeroU64::new(2);
        cases.push(Case { delta, ..case(find("thep"), "echo", echo, size, None) });
    }
    cases.extend(shared(sizes, quick));
    cases.extend(super::scenes::more(quick));
    for &size in sizes {
        cases.extend(rows(find("resolved"), 1, Some(delta(size, true, 1)), &[size], None, quick));
    }
    if quick {
        cases.extend(bounds(&(1..=3), &(0..=2)));
    } else {
        cases.extend(bounds(&(1..=8), &(0..=3)));
    }
    cases
}
