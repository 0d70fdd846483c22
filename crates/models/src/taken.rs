//! Models whose threads keep what they take: in the end each task must have been taken once.
//!
//! For what no specification knows: a batch is no operation of one, and under weak memory the order
//! in which operations return says nothing.

use std::cell::RefCell;
use std::rc::Rc;

use poach_deque::{Mutex, Owner, Split, Steal, Thief};

use super::scenario::{Scenario, Step, THIEVES};
use poach_check::{Kind, Simulated, Threads, fail, stole};

/// How often a task may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// By one.
    Once,
    /// By several: the idempotent queues.
    AtLeastOnce,
}

impl Taken {
    /// Whether each of 1 to `most` was taken as often as it may be, and nothing else was.
    pub(super) fn check(self, mut taken: Vec<u64>, most: u64) {
        taken.sort_unstable();
        let next = taken.iter().skip(1);
        if self == Taken::Once {
            if let Some((twice, _)) = taken.iter().zip(next).find(|(task, next)| task == next) {
                fail(Kind::Duplicate, format!("task {twice} was taken twice"));
            }
        }
        if let Some(task) = taken.iter().find(|task| !(1..=most).contains(task)) {
            fail(Kind::Invented, format!("task {task} was taken and never pushed"));
        }
        if let Some(lost) = (1..=most).find(|task| !taken.contains(task)) {
            fail(Kind::Lost, format!("task {lost} is left behind: nobody took it, and nobody can"));
        }
    }
}

/// What becomes of the owner when its script is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes; what is left is there for thieves.
    Goes,
    /// It stays, and pops what is left when the thieves are done.
    Stays,
}

/// The scenario with thieves that take half of the tasks at once, into a queue of their own which
/// is no part of the model. That a thief has got something counts only if some batch had two.
///
/// # Panics
///
/// Never: of more than seven thieves the model has seven.
pub fn halves<O: Owner<u64, Thief: 'static> + 'static>(
    scenario: &Scenario,
    make: impl Fn() -> O,
) -> impl Fn(&mut Threads) {
    let take = |thief: &O::Thief| {
        let into = Mutex::<u64>::default();
        let first = thief.steal_half(&into).success();
        let rest: Vec<u64> = core::iter::from_fn(|| into.pop()).collect();
        if !rest.is_empty() {
            stole();
        }
        first.into_iter().chain(rest).collect()
    };
    model(scenario, make, take, Taken::Once, Then::Stays)
}

/// The scenario with thieves that take one task at a time.
///
/// # Panics
///
/// Never: of more than seven thieves the model has seven.
pub fn singles<O: Owner<u64, Thief: 'static> + 'static>(
    scenario: &Scenario,
    make: impl Fn() -> O,
    taken: Taken,
    then: Then,
) -> impl Fn(&mut Threads) {
    model(scenario, make, one::<O::Thief>, taken, then)
}

/// The scenario with thieves of the split deque that expose private tasks before they steal.
pub(super) fn exposed(
    scenario: &Scenario,
    make: impl Fn() -> Split<u64, Simulated>,
) -> impl Fn(&mut Threads) {
    let take = |thief: &<Split<u64, Simulated> as Owner<u64>>::Thief| {
        thief.expose();
        one(thief)
    };
    model(scenario, make, take, Taken::Once, Then::Stays)
}

fn one<T: Thief<u64>>(thief: &T) -> Vec<u64> {
    let task = thief.steal().success();
    if task.is_some() {
        stole();
    }
    task.into_iter().collect()
}

/// What a model uses of a queue of any type, so that it is compiled once, and not once for each
/// queue and policy.
struct Queue {
    owner: Rc<dyn AnyOwner>,
    /// Takes what is left when nobody else is there.
    last: Box<dyn Fn() -> Option<u64>>,
    /// What a thief takes at once.
    thieves: Vec<Box<dyn Fn() -> Vec<u64>>>,
}

trait AnyOwner {
    fn push(&self, task: u64);
    fn pop(&self) -> Option<u64>;
}

impl<O: Owner<u64>> AnyOwner for O {
    fn push(&self, task: u64) {
        Owner::push(self, task);
    }

    fn pop(&self) -> Option<u64> {
        Owner::pop(self)
    }
}

fn model<O: Owner<u64, Thief: 'static> + 'static>(
    scenario: &Scenario,
    make: impl Fn() -> O,
    take: impl Fn(&O::Thief) -> Vec<u64> + Copy + 'static,
    how_often: Taken,
    then: Then,
) -> impl Fn(&mut Threads) {
    let scenario = scenario.clone();
    move |threads| {
        let queue = Rc::new(make());
        (1..=u64::from(scenario.tasks)).for_each(|task| queue.push(task));
        let last = queue.thief();
        let thieves = (0..scenario.thieves).map(|_| {
            let thief = queue.thief();
            Box::new(move || take(&thief)) as Box<dyn Fn() -> Vec<u64>>
        });
        let thieves = thieves.collect();
        let queue = Queue { owner: queue, last: Box::new(move || left(&last)), thieves };
        set_up(threads, queue, &scenario, how_often, then);
    }
}

fn set_up(threads: &mut Threads, queue: Queue, scenario: &Scenario, how_often: Taken, then: Then) {
    let Queue { owner, last, mut thieves } = queue;
    let taken = Rc::new(RefCell::new(Vec::new()));
    let tasks = u64::from(scenario.tasks);
    let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count();
    let most = tasks + pushes as u64;
    let stays = (then == Then::Stays).then(|| Rc::clone(&owner));
    let (keep, script) = (Rc::clone(&taken), scenario.script.clone());
    threads.spawn("owner", move || {
        let mut next = tasks;
        let pop = || owner.pop().inspect(|task| keep.borrow_mut().push(*task)).is_some();
        for step in script {
            match step {
                Step::Push => {
                    next += 1;
                    owner.push(next);
                }
                Step::PopAll => while pop() {},
                _ => {
                    pop();
                }
            }
        }
    });
    for name in THIEVES.iter().take(scenario.thieves as usize) {
        let (thief, keep) = (thieves.pop().expect("one for each"), Rc::clone(&taken));
        let steals = scenario.steals;
        threads.spawn(name, move || {
            for _ in 0..steals {
                let tasks = thief();
                keep.borrow_mut().extend(tasks);
            }
            drop(thief);
        });
    }
    threads.finally(move || {
        let mut taken = taken.borrow().clone();
        match stays {
            Some(owner) => taken.extend(core::iter::from_fn(|| owner.pop())),
            None => taken.extend(core::iter::from_fn(last)),
        }
        how_often.check(taken, most);
    });
}

/// What a thief takes that is alone.
fn left<T: Thief<u64>>(thief: &T) -> Option<u64> {
    loop {
        match thief.steal() {
            Steal::Success(task) => return Some(task),
            Steal::Retry => {}
            Steal::Empty | Steal::Abort => return None,
        }
    }
}
