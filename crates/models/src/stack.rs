//! The runtime's stack of forks, beside the queues.
//!
//! The owner forks tasks and joins them in reverse order. A thief that finds nothing shared asks,
//! and then exposes. Each task is run once: by the owner, or by a thief, which leaves a result and
//! says so.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use poach_memory::{Memory, Ordering, Word};

use super::scenario::{Scenario, Step, THIEVES};
use poach_check::{Kind, Simulated, Threads, fail, stole};

/// What a thief makes of a task.
pub const RESULT: u64 = 100;

/// A stack of forks, as the model uses it.
pub trait Forks: 'static {
    /// The owner's place in it.
    type Owner;
    /// A stack of `slots` slots.
    fn new(slots: usize) -> Self;
    /// The owner's place at its bottom; called once.
    fn owner(&self) -> Self::Owner;
    /// The owner forks a task.
    fn fork(owner: &mut Self::Owner, task: u64);
    /// The owner joins the task that it has forked last: returns the task, or what a thief has left
    /// in its place.
    fn join(owner: &mut Self::Owner) -> u64;
    /// A thief tries to take a task, to `run` it, and to leave the task plus [`RESULT`]; whether it
    /// has got one.
    fn steal(&self, run: impl FnOnce()) -> bool;
    /// A thief makes private tasks of the owner's shared.
    fn expose(&self);
    /// A thief asks the owner to share.
    fn request(&self);
    /// Whether a thief sees a task that it could take.
    fn shares(&self) -> bool;
}

/// Makes `$name`, which is [`Forks`] of the `Stack` in the module `$split`: that of
/// `poach_deque::split`, or of a copy of it.
#[macro_export]
macro_rules! stack_of_forks {
    ($name:ident, $($split:ident)::+) => {
        $crate::stack_of_forks!($name, $($split)::+, $crate::poach_check::Simulated);
    };
    ($name:ident, $($split:ident)::+, $memory:ty) => {
        /// The stack.
        struct $name($($split)::+::Stack<$memory>);

        impl $crate::stack::Forks for $name {
            type Owner = Vec<$($split)::+::Head<$memory>>;

            fn new(slots: usize) -> Self {
                $name($($split)::+::Stack::new(slots, ()).expect("a small stack"))
            }

            fn owner(&self) -> Self::Owner {
                // SAFETY: the one owner of the model calls, and the stack outlives its heads.
                vec![unsafe { self.0.bottom() }]
            }

            fn fork(owner: &mut Self::Owner, task: u64) {
                #[repr(align(8))]
                struct Descriptor;
                static DESCRIPTOR: Descriptor = Descriptor;
                let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
                let head = *owner.last().expect("the bottom is there");
                // SAFETY: the one owner of the model calls, and pops in reverse order; a u64 fits, and is Copy.
                let pushed = unsafe { head.push(descriptor, &raw const task) };
                owner.push(pushed.expect("the model's stack has room"));
            }

            fn join(owner: &mut Self::Owner) -> u64 {
                owner.pop();
                let head = *owner.last().expect("the bottom is there");
                // SAFETY: as in `fork`.
                let popped = unsafe { head.pop() };
                // SAFETY: the owner calls, for a slot that it has pushed to.
                let slot = unsafe { head.slot() };
                if popped == $($split)::+::Popped::Stolen {
                    $crate::stack::wait_for(slot.status(), $($split)::+::Status::DONE);
                }
                // SAFETY: not stolen, or done: the payload is the owner's, and a u64.
                let payload = unsafe { slot.take::<u64>() };
                if popped == $($split)::+::Popped::Stolen {
                    // SAFETY: stolen, done, taken, and nothing is above it.
                    unsafe { head.retire() };
                }
                payload
            }

            fn steal(&self, run: impl FnOnce()) -> bool {
                let Ok(stolen) = self.0.steal() else { return false };
                // SAFETY: claimed by this thief alone, and a u64.
                let task = unsafe { stolen.slot().take::<u64>() };
                run();
                // SAFETY: it is this thief's until it says that it is done.
                unsafe { stolen.slot().put(task + $crate::stack::RESULT) };
                $crate::stack::done(stolen.slot().status(), $($split)::+::Status::DONE);
                true
            }

            fn expose(&self) {
                self.0.expose();
            }

            fn request(&self) {
                self.0.request();
            }

            fn shares(&self) -> bool {
                self.0.shared() != 0
            }
        }
    };
}

/// Waits until a thief has said that it is done.
pub fn wait_for(status: &impl Word, done: u64) {
    while status.load(Ordering::Acquire) & done == 0 {
        Simulated::pause();
    }
}

/// Says that a thief is done. What reads the result comes after it: pairs with [`wait_for`].
pub fn done(status: &impl Word, done: u64) {
    status.fetch_or(done, Ordering::SeqCst);
}

stack_of_forks!(Shipped, poach_deque::split);

/// When thieves expose private tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposes {
    /// Before they steal.
    AtOnce,
    /// When they have asked, and found nothing.
    Later,
}

