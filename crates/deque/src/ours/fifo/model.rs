//! The owner and thieves under the memory model of C11, from states that few threads come to
//! together.
//!
//! The searches are bounded in preemptions, as each test says. Threads run one after the other, and
//! each load may read a value that is not the latest.

use std::cell::RefCell;
use std::rc::Rc;

use poach_check::{Simulated, WithoutBarrier};
use poach_memory::Cell as _;

use super::*;
use crate::c11;
use crate::traits::Steal;

type Queue = Fifo<u64, Simulated>;

/// An owner and a thief.
type Both<M> = (Rc<Fifo<u64, M>>, Rc<Thief<u64, M>>);

/// A queue of `tasks` tasks that its owner has closed, and closes again by the third pop after it
/// was opened; thieves do not wait for its answer. A thief may have asked already.
fn queue_in<M: Memory>(tasks: u64, requested: bool) -> Both<M> {
    let owner = Fifo::<u64, M>::with_patience(8, 0, 0, 0).unwrap();
    (0..tasks).for_each(|task| owner.push(task));
    owner.shared.request.store(requested.into(), Ordering::Relaxed);
    let thief = owner.thief();
    (Rc::new(owner), Rc::new(thief))
}

fn queue(tasks: u64, requested: bool) -> Both<Simulated> {
    queue_in(tasks, requested)
}

/// An open queue of `tasks` tasks.
fn open(tasks: u64) -> Both<Simulated> {
    let owner = Queue::with_patience(4, 0, 9, 0).unwrap();
    (0..tasks).for_each(|task| owner.push(task));
    let thief = owner.thief();
    (Rc::new(owner), Rc::new(thief))
}

/// The request is of the period before: a thief that finds the queue closed again has seen it
/// lowered, and raises it for this one. It opens at what the owner has taken since, or had when it
/// closed the queue.
fn asks_in_each_period<M: Memory + 'static>() {
    c11::clean_all(1, |threads| {
        let (owner, thief) = queue_in::<M>(6, true);
        let taken: Rc<RefCell<Vec<u64>>> = Rc::default();
        let (works, own) = (Rc::clone(&owner), Rc::clone(&taken));
        threads.spawn("owner", move || {
            // It opens with the first, closes with the fourth, and takes the others without an
            // exchange.
            for _ in 0..6 {
                let task = works.pop();
                own.borrow_mut().extend(task);
            }
        });
        let own = Rc::clone(&taken);
        let steals = Rc::clone(&thief);
        threads.spawn("thief", move || {
            let task = steals.steal().success();
            own.borrow_mut().extend(task);
        });
        threads.finally(move || {
            let rest = std::iter::from_fn(|| owner.pop());
            taken.borrow_mut().extend(rest);
            taken.borrow_mut().sort_unstable();
            assert!(taken.borrow().iter().copied().eq(0..6), "{taken:?}");
            drop(thief);
        });
    });
}

#[test]
fn a_thief_asks_in_each_period() {
    asks_in_each_period::<Simulated>();
    asks_in_each_period::<WithoutBarrier>();
}

/// The owner of a full ring finds the request when it looks for slots, while the thief that asked
/// opens the queue itself.
fn answers_at_a_push<M: Memory + 'static>() {
    c11::clean_all(2, |threads| {
        let owner = Fifo::<u64, M>::with_patience(4, 0, 0, 0).unwrap();
        (0..4).for_each(|task| owner.push(task));
        assert_eq!(owner.pop(), Some(0));
        let (thief, owner) = (owner.thief(), Rc::new(owner));
        let taken: Rc<RefCell<Vec<u64>>> = Rc::default();
        let (works, own) = (Rc::clone(&owner), Rc::clone(&taken));
        threads.spawn("owner", move || {
            works.push(4);
            let task = works.pop();
            own.borrow_mut().extend(task);
        });
        let own = Rc::clone(&taken);
        threads.spawn("thief", move || {
            let task = thief.steal().success();
            own.borrow_mut().extend(task);
        });
        threads.finally(move || {
            let rest = std::iter::from_fn(|| owner.pop());
            taken.borrow_mut().extend(rest);
            taken.borrow_mut().sort_unstable();
            assert!(taken.borrow().iter().copied().eq(1..5), "{taken:?}");
        });
    });
}

