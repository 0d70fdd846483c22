//! What the models of the pools share.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use poach_check::{Config, Coverage, Report, Simulated, Threads, Verdict, explore};
use poach_memory::{Asymmetric, Full};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Mechanism, NoHandle};
use poach_pool::salsa::{Salsa, SalsaCas};

pub(crate) fn salsa(chunk: usize) -> Option<Salsa<u32, Simulated, Asymmetric<Simulated>>> {
    Salsa::new(chunk)
}
/// The same, with a fence of the consumer's own.
pub(crate) fn fenced(chunk: usize) -> Option<Salsa<u32, Simulated, Full>> {
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

pub(crate) type Kept<T> = Rc<RefCell<Vec<T>>>;

/// What a search finds. It is printed, with the number of its executions.
fn search(name: &str, config: &Config, model: impl Fn(&mut Threads)) -> Report {
    let report = explore(config, &model);
    println!(
        "{name}: {:?}, {} executions, {:?}, {:?}",
        report.verdict, report.executions, report.elapsed, report.counterexample
    );
    report
}

/// Nothing is wrong, and nothing but the bounds of `config` ended the search.
pub(crate) fn clean(name: &str, config: &Config, model: impl Fn(&mut Threads)) {
    let report = search(name, config, model);
    assert!(report.coverage().is_some(), "{name}: {:?}", report.verdict);
}

pub(crate) fn covers(name: &str, config: &Config, wanted: Coverage, model: impl Fn(&mut Threads)) {
    assert_eq!(search(name, config, model).clean(wanted), Ok(()), "{name}");
}

pub(crate) fn must_fail(name: &str, config: &Config, model: impl Fn(&mut Threads)) {
    let verdict = search(name, config, model).verdict;
    assert!(matches!(verdict, Verdict::Violation(_)), "{name}: {verdict:?}");
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// That a pool may have become empty.
    Announcements,
    /// That consumers have come: there seems to be one pool.
    Arrivals,
}

#[derive(Debug)]
pub(crate) struct Hiding<P>(Arc<P>, Hidden);

impl<P> Hiding<P> {
    pub(crate) fn new(mechanism: P, hidden: Hidden) -> Self {
        Hiding(Arc::new(mechanism), hidden)
    }
}

pub(crate) fn unheard<P>(make: impl Fn() -> Option<P>) -> impl Fn() -> Option<Hiding<P>> {
    move || Some(Hiding::new(make()?, Hidden::Announcements))
}

impl<P: Mechanism<u32>> Mechanism<u32> for Hiding<P> {
    type Producer = P::Producer;
    type Consumer = P::Consumer;

    fn producer(self: &Arc<Self>) -> Result<P::Producer, NoHandle> {
        self.0.producer()
    }
    fn consumer(self: &Arc<Self>) -> Result<P::Consumer, NoHandle> {
        self.0.consumer()
    }
    fn pools(&self) -> usize {
        if self.1 == Hidden::Arrivals { 1 } else { self.0.pools() }
    }
    fn is_held(&self, pool: usize) -> bool {
        self.0.is_held(pool)
    }
    fn changes(&self) -> u64 {
        if self.1 == Hidden::Arrivals { 0 } else { self.0.changes() }
    }
    fn announced(&self, pool: usize) -> u64 {
        if self.1 == Hidden::Announcements { 0 } else { self.0.announced(pool) }
    }
}
