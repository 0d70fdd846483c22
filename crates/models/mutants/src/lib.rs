//! The queues' own source with one bug each, which the model checker must find.
//!
//! [`table`] lists the bugs. The build script weaves all of them into one copy of the files of
//! `poach-deque`, `poach-memory` and `poach-pool`; [`Mutant::run`] chooses one and explores it, and
//! [`Mutant::original`] explores the copy with none chosen, in the same scene. A checker that
//! cannot fail proves nothing: `tests/killed.rs` asks that every mutant is caught, in the way that
//! the table says, and that no original is.

use std::cell::Cell;

use poach_check::history::Outcome;
use poach_check::{
    Config, Consistency, Kind, Report, Simulated, Threads, Verdict, Violation, WithoutBarrier,
    explore,
};
use poach_memory::{Asymmetric, Bounded};
use poach_models::emptiness::{announcements, pass};
use poach_models::matrix::{Named, PolicyKind, QUEUES};
use poach_models::played::Plays;
use poach_models::plays::late_request_of;
use poach_models::shared::{self, Injecting, chunks_again, consumer_goes, producer_goes};
use poach_models::stack::forks;
use poach_models::taken::{Then, halves, singles};
use poach_models::thefts::{
    fed_by_two, head_returns, held_grows, late_task, list_grows, oversleeps, refilled,
    robbed_and_fed, robbed_in_window, robbed_thief, two_chunks,
};
use poach_models::{Algorithm, Deque, Policy, Scenario, Subject, model, play_deque, spec};

mod promise;
#[path = "../../../deque/tests/it/put_back/mod.rs"]
mod put_back;
mod scene;
pub mod table;

pub use table::{Caught, Mutant, Scene, mutants};

/// Executions after which a mutant counts as not caught, where the scene has a bound.
const MOST: u64 = 1_000_000;

/// What a bounded policy needs on the machine of every run, with one store between two pops other
/// than that of `tail`.
const DELTA: core::num::NonZeroU64 = core::num::NonZeroU64::new(2).unwrap();

// What the copies find at the root of their own crates, but for the shared modules that the build
// script copies.
pub(crate) use crate::ring::CapacityError;
use poach_deque::{Owner, Steal};
#[allow(unused_imports, reason = "which of them a copy uses is the copy's affair")]
pub(crate) use poach_memory::{CachePadded, Machine, Memory, Ordering, Word, delta};
#[allow(unused_imports, reason = "as above")]
pub(crate) use poach_pool::mechanism;
use poach_pool::mechanism::{Consume, Mechanism};
use put_back::put_back;

include!(concat!(env!("OUT_DIR"), "/woven/mod.rs"));

thread_local! {
    /// The number in the table of the mutant that the copies are in this thread, or of none.
    static CHOSEN: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Asked by each body of a function that a mutant changes. A model's threads are coroutines of one
/// thread.
pub(crate) fn chosen() -> usize {
    CHOSEN.get()
}

/// The deques' own, so that the scenes take the copies as they take the originals.
pub(crate) mod traits {
    #[allow(unused_imports, reason = "which of them a copy uses is the copy's affair")]
    pub(crate) use poach_deque::{ExactlyOnce, Here, OutOfMemory, Owner, Steal, Thief};

    pub(crate) fn out_of_memory<T>() -> ! {
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>())
    }

    pub(crate) fn made<T, Q, E>(queue: Result<Q, E>) -> Q {
        queue.unwrap_or_else(|_| out_of_memory::<T>())
    }
}

/// Plays a copy of a deque in the mutant's scene.
struct Copy<'a> {
    scene: Scene,
    scenario: &'a Scenario,
    config: &'a Config,
    algorithm: Algorithm,
    policy: Policy,
}

impl Plays for Copy<'_> {
    /// Its history is checked, or under C11 what was taken in the end. So it is of the queues that
    /// take less than what the history asks.
    fn play<O: Owner<u64, Thief: 'static> + 'static>(self, make: impl Fn() -> O) -> Report {
        use Algorithm::{BwosFifo, BwosLifo, Multiplicity};
        let Copy { scene, scenario, config, algorithm, policy } = self;
        if scene == Scene::Halves {
            return explore(config, &halves(scenario, make));
        }
        let kept = matches!(algorithm, Multiplicity | BwosLifo | BwosFifo);
        if kept || config.consistency == Consistency::C11 {
            return explore(config, &singles(scenario, make, algorithm.taken(), Then::Goes));
        }
        let config = config.clone().against(spec(algorithm, policy));
        explore(&config, &model(scenario, &[], |_| Deque(make())))
    }
}

