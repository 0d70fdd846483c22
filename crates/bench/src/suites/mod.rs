//! The suites, a module each: what each measures, as a list of cases.

pub(crate) mod deque;
pub(crate) mod faces;
pub(crate) mod fork_join;
pub(crate) mod graphs;
pub(crate) mod pool;
pub(crate) mod processor;
pub(crate) mod runtime;
pub(crate) mod simulate;
pub(crate) mod walk;

use self::deque::Deque;
use self::faces::Faces;
use self::fork_join::ForkJoin;
use self::graphs::Graphs;
use self::pool::Pool;
use self::processor::Processor;
use self::runtime::Runtime;
use self::simulate::Simulate;
use self::walk::Walk;
use crate::Suite;

/// Every suite there is.
pub fn suites() -> Vec<Box<dyn Suite>> {
    vec![
        Box::new(Deque),
        Box::new(Faces),
        Box::new(ForkJoin),
        Box::new(Graphs),
        Box::new(Pool),
        Box::new(Processor),
        Box::new(Runtime),
        Box::<Simulate>::default(),
        Box::new(Walk),
    ]
}

/// The suite of this name.
///
/// # Errors
///
/// If there is none; the message says which there are.
pub fn find(name: &str) -> anyhow::Result<Box<dyn Suite>> {
    let mut suites = suites();
    if let Some(at) = suites.iter().position(|suite| suite.name() == name) {
        return Ok(suites.swap_remove(at));
    }
    let names: Vec<_> = suites.iter().map(|suite| suite.name()).collect();
    anyhow::bail!("there is no suite `{name}`: there is {}", names.join(", "))
}
