//! "Empty" means empty, while tasks come behind the looker's back.
//!
//! In each scene ([`poach_models::emptiness`]) there is a task in the pool at every instant. Each
//! must fail where announcements are not heard, as if they were not read again, or not made.
//!
//! The searches have bounds on preemptions and on executions. The memory is sequentially
//! consistent: the question is the order of looks and takes. (The stores of an announcement and of
//! the take leave a store buffer in their order.)

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Coverage, Kind, Threads, fail};
use poach_models::emptiness::{behind, pass};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Policy, Taker};

use crate::scenes::{
    Hidden, Hiding, clean, conc_bag, covers, must_fail, salsa, salsa_cas, unheard, ws_lifo, ws_msq,
};

fn bounded(preemptions: u32) -> Config {
    Config::sequential().within(preemptions, 150_000)
}

/// There is one consumer, which looks, and two tasks. A second consumer comes and steals one, so
/// that the other is in its pool; a task comes to the first pool, and the other is taken.
fn comes<P: Mechanism<u32> + 'static>(threads: &mut Threads, pools: P)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    let pools = Arc::new(pools);
    let mut there = pools.producer().expect("memory");
    let mut here = pools.producer().expect("memory");
    let mut looker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    assert!((1..=2).all(|task| there.produce_force(0, task).is_ok()));
    let kept = Rc::new(RefCell::new(Vec::new()));
    let (keep, comes) = (Rc::clone(&kept), Arc::clone(&pools));
    threads.spawn("newcomer", move || {
        let mut second = comes.consumer().expect("memory");
        second.steal(0);
        assert!(here.produce_force(0, 3).is_ok());
        second.consume();
        keep.borrow_mut().push((here, second));
    });
    threads.spawn("looker", move || {
        if looker.check_empty() {
            fail(Kind::FalseEmpty, "it is said to be empty, and never was");
        }
    });
    threads.finally(move || drop((kept, there, pools)));
}

/// One traversal is enough where nobody else takes, and who comes to take is noticed.
#[test]
fn one_consumer_looks_once() {
    let pools = || salsa(4).expect("memory");
    covers("salsa", &Config::sequential(), Coverage::Complete, |threads| comes(threads, pools()));
    must_fail("salsa", &Config::sequential(), |threads| {
        comes(threads, Hiding::new(pools(), Hidden::Arrivals));
    });
    clean("ws-msq", &bounded(3), |threads| comes(threads, ws_msq().expect("memory")));
    clean("conc-bag", &bounded(3), |threads| comes(threads, conc_bag(2).expect("memory")));
}

/// (What else must fail, a looker that goes by too seldom, is in `thefts.rs`.)
fn never_empty<P: Mechanism<u32> + 'static>(name: &str, make: fn() -> Option<P>)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    clean(name, &bounded(4), pass(make));
    clean(name, &bounded(3), behind(make));
    must_fail(name, &bounded(2), pass(unheard(make)));
}

#[test]
fn salsa_is_not_said_to_be_empty() {
    never_empty("salsa", || salsa(4));
}

#[test]
fn salsa_cas_is_not_said_to_be_empty() {
    never_empty("salsa-cas", || salsa_cas(4));
}

#[test]
fn a_bag_is_not_said_to_be_empty() {
    never_empty("conc-bag", || conc_bag(2));
}

#[test]
fn ws_msq_is_not_said_to_be_empty() {
    never_empty("ws-msq", ws_msq);
}

#[test]
fn ws_lifo_is_not_said_to_be_empty() {
    never_empty("ws-lifo", ws_lifo);
}