#[test]
fn an_owner_answers_at_a_push_that_looks_for_slots() {
    answers_at_a_push::<Simulated>();
    answers_at_a_push::<WithoutBarrier>();
}

/// A thread's look, and whether it finds nothing.
type Look = fn(&Thief<u64, Simulated>) -> bool;

/// All looks, and those that say nothing to who pushes and looks for sleepers.
const LOOKS: [Look; 5] = [
    |thief| thief.steal().is_empty(),
    |thief| matches!(thief.len(), 0),
    Thief::is_empty,
    |thief| thief.claim_unfenced(|_| 1).is_empty(),
    Thief::seems_empty,
];

/// Looks that say whether there is a task.
const SAYS: [Look; 3] = [|thief| matches!(thief.len(), 0), Thief::is_empty, Thief::seems_empty];

/// A cell that one thread writes and another reads: no execution is right in which they may meet.
type Cell = <Simulated as Memory>::Cell<()>;

#[test]
fn who_is_told_of_a_task_has_seen_what_came_before_its_push() {
    for look in SAYS {
        for patience in [0, 9] {
            c11::clean_all(1, move |threads| {
                let owner = Rc::new(Queue::with_patience(4, 0, patience, 0).unwrap());
                let thief = Rc::new(owner.thief());
                let cell = Rc::new(Cell::new(()));
                let (pushes, wrote) = (Rc::clone(&owner), Rc::clone(&cell));
                threads.spawn("owner", move || {
                    wrote.with_mut(|_| ());
                    pushes.push(0);
                });
                let (looks, reads) = (Rc::clone(&thief), Rc::clone(&cell));
                threads.spawn("looks", move || {
                    if !look(&looks) {
                        reads.with(|_| ());
                    }
                });
                threads.finally(move || drop((owner, thief, cell)));
            });
        }
    }
}

/// One thief writes the cell and takes a task. Another reads it if what it does says that the task
/// has gone.
fn thefts_are_seen(
    make: impl Fn() -> Both<Simulated> + Copy,
    says_so: fn(&Thief<u64, Simulated>) -> bool,
) {
    c11::clean_all(1, move |threads| {
        let (owner, thief) = make();
        let cell = Rc::new(Cell::new(()));
        let (takes, wrote) = (Rc::clone(&thief), Rc::clone(&cell));
        threads.spawn("takes", move || {
            wrote.with_mut(|_| ());
            let _ = takes.steal();
        });
        let (looks, reads) = (Rc::clone(&thief), Rc::clone(&cell));
        threads.spawn("looks", move || {
            if says_so(&looks) {
                reads.with(|_| ());
            }
        });
        threads.finally(move || drop((owner, thief, cell)));
    });
}

#[test]
fn who_is_told_that_no_task_is_left_has_seen_what_came_before_its_theft() {
    for says_so in LOOKS {
        thefts_are_seen(|| open(1), says_so);
        thefts_are_seen(|| queue(1, false), says_so);
    }
}

#[test]
fn who_takes_a_task_has_seen_what_came_before_the_theft_of_the_one_before() {
    // By a tail that a thief has told of; of a queue that was closed; after a wait.
    let known = || {
        let (owner, thief) = open(3);
        assert_eq!(thief.steal(), Steal::Success(0));
        (owner, thief)
    };
    thefts_are_seen(known, |thief| thief.steal() == Steal::Success(2));
    thefts_are_seen(known, |thief| {
        thief.claim_for(1, |_| 1, |task| task, |_| unreachable!()) == Steal::Success(2)
    });
    thefts_are_seen(|| queue(2, false), |thief| thief.steal() == Steal::Success(1));
    let waits = || {
        let (owner, thief) = open(2);
        owner.shared.thieves.pace.store(1, Ordering::Relaxed);
        (owner, thief)
    };
    thefts_are_seen(waits, |thief| thief.steal() == Steal::Success(1));
}

