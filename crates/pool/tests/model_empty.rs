//! "Empty" means empty: the five pools, on the simulated machine, while tasks come behind the looker's back.
//!
//! In each scene there is a task in the pool at every instant (the scenes are
//! [`poach_explore::queues::emptiness`]); the policy must never say that there is none. Each scene must fail
//! where announcements are not heard, which is the same as if the looker did not read them again, or as if
//! nothing announced what it took.
//!
//! The searches have a bound on preemptions, as a model of a looker and two consumers has too many
//! executions without, and one on executions; each prints how many it ran and which of the two ended it. The
//! memory is sequentially consistent: what is asked is the order of looks and takes. (The store of an
//! announcement and that of the take leave a store buffer in their order.)

#![forbid(unsafe_code)]

#[allow(dead_code, reason = "other models use the rest")]
mod scenes;

use poach_explore::Config;
use poach_explore::queues::emptiness::{ENOUGH, behind, pass};
use poach_pool::mechanism::Mechanism;

use scenes::{clean, conc_bag, must_fail, salsa, salsa_cas, unheard, ws_lifo, ws_msq};

fn bounded(preemptions: u32) -> Config {
    Config::sequential().within(preemptions, 150_000)
}

/// Two scenes, clean where announcements are heard and wrong where they are not. (What else must fail, a looker
/// that goes by too seldom, is in `thefts.rs`.)
fn never_empty<P: Mechanism<u32> + 'static>(name: &str, make: fn() -> Option<P>)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    clean(name, &bounded(4), pass(make, ENOUGH));
    clean(name, &bounded(3), behind(make, ENOUGH));
    must_fail(name, &bounded(2), pass(unheard(make), ENOUGH));
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
