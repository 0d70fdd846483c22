//! The owner and thieves under the memory model of C11: what each must have seen of the others. The
//! calls are those of the faces too, which no test outside can make over a model's memory.
//!
//! The searches are bounded in preemptions, as each test says. Threads run one after the other, and
//! each load may read a value that is not the latest.

use std::cell::RefCell;
use std::rc::Rc;

use poach_check::{Simulated, Threads};
use poach_memory::{Asymmetric, Full, Memory as _};

use super::super::Biased;
use super::*;
use crate::c11;
use crate::owners_end::OwnersEnd as _;

type Queue<P = Full> = Biased<u64, P, Simulated>;

/// This number of executions takes less than a second.
const MOST: u64 = 4_000;

/// No execution with at most `preemptions` preemptions is wrong; all of them run, or the first
/// [`MOST`].
fn clean(preemptions: u32, model: impl Fn(&mut Threads)) {
    c11::clean(preemptions, MOST, model);
}

/// A queue with `tasks` tasks, from 0 on, and its thieves. No task is open.
fn queue<P: StoreLoad<Simulated>>(
    policy: P,
    tasks: u64,
) -> (Rc<Queue<P>>, super::Thief<u64, P, Simulated>) {
    let owner = Queue::starting_at(policy, 8, 0, 0).unwrap();
    (0..tasks).for_each(|task| owner.push(task));
    let thief = owner.thief();
    (Rc::new(owner), thief)
}

/// The same, and a thief has opened all: the owner will be eager.
fn open<P: StoreLoad<Simulated>>(
    policy: P,
    tasks: u64,
) -> (Rc<Queue<P>>, super::Thief<u64, P, Simulated>) {
    let (owner, thief) = queue(policy, tasks);
    assert!(!thief.request_or_open(0, 1));
    (owner, thief)
}

/// What all have taken.
#[derive(Clone, Default)]
struct Taken(Rc<RefCell<Vec<u64>>>);

impl Taken {
    fn add(&self, tasks: impl IntoIterator<Item = u64>) {
        let tasks: Vec<u64> = tasks.into_iter().collect();
        self.0.borrow_mut().extend(tasks);
    }

    fn claim(&self, claim: Steal<Claimed<'_, u64, Simulated>>) {
        if let Steal::Success(claimed) = claim {
            self.add(claimed);
        }
    }

    /// The owner takes the rest: each of `tasks` tasks was taken once.
    fn all<P: StoreLoad<Simulated>>(&self, owner: &Queue<P>, tasks: u64) {
        self.add(std::iter::from_fn(|| owner.pop()));
        let mut taken = self.0.borrow_mut();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(0..tasks), "of {tasks} were taken {taken:?}");
    }
}

/// The owner pushes and pops; thieves claim, each so often.
fn claimed<P: StoreLoad<Simulated> + 'static>(
    make: impl Fn() -> (Rc<Queue<P>>, super::Thief<u64, P, Simulated>),
    before: u64,
    script: &'static [bool],
    thieves: &'static [&'static str],
    times: u32,
    claim: impl Fn(&super::Thief<u64, P, Simulated>, &Taken) + Copy + 'static,
) -> impl Fn(&mut Threads) {
    move |threads| {
        let (owner, thief) = make();
        let taken = Taken::default();
        let (own, works) = (taken.clone(), Rc::clone(&owner));
        threads.spawn("owner", move || {
            let mut next = before;
            for pushes in script {
                if *pushes {
                    works.push(next);
                    next += 1;
                } else {
                    own.add(works.pop());
                }
            }
        });
        for name in thieves {
            let (thief, own) = (thief.clone(), taken.clone());
            threads.spawn(name, move || (0..times).for_each(|_| claim(&thief, &own)));
        }
        let pushed = script.iter().filter(|pushes| **pushes).count() as u64;
        threads.finally(move || {
            taken.all(&owner, before + pushed);
            drop(thief);
        });
    }
}

const PUSH: bool = true;
const POP: bool = false;
const ONE: &[&str] = &["thief"];
const TWO: &[&str] = &["first", "second"];