/// The owner finds the queue empty, puts `head` back and pushes.
#[test]
fn who_takes_a_task_has_seen_what_came_before_the_theft_that_its_owner_met() {
    c11::clean_all(2, |threads| {
        let (owner, thief) = open(1);
        let cell = Rc::new(Cell::new(()));
        let (takes, wrote) = (Rc::clone(&thief), Rc::clone(&cell));
        threads.spawn("takes", move || {
            wrote.with_mut(|_| ());
            let _ = takes.steal();
        });
        let works = Rc::clone(&owner);
        threads.spawn("owner", move || {
            if works.pop().is_none() {
                works.push(1);
            }
        });
        let (steals, reads) = (Rc::clone(&thief), Rc::clone(&cell));
        threads.spawn("steals", move || {
            if steals.steal() == Steal::Success(1) {
                reads.with(|_| ());
            }
        });
        threads.finally(move || drop((owner, thief, cell)));
    });
}

/// The task that a thief knows of by the tail that another tells, before that one has moved `head`.
#[test]
fn who_takes_a_task_by_a_tail_that_another_thief_tells_has_seen_its_push() {
    let takes: [fn(&Thief<u64, Simulated>); 2] = [
        |thief| {
            let _ = thief.claim_for(1, |all| all, |_| (), |tasks| tasks.for_each(drop));
        },
        |thief| {
            let _ = (thief.steal(), thief.steal());
        },
    ];
    for take in takes {
        c11::clean_all(1, move |threads| {
            let (owner, thief) = open(1);
            let pushes = Rc::clone(&owner);
            threads.spawn("owner", move || pushes.push(1));
            let tells = Rc::clone(&thief);
            threads.spawn("tells", move || {
                let _ = tells.steal();
            });
            let own = Rc::clone(&thief);
            threads.spawn("takes", move || take(&own));
            threads.finally(move || drop((owner, thief)));
        });
    }
}

/// There is always a task: the owner pushes before it takes one, with a thief that opens the queue
/// meanwhile or without.
fn never_empty(looks: &[Look], preemptions: u32, patience: u32, requested: bool, opens: bool) {
    for &look in looks {
        c11::clean_all(preemptions, move |threads| {
            let (owner, thief) = if patience == 0 {
                queue(1, requested)
            } else {
                let owner = Queue::with_patience(4, 0, patience, 0).unwrap();
                owner.push(0);
                let thief = owner.thief();
                (Rc::new(owner), Rc::new(thief))
            };
            let works = Rc::clone(&owner);
            threads.spawn("owner", move || {
                works.push(1);
                works.pop();
            });
            if opens {
                let thief = Rc::clone(&thief);
                threads.spawn("opens", move || thief.shared.request_or_open(closed(0)));
            }
            let looks = Rc::clone(&thief);
            threads.spawn("looks", move || {
                assert!(!look(&looks), "it is said to be empty, and never was");
            });
            threads.finally(move || drop((owner, thief)));
        });
    }
}

#[test]
fn a_queue_is_not_said_to_be_empty() {
    for patience in [0, 1, 9] {
        never_empty(&LOOKS, 1, patience, false, false);
    }
}

#[test]
fn a_queue_that_its_owner_opens_is_not_said_to_be_empty() {
    never_empty(&LOOKS, 1, 0, true, false);
}

/// A thief has found the queue closed, and reads what the owner says that it has taken since: of
/// the open queue, and of the one that it closes again.
#[test]
fn a_queue_that_its_owner_takes_from_is_not_said_to_be_empty() {
    for look in LOOKS {
        for pops in 2..=5 {
            c11::clean_all(1, move |threads| {
                let (owner, thief) = queue(1, true);
                let works = Rc::clone(&owner);
                threads.spawn("owner", move || {
                    (0..pops).for_each(|task| works.push(task + 1));
                    (0..pops).for_each(|_| assert!(works.pop().is_some()));
                });
                let looks = Rc::clone(&thief);
                threads.spawn("looks", move || {
                    assert!(!look(&looks), "it is said to be empty, and never was");
                });
                threads.finally(move || drop((owner, thief)));
            });
        }
    }
}

#[test]
fn a_queue_that_a_thief_opens_is_not_said_to_be_empty() {
    // The calls without a choice of their own: with a steal there are more than 200,000 executions.
    never_empty(&[Thief::is_empty, Thief::seems_empty], 2, 0, false, true);
}
