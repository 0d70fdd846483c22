//! The queues' own source with one bug each, which the model checker must find.
//!
//! [`table`] lists the bugs. The build script takes the files of `poach-deque` and `poach-pool` as they
//! are, makes each edit in a copy, and this crate compiles the copies; [`Mutant::run`] explores one, and
//! [`Mutant::original`] the source as it is, in the same scene. A checker that cannot fail proves
//! nothing: `tests/killed.rs` asks that every mutant is caught, in the way that the table says, and
//! that no original is.

use poach_check::history::Outcome;
use poach_check::{
    Config, Consistency, Kind, Report, Simulated, Spec, Threads, Verdict, Violation,
    WithoutBarrier, explore,
};
use poach_deque::ChaseLev;
use poach_memory::{Asymmetric, Bounded, Full, Resolved, StoreLoad, Unbounded};
use poach_models::emptiness::{ENOUGH, announcements, pass};
use poach_models::plays::late_request_of;
use poach_models::shared::{self, Injecting, chunks_again, consumer_goes, producer_goes};
use poach_models::stack::forks;
use poach_models::taken::{Taken, Then, halves, singles};
use poach_models::thefts::{
    fed_by_two, head_returns, held_grows, list_grows, refilled, robbed_in_window, robbed_thief,
    two_chunks,
};
use poach_models::{Algorithm, Deque, Policy, Scenario, Subject, model, spec};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::Retention;

mod promise;
#[path = "../../../deque/tests/it/put_back/mod.rs"]
mod put_back;
mod scene;
pub mod table;

pub use table::{Caught, Mutant, Queue, Scene, mutants};

/// Executions after which a mutant counts as not caught, where the scene has a bound.
const MOST: u64 = 1_000_000;

/// What a bounded policy needs on the machine of every run, with one store between two pops other than that of `tail`.
const DELTA: core::num::NonZeroU64 = core::num::NonZeroU64::new(2).unwrap();

// What the copies find at the root of their own crates, but for the shared modules that the build script copies.
pub(crate) use crate::ring::CapacityError;
#[allow(unused_imports, reason = "which of them a copy uses is the copy's affair")]
pub(crate) use poach_deque::{ExactlyOnce, Here, OutOfMemory, Owner, Steal, Thief};
#[allow(unused_imports, reason = "which of them a copy uses is the copy's affair")]
pub(crate) use poach_memory::{CachePadded, Machine, Memory, Ordering, Word, delta};
#[allow(unused_imports, reason = "as above")]
pub(crate) use poach_pool::mechanism;
use poach_pool::mechanism::{Consume, Mechanism};
use put_back::put_back;

// What the copies' unit tests find there.
#[cfg(test)]
#[path = "../../../deque/tests/it/c11/mod.rs"]
mod c11;
#[cfg(test)]
#[path = "../../../pool/src/models.rs"]
mod models;

pub(crate) fn out_of_memory<T>() -> ! {
    std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>())
}

type Run = fn(Scene, &Scenario, &Config) -> Report;

fn bounded() -> Bounded<Simulated> {
    Bounded::new(promise::delta(DELTA)).expect("the simulated machine is TSO")
}

fn resolved() -> Resolved<Simulated> {
    Resolved::new(promise::delta(DELTA)).expect("it has both that it asks for")
}