/// A pool, whose chunks have as many slots as the scene wants.
fn pool<P: Mechanism<u32> + 'static>(
    scene: Scene,
    scenario: &Scenario,
    config: &Config,
    make: fn(usize) -> Option<P>,
) -> Report
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    let config = config.clone().against(spec(Algorithm::Salsa, Policy::Asymmetric));
    // A bag has no pools to steal from: its consumers all take from the one.
    let take = |thief: &mut dyn Consume<u32>| thief.steal(0).or_else(|| thief.consume());
    match scene {
        Scene::Pass => explore(&config, &pass(|| make(4))),
        Scene::Again => explore(&config, &chunks_again(|| make(1))),
        Scene::Goes => explore(&config, &consumer_goes(|| make(2))),
        Scene::Comes => explore(&config, &producer_goes(|| make(2))),
        Scene::Announced => explore(&config, &announcements(|| make(4))),
        Scene::FedByTwo => explore(&config, &fed_by_two(|| make(2))),
        Scene::RobbedThief => explore(&config, &robbed_thief(|| make(3))),
        Scene::RobbedInWindow => explore(&config, &robbed_in_window(|| make(3))),
        Scene::LateTask => explore(&config, &late_task(|| make(4))),
        Scene::RobbedAndFed => explore(&config, &robbed_and_fed(|| make(4))),
        Scene::Oversleeps => explore(&config, &oversleeps(|| make(2))),
        Scene::Refilled => explore(&config, &refilled(|| make(2))),
        Scene::TwoChunks => explore(&config, &two_chunks(|| make(2))),
        Scene::HeadReturns => explore(&config, &head_returns(|| make(1))),
        Scene::HeldGrows => explore(&config, &held_grows(|| make(2))),
        Scene::ListGrows => explore(&config, &list_grows(|| make(1))),
        // Chunks of one: a bag's consumer retires one after the other.
        Scene::Third => explore(&config, &shared::pool(scenario, || make(1), take)),
        _ => explore(&config, &shared::pool(scenario, || make(2), take)),
    }
}

const FITS: &str = "the simulated machine has what a policy asks for";
const POWER: &str = "a scenario's capacity is a small power of two";

/// `make`, for the policy of a copy.
macro_rules! copied {
    ($copy:path, $policy:ident) => {
        use $copy as copy;
        struct Made(copy::$policy<Simulated>);

        impl promise::Copied for Made {
            fn owner(&self) {
                copy::StoreLoad::<Simulated>::owner(&self.0);
            }

            fn thief(&self) {
                copy::StoreLoad::<Simulated>::thief(&self.0);
            }

            fn delta(&self) -> u64 {
                copy::StoreLoad::<Simulated>::delta(&self.0)
            }

            fn resolve(&self) -> bool {
                copy::StoreLoad::<Simulated>::resolve(&self.0)
            }
        }

        fn make() -> promise::Policy<Made> {
            promise::Policy(Made(copy::$policy::new(promise::filled(DELTA)).expect(FITS)))
        }
    };
}

/// The split deque, whose thieves expose private tasks when they find nothing shared.
macro_rules! exposed {
    ($memory:ty, $scene:expr, $scenario:expr, $config:expr) => {{
        use crate::split::Split as Made;
        /// The queue, and what only thieves of this one do.
        struct Exposing(Made<u64, $memory>);
        impl Subject for Exposing {
            type Thief = <Made<u64, $memory> as Owner<u64>>::Thief;

            fn push(&self, task: u64) {
                Owner::push(&self.0, task);
            }

            fn pop(&self) -> Option<u64> {
                Owner::pop(&self.0)
            }

            fn is_awaited(&self) -> bool {
                Owner::is_awaited(&self.0)
            }

            fn thief(&self) -> Self::Thief {
                Owner::thief(&self.0)
            }

            fn steal(thief: &Self::Thief) -> Outcome {
                thief.expose();
                Deque::<Made<u64, $memory>>::steal(thief)
            }
        }
        let (scene, scenario, config) = ($scene, $scenario, $config);
        if scene == Scene::Asks {
            return explore(config, &|threads: &mut Threads| {
                let make = || Made::<u64, Simulated>::with_capacity(4).expect(POWER);
                late_request_of(threads, make, |thief| thief.request());
            });
        }
        if scene == Scene::PutsBack {
            return explore(config, &|threads: &mut Threads| {
                type ThiefOf = <Made<u64, Simulated> as Owner<u64>>::Thief;
                let owner = Made::<u64, Simulated>::with_capacity(2).expect(POWER);
                let series = |owner: &Made<u64, Simulated>| promise::series!(owner);
                put_back(threads, owner, series, ThiefOf::request, ThiefOf::has_private_tasks);
            });
        }
        let make = |n| Exposing(Made::<u64, $memory>::with_capacity(n).expect(POWER));
        let specification = spec(Algorithm::Split, Policy::Full);
        explore(&config.clone().against(specification), &model(scenario, &[], make))
    }};
}

