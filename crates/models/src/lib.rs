//! The queues of `poach-deque` and the pools of `poach-pool`, their own source, on the machine of
//! [`poach_check`].
//!
//! [`check`] plays one queue with one policy in one [`Scenario`]; [`matrix`] lists what `poach
//! check` plays.
#![doc = include_str!("readme.md")]
#![deny(unsafe_code)]

pub mod alone;
mod any;
#[expect(unsafe_code, reason = "it promises the simulated machine's bound")]
mod any_policy;
mod case;
pub mod emptiness;
pub mod matrix;
pub mod orderings;
#[doc(hidden)]
pub mod played;
pub mod plays;
mod scenario;
mod scenes;
pub mod shared;
#[expect(unsafe_code, reason = "the stack is the owner's who says so")]
pub mod stack;
pub mod taken;
pub mod thefts;
mod weak;

use core::num::NonZeroU64;

use poach_deque::{Injector, Owner};
use poach_pool::mechanism::{Consume, Mechanism};

#[doc(hidden)]
pub use any_policy::any_policy;
#[doc(hidden)]
pub use poach_check;
pub use scenario::{Deque, Scenario, Step, Subject, model};

use crate::any_policy::AnyPolicy;
use played::{Plays, PlaysPool, play_pool};
use poach_check::{Config, Consistency, Naming, Report, Simulated, Spec, explore};
use taken::{Taken, Then, singles};

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// [`poach_deque::ChaseLev`].
    ChaseLev,
    /// [`poach_deque::Biased`], whose thieves do not wait for an answer before they pay for a
    /// barrier.
    Biased,
    /// [`poach_deque::The`].
    The,
    /// [`poach_deque::Thep`].
    Thep,
    /// [`poach_deque::Split`].
    Split,
    /// [`poach_deque::PrivateDeque`].
    Private,
    /// [`poach_deque::Fifo`], whose owner leaves it open.
    Fifo,
    /// The same, closed from the start; thieves do not wait for an answer before they pay for a
    /// barrier.
    ClosedFifo,
    /// [`poach_deque::IdempotentLifo`].
    IdempotentLifo,
    /// [`poach_deque::IdempotentFifo`].
    IdempotentFifo,
    /// [`poach_deque::IdempotentDeque`].
    IdempotentDeque,
    /// [`poach_deque::Multiplicity`].
    Multiplicity,
    /// [`poach_deque::BwosLifo`], with blocks of half of the scenario's capacity.
    BwosLifo,
    /// [`poach_deque::BwosFifo`], with blocks of half of the scenario's capacity.
    BwosFifo,
    /// [`poach_deque::Mutex`].
    Mutex,
    /// [`poach_deque::Injector`].
    Injector,
    /// [`poach_pool::salsa::Salsa`].
    Salsa,
    /// [`poach_pool::salsa::SalsaCas`].
    SalsaCas,
    /// [`poach_deque::split::Stack`].
    Stack,
    /// [`poach_pool::baselines::ConcBag`].
    ConcBag,
    /// [`poach_pool::baselines::WsMsq`].
    WsMsq,
    /// [`poach_pool::baselines::WsLifo`].
    WsLifo,
}

impl Algorithm {
    /// Whether the queue has a fence policy; the others work without one.
    pub fn has_policy(self) -> bool {
        use Algorithm::{Biased, ChaseLev, Salsa, The, Thep};
        matches!(self, ChaseLev | Biased | The | Thep | Salsa)
    }

    /// Whether a thread of its own puts tasks into it: its models have one thread more than owner
    /// and thieves.
    pub fn is_shared(self) -> bool {
        use Algorithm::{ConcBag, Injector, Salsa, SalsaCas, WsLifo, WsMsq};
        matches!(self, Injector | Salsa | SalsaCas | ConcBag | WsMsq | WsLifo)
    }

    /// How often a task may be taken.
    #[doc(hidden)]
    pub fn taken(self) -> Taken {
        match spec(self, Policy::Full) {
            Spec::AtLeastOnce => Taken::AtLeastOnce,
            _ => Taken::Once,
        }
    }

    /// What becomes of the owner under C11.
    fn then(self, scenario: &Scenario) -> Then {
        use Algorithm::{BwosFifo, BwosLifo, ChaseLev, Fifo, Multiplicity, Split, The, Thep};
        match self {
            ChaseLev | The | Thep | Fifo => Then::Goes,
            // An owner that does not empty its queue leaves what is there to the thieves.
            Split | Multiplicity | BwosLifo | BwosFifo
                if !scenario.script.contains(&Step::PopAll) =>
            {
                Then::Goes
            }
            _ => Then::Stays,
        }
    }
}

/// A fence policy, with what it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// [`poach_memory::Full`].
    Full,
    /// [`poach_memory::Asymmetric`].
    Asymmetric,
    /// [`poach_memory::Bounded`].
    Bounded {
        /// How many pops a thief may fail to see.
        delta: NonZeroU64,
        /// Whether the queue makes a store of its own at each pop.
        fill: bool,
    },
    /// [`poach_memory::Resolved`].
    Resolved {
        /// As [`Policy::Bounded`]'s.
        delta: NonZeroU64,
        /// As [`Policy::Bounded`]'s.
        fill: bool,
    },
    /// [`poach_memory::Unbounded`].
    Unbounded,
    /// [`poach_memory::Displaced`], as [`Displacing`](poach_check::Displacing) models it.
    Displaced,
    /// [`poach_memory::Unfenced`].
    Unfenced,
}

