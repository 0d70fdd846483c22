//! The five pools under the memory model of C11: what a thread must have seen of those before it,
//! where the order of steps alone would show nothing.
//!
//! Most searches have one preemption or none: each load may read what is not the latest.

#![forbid(unsafe_code)]

use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Kind, Threads, fail};
use poach_models::emptiness::{announcements, pass};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Policy, Taker};

use crate::scenes::{
    self, Kept, conc_bag, fenced, must_fail, salsa, salsa_cas, unheard, ws_lifo, ws_msq,
};

/// This number of executions takes less than a second.
const MOST: u64 = 4_000;

/// All executions with up to `preemptions` preemptions run, or the first [`MOST`].
fn clean(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    scenes::clean(name, &Config::c11().within(preemptions, MOST), model);
}

/// As [`pass`], and both consumers then look whether there is more.
fn pass_on<P: Mechanism<u32> + 'static>(make: impl Fn() -> Option<P>) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| {
        let pools = Arc::new(make().expect("memory"));
        let mut looker = Taker::at(&pools, Policy::default(), 0).expect("memory");
        let consumers = [(); 2].map(|()| pools.consumer().expect("memory"));
        let [mut zero, mut one, mut two] = [(); 3].map(|()| pools.producer().expect("memory"));
        assert!(two.produce_force(2, 1).is_ok());
        let (lookers, others) = (Kept::default(), Kept::default());
        let keep = Rc::clone(&lookers);
        threads.spawn("looker", move || {
            if looker.check_empty() {
                fail(Kind::FalseEmpty, "the pool is said to be empty, and never was");
            }
            keep.borrow_mut().push(looker);
        });
        let [mut second, mut first] = consumers;
        let keep = Rc::clone(&others);
        threads.spawn("first", move || {
            assert!(one.produce_force(1, 2).is_ok());
            for _ in 0..2 {
                first.consume();
            }
            keep.borrow_mut().push((first, one));
        });
        let keep = Rc::clone(&others);
        threads.spawn("second", move || {
            assert!(zero.produce_force(0, 3).is_ok());
            for _ in 0..2 {
                second.consume();
            }
            keep.borrow_mut().push((second, zero));
        });
        threads.finally(move || drop((pools, two, lookers, others)));
    }
}

#[test]
fn salsa_is_not_said_to_be_empty() {
    clean("salsa", 0, pass(|| salsa(4)));
}

#[test]
fn what_has_gone_from_salsa_is_passed_over() {
    clean("salsa", 0, pass_on(|| salsa(4)));
}

#[test]
fn salsa_cas_is_not_said_to_be_empty() {
    clean("salsa-cas", 0, pass(|| salsa_cas(4)));
}

#[test]
fn what_has_gone_from_salsa_cas_is_passed_over() {
    clean("salsa-cas", 0, pass_on(|| salsa_cas(4)));
}

#[test]
fn chunks_of_one_are_not_said_to_be_empty() {
    clean("salsa", 0, pass(|| salsa(1)));
}

#[test]
fn chunks_of_one_that_have_gone_are_passed_over() {
    clean("salsa", 0, pass_on(|| salsa(1)));
}

#[test]
fn chunks_of_one_of_salsa_cas_are_not_said_to_be_empty() {
    clean("salsa-cas", 0, pass(|| salsa_cas(1)));
}

#[test]
fn chunks_of_one_of_salsa_cas_that_have_gone_are_passed_over() {
    clean("salsa-cas", 0, pass_on(|| salsa_cas(1)));
}

// Two preemptions: each look at a rival's pool begins with a full fence, so the looker must be
// stopped where the others come in between.

#[test]
fn a_bag_is_not_said_to_be_empty() {
    // A bag's consumers find all tasks: those of `pass_on` would take the last.
    clean("conc-bag", 2, pass(|| conc_bag(2)));
    clean("conc-bag, chunks of one", 2, pass(|| conc_bag(1)));
}

#[test]
fn ws_msq_is_not_said_to_be_empty() {
    clean("ws-msq", 2, pass(ws_msq));
}

#[test]
fn ws_lifo_is_not_said_to_be_empty() {
    clean("ws-lifo", 2, pass(ws_lifo));
}

