//! What threads do beyond taking one task at a time: batches, requests, exposure, forks, and pools that are never empty.
//!
//! A batch is no operation that a specification knows. So the threads of these plays keep what they take, and
//! in the end each task must have been taken once.

use std::cell::RefCell;
use std::rc::Rc;

use poach_deque::{Biased, ChaseLev, Fifo, Mutex, Owner, Split, Steal, The, Thep, Thief};
use poach_memory::{Asymmetric, Full, Memory, Unbounded};
use poach_pool::bag::ConcBag;
use poach_pool::ms_queue::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::stack::WsLifo;

use super::emptiness::{ENOUGH, announcements, pass};
use super::scenario::{Deque, Scenario, Step, Subject, THIEVES, model};
use super::{Algorithm, POWER, Policy, check, stack};
use crate::history::Outcome;
use crate::{Config, Kind, Report, Simulated, Spec, Threads, engine, explore, fail};

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
    /// A thief of the split deque finds nothing, since another has taken what was shared, and asks.
    Request,
    /// The runtime's stack of forks: the owner forks as many as the scenario has tasks, and joins them.
    Forks,
    /// A pool in which there is always a task, and a consumer that asks whether it is empty.
    Emptiness,
    /// A looker must hear of a theft.
    Announcement,
}

impl Play {
    /// Whether a thief must get something in some execution.
    pub fn steals(self) -> bool {
        !matches!(self, Play::Request | Play::Emptiness | Play::Announcement)
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
            Play::Exposure => {
                let config = config.clone().against(Spec::PartlyPrivate);
                let make = |n| Exposing(Split::<u64, Simulated>::with_capacity(n).expect(POWER));
                explore(&config, &model(scenario, &[], make))
            }
            Play::Request => explore(config, &late_request),
            Play::Forks => explore(config, &stack::forks(scenario)),
            Play::Emptiness | Play::Announcement => run_pool(self, algorithm, config),
        }
    }
}

fn run_halves(algorithm: Algorithm, scenario: &Scenario, config: &Config) -> Report {
    let full = Asymmetric::<Simulated>::new;
    let n = scenario.capacity;
    match algorithm {
        Algorithm::ChaseLev => explore(
            config,
            &halves(scenario, || {
                ChaseLev::<u64, _, Simulated>::starting_at(full(), n, 0).expect(POWER)
            }),
        ),
        Algorithm::The => explore(
            config,
            &halves(scenario, || {
                The::<u64, Full, Simulated>::starting_at(Full, n, 0).expect(POWER)
            }),
        ),
        Algorithm::Thep => explore(
            config,
            &halves(scenario, || {
                Thep::<u64, Unbounded, Simulated>::starting_at(Unbounded, n, 0).expect(POWER)
            }),
        ),
        Algorithm::Split => explore(
            config,
            &halves(scenario, || Split::<u64, Simulated>::with_capacity(n).expect(POWER)),
        ),
        Algorithm::Fifo => explore(
            config,
            &halves(scenario, || Fifo::<u64, Simulated>::starting_at(n, 0).expect(POWER)),
        ),
        Algorithm::Mutex => explore(config, &halves(scenario, Mutex::<u64, Simulated>::default)),
        Algorithm::Biased => explore(
            config,
            &halves(scenario, || {
                Biased::<u64, _, Simulated>::starting_at(full(), n, 0, 0).expect(POWER)
            }),
        ),
        other => panic!("{other:?} gives no batches"),
    }
}

fn run_pool(play: Play, algorithm: Algorithm, config: &Config) -> Report {
    macro_rules! play {
        ($make:expr) => {
            match play {
                Play::Emptiness => explore(config, &pass($make, ENOUGH)),
                _ => explore(config, &announcements($make)),
            }
        };
    }
    match algorithm {
        Algorithm::Salsa => play!(|| Salsa::<u32, Simulated, Asymmetric<Simulated>>::new(4)),
        Algorithm::SalsaCas => play!(|| SalsaCas::<u32, Simulated>::new(4)),
        Algorithm::ConcBag => play!(|| ConcBag::<u32, Simulated>::new(4)),
        Algorithm::WsMsq => play!(WsMsq::<u32, Simulated>::new),
        Algorithm::WsLifo => play!(WsLifo::<u32, Simulated>::new),
        other => panic!("{other:?} is no pool"),
    }
}

/// Each of 1 to `most` was taken once.
pub(super) fn each_once(mut taken: Vec<u64>, most: u64) {
    taken.sort_unstable();
    let next = taken.iter().skip(1);
    if let Some((twice, _)) = taken.iter().zip(next).find(|(task, next)| task == next) {
        fail(Kind::Duplicate, format!("task {twice} was taken twice"));
    }
    if let Some(task) = taken.iter().find(|task| !(1..=most).contains(task)) {
        fail(Kind::Invented, format!("task {task} was taken and never pushed"));
    }
    if let Some(lost) = (1..=most).find(|task| !taken.contains(task)) {
        fail(Kind::Lost, format!("task {lost} is left behind: nobody took it, and nobody can"));
    }
}

/// The scenario with thieves that take half of the tasks at once, into a queue of their own which is no part of the
/// model. That a thief has got something counts only if some batch had two.
///
/// # Panics
///
/// Never: of more than seven thieves the model has seven.
pub fn halves<O: Owner<u64, Thief: 'static> + 'static>(
    scenario: &Scenario,
    make: impl Fn() -> O,
) -> impl Fn(&mut Threads) {
    let scenario = scenario.clone();
    move |threads| {
        let queue = Rc::new(make());
        let taken = Rc::new(RefCell::new(Vec::new()));
        let tasks = u64::from(scenario.tasks);
        (1..=tasks).for_each(|task| queue.push(task));
        let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count();
        let most = tasks + pushes as u64;
        let (own, keep, script) = (Rc::clone(&queue), Rc::clone(&taken), scenario.script.clone());
        let mut handles: Vec<O::Thief> = (0..scenario.thieves).map(|_| queue.thief()).collect();
        threads.spawn("owner", move || {
            let mut next = tasks;
            let pop = || own.pop().inspect(|task| keep.borrow_mut().push(*task)).is_some();
            for step in script {
                match step {
                    Step::Push => {
                        next += 1;
                        own.push(next);
                    }
                    Step::PopAll => while pop() {},
                    _ => {
                        pop();
                    }
                }
            }
        });
        for name in THIEVES.iter().take(scenario.thieves as usize) {
            let (thief, keep) = (handles.pop().expect("one for each"), Rc::clone(&taken));
            let steals = scenario.steals;
            threads.spawn(name, move || {
                for _ in 0..steals {
                    let into = Mutex::<u64>::default();
                    if let Steal::Success(first) = thief.steal_half(&into) {
                        keep.borrow_mut().push(first);
                        while let Some(task) = into.pop() {
                            engine::stole();
                            keep.borrow_mut().push(task);
                        }
                    }
                }
                drop(thief);
            });
        }
        threads.finally(move || {
            let mut taken = taken.borrow().clone();
            taken.extend(core::iter::from_fn(|| queue.pop()));
            each_once(taken, most);
        });
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

/// A thief has asked. The owner pushes a task and shares it, another thief takes it, and a third, which has seen it shared
/// and finds it taken, leaves a request: the owner's next push must share.
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
