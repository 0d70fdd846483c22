//! The runtime's stack of forks, beside the queues.
//!
//! The owner forks tasks and joins them in reverse order. A thief that finds nothing shared asks, and then exposes. Each
//! task is run once: by the owner, or by a thief, which leaves a result and says so.

use std::cell::Cell;
use std::rc::Rc;

use poach_deque::split::{Claim, Head, Popped, Stack, Status};
use poach_memory::{Memory, Ordering, Word};

use super::scenario::{Scenario, Step, THIEVES};
use crate::{Kind, Simulated, Threads, engine, fail};

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

/// What a thief makes of a task.
const RESULT: u64 = 100;

fn push(head: Head<Simulated>, task: u64) -> Head<Simulated> {
    let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
    // SAFETY: the one owner of the model calls, and pops in reverse order; a u64 fits, and is Copy.
    unsafe { head.push(descriptor, &raw const task) }.expect("the model's stack has room")
}

/// Joins the task below `head`, and returns its payload: the task, or the thief's result.
fn join(head: Head<Simulated>) -> u64 {
    // SAFETY: as in `push`.
    let popped = unsafe { head.pop() };
    // SAFETY: the owner calls, for a slot that it has pushed to.
    let slot = unsafe { head.slot() };
    if popped == Popped::Stolen {
        while slot.status().load(Ordering::Acquire) & Status::DONE == 0 {
            Simulated::pause();
        }
    }
    // SAFETY: not stolen, or done: the payload is the owner's, and a u64.
    let payload = unsafe { slot.take::<u64>() };
    if popped == Popped::Stolen {
        // SAFETY: stolen, done, taken, and nothing is above it.
        unsafe { head.retire() };
    }
    payload
}

/// Whether the thief gets a task, or why not.
fn steal(stack: &Stack<Simulated>, runs: &Cell<u64>) -> Result<(), Claim> {
    let stolen = stack.steal()?;
    // SAFETY: claimed by this thief alone, and a u64.
    let task = unsafe { stolen.slot().take::<u64>() };
    engine::stole();
    runs.set(runs.get() + 1);
    // SAFETY: it is this thief's until it says that it is done.
    unsafe { stolen.slot().put(task + RESULT) };
    // What reads the result comes after it: pairs with the join's load.
    stolen.slot().status().fetch_or(Status::DONE, Ordering::SeqCst);
    Ok(())
}

/// The owner forks the scenario's tasks and joins them; each thief steals so often, asking and exposing in between.
pub(super) fn forks(scenario: &Scenario) -> impl Fn(&mut Threads) {
    let scenario = scenario.clone();
    move |threads| {
        let stack = Rc::new(Stack::<Simulated>::new(8, ()).expect("a small stack"));
        let runs = Rc::new(Cell::new(0));
        let pushes = scenario.script.iter().filter(|step| **step == Step::Push).count();
        let tasks = u64::from(scenario.tasks) + pushes as u64;
        let (own, counts) = (Rc::clone(&stack), Rc::clone(&runs));
        threads.spawn("owner", move || {
            // SAFETY: this thread is the one owner, and the stack outlives its heads.
            let bottom = unsafe { own.bottom() };
            let mut heads = vec![bottom];
            for task in 1..=tasks {
                let head = *heads.last().expect("the bottom is there");
                heads.push(push(head, task));
            }
            for task in (1..=tasks).rev() {
                heads.pop();
                let payload = join(*heads.last().expect("the bottom is there"));
                if payload == task {
                    counts.set(counts.get() + 1);
                } else if payload != task + RESULT {
                    fail(Kind::Order, format!("{payload} comes back for task {task}"));
                }
            }
        });
        for name in THIEVES.iter().take(scenario.thieves as usize) {
            let (stack, runs) = (Rc::clone(&stack), Rc::clone(&runs));
            let steals = scenario.steals;
            threads.spawn(name, move || {
                for turn in 0..steals {
                    if turn > 0 {
                        stack.expose();
                    }
                    if steal(&stack, &runs).is_err() {
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