impl Policy {
    fn words(self) -> Vec<Naming> {
        match self {
            Policy::Bounded { .. } | Policy::Resolved { .. } => vec![Naming::hidden("elsewhere")],
            _ => Vec::new(),
        }
    }
}

/// What a queue promises under a policy.
pub fn spec(algorithm: Algorithm, policy: Policy) -> Spec {
    match algorithm {
        // A thief of a biased deque says "retry" where the owner has closed, and "empty" while it
        // pops the last task.
        Algorithm::Biased
        | Algorithm::Split
        | Algorithm::Private
        | Algorithm::Stack
        | Algorithm::BwosLifo => Spec::PartlyPrivate,
        Algorithm::BwosFifo => Spec::PartlyPrivateBlocks,
        // As of a biased deque.
        Algorithm::ClosedFifo => Spec::PartlyPrivateFifo,
        Algorithm::Fifo | Algorithm::Injector => Spec::Fifo,
        Algorithm::Salsa
        | Algorithm::SalsaCas
        | Algorithm::ConcBag
        | Algorithm::WsMsq
        | Algorithm::WsLifo => Spec::Pool,
        Algorithm::IdempotentLifo
        | Algorithm::IdempotentFifo
        | Algorithm::IdempotentDeque
        | Algorithm::Multiplicity => Spec::AtLeastOnce,
        Algorithm::ChaseLev | Algorithm::The => match policy {
            Policy::Bounded { delta, .. } => Spec::DequeWithAbort { margin: delta.get() },
            _ => Spec::Deque,
        },
        Algorithm::Thep | Algorithm::Mutex => Spec::Deque,
    }
}

fn ring(capacity: usize) -> Vec<Naming> {
    let mut names: Vec<Naming> =
        (0..capacity).map(|slot| Naming::hidden(format!("mark{slot}"))).collect();
    names.extend(["older", "end", "ring", "finished"].map(Naming::hidden));
    names
}

/// What the words of a queue are called in a counterexample, in the order in which the queue makes
/// them.
fn names(algorithm: Algorithm, policy: Policy, capacity: usize) -> Vec<Naming> {
    if !algorithm.has_policy() || matches!(algorithm, Algorithm::Biased | Algorithm::Salsa) {
        return Vec::new();
    }
    let mut names = policy.words();
    names.extend(ring(capacity));
    names.extend([Naming::new("tail"), Naming::hidden("closed")]);
    match algorithm {
        Algorithm::ChaseLev => names.push(Naming::new("head")),
        Algorithm::The => {
            names.push(Naming::new("head"));
            names.extend(["gone", "lock"].map(Naming::hidden));
        }
        Algorithm::Thep => {
            names.extend([Naming::new("echo"), Naming::halves("head", "index", "beat")]);
            names.extend(["gone", "lock"].map(Naming::hidden));
        }
        _ => {}
    }
    names
}

/// Explores one scenario of one queue under one policy. The specification is the queue's own,
/// whatever `config` says; under C11 it is that each task is taken once.
///
/// # Panics
///
/// If the scenario's capacity is no power of two.
pub fn check(algorithm: Algorithm, policy: Policy, scenario: &Scenario, config: &Config) -> Report {
    let config = &config.clone().against(spec(algorithm, policy));
    let scene = Scene { config, scenario, algorithm, policy };
    match algorithm {
        Algorithm::Injector => {
            let queue =
                |n| Injector::<u64, Simulated, 1>::with_capacity(n).expect(POWER).with_patience(1);
            explore(config, &shared::injector(scenario, queue))
        }
        // It has forks and joins in place of pushes and pops.
        Algorithm::Stack => explore(config, &stack::shipped(scenario, stack::Exposes::Later)),
        _ if algorithm.is_shared() => play_pool(algorithm, policy, scene),
        // The owner of a queue is the model's first thread.
        _ => {
            play_deque!(poach_deque, algorithm, AnyPolicy::new(policy, 0), scenario.capacity, scene)
        }
    }
}

/// A scenario of a queue, and how it is explored.
struct Scene<'a> {
    config: &'a Config,
    scenario: &'a Scenario,
    algorithm: Algorithm,
    policy: Policy,
}

impl Plays for Scene<'_> {
    fn play<O: Owner<u64, Thief: 'static> + 'static>(self, make: impl Fn() -> O) -> Report {
        let Scene { config, scenario, algorithm, policy } = self;
        match config.consistency {
            Consistency::Tso => {
                let names = names(algorithm, policy, scenario.capacity);
                explore(config, &model(scenario, &names, |_| Deque(make())))
            }
            Consistency::C11 => {
                let (taken, then) = (algorithm.taken(), algorithm.then(scenario));
                explore(config, &singles(scenario, make, taken, then))
            }
        }
    }
}

impl PlaysPool for Scene<'_> {
    fn play_pool<P>(self, make: impl Fn(usize) -> Option<P>) -> Report
    where
        P: Mechanism<u32, Producer: 'static, Consumer: 'static> + 'static,
    {
        let take: fn(&mut dyn Consume<u32>) -> Option<u32> = match self.algorithm {
            // All consumers take from one bag.
            Algorithm::ConcBag => |thief| thief.consume(),
            _ => |thief| thief.steal(0),
        };
        explore(self.config, &shared::pool(self.scenario, || make(CHUNK), take))
    }
}

/// Tasks of a SALSA pool's chunk: few, so that chunks are finished.
const CHUNK: usize = 2;
const POWER: &str = "a scenario's capacity is a small power of two";