/// Queues that `poach check` does not have by a name of their own: that name, the name of the queue
/// that they are, and the policy.
const OTHERS: [(&str, &str, PolicyKind); 10] = [
    ("asymmetric-the", "the", PolicyKind::Asymmetric),
    ("unbounded-thep", "thep", PolicyKind::Unbounded),
    // Chase-Lev's deque, whose policy makes the store between two pops itself.
    ("filled-cl", "ff-cl", PolicyKind::Filled),
    ("filled-resolved", "resolved", PolicyKind::FilledResolved),
    // The same, with the bound that is reckoned for the machine's entries.
    ("reckoned-cl", "ff-cl", PolicyKind::Bounded),
    // The split deque with thieves that expose, and the same on a system without a process-wide
    // barrier.
    ("exposed", "split", PolicyKind::None),
    ("fenced-exposed", "split", PolicyKind::None),
    ("fenced-stack", "split-stack", PolicyKind::None),
    ("displaced-salsa", "salsa", PolicyKind::Displaced),
    // The bag, each of whose retired chunks is freed as soon as it may be.
    ("eager-bag", "conc-bag", PolicyKind::None),
];

impl Mutant {
    /// The queue that shows it.
    fn named(&self) -> Named {
        let other = OTHERS.iter().find(|(name, ..)| *name == self.queue);
        let (name, policy) = other.map_or((self.queue, None), |it| (it.1, Some(it.2)));
        let queue = QUEUES.iter().find(|queue| queue.name == name);
        let queue = *queue.unwrap_or_else(|| panic!("{}: there is no queue {name}", self.name));
        Named { policy: policy.unwrap_or(queue.policy), ..queue }
    }

    /// How often the client stores between two pops. THEP's owner makes a store of its own.
    fn stores(&self) -> u32 {
        use PolicyKind::{Bounded, Resolved};
        let Named { algorithm, policy, .. } = self.named();
        u32::from(matches!(policy, Bounded | Resolved) && algorithm != Algorithm::Thep)
    }

