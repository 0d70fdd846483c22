//! What threads do beyond taking one task at a time: batches, requests, exposure, forks, and pools
//! that are never empty.

use std::rc::Rc;
use std::sync::Arc;

use poach_deque::{Biased, ChaseLev, Fifo, Mutex, Owner, Split, Steal, The, Thep, Thief};
use poach_memory::Memory;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::Retention;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};

use super::emptiness::{announcements, pass};
use super::scenario::{Deque, Scenario, Subject, model};
use super::shared::{chunks_again, consumer_goes, producer_goes};
use super::stack::Exposes;
use super::taken::{exposed, halves};
use super::thefts::{
    fed_by_two, held_grows, list_grows, refilled, refused, robbed_in_window, robbed_thief,
    two_chunks,
};
use super::{Algorithm, POWER, Policy, check, stack};
use crate::any_policy::{AnyPolicy, displacing};
use poach_check::history::Outcome;
use poach_check::{
    Config, Consistency, Kind, Report, Simulated, SimulatedWord, Spec, Threads, explore, fail,
};

/// What the threads do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Play {
    /// The scenario: thieves take one task at a time.
    Tasks,
    /// The scenario, with thieves that take half of the tasks.
    Halves,
    /// The scenario, with thieves of the split deque that expose private tasks before they steal.
    Exposure,
    /// A thief of a split deque, or of the stack of forks, finds nothing, since another has taken
    /// what was shared, and asks.
    Request,
    /// The runtime's stack of forks: the owner forks as many as the scenario has tasks, and joins
    /// them.
    Forks,
    /// The same with thieves that expose private tasks before they ask.
    ExposedForks,
    /// The same with a stack in which the owner's fork makes further slots ready.
    ReadyForks,
    /// A pool in which there is always a task, and a consumer that asks whether it is empty.
    Emptiness,
    /// A looker must hear of a theft.
    Announcement,
    /// Chunks, or nodes, that two producers and a consumer of a pool hand round.
    Again,
    /// A consumer leaves a pool while a task comes to it.
    ConsumerGoes,
    /// A producer leaves a pool, and another comes to it, while a consumer looks there.
    ProducerGoes,
    /// Two producers come to a pool at once.
    FedByTwo,
    /// A thief of SALSA's is robbed of the chunk in which it goes on.
    RobbedThief,
    /// A thief of SALSA's is robbed of a chunk before it knows what the owner has taken of it.
    RobbedInWindow,
    /// The kernel refuses a thief's visit to the owner's processor for a while.
    Refused,
    /// The last task of a chunk is contested, and the chunk is filled again.
    Refilled,
    /// A thief goes from one stolen chunk to another.
    TwoChunks,
    /// The list of a thief's chunks grows.
    HeldGrows,
    /// The list of a producer's chunks grows.
    ListGrows,
}

impl Play {
    /// Whether a thief must get something in some execution.
    pub fn steals(self) -> bool {
        use Play::{Again, Announcement, ConsumerGoes, Emptiness, FedByTwo, ProducerGoes, Request};
        !matches!(
            self,
            Request | Emptiness | Announcement | Again | ConsumerGoes | ProducerGoes | FedByTwo
        )
    }

