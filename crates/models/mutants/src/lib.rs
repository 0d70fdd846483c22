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
    Config, Consistency, Kind, Report, Simulated, Spec, Threads, Verdict, Violation,
    WithoutBarrier, explore,
};
use poach_deque::ChaseLev;
use poach_memory::{Asymmetric, Bounded, Full, Resolved, StoreLoad, Unbounded};
use poach_models::emptiness::{announcements, pass};
use poach_models::plays::late_request_of;
use poach_models::shared::{self, Injecting, chunks_again, consumer_goes, producer_goes};
use poach_models::stack::forks;
use poach_models::taken::{Taken, Then, halves, singles};
use poach_models::thefts::{
    fed_by_two, head_returns, held_grows, late_task, list_grows, oversleeps, refilled,
    robbed_and_fed, robbed_in_window, robbed_thief, two_chunks,
};
use poach_models::{Algorithm, Deque, Policy, Scenario, Subject, model, spec};

mod promise;
#[path = "../../../deque/tests/it/put_back/mod.rs"]
mod put_back;
mod scene;
pub mod table;

pub use table::{Caught, Mutant, Queue, Scene, mutants};

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

type Run = fn(Scene, &Scenario, &Config) -> Report;

fn bounded() -> Bounded<Simulated> {
    Bounded::new(promise::delta(DELTA)).expect("the simulated machine is TSO")
}

fn resolved() -> Resolved<Simulated> {
    Resolved::new(promise::delta(DELTA)).expect("it has both that it asks for")
}

/// A deque: its history is checked, or under C11 what was taken in the end.
fn deque<O: Owner<u64, Thief: 'static> + 'static>(
    scenario: &Scenario,
    config: &Config,
    specification: Spec,
    make: impl Fn(usize) -> O,
) -> Report {
    match config.consistency {
        Consistency::Tso => {
            let config = config.clone().against(specification);
            explore(&config, &model(scenario, &[], |n| Deque(make(n))))
        }
        Consistency::C11 => {
            let often = specification == Spec::AtLeastOnce;
            let taken = if often { Taken::AtLeastOnce } else { Taken::Once };
            explore(config, &singles(scenario, || make(scenario.capacity), taken, Then::Goes))
        }
    }
}

