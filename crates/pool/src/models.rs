//! For the modules `models`, which Miri cannot run: the checker's threads switch stacks.

use poach_check::{Config, Coverage, Threads, explore};

pub(crate) fn clean(model: impl Fn(&mut Threads)) {
    clean_on(&Config::c11(), model);
}

pub(crate) fn clean_on_both(model: impl Fn(&mut Threads)) {
    clean_on(&Config::c11(), &model);
    clean_on(&Config::default(), model);
}

fn clean_on(machine: &Config, model: impl Fn(&mut Threads)) {
    let report = explore(machine, &model);
    assert_eq!(report.clean(Coverage::Complete), Ok(()), "{:?}", report.counterexample);
}