macro_rules! subject {
    ($at:ident, $module:ident, ChaseLev) => {
        with!($at::$module::ChaseLev, Full, Algorithm::ChaseLev, Policy::Full)
    };
    ($at:ident, $module:ident, AsymmetricCl) => {
        with!(
            $at::$module::ChaseLev,
            Asymmetric::<Simulated>::new(),
            Algorithm::ChaseLev,
            Policy::Asymmetric
        )
    };
    ($at:ident, $module:ident, FfCl) => {
        with!($at::$module::ChaseLev, bounded(), Algorithm::ChaseLev, BOUNDED)
    };
    ($at:ident, $module:ident, Resolved) => {
        with!($at::$module::ChaseLev, resolved(), Algorithm::ChaseLev, RESOLVED)
    };
    (poach_memory, $module:ident, FilledCl) => {
        |_, scenario, config| {
            filled(scenario, config, FILLED, || Bounded::new(promise::filled(DELTA)).expect(FITS))
        }
    };
    (poach_memory, $module:ident, FilledResolved) => {
        |_, scenario, config| {
            let make = || Resolved::new(promise::filled(DELTA)).expect(FITS);
            filled(scenario, config, FILLED_RESOLVED, make)
        }
    };
    ($at:ident, $module:ident, FilledCl) => {
        |_, scenario, config| {
            copied!($at::$module, Bounded);
            filled(scenario, config, FILLED, make)
        }
    };
    ($at:ident, $module:ident, FilledResolved) => {
        |_, scenario, config| {
            copied!($at::$module, Resolved);
            filled(scenario, config, FILLED_RESOLVED, make)
        }
    };
    ($at:ident, $module:ident, ReckonedCl) => {
        |scene, scenario, config| {
            let (entries, egress) = (scene::SHORT_BUFFER.into(), scene.egress_entries().into());
            let pops = $at::$module::hidden_pops(entries, egress, scenario.stores.into());
            let pops = pops.expect("it has a store buffer");
            let make = |n| {
                let policy = Bounded::<Simulated>::new(promise::delta(pops)).expect(FITS);
                ChaseLev::<u64, _, Simulated>::starting_at(policy, n, 0).expect(POWER)
            };
            let policy = Policy::Bounded { delta: pops, fill: false };
            deque(scenario, config, spec(Algorithm::ChaseLev, policy), make)
        }
    };
    ($at:ident, $module:ident, Biased) => {
        |_, scenario, config| {
            use $at::$module::Biased as Made;
            let make = |n| {
                let policy = Asymmetric::<Simulated>::new();
                Made::<u64, _, Simulated>::starting_at(policy, n, 0, 0).expect(POWER)
            };
            deque(scenario, config, spec(Algorithm::Biased, Policy::Asymmetric), make)
        }
    };
    ($at:ident, $module:ident, Injector) => {
        |_, scenario, config| {
            /// The copy, as the model wants it.
            struct Made($at::$module::Injector<u64, Simulated, 1>);
            impl Injecting for Made {
                fn push(&self, task: u64) {
                    self.0.push(task);
                }

                fn steal(&self) -> Steal<u64> {
                    self.0.steal()
                }
            }
            let make =
                |n| Made($at::$module::Injector::with_capacity(n).expect(POWER).with_patience(1));
            let specification = spec(Algorithm::Injector, Policy::Full);
            explore(&config.clone().against(specification), &shared::injector(scenario, make))
        }
    };
    ($at:ident, $module:ident, The) => {
        with!($at::$module::The, Full, Algorithm::The, Policy::Full)
    };
    ($at:ident, $module:ident, AsymmetricThe) => {
        with!($at::$module::The, Asymmetric::<Simulated>::new(), Algorithm::The, Policy::Asymmetric)
    };
    ($at:ident, $module:ident, FfThe) => {
        with!($at::$module::The, bounded(), Algorithm::The, BOUNDED)
    };
    ($at:ident, $module:ident, Thep) => {
        with!($at::$module::Thep, Unbounded, Algorithm::Thep, Policy::Unbounded)
    };
    ($at:ident, $module:ident, FfThep) => {
        with!($at::$module::Thep, bounded(), Algorithm::Thep, BOUNDED)
    };
    ($at:ident, $module:ident, Split) => {
        sized!($at::$module::Split, Algorithm::Split)
    };
    ($at:ident, $module:ident, Exposed) => {
        exposed!($at::$module::Split, Simulated)
    };
    ($at:ident, $module:ident, FencedExposed) => {
        exposed!($at::$module::Split, WithoutBarrier)
    };
    ($at:ident, $module:ident, Fifo) => {
        sized!($at::$module::Fifo, Algorithm::Fifo, starting_at(0))
    };
    ($at:ident, $module:ident, ClosedFifo) => {
        |_, scenario, config| {
            use $at::$module::Fifo as Made;
            let make = |n| Made::<u64, Simulated>::with_patience(n, 0, 0, 0).expect(POWER);
            deque(scenario, config, spec(Algorithm::ClosedFifo, Policy::Full), make)
        }
    };
    ($at:ident, $module:ident, IdempotentLifo) => {
        sized!($at::$module::IdempotentLifo, Algorithm::IdempotentLifo)
    };
    ($at:ident, $module:ident, IdempotentFifo) => {
        sized!($at::$module::IdempotentFifo, Algorithm::IdempotentFifo)
    };
    ($at:ident, $module:ident, IdempotentDeque) => {
        sized!($at::$module::IdempotentDeque, Algorithm::IdempotentDeque)
    };
    ($at:ident, $module:ident, Private) => {
        plain!($at::$module::Private, Algorithm::Private)
    };
    ($at:ident, $module:ident, Mutex) => {
        plain!($at::$module::Mutex, Algorithm::Mutex)
    };
    ($at:ident, $module:ident, Salsa) => {
        |scene, scenario, config| {
            let make =
                |chunk| $at::$module::Salsa::<u32, Simulated, Asymmetric<Simulated>>::new(chunk);
            pool(scene, scenario, config, make)
        }
    };
    ($at:ident, $module:ident, DisplacedSalsa) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |chunk| {
                $at::$module::Salsa::<u32, Simulated, _>::with_fences(chunk, promise::displacing)
            })
        }
    };
    ($at:ident, $module:ident, SalsaCas) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |chunk| {
                $at::$module::SalsaCas::<u32, Simulated>::new(chunk)
            })
        }
    };
    ($at:ident, $module:ident, Forks) => {
        |scene, scenario, config| {
            poach_models::stack_of_forks!(Made, crate::$at::$module);
            explore(config, &forks::<Made>(scenario, scene.exposes()))
        }
    };
    ($at:ident, $module:ident, FencedForks) => {
        |scene, scenario, config| {
            poach_models::stack_of_forks!(Made, crate::$at::$module, WithoutBarrier);
            explore(config, &forks::<Made>(scenario, scene.exposes()))
        }
    };
    ($at:ident, baselines, ConcBag) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |chunk| {
                $at::baselines::ConcBag::<u32, Simulated>::new(chunk)
            })
        }
    };
    ($at:ident, baselines, EagerBag) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |chunk| {
                $at::baselines::ConcBag::<u32, Simulated>::with_retention(
                    chunk,
                    $at::baselines::Retention::NONE,
                )
            })
        }
    };
    ($at:ident, baselines, WsMsq) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |_| $at::baselines::WsMsq::<u32, Simulated>::new())
        }
    };
    ($at:ident, baselines, WsLifo) => {
        |scene, scenario, config| {
            pool(scene, scenario, config, |_| $at::baselines::WsLifo::<u32, Simulated>::new())
        }
    };
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
        Scene::Pass => explore(&config, &pass(|| make(4), ENOUGH)),
        Scene::Again => explore(&config, &chunks_again(|| make(1))),
        Scene::Goes => explore(&config, &consumer_goes(|| make(2))),
        Scene::Comes => explore(&config, &producer_goes(|| make(2))),
        Scene::Announced => explore(&config, &announcements(|| make(4))),
        Scene::FedByTwo => explore(&config, &fed_by_two(|| make(2))),
        Scene::RobbedThief => explore(&config, &robbed_thief(|| make(3))),
        Scene::RobbedInWindow => explore(&config, &robbed_in_window(|| make(3))),
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

            fn margin(&self) -> u64 {
                copy::StoreLoad::<Simulated>::margin(&self.0)
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

include!(concat!(env!("OUT_DIR"), "/mutants.rs"));

impl Queue {
    /// How often the client stores between two pops. THEP's owner makes a store of its own.
    fn stores(self) -> u32 {
        use Queue::{FfCl, FfThe, ReckonedCl, Resolved};
        u32::from(matches!(self, FfCl | Resolved | FfThe | ReckonedCl))
    }

    fn original(self) -> Run {
        match self {
            Queue::ChaseLev => subject!(poach_deque, chase_lev, ChaseLev),
            Queue::AsymmetricCl => subject!(poach_deque, chase_lev, AsymmetricCl),
            Queue::FfCl => subject!(poach_deque, chase_lev, FfCl),
            Queue::Resolved => subject!(poach_deque, chase_lev, Resolved),
            Queue::FilledCl => subject!(poach_memory, order, FilledCl),
            Queue::FilledResolved => subject!(poach_memory, order, FilledResolved),
            Queue::ReckonedCl => subject!(poach_memory, delta, ReckonedCl),
            Queue::Biased => subject!(poach_deque, biased, Biased),
            Queue::The => subject!(poach_deque, the, The),
            Queue::AsymmetricThe => subject!(poach_deque, the, AsymmetricThe),
            Queue::FfThe => subject!(poach_deque, the, FfThe),
            Queue::Thep => subject!(poach_deque, thep, Thep),
            Queue::FfThep => subject!(poach_deque, thep, FfThep),
            Queue::Split => subject!(poach_deque, split, Split),
            Queue::Exposed => subject!(poach_deque, split, Exposed),
            Queue::Forks => |scene, scenario, config| {
                poach_models::stack_of_forks!(Made, poach_deque::split);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            },
            Queue::FencedExposed => subject!(poach_deque, split, FencedExposed),
            Queue::FencedForks => |scene, scenario, config| {
                poach_models::stack_of_forks!(Made, poach_deque::split, WithoutBarrier);
                explore(config, &forks::<Made>(scenario, scene.exposes()))
            },
            Queue::Private => subject!(poach_deque, private, Private),
            Queue::Fifo => subject!(poach_deque, fifo, Fifo),
            Queue::ClosedFifo => subject!(poach_deque, fifo, ClosedFifo),
            Queue::Mutex => subject!(poach_deque, mutex, Mutex),
            Queue::Injector => subject!(poach_deque, injector, Injector),
            Queue::IdempotentLifo => subject!(poach_deque, idempotent, IdempotentLifo),
            Queue::IdempotentFifo => subject!(poach_deque, idempotent, IdempotentFifo),
            Queue::IdempotentDeque => subject!(poach_deque, idempotent, IdempotentDeque),
            Queue::Salsa => subject!(poach_pool, salsa, Salsa),
            Queue::DisplacedSalsa => subject!(poach_pool, salsa, DisplacedSalsa),
            Queue::SalsaCas => subject!(poach_pool, salsa, SalsaCas),
            Queue::ConcBag => subject!(poach_pool, baselines, ConcBag),
            Queue::EagerBag => |scene, scenario, config| {
                pool(scene, scenario, config, |chunk| {
                    ConcBag::<u32, Simulated>::with_retention(chunk, Retention::NONE)
                })
            },
            Queue::WsMsq => subject!(poach_pool, baselines, WsMsq),
            Queue::WsLifo => subject!(poach_pool, baselines, WsLifo),
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
    /// If the build script has not made this mutant.
    pub fn run(&self) -> Report {
        let made = RUNS.iter().find(|(name, _)| *name == self.name);
        let (_, run) = made.expect("the build script makes every mutant of the table");
        // Its search ends where it is caught, so that it may go further than that of the original.
        let machine = self.scene.machine();
        let config = Config { max_executions: machine.max_executions.max(MOST), ..machine };
        run(self.scene, &self.scenario(), &config)
    }

    /// Explores the source as it is.
    pub fn original(&self) -> Report {
        self.queue.original()(self.scene, &self.scenario(), &self.scene.machine())
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