/// Chase-Lev's deque, with a policy that makes the store between two pops.
fn filled<P: StoreLoad<Simulated> + 'static>(
    scenario: &Scenario,
    config: &Config,
    policy: Policy,
    make: impl Fn() -> P,
) -> Report {
    let make = |n| ChaseLev::<u64, _, Simulated>::starting_at(make(), n, 0).expect(POWER);
    deque(scenario, config, spec(Algorithm::ChaseLev, policy), make)
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

const BOUNDED: Policy = Policy::Bounded { delta: DELTA, fill: false };
const RESOLVED: Policy = Policy::Resolved { delta: DELTA, fill: false };
const FILLED: Policy = Policy::Bounded { delta: DELTA, fill: true };
const FILLED_RESOLVED: Policy = Policy::Resolved { delta: DELTA, fill: true };
const FITS: &str = "the simulated machine has what a policy asks for";
const POWER: &str = "a scenario's capacity is a small power of two";

/// A queue with a fence policy.
macro_rules! with {
    ($queue:path, $policy:expr, $algorithm:expr, $named:expr) => {
        |_, scenario, config| {
            use $queue as Made;
            let make = |n| Made::<u64, _, Simulated>::starting_at($policy, n, 0).expect(POWER);
            deque(scenario, config, spec($algorithm, $named), make)
        }
    };
}

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

/// A queue without one.
macro_rules! sized {
    ($queue:path, $algorithm:expr) => {
        sized!($queue, $algorithm, with_capacity())
    };
    ($queue:path, $algorithm:expr, $make:ident($($start:expr)?)) => {
        |scene, scenario, config| {
            use $queue as Made;
            let make = |n| Made::<u64, Simulated>::$make(n $(, $start)?).expect(POWER);
            if scene == Scene::Halves {
                return explore(config, &halves(scenario, || make(scenario.capacity)));
            }
            deque(scenario, config, spec($algorithm, Policy::Full), make)
        }
    };
}

/// The split deque, whose thieves expose private tasks when they find nothing shared.
macro_rules! exposed {
    ($queue:path, $memory:ty) => {
        |scene, scenario, config| {
            use $queue as Made;
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
        }
    };
}

/// A queue of which it is checked what was taken in the end.
macro_rules! kept {
    ($queue:path, $taken:expr) => {
        |_, scenario, config| {
            use $queue as Made;
            let make = || Made::<u64, Simulated>::with_capacity(scenario.capacity).expect(POWER);
            explore(config, &singles(scenario, make, $taken, Then::Goes))
        }
    };
}

/// A queue that has no capacity to begin with.
macro_rules! plain {
    ($queue:path, $algorithm:expr) => {
        |_, scenario, config| {
            use $queue as Made;
            let make = |_| Made::<u64, Simulated>::default();
            deque(scenario, config, spec($algorithm, Policy::Full), make)
        }
    };
}

impl Queue {
    /// How often the client stores between two pops. THEP's owner makes a store of its own.
    fn stores(self) -> u32 {
        use Queue::{FfCl, FfThe, ReckonedCl, Resolved};
        u32::from(matches!(self, FfCl | Resolved | FfThe | ReckonedCl))
    }

    /// How it is played: the queue with the bug that [`chosen`] says.
    fn run(self) -> Run {
        match self {
            Queue::ChaseLev => {
                with!(crate::chase_lev::ChaseLev, Full, Algorithm::ChaseLev, Policy::Full)
            }
            Queue::AsymmetricCl => with!(
                crate::chase_lev::ChaseLev,
                Asymmetric::<Simulated>::new(),
                Algorithm::ChaseLev,
                Policy::Asymmetric
            ),
            Queue::FfCl => {
                with!(crate::chase_lev::ChaseLev, bounded(), Algorithm::ChaseLev, BOUNDED)
            }
            Queue::Resolved => {
                with!(crate::chase_lev::ChaseLev, resolved(), Algorithm::ChaseLev, RESOLVED)
            }
            Queue::FilledCl => |_, scenario, config| {
                copied!(crate::order, Bounded);
                filled(scenario, config, FILLED, make)
            },
            Queue::FilledResolved => |_, scenario, config| {
                copied!(crate::order, Resolved);
                filled(scenario, config, FILLED_RESOLVED, make)
            },
            Queue::ReckonedCl => |scene, scenario, config| {
                let (entries, egress) = (scene::SHORT_BUFFER.into(), scene.egress_entries().into());
                let pops = crate::reckoned::hidden_pops(entries, egress, scenario.stores.into());
                let pops = pops.expect("it has a store buffer");
                let make = |n| {
                    let policy = Bounded::<Simulated>::new(promise::delta(pops)).expect(FITS);
                    ChaseLev::<u64, _, Simulated>::starting_at(policy, n, 0).expect(POWER)
                };
                let policy = Policy::Bounded { delta: pops, fill: false };
                deque(scenario, config, spec(Algorithm::ChaseLev, policy), make)
            },
            Queue::Biased => |_, scenario, config| {
                use crate::biased::Biased as Made;
                let make = |n| {
                    let policy = Asymmetric::<Simulated>::new();
                    Made::<u64, _, Simulated>::starting_at(policy, n, 0, 0).expect(POWER)
                };
                deque(scenario, config, spec(Algorithm::Biased, Policy::Asymmetric), make)
            },
            Queue::Injector => |_, scenario, config| {
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
            },
            Queue::The => with!(crate::the::The, Full, Algorithm::The, Policy::Full),
            Queue::AsymmetricThe => with!(
                crate::the::The,
                Asymmetric::<Simulated>::new(),
                Algorithm::The,
                Policy::Asymmetric
            ),
            Queue::FfThe => with!(crate::the::The, bounded(), Algorithm::The, BOUNDED),
            Queue::Thep => with!(crate::thep::Thep, Unbounded, Algorithm::Thep, Policy::Unbounded),
            Queue::FfThep => with!(crate::thep::Thep, bounded(), Algorithm::Thep, BOUNDED),
            Queue::Split => sized!(crate::split::Split, Algorithm::Split),
            Queue::Exposed => exposed!(crate::split::Split, Simulated),
            Queue::FencedExposed => exposed!(crate::split::Split, WithoutBarrier),
            Queue::Fifo => sized!(crate::fifo::Fifo, Algorithm::Fifo, starting_at(0)),
            Queue::ClosedFifo => |_, scenario, config| {
                use crate::fifo::Fifo as Made;
                let make = |n| Made::<u64, Simulated>::with_patience(n, 0, 0, 0).expect(POWER);
                deque(scenario, config, spec(Algorithm::ClosedFifo, Policy::Full), make)
            },
            Queue::IdempotentLifo => {
                sized!(crate::idempotent::IdempotentLifo, Algorithm::IdempotentLifo)
            }
            Queue::IdempotentFifo => {
                sized!(crate::idempotent::IdempotentFifo, Algorithm::IdempotentFifo)
            }
            Queue::IdempotentDeque => {
                sized!(crate::idempotent::IdempotentDeque, Algorithm::IdempotentDeque)
            }
            Queue::Multiplicity => {
                kept!(crate::mult::Multiplicity, Taken::AtLeastOnce)
            }
            Queue::BwosLifo => kept!(crate::bwos::BwosLifo, Taken::Once),
            Queue::BwosFifo => kept!(crate::bwos::BwosFifo, Taken::Once),
            Queue::Private => plain!(crate::private::PrivateDeque, Algorithm::Private),
            Queue::Mutex => plain!(crate::mutex::Mutex, Algorithm::Mutex),
            Queue::Salsa => |scene, scenario, config| {
                let make = |chunk| {
                    crate::salsa::Salsa::<u32, Simulated, Asymmetric<Simulated>>::new(chunk)
                };
                pool(scene, scenario, config, make)
            },
            Queue::DisplacedSalsa => |scene, scenario, config| {
                pool(scene, scenario, config, |chunk| {
                    crate::salsa::Salsa::<u32, Simulated, _>::with_fences(
                        chunk,
                        promise::displacing,
                    )
                })
            },
            Queue::SalsaCas => |scene, scenario, config| {
                pool(scene, scenario, config, |chunk| {
                    crate::salsa::SalsaCas::<u32, Simulated>::new(chunk)
                })
            },
            Queue::Forks => |scene, scenario, config| {
                poach_models::stack_of_forks!(Made, crate::split);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            },
            Queue::FencedForks => |scene, scenario, config| {
                poach_models::stack_of_forks!(Made, crate::split, WithoutBarrier);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            },
            Queue::ConcBag => |scene, scenario, config| {
                pool(scene, scenario, config, |chunk| {
                    crate::baselines::ConcBag::<u32, Simulated>::new(chunk)
                })
            },
            Queue::EagerBag => |scene, scenario, config| {
                pool(scene, scenario, config, |chunk| {
                    crate::baselines::ConcBag::<u32, Simulated>::with_retention(
                        chunk,
                        crate::baselines::Retention::NONE,
                    )
                })
            },
            Queue::WsMsq => |scene, scenario, config| {
                pool(scene, scenario, config, |_| crate::baselines::WsMsq::<u32, Simulated>::new())
            },
            Queue::WsLifo => |scene, scenario, config| {
                pool(scene, scenario, config, |_| crate::baselines::WsLifo::<u32, Simulated>::new())
            },
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
        let report = self.queue.run()(self.scene, &self.scenario(), &config);
        CHOSEN.set(usize::MAX);
        report
    }

    /// Explores the queue with no mutant chosen.
    pub fn original(&self) -> Report {
        self.queue.run()(self.scene, &self.scenario(), &self.scene.machine())
    }

    fn scenario(&self) -> Scenario {
        self.scene.scenario(self.queue.stores())
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