fn steal<P: StoreLoad<Simulated>>(thief: &super::Thief<u64, P, Simulated>, taken: &Taken) {
    taken.add(thief.steal().success());
}

fn claim_all<P: StoreLoad<Simulated>>(thief: &super::Thief<u64, P, Simulated>, taken: &Taken) {
    taken.claim(thief.claim_of_all(|all| all));
}

fn claim_one<P: StoreLoad<Simulated>>(thief: &super::Thief<u64, P, Simulated>, taken: &Taken) {
    taken.claim(thief.claim_of_all(|_| 1));
}

macro_rules! claims {
    ($($name:ident: $preemptions:literal, $before:literal, $script:expr, $thieves:ident, $times:literal;)*) => {$(
        mod $name {
            use super::*;
            const SCRIPT: &[bool] = &$script;
            fn tried<P: StoreLoad<Simulated> + 'static>(policy: impl Fn() -> P + Copy) {
                clean($preemptions, claimed(|| queue(policy(), $before), $before, SCRIPT, $thieves, $times, steal));
                clean($preemptions, claimed(|| queue(policy(), $before), $before, SCRIPT, $thieves, $times, claim_all));
                clean($preemptions, claimed(|| queue(policy(), $before), $before, SCRIPT, $thieves, $times, claim_one));
                clean($preemptions, claimed(|| open(policy(), $before), $before, SCRIPT, $thieves, $times, steal));
                clean($preemptions, claimed(|| open(policy(), $before), $before, SCRIPT, $thieves, $times, claim_all));
                clean($preemptions, claimed(|| open(policy(), $before), $before, SCRIPT, $thieves, $times, claim_one));
            }
            #[test]
            fn full() {
                tried(|| Full);
            }
            #[test]
            fn asymmetric() {
                tried(Asymmetric::<Simulated>::new);
            }
        }
    )*};
}

claims! {
    pushes: 1, 1, [PUSH, PUSH], ONE, 2;
    pops: 1, 3, [POP, POP, POP], ONE, 2;
    comes_back: 1, 1, [POP, PUSH, POP], ONE, 2;
    shared: 1, 1, [PUSH, POP], TWO, 1;
    handed_on: 1, 1, [PUSH, PUSH], TWO, 1;
    first_of_all: 1, 0, [PUSH], TWO, 1;
    returns: 2, 1, [POP, PUSH, POP], TWO, 1;
}

/// The owner has lowered the request and then finds that a thief has taken all. It raises the
/// request again: another thief has seen it raised, and opens under the same tag what is pushed
/// next.
#[test]
fn an_owner_that_does_not_close_raises_the_request_again() {
    // Without that the 52,685th is wrong.
    c11::clean(2, 60_000, |threads| {
        let (owner, thief) = queue(Full, 1);
        let taken = Taken::default();
        // Both thieves have read `head`, and raised the request. The first has made its barrier,
        // and loaded the tail.
        owner.shared.request.store(RAISED, Ordering::Relaxed);
        let (own, works) = (taken.clone(), Rc::clone(&owner));
        threads.spawn("owner", move || {
            own.add(works.pop());
            works.push(1);
            own.add(works.pop());
        });
        let (first, own) = (thief.clone(), taken.clone());
        threads.spawn("first", move || {
            let (was, open) = (pack(0, 0), pack(0, 1));
            let word = &first.shared.thieves.open;
            if word.compare_exchange(was, open, Ordering::Release, Ordering::Relaxed).is_ok()
                && first.take_from(was, 1).is_success()
            {
                own.add([0]);
            }
        });
        let second = thief.clone();
        threads.spawn("second", move || assert!(!second.request_or_open(0, 1)));
        threads.finally(move || {
            taken.add(std::iter::from_fn(|| thief.steal().success()));
            taken.all(&owner, 2);
        });
    });
}

/// A thief opens what it has seen only after its fence, and another takes that by what is open.
#[test]
fn what_a_thief_opens_is_seen_by_who_takes_it() {
    clean(1, |threads| {
        let (owner, thief) = queue(Full, 1);
        let taken = Taken::default();
        let pushes = Rc::clone(&owner);
        threads.spawn("owner", move || pushes.push(1));
        let opens = thief.clone();
        threads.spawn("opens", move || assert!(!opens.request_or_open(0, 1)));
        let own = taken.clone();
        threads.spawn("takes", move || own.claim(thief.claim(|open| open)));
        threads.finally(move || taken.all(&owner, 2));
    });
}