    /// Explores it.
    ///
    /// # Panics
    ///
    /// If the queue has no such play.
    pub fn run(
        self,
        algorithm: Algorithm,
        policy: Policy,
        scenario: &Scenario,
        config: &Config,
    ) -> Report {
        match self {
            Play::Tasks => check(algorithm, policy, scenario, config),
            Play::Halves => run_halves(algorithm, scenario, config),
            Play::Exposure if config.consistency == Consistency::C11 => {
                let make = || Split::<u64, Simulated>::with_capacity(scenario.capacity);
                explore(config, &exposed(scenario, move || make().expect(POWER)))
            }
            Play::Exposure => {
                let config = config.clone().against(Spec::PartlyPrivate);
                let make = |n| Exposing(Split::<u64, Simulated>::with_capacity(n).expect(POWER));
                explore(&config, &model(scenario, &[], make))
            }
            Play::Request if algorithm == Algorithm::Stack => {
                explore(config, &stack::late_request_of_shipped)
            }
            Play::Request => explore(config, &late_request),
            Play::Forks => explore(config, &stack::shipped(scenario, Exposes::Later)),
            Play::ExposedForks => explore(config, &stack::shipped(scenario, Exposes::AtOnce)),
            Play::ReadyForks => explore(config, &stack::ready(scenario)),
            Play::Emptiness
            | Play::Announcement
            | Play::Again
            | Play::ConsumerGoes
            | Play::ProducerGoes
            | Play::FedByTwo
            | Play::RobbedThief
            | Play::RobbedInWindow
            | Play::Refused
            | Play::Refilled
            | Play::TwoChunks
            | Play::HeldGrows
            | Play::ListGrows => run_pool(self, algorithm, policy, config),
        }
    }
}

fn run_halves(algorithm: Algorithm, scenario: &Scenario, config: &Config) -> Report {
    let fences = |policy| AnyPolicy::new(policy, 0);
    let n = scenario.capacity;
    let patience = if algorithm == Algorithm::ClosedFifo { 0 } else { u32::MAX };
    match algorithm {
        Algorithm::ChaseLev => explore(
            config,
            &halves(scenario, || {
                ChaseLev::<u64, _, Simulated>::starting_at(fences(Policy::Asymmetric), n, 0)
                    .expect(POWER)
            }),
        ),
        Algorithm::The => explore(
            config,
            &halves(scenario, || {
                The::<u64, _, Simulated>::starting_at(fences(Policy::Full), n, 0).expect(POWER)
            }),
        ),
        Algorithm::Thep => explore(
            config,
            &halves(scenario, || {
                Thep::<u64, _, Simulated>::starting_at(fences(Policy::Unbounded), n, 0)
                    .expect(POWER)
            }),
        ),
        Algorithm::Split => explore(
            config,
            &halves(scenario, || Split::<u64, Simulated>::with_capacity(n).expect(POWER)),
        ),
        Algorithm::Fifo | Algorithm::ClosedFifo => explore(
            config,
            &halves(scenario, || {
                Fifo::<u64, Simulated>::with_patience(n, 0, patience, 0).expect(POWER)
            }),
        ),
        Algorithm::Mutex => explore(config, &halves(scenario, Mutex::<u64, Simulated>::default)),
        Algorithm::Biased => explore(
            config,
            &halves(scenario, || {
                Biased::<u64, _, Simulated>::starting_at(fences(Policy::Asymmetric), n, 0, 0)
                    .expect(POWER)
            }),
        ),
        other => panic!("{other:?} gives no batches"),
    }
}

