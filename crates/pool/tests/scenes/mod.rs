//! What the models of the pools share: the pools, searches that must find nothing or something, and a mechanism whose announcements nobody
//! hears.

use std::sync::Arc;

use poach_explore::{Config, Simulated, Strategy, Threads, Verdict, explore};
use poach_memory::Asymmetric;
use poach_pool::bag::ConcBag;
use poach_pool::mechanism::{Mechanism, NoHandle};
use poach_pool::ms_queue::WsMsq;
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::stack::WsLifo;

/// In chunks of so many tasks.
pub(crate) fn salsa(chunk: usize) -> Option<Salsa<u32, Simulated, Asymmetric<Simulated>>> {
    Salsa::new(chunk)
}
pub(crate) fn salsa_cas(chunk: usize) -> Option<SalsaCas<u32, Simulated>> {
    SalsaCas::new(chunk)
}
pub(crate) fn conc_bag(chunk: usize) -> Option<ConcBag<u32, Simulated>> {
    ConcBag::new(chunk)
}
pub(crate) fn ws_msq() -> Option<WsMsq<u32, Simulated>> {
    WsMsq::new()
}
pub(crate) fn ws_lifo() -> Option<WsLifo<u32, Simulated>> {
    WsLifo::new()
}

/// `config` with every execution of at most so many preemptions, but no more than `executions`.
pub(crate) fn within(config: Config, preemptions: u32, executions: u64) -> Config {
    let strategy =
        Strategy::Exhaustive { preemptions: Some(preemptions), reduce: true, prune: true };
    Config { strategy, shorten: 0, max_executions: executions, ..config }
}

/// What a search finds. It is printed, with the number of its executions.
fn search(name: &str, config: &Config, model: impl Fn(&mut Threads)) -> Verdict {
    let report = explore(config, &model);
    println!(
        "{name}: {:?}, {} executions, {:?}, {:?}",
        report.verdict, report.executions, report.elapsed, report.counterexample
    );
    report.verdict
}

/// No execution of those that `config` searches is wrong.
pub(crate) fn clean(name: &str, config: &Config, model: impl Fn(&mut Threads)) {
    let verdict = search(name, config, model);
    assert!(matches!(verdict, Verdict::Clean | Verdict::Incomplete(_)), "{name}: {verdict:?}");
}

/// Some execution is.
pub(crate) fn must_fail(name: &str, config: &Config, model: impl Fn(&mut Threads)) {
    let verdict = search(name, config, model);
    assert!(matches!(verdict, Verdict::Violation(_)), "{name}: {verdict:?}");
}

/// A mechanism whose announcements nobody hears.
#[derive(Debug)]
pub(crate) struct Unheard<P>(Arc<P>);

pub(crate) fn unheard<P>(make: impl Fn() -> Option<P>) -> impl Fn() -> Option<Unheard<P>> {
    move || Some(Unheard(Arc::new(make()?)))
}

impl<P: Mechanism<u32>> Mechanism<u32> for Unheard<P> {
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
    fn announced(&self, _: usize) -> u64 {
        0
    }
}