/// The owner shows several at once, and thieves take them by what is open.
#[test]
fn a_batch_is_seen_by_who_takes_it() {
    let shows: [fn(&Queue); 2] = [
        |queue| queue.extend_within(0..4),
        |queue| {
            (0..4).for_each(|task| queue.push(task));
            queue.open_all();
        },
    ];
    for show in shows {
        for claim in [steal, claim_all] {
            clean(1, move |threads| {
                let (owner, thief) = queue(Full, 0);
                let taken = Taken::default();
                let shows = Rc::clone(&owner);
                threads.spawn("owner", move || show(&shows));
                let own = taken.clone();
                threads.spawn("thief", move || claim(&thief, &own));
                threads.finally(move || taken.all(&owner, 4));
            });
        }
    }
}

/// What an owner leaves is taken by what it has opened.
#[test]
fn what_is_left_is_seen_by_who_takes_it() {
    clean(1, |threads| {
        let (owner, thief) = queue(Full, 0);
        let taken = Taken::default();
        threads.spawn("owner", move || {
            owner.push(0);
            drop(owner);
        });
        let (own, last) = (taken.clone(), thief.clone());
        threads.spawn("thief", move || steal(&thief, &own));
        threads.finally(move || {
            taken.add(std::iter::from_fn(|| last.steal().success()));
            assert_eq!(*taken.0.borrow(), [0]);
        });
    });
}

/// There is always a task: one is pushed before another is taken, and who takes that knows it.
fn never_empty(
    look: impl Fn(&super::Thief<u64, Full, Simulated>) -> bool + Copy + 'static,
) -> impl Fn(&mut Threads) {
    move |threads| {
        let (owner, thief) = open(Full, 1);
        let pushes = Rc::clone(&owner);
        threads.spawn("owner", move || pushes.push(1));
        let takes = thief.clone();
        threads.spawn("thief", move || {
            // Of two it takes one. It has seen both by what is open, without a fence.
            let head = takes.shared.thieves.head.load(Ordering::Acquire);
            if opened(head, takes.shared.thieves.open.load(Ordering::Acquire)) == 2 {
                let _ = takes.take_from(head, 1);
            }
        });
        threads.spawn("looks", move || assert!(!look(&thief), "it was never empty"));
        threads.finally(move || drop(owner));
    }
}

#[test]
fn a_queue_is_not_said_to_be_empty_while_it_has_a_task() {
    clean(1, never_empty(|thief| thief.look().is_empty()));
    clean(1, never_empty(|thief| thief.claim_of_all(|_| 1).is_empty()));
    clean(1, never_empty(|thief| thief.steal().is_empty()));
    clean(1, never_empty(super::Thief::is_empty));
    clean(1, never_empty(|thief| matches!(thief.len(), 0)));
}

/// A thief has seen the task. If it is told that there is none, it gets none, though the owner is
/// popping it.
fn gone(
    look: impl Fn(&super::Thief<u64, Full, Simulated>) -> bool + Copy + 'static,
) -> impl Fn(&mut Threads) {
    move |threads| {
        let (owner, thief) = open(Full, 1);
        assert_eq!(thief.steal(), Steal::Success(0));
        let works = Rc::clone(&owner);
        threads.spawn("owner", move || {
            works.push(1);
            works.pop();
        });
        threads.spawn("thief", move || {
            if thief.shared.owner.tail.load(Ordering::Relaxed) == 2 && look(&thief) {
                Simulated::full();
                assert!(!thief.steal().is_success(), "it was said to be empty, and no task came");
            }
        });
        threads.finally(move || drop(owner));
    }
}

#[test]
fn what_is_said_to_be_gone_is_gone() {
    clean(2, gone(|thief| thief.look().is_empty()));
    clean(2, gone(|thief| thief.claim_of_all(|_| 1).is_empty()));
    clean(2, gone(|thief| thief.steal().is_empty()));
}
