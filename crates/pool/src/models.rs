//! What the models of this crate's parts have in common: a search to its end.

use poach_check::{Config, Coverage, Threads, explore};

/// Under C11 each execution is right.
pub(crate) fn clean(model: impl Fn(&mut Threads)) {
    clean_on(&Config::c11(), model);
}

/// Each execution is right, under C11 and under TSO.
pub(crate) fn clean_on_both(model: impl Fn(&mut Threads)) {
    clean_on(&Config::c11(), &model);
    clean_on(&Config::default(), model);
}

fn clean_on(machine: &Config, model: impl Fn(&mut Threads)) {
    let report = explore(machine, &model);
    assert_eq!(report.clean(Coverage::Complete), Ok(()), "{:?}", report.counterexample);
}
