//! What threads do beyond taking one task at a time: batches, requests, exposure, forks, and pools
//! that are never empty.

use std::rc::Rc;
use std::sync::Arc;

use poach_deque::{Owner, Split, Steal, Thief};
use poach_memory::Memory;
use poach_pool::mechanism::Mechanism;
use poach_pool::salsa::Salsa;

use super::emptiness::{announcements, pass};
use super::played::{Plays, PlaysPool, play_pool};
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
use crate::play_deque;
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

/// Thieves that take half of the tasks.
struct Halves<'a>(&'a Scenario, &'a Config);

impl Plays for Halves<'_> {
    fn play<O: Owner<u64, Thief: 'static> + 'static>(self, make: impl Fn() -> O) -> Report {
        explore(self.1, &halves(self.0, make))
    }
}

fn run_halves(algorithm: Algorithm, scenario: &Scenario, config: &Config) -> Report {
    // The deques with a policy, each with one.
    let policy = match algorithm {
        Algorithm::The => Policy::Full,
        Algorithm::Thep => Policy::Unbounded,
        Algorithm::Private => panic!("{algorithm:?} gives no batches"),
        _ => Policy::Asymmetric,
    };
    let player = Halves(scenario, config);
    play_deque!(poach_deque, algorithm, AnyPolicy::new(policy, 0), scenario.capacity, player)
}

/// What the threads of a pool do.
struct Pools<'a>(Play, &'a Config);

impl PlaysPool for Pools<'_> {
    fn play_pool<P>(self, make: impl Fn(usize) -> Option<P>) -> Report
    where
        P: Mechanism<u32, Producer: 'static, Consumer: 'static> + 'static,
    {
        // The arguments are the chunk lengths, in tasks.
        let Pools(play, config) = self;
        match play {
            Play::Emptiness => explore(config, &pass(|| make(4))),
            Play::Again => explore(config, &chunks_again(|| make(1))),
            Play::ConsumerGoes => explore(config, &consumer_goes(|| make(2))),
            Play::ProducerGoes => explore(config, &producer_goes(|| make(2))),
            Play::FedByTwo => explore(config, &fed_by_two(|| make(2))),
            Play::RobbedThief => explore(config, &robbed_thief(|| make(3))),
            Play::RobbedInWindow => explore(config, &robbed_in_window(|| make(3))),
            Play::Refilled => explore(config, &refilled(|| make(2))),
            Play::TwoChunks => explore(config, &two_chunks(|| make(2))),
            Play::HeldGrows => explore(config, &held_grows(|| make(2))),
            Play::ListGrows => explore(config, &list_grows(|| make(1))),
            _ => explore(config, &announcements(|| make(4))),
        }
    }
}

fn run_pool(play: Play, algorithm: Algorithm, policy: Policy, config: &Config) -> Report {
    if play == Play::Refused && algorithm == Algorithm::Salsa {
        let fence = |allowed: &Arc<SimulatedWord>, owner| {
            // The second owner, whom the last thief robs, is not refused.
            let fence = displacing(owner);
            let fence = if owner == 0 { fence.until(Arc::clone(allowed)) } else { fence };
            AnyPolicy::Displaced(fence)
        };
        let make = |allowed: Arc<SimulatedWord>| {
            Salsa::<u32, Simulated, _>::with_fences(2, move |owner| fence(&allowed, owner))
        };
        return explore(config, &refused(make));
    }
    // The plays know no bound.
    let policy = match policy {
        Policy::Full | Policy::Displaced | Policy::Unfenced => policy,
        _ => Policy::Asymmetric,
    };
    play_pool(algorithm, policy, Pools(play, config))
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