    /// Plays the queue, with the bug that [`chosen`] says.
    fn play(&self, config: &Config) -> Report {
        let (scene, scenario) = (self.scene, &self.scenario());
        let Named { algorithm, policy, .. } = self.named();
        let policy = policy.with(DELTA);
        let of = |policy| Copy { scene, scenario, config, algorithm, policy };
        match self.queue {
            "filled-cl" => {
                copied!(crate::order, Bounded);
                play_deque!(poach_deque, algorithm, make(), scenario.capacity, of(policy))
            }
            "filled-resolved" => {
                copied!(crate::order, Resolved);
                play_deque!(poach_deque, algorithm, make(), scenario.capacity, of(policy))
            }
            "reckoned-cl" => {
                let (entries, egress) = (scene::SHORT_BUFFER.into(), scene.egress_entries().into());
                let pops = crate::reckoned::hidden_pops(entries, egress, scenario.stores.into());
                let delta = pops.expect("it has a store buffer");
                let policy = Policy::Bounded { delta, fill: false };
                let make = || Bounded::<Simulated>::new(promise::delta(delta)).expect(FITS);
                play_deque!(poach_deque, algorithm, make(), scenario.capacity, of(policy))
            }
            "exposed" => exposed!(Simulated, scene, scenario, config),
            "fenced-exposed" => exposed!(WithoutBarrier, scene, scenario, config),
            "fenced-stack" => {
                poach_models::stack_of_forks!(Made, crate::split, WithoutBarrier);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            }
            "split-stack" => {
                poach_models::stack_of_forks!(Made, crate::split);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            }
            "injector" => {
                /// The copy, as the model wants it.
                struct Made(crate::injector::Injector<u64, Simulated, 1>);
                impl Injecting for Made {
                    fn push(&self, task: u64) {
                        self.0.push(task);
                    }

                    fn steal(&self) -> Steal<u64> {
                        self.0.steal()
                    }
                }
                let make = |n| {
                    Made(crate::injector::Injector::with_capacity(n).expect(POWER).with_patience(1))
                };
                let specification = spec(Algorithm::Injector, Policy::Full);
                explore(&config.clone().against(specification), &shared::injector(scenario, make))
            }
            "salsa" => pool(scene, scenario, config, |chunk| {
                crate::salsa::Salsa::<u32, Simulated, Asymmetric<Simulated>>::new(chunk)
            }),
            // Its thieves visit the owner's processor.
            "displaced-salsa" => pool(scene, scenario, config, |chunk| {
                crate::salsa::Salsa::<u32, Simulated, _>::with_fences(chunk, promise::displacing)
            }),
            "salsa-cas" => {
                pool(scene, scenario, config, crate::salsa::SalsaCas::<u32, Simulated>::new)
            }
            "conc-bag" => {
                pool(scene, scenario, config, crate::baselines::ConcBag::<u32, Simulated>::new)
            }
            "eager-bag" => pool(scene, scenario, config, |chunk| {
                crate::baselines::ConcBag::<u32, Simulated>::with_retention(
                    chunk,
                    crate::baselines::Retention::NONE,
                )
            }),
            "ws-msq" => {
                pool(scene, scenario, config, |_| crate::baselines::WsMsq::<u32, Simulated>::new())
            }
            "ws-lifo" => {
                pool(scene, scenario, config, |_| crate::baselines::WsLifo::<u32, Simulated>::new())
            }
            _ => {
                // In blocks of as many tasks as the scene has room for.
                let blocks = matches!(algorithm, Algorithm::BwosLifo | Algorithm::BwosFifo);
                let capacity = if blocks { 2 * scenario.capacity } else { scenario.capacity };
                play_deque!(crate, algorithm, promise::any(policy), capacity, of(policy))
            }
        }
    }
}

impl Caught {
    /// Whether a report is this.
    pub fn is(self, report: &Report) -> bool {
        let kind = match self {
            Caught::Broken => {
                return matches!(&report.verdict, Verdict::Violation(Violation::Panic(text))
                    if text.contains("assertion"));
            }
            Caught::NeverSteals => return report.verdict == Verdict::Clean && !report.stolen,
            Caught::Nothing => return report.coverage().is_some(),
            Caught::Twice => Kind::Duplicate,
            Caught::Lost => Kind::Lost,
            Caught::Invented => Kind::Invented,
            Caught::Order => Kind::Order,
            Caught::Deadlock => Kind::Deadlock,
            Caught::Endless => Kind::Livelock,
            Caught::Race => Kind::Race,
            Caught::Freed => Kind::Freed,
            Caught::Leak => Kind::Leak,
            Caught::Refusal => Kind::Refusal,
            Caught::FalseEmpty => Kind::FalseEmpty,
            Caught::RequestLost => Kind::Request,
        };
        matches!(&report.verdict, Verdict::Violation(found) if found.kind() == kind)
    }
}

impl Mutant {
    /// Explores the mutant until it is caught.
    ///
    /// # Panics
    ///
    /// If the mutant is not in the table.
    pub fn run(&self) -> Report {
        let number = mutants().position(|mutant| mutant.name == self.name);
        CHOSEN.set(number.expect("it is in the table"));
        // Its search ends where it is caught, so that it may go further than that of the original.
        let machine = self.scene.machine();
        let most = if self.caught == Caught::Nothing { 0 } else { MOST };
        let config = Config { max_executions: machine.max_executions.max(most), ..machine };
        let report = self.play(&config);
        CHOSEN.set(usize::MAX);
        report
    }

    /// Explores the queue with no mutant chosen.
    pub fn original(&self) -> Report {
        self.play(&self.scene.machine())
    }

    fn scenario(&self) -> Scenario {
        self.scene.scenario(self.stores())
    }

    /// What is wrong with a report on this mutant, if anything is.
    ///
    /// # Errors
    ///
    /// A sentence, if it was not caught, or in another way than the table says.
    pub fn judge(&self, report: &Report) -> Result<(), String> {
        if self.caught.is(report) {
            return Ok(());
        }
        match &report.verdict {
            Verdict::Violation(found) => {
                Err(format!("{}: caught as {found:?}, expected {:?}", self.name, self.caught))
            }
            verdict => Err(format!("{} lives: {verdict:?}", self.name)),
        }
    }
}
