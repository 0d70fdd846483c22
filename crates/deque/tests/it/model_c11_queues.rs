//! Queues under the memory model of C11: what a thread must have seen of those before it, where the
//! order of steps alone would show nothing.
//!
//! The searches have few preemptions: the threads run one after the other, and each load may read
//! what is not the latest.

#![cfg(not(target_arch = "s390x"))] // The model's coroutines do not know that processor.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;

use poach_check::{Config, Kind, Simulated, Threads, explore, fail};
use poach_deque::fifo::Thief as FifoThief;
use poach_deque::{Fifo, Injector, Owner, Steal};
use poach_memory::Ordering::{Relaxed, SeqCst};
use poach_memory::{Memory, Word as _};

/// This number of executions takes less than a second.
const MOST: u64 = 4_000;

/// No execution with at most `preemptions` preemptions is wrong; all of them run, or the first
/// [`MOST`].
fn clean(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    let report = explore(&Config::c11().within(preemptions, MOST), &model);
    println!(
        "{name}: {:?}, {} executions, {:?}",
        report.verdict, report.executions, report.elapsed
    );
    assert!(
        report.coverage().is_some(),
        "{name}: {:?}\n{:?}",
        report.verdict,
        report.counterexample
    );
}

/// A queue whose owner closes it after `patience` pops; thieves do not wait for its answer.
fn fifo(patience: u32) -> Fifo<u64, Simulated> {
    Fifo::with_patience(4, 0, patience, 0).unwrap()
}

/// How a thread looks whether there are tasks, or whether it finds none.
type Look<T> = fn(&T) -> bool;

/// How the owner's thread takes the oldest task.
type Take<O> = fn(&O, &<O as Owner<u64>>::Thief);

/// A thread looks at a queue that is never empty: the owner's thread, which has pushed a task,
/// pushes `tasks` more and then takes as many.
fn never_empty<O: Owner<u64, Thief: 'static> + 'static>(
    make: impl Fn() -> O,
    look: Look<O::Thief>,
    tasks: u64,
    take: Take<O>,
) -> impl Fn(&mut Threads) {
    move |threads| {
        let owner = Rc::new(make());
        owner.push(0);
        let [looker, own] = [(); 2].map(|()| Rc::new(owner.thief()));
        let (owning, thief, looking) = (Rc::clone(&owner), Rc::clone(&own), Rc::clone(&looker));
        threads.spawn("owner", move || {
            (0..tasks).for_each(|task| owning.push(task + 1));
            (0..tasks).for_each(|_| take(&owning, &thief));
        });
        threads.spawn("looker", move || {
            if look(&looking) {
                fail(Kind::FalseEmpty, "the queue is said to be empty, and never was");
            }
        });
        threads.finally(move || drop((owner, own, looker)));
    }
}

#[test]
fn a_fifo_is_not_said_to_be_empty() {
    let looks: [(&str, Look<FifoThief<u64, Simulated>>); 3] = [
        ("steal", |thief| thief.steal().is_empty()),
        ("len", |thief| matches!(thief.len(), 0)),
        ("is_empty", |thief| thief.is_empty()),
    ];
    let takes: [Take<Fifo<u64, Simulated>>; 2] =
        [|owner, _| _ = owner.pop(), |_, thief| _ = thief.steal()];
    for (what, look) in looks {
        for patience in [0, 1, 9] {
            for (way, take) in ["pop", "steal"].into_iter().zip(takes) {
                for tasks in 1..=3 {
                    let name = format!("fifo, {what}, patience {patience}, {tasks} by {way}");
                    clean(&name, 1, never_empty(|| fifo(patience), look, tasks, take));
                }
            }
        }
    }
}

/// Each task comes out once: the owner does `script` (`true` is a push), and each of `thieves`
/// tries twice.
fn once(patience: u32, script: &'static [bool], thieves: usize) -> impl Fn(&mut Threads) {
    move |threads| {
        let owner = Rc::new(fifo(patience));
        let taken: Rc<Vec<Cell<u32>>> = Rc::new((0..script.len()).map(|_| Cell::new(0)).collect());
        let take = |taken: &Rc<Vec<Cell<u32>>>| {
            let taken = Rc::clone(taken);
            move |task: u64| {
                let count = &taken[task as usize];
                count.set(count.get() + 1);
                if count.get() > 1 {
                    fail(Kind::Duplicate, "a task is taken twice");
                }
            }
        };
        let handles: Vec<_> = (0..thieves).map(|_| Rc::new(owner.thief())).collect();
        let (owning, takes) = (Rc::clone(&owner), take(&taken));
        threads.spawn("owner", move || {
            let mut next = 0;
            for &push in script {
                if push {
                    owning.push(next);
                    next += 1;
                } else if let Some(task) = owning.pop() {
                    takes(task);
                }
            }
        });
        for thief in &handles {
            let (thief, takes) = (Rc::clone(thief), take(&taken));
            threads.spawn("thief", move || {
                for _ in 0..2 {
                    if let Steal::Success(task) = thief.steal() {
                        takes(task);
                    }
                }
            });
        }
        threads.finally(move || drop((owner, handles)));
    }
}

#[test]
fn a_fifo_that_is_closed_again_gives_each_task_once() {
    const SCRIPT: &[bool] =
        &[true, true, true, true, true, true, false, false, false, false, false];
    for patience in [0, 1] {
        for preemptions in [1, 2] {
            for thieves in [1, 2] {
                let name = format!(
                    "fifo, patience {patience}, {preemptions} preemptions, {thieves} thieves"
                );
                clean(&name, preemptions, once(patience, SCRIPT, thieves));
            }
        }
    }
}