/// Not used up: a chunk that begins another life may look for a moment as if it had a task.
#[test]
fn a_theft_is_heard_of() {
    clean("salsa", 1, announcements(|| salsa(4)));
}

/// What must fail, though no thread is preempted.
#[test]
fn a_looker_that_hears_nothing_says_that_a_pool_is_empty() {
    let config = Config::c11().within(0, Config::c11().max_executions);
    must_fail("salsa unheard", &config, pass(unheard(|| salsa(4))));
    must_fail("salsa unheard", &config, pass_on(unheard(|| salsa(4))));
}

#[derive(Clone, Copy)]
enum Beside {
    Nobody,
    Producer,
    Thief,
}

/// The owner has taken the first task of a pool. A producer puts the next, and the owner takes.
fn fed<P: Mechanism<u32> + 'static>(
    make: impl Fn() -> Option<P>,
    beside: Beside,
) -> impl Fn(&mut Threads)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    move |threads| {
        let pools = Arc::new(make().expect("memory"));
        let [mut first, mut second] = [(); 2].map(|()| pools.producer().expect("memory"));
        let [mut owner, mut thief] = [(); 2].map(|()| pools.consumer().expect("memory"));
        let (consumers, fed, taken) = (Kept::default(), Kept::default(), Kept::default());
        assert!(first.produce_force(0, 1).is_ok());
        taken.borrow_mut().extend(owner.consume());
        let keep = Rc::clone(&fed);
        threads.spawn("producer", move || {
            assert!(first.produce_force(0, 2).is_ok());
            keep.borrow_mut().push(first);
        });
        let (keep, own) = (Rc::clone(&consumers), Rc::clone(&taken));
        threads.spawn("owner", move || {
            let task = owner.consume();
            own.borrow_mut().extend(task);
            keep.borrow_mut().push(owner);
        });
        let mut most = 2;
        match beside {
            Beside::Nobody => {
                fed.borrow_mut().push(second);
                consumers.borrow_mut().push(thief);
            }
            Beside::Producer => {
                most = 3;
                consumers.borrow_mut().push(thief);
                let keep = Rc::clone(&fed);
                threads.spawn("another", move || {
                    assert!(second.produce_force(0, 3).is_ok());
                    keep.borrow_mut().push(second);
                });
            }
            Beside::Thief => {
                fed.borrow_mut().push(second);
                let (keep, own) = (Rc::clone(&consumers), Rc::clone(&taken));
                threads.spawn("thief", move || {
                    let task = thief.steal(0);
                    own.borrow_mut().extend(task);
                    let task = thief.consume();
                    own.borrow_mut().extend(task);
                    keep.borrow_mut().push(thief);
                });
            }
        }
        threads.finally(move || {
            let mut taken = taken.borrow_mut();
            for consumer in consumers.borrow_mut().iter_mut() {
                for from in 0..2 {
                    taken.extend(std::iter::from_fn(|| consumer.steal(from)));
                }
                taken.extend(std::iter::from_fn(|| consumer.consume()));
            }
            taken.sort_unstable();
            if !taken.iter().copied().eq(1..=most) {
                fail(Kind::Lost, format!("of 1 to {most} were taken {taken:?}"));
            }
            drop((pools, fed));
        });
    }
}

fn is_seen_by_who_takes_it<P: Mechanism<u32> + 'static>(name: &str, make: impl Fn() -> Option<P>)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    for beside in [Beside::Nobody, Beside::Producer, Beside::Thief] {
        clean(name, 1, fed(&make, beside));
    }
}

#[test]
fn a_task_of_salsa_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("salsa", || salsa(3));
}

#[test]
fn a_task_in_a_chunk_of_one_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("salsa", || salsa(1));
}

#[test]
fn a_task_behind_full_fences_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("salsa with full fences", || fenced(2));
}

#[test]
fn a_task_of_salsa_cas_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("salsa-cas", || salsa_cas(3));
}

#[test]
fn a_task_in_a_chunk_of_one_of_salsa_cas_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("salsa-cas", || salsa_cas(1));
}

#[test]
fn a_task_of_the_rivals_is_seen_by_who_takes_it() {
    is_seen_by_who_takes_it("conc-bag", || conc_bag(1));
    is_seen_by_who_takes_it("ws-msq", ws_msq);
    is_seen_by_who_takes_it("ws-lifo", ws_lifo);
}
