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

use std::sync::Arc;

use poach_explore::queues::emptiness::{ENOUGH, behind, pass};
use poach_explore::{Config, Simulated, Strategy, Threads, Verdict, explore};
use poach_memory::Asymmetric;
use poach_pool::bag::ConcBag;
use poach_pool::mechanism::{Mechanism, NoHandle};
use poach_pool::ms_queue::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::stack::WsLifo;

/// What a looker hears of the announcements.
trait Ear: std::fmt::Debug + Send + Sync + 'static {
    fn hears(announced: u64) -> u64;
}

/// Nothing.
#[derive(Debug)]
struct Deaf;
impl Ear for Deaf {
    fn hears(_: u64) -> u64 {
        0
    }
}

/// A mechanism whose announcements are heard so.
#[derive(Debug)]
struct Heard<P, E>(Arc<P>, std::marker::PhantomData<E>);

impl<P: Mechanism<u32>, E: Ear> Mechanism<u32> for Heard<P, E> {
    type Producer = P::Producer;
    type Consumer = P::Consumer;

    fn producer(self: &Arc<Self>) -> Result<P::Producer, NoHandle> {
        self.0.producer()
    }
    fn consumer(self: &Arc<Self>) -> Result<P::Consumer, NoHandle> {
        self.0.consumer()
    }
    fn pools(&self) -> usize {
        self.0.pools()
    }
    fn is_held(&self, pool: usize) -> bool {
        self.0.is_held(pool)
    }
    fn changes(&self) -> u64 {
        self.0.changes()
    }
    fn announced(&self, pool: usize) -> u64 {
        E::hears(self.0.announced(pool))
    }
}

fn heard<P: Mechanism<u32>, E: Ear>(
    make: impl Fn() -> Option<P>,
) -> impl Fn() -> Option<Heard<P, E>> {
    move || Some(Heard(Arc::new(make()?), std::marker::PhantomData))
}

fn salsa() -> Option<Salsa<u32, Simulated, Asymmetric<Simulated>>> {
    Salsa::new(4)
}
fn salsa_cas() -> Option<SalsaCas<u32, Simulated>> {
    SalsaCas::new(4)
}
fn conc_bag() -> Option<ConcBag<u32, Simulated>> {
    ConcBag::new(2)
}
fn ws_msq() -> Option<WsMsq<u32, Simulated>> {
    WsMsq::new()
}
fn ws_lifo() -> Option<WsLifo<u32, Simulated>> {
    WsLifo::new()
}

fn within(preemptions: u32) -> Config {
    let strategy =
        Strategy::Exhaustive { preemptions: Some(preemptions), reduce: true, prune: true };
    Config { strategy, shorten: 0, max_executions: 150_000, ..Config::sequential() }
}

/// No execution is wrong of those within the bound; all of them, but where there are more than 150,000.
fn clean(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    let report = explore(&within(preemptions), &model);
    println!(
        "{name}: {:?}, {} executions, {:?}",
        report.verdict, report.executions, report.elapsed
    );
    assert!(
        matches!(report.verdict, Verdict::Clean | Verdict::Incomplete(_)),
        "{name}: {:?}\n{:?}",
        report.verdict,
        report.counterexample
    );
}

fn must_fail(name: &str, preemptions: u32, model: impl Fn(&mut Threads)) {
    let report = explore(&within(preemptions), &model);
    println!(
        "{name}: {:?}, {} executions, {:?}",
        report.verdict, report.executions, report.elapsed
    );
    assert!(matches!(report.verdict, Verdict::Violation(_)), "{name}: {:?}", report.verdict);
}

/// Two scenes, clean where announcements are heard and wrong where they are not. (What else must fail, a looker
/// that goes by too seldom, is in `thefts.rs`.)
fn never_empty<P: Mechanism<u32> + 'static>(name: &str, make: fn() -> Option<P>)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    clean(name, 4, pass(make, ENOUGH));
    clean(name, 3, behind(make, ENOUGH));
    must_fail(name, 2, pass(heard::<P, Deaf>(make), ENOUGH));
}

#[test]
fn salsa_is_not_said_to_be_empty() {
    never_empty("salsa", salsa);
}

#[test]
fn salsa_cas_is_not_said_to_be_empty() {
    never_empty("salsa-cas", salsa_cas);
}

#[test]
fn a_bag_is_not_said_to_be_empty() {
    never_empty("conc-bag", conc_bag);
}

#[test]
fn ws_msq_is_not_said_to_be_empty() {
    never_empty("ws-msq", ws_msq);
}

#[test]
fn ws_lifo_is_not_said_to_be_empty() {
    never_empty("ws-lifo", ws_lifo);
}