/// The slots of a model's stack, where none is made ready in the course of it.
const SLOTS: usize = 8;

/// The owner forks the scenario's tasks, joins and forks as its script says, and joins the rest;
/// each thief steals so often, asking and exposing in between.
pub fn forks<S: Forks>(scenario: &Scenario, exposes: Exposes) -> impl Fn(&mut Threads) + use<S> {
    forks_above::<S>(0, scenario, exposes)
}

/// The same above `below` forks that have been there before, and are never joined: only how often
/// tasks above them run counts.
fn forks_above<S: Forks>(
    below: usize,
    scenario: &Scenario,
    exposes: Exposes,
) -> impl Fn(&mut Threads) + use<S> {
    let scenario = scenario.clone();
    move |threads| {
        let stack = Rc::new(S::new(below + SLOTS));
        let runs = Rc::new(Cell::new(0));
        let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count();
        let tasks = u64::from(scenario.tasks) + pushes as u64;
        let (own, counts) = (Rc::clone(&stack), Rc::clone(&runs));
        let mut owner = own.owner();
        for _ in 0..below {
            S::fork(&mut owner, 0);
        }
        let (first, script) = (u64::from(scenario.tasks), scenario.script.clone());
        threads.spawn("owner", move || {
            let mut forked: Vec<u64> = Vec::new();
            let mut next = 1;
            let mut fork = |owner: &mut S::Owner, forked: &mut Vec<u64>| {
                S::fork(owner, next);
                forked.push(next);
                next += 1;
            };
            let join = |owner: &mut S::Owner, forked: &mut Vec<u64>| {
                let Some(task) = forked.pop() else { return };
                let payload = S::join(owner);
                if payload == task {
                    counts.set(counts.get() + 1);
                } else if payload != task + RESULT {
                    fail(Kind::Order, format!("{payload} comes back for task {task}"));
                }
            };
            (0..first).for_each(|_| fork(&mut owner, &mut forked));
            for step in script {
                match step {
                    Step::Push => fork(&mut owner, &mut forked),
                    Step::Pop => join(&mut owner, &mut forked),
                    _ => {}
                }
            }
            while !forked.is_empty() {
                join(&mut owner, &mut forked);
            }
        });
        for name in THIEVES.iter().take(scenario.thieves as usize) {
            let (stack, runs) = (Rc::clone(&stack), Rc::clone(&runs));
            let steals = scenario.steals;
            let counts = below == 0;
            threads.spawn(name, move || {
                for turn in 0..steals {
                    if turn > 0 || exposes == Exposes::AtOnce {
                        stack.expose();
                    }
                    let run = || {
                        stole();
                        runs.set(runs.get() + u64::from(counts));
                    };
                    if !stack.steal(run) {
                        stack.request();
                    }
                }
            });
        }
        threads.finally(move || {
            if runs.get() != tasks {
                let kind = if runs.get() > tasks { Kind::Duplicate } else { Kind::Lost };
                fail(kind, format!("{tasks} tasks were run {} times", runs.get()));
            }
            drop(stack);
        });
    }
}

/// [`forks`] of the stack that ships.
pub(super) fn shipped(scenario: &Scenario, exposes: Exposes) -> impl Fn(&mut Threads) + use<> {
    forks::<Shipped>(scenario, exposes)
}

/// A stack that is full up to the slots that are ready: the owner's first fork makes more of them
/// ready while a thief looks how many tasks there are.
pub(super) fn ready(scenario: &Scenario) -> impl Fn(&mut Threads) + use<> {
    forks_above::<Shipped>(READY, scenario, Exposes::AtOnce)
}

/// The slots of a stack of the simulated memory that are ready from the start, without the last.
const READY: usize = 8;

/// A thief has asked. The owner forks a task and shares it, another thief takes it, and a third,
/// which has seen it shared and finds it taken, leaves a request: the owner's next fork must share.
pub fn late_request<S: Forks>(threads: &mut Threads) {
    let stack = Rc::new(S::new(SLOTS));
    let owner = Rc::new(RefCell::new(stack.owner()));
    let asked = Rc::new(Cell::new(false));
    stack.request();
    let forks = Rc::clone(&owner);
    threads.spawn("owner", move || S::fork(&mut forks.borrow_mut(), 1));
    let takes = Rc::clone(&stack);
    threads.spawn("thief", move || {
        takes.steal(|| ());
    });
    let (late, says) = (Rc::clone(&stack), Rc::clone(&asked));
    threads.spawn("late", move || {
        if late.shares() && !late.steal(|| ()) && !late.shares() {
            late.request();
            says.set(true);
        }
    });
    threads.finally(move || {
        if asked.get() {
            S::fork(&mut owner.borrow_mut(), 2);
            if !stack.shares() {
                fail(Kind::Request, "a thief has asked, and the owner's next fork shares nothing");
            }
        }
        drop((owner, stack));
    });
}

/// [`late_request`] of the stack that ships.
pub(super) fn late_request_of_shipped(threads: &mut Threads) {
    late_request::<Shipped>(threads);
}