fn run_pool(play: Play, algorithm: Algorithm, policy: Policy, config: &Config) -> Report {
    // Chunks of `n` tasks.
    macro_rules! play {
        ($n:ident, $make:expr) => {{
            let made = |$n: usize| $make;
            match play {
                Play::Emptiness => explore(config, &pass(|| made(4))),
                Play::Again => explore(config, &chunks_again(|| made(1))),
                Play::ConsumerGoes => explore(config, &consumer_goes(|| made(2))),
                Play::ProducerGoes => explore(config, &producer_goes(|| made(2))),
                Play::FedByTwo => explore(config, &fed_by_two(|| made(2))),
                Play::RobbedThief => explore(config, &robbed_thief(|| made(3))),
                Play::RobbedInWindow => explore(config, &robbed_in_window(|| made(3))),
                Play::Refilled => explore(config, &refilled(|| made(2))),
                Play::TwoChunks => explore(config, &two_chunks(|| made(2))),
                Play::HeldGrows => explore(config, &held_grows(|| made(2))),
                Play::ListGrows => explore(config, &list_grows(|| made(1))),
                _ => explore(config, &announcements(|| made(4))),
            }
        }};
    }
    let retention = Retention::NONE;
    match algorithm {
        Algorithm::Salsa if play == Play::Refused => {
            let fence = |allowed: &Arc<SimulatedWord>, owner| {
                // The second owner, whom the last thief robs, is not refused.
                let fence = displacing(owner);
                let fence = if owner == 0 { fence.until(Arc::clone(allowed)) } else { fence };
                AnyPolicy::Displaced(fence)
            };
            explore(
                config,
                &refused(|allowed| {
                    Salsa::<u32, Simulated, _>::with_fences(2, move |owner| fence(&allowed, owner))
                }),
            )
        }
        Algorithm::Salsa => {
            // The plays know no bound.
            let policy = match policy {
                Policy::Full | Policy::Displaced | Policy::Unfenced => policy,
                _ => Policy::Asymmetric,
            };
            let fences = move |owner| AnyPolicy::new(policy, owner);
            play!(n, Salsa::<u32, Simulated, _>::with_fences(n, fences))
        }
        Algorithm::SalsaCas => play!(n, SalsaCas::<u32, Simulated>::new(n)),
        Algorithm::ConcBag => play!(n, ConcBag::<u32, Simulated>::with_retention(n, retention)),
        Algorithm::WsMsq => play!(_n, WsMsq::<u32, Simulated>::with_retention(retention)),
        Algorithm::WsLifo => play!(_n, WsLifo::<u32, Simulated>::with_retention(retention)),
        other => panic!("{other:?} is no pool"),
    }
}

/// The split deque, whose thieves expose private tasks before they steal.
struct Exposing(Split<u64, Simulated>);

impl Subject for Exposing {
    type Thief = <Split<u64, Simulated> as Owner<u64>>::Thief;

    fn push(&self, task: u64) {
        Owner::push(&self.0, task);
    }

    fn pop(&self) -> Option<u64> {
        Owner::pop(&self.0)
    }

    fn is_awaited(&self) -> bool {
        false
    }

    fn thief(&self) -> Self::Thief {
        Owner::thief(&self.0)
    }

    fn steal(thief: &Self::Thief) -> Outcome {
        thief.expose();
        Deque::<Split<u64, Simulated>>::steal(thief)
    }
}

/// A thief has asked. The owner pushes a task and shares it, another thief takes it, and a third,
/// which has seen it shared and finds it taken, leaves a request: the owner's next push must share.
///
/// # Panics
///
/// If there is no memory for a queue of four.
pub fn late_request(threads: &mut Threads) {
    late_request_of(
        threads,
        || Split::<u64, Simulated>::with_capacity(4).expect(POWER),
        |thief| {
            thief.request();
        },
    );
}

/// [`late_request`] of any queue that shares when it is asked.
pub fn late_request_of<O: Owner<u64, Thief: 'static> + 'static>(
    threads: &mut Threads,
    make: impl Fn() -> O,
    ask: impl Fn(&O::Thief),
) {
    let owner = Rc::new(make());
    let (takes, late, looks) = (owner.thief(), owner.thief(), owner.thief());
    ask(&looks);
    let asked = Rc::new(std::cell::Cell::new(false));
    let pushes = Rc::clone(&owner);
    threads.spawn("owner", move || pushes.push(1));
    threads.spawn("thief", move || {
        let _ = takes.steal();
    });
    let says = Rc::clone(&asked);
    threads.spawn("late", move || {
        if late.is_empty() {
            return;
        }
        loop {
            match late.steal() {
                Steal::Success(_) => return,
                Steal::Empty => return says.set(true),
                Steal::Retry | Steal::Abort => Simulated::pause(),
            }
        }
    });
    threads.finally(move || {
        if asked.get() {
            owner.push(2);
            if looks.is_empty() {
                fail(Kind::Request, "a thief has asked, and the owner's next push shares nothing");
            }
        }
    });
}