/// As [`never_empty`], of an injector: another thread pushes, and then takes the older task.
fn never_empty_injector(look: Look<Injector<u64, Simulated, 2>>) -> impl Fn(&mut Threads) {
    move |threads| {
        let injector = Rc::new(Injector::new());
        injector.push(0);
        let (moves, looks) = (Rc::clone(&injector), Rc::clone(&injector));
        threads.spawn("moves", move || {
            for task in 1..3 {
                injector_push(&moves, task);
                let _ = moves.steal();
            }
        });
        threads.spawn("looks", move || {
            if look(&looks) {
                fail(Kind::FalseEmpty, "the injector is said to be empty, and never was");
            }
        });
        threads.finally(move || drop(injector));
    }
}

fn injector_push<const SLOTS: usize>(injector: &Injector<u64, Simulated, SLOTS>, task: u64) {
    assert!(injector.try_push(task).is_ok(), "memory");
}

#[test]
fn an_injector_is_not_said_to_be_empty() {
    let looks: [(&str, Look<Injector<u64, Simulated, 2>>); 3] = [
        ("steal", |injector| injector.steal().is_empty()),
        ("len", |injector| matches!(injector.len(), 0)),
        ("is_empty", Injector::is_empty),
    ];
    for (what, look) in looks {
        clean(&format!("injector, {what}"), 1, never_empty_injector(look));
    }
}

/// A thread that pushes and then looks for sleepers, and a thread that announces itself a sleeper
/// and then looks for tasks, do not both see nothing. They use sequentially consistent accesses of
/// the word between them, or fences.
#[test]
fn an_injectors_push_and_a_sleeper_do_not_miss_each_other() {
    let looks: [(&str, Look<Injector<u64, Simulated, 2>>); 3] = [
        ("steal", |injector| injector.steal().is_empty()),
        ("len", |injector| matches!(injector.len(), 0)),
        ("is_empty", Injector::is_empty),
    ];
    for (what, look) in looks {
        for fenced in [false, true] {
            let order = if fenced { Relaxed } else { SeqCst };
            let fence = move || {
                if fenced {
                    Simulated::full();
                }
            };
            clean(&format!("injector, {what}, fenced: {fenced}"), 2, move |threads| {
                let injector = Rc::new(Injector::new().with_patience(0));
                let sleepers = Rc::new(<Simulated as Memory>::Word::new(0));
                let missed = Rc::new(Cell::new(0));
                let miss = |missed: &Rc<Cell<u32>>| {
                    let missed = Rc::clone(missed);
                    move |sees_nothing: bool| {
                        missed.set(missed.get() + u32::from(sees_nothing));
                        if missed.get() > 1 {
                            fail(Kind::FalseEmpty, "a task, a sleeper, and nobody knows");
                        }
                    }
                };
                let (pushes, asks, misses) =
                    (Rc::clone(&injector), Rc::clone(&sleepers), miss(&missed));
                threads.spawn("pushes", move || {
                    injector_push(&pushes, 0);
                    fence();
                    misses(asks.load(order) == 0);
                });
                let (sees, says, misses) =
                    (Rc::clone(&injector), Rc::clone(&sleepers), miss(&missed));
                threads.spawn("sleeps", move || {
                    says.store(1, order);
                    fence();
                    misses(look(&sees));
                });
                threads.finally(move || drop((injector, sleepers)));
            });
        }
    }
}

/// Some threads push two tasks each and others take them, alone or several at once, in blocks that
/// are used again: no slot is written while it is read.
#[test]
fn an_injectors_slots_are_handed_on() {
    fn model<const SLOTS: usize>(pushers: u64, half: bool) -> impl Fn(&mut Threads) {
        move |threads| {
            let injector: Rc<Injector<u64, Simulated, SLOTS>> = Rc::new(Injector::new());
            let into = Rc::new(fifo(9));
            for pusher in 0..pushers {
                let injector = Rc::clone(&injector);
                threads.spawn("pusher", move || {
                    (0..4).for_each(|task| injector_push(&injector, 4 * pusher + task));
                });
            }
            let (from, to) = (Rc::clone(&injector), Rc::clone(&into));
            threads.spawn("thief", move || {
                for _ in 0..4 {
                    let _ = if half { from.steal_half(&*to) } else { from.steal() };
                }
            });
            threads.finally(move || drop((injector, into)));
        }
    }
    for half in [false, true] {
        for pushers in [1, 2] {
            clean("injector, slots 1", 1, model::<1>(pushers, half));
            clean("injector, slots 2", 1, model::<2>(pushers, half));
            clean("injector, slots 4", 1, model::<4>(pushers, half));
        }
    }
}

/// A thief waits for the owner to get ahead, and takes what was pushed meanwhile.
#[test]
fn a_fifos_thief_takes_what_came_while_it_waited() {
    for half in [false, true] {
        clean("fifo, waits", 1, move |threads| {
            let owner = Rc::new(Fifo::<u64, Simulated>::with_patience(4, 0, 9, 1).unwrap());
            let into = Rc::new(fifo(9));
            owner.push(0);
            let [thief, stays] = [owner.thief(), owner.thief()];
            let owning = Rc::clone(&owner);
            threads.spawn("owner", move || (1..4).for_each(|task| owning.push(task)));
            let to = Rc::clone(&into);
            let thief = Rc::new(thief);
            let steals = Rc::clone(&thief);
            threads.spawn("thief", move || {
                for _ in 0..3 {
                    let _ = if half { steals.steal_half(&*to) } else { steals.steal() };
                }
            });
            threads.finally(move || drop((owner, into, thief, stays)));
        });
    }
}
