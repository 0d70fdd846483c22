//! Searches under the memory model of C11 that end within a test's time. Threads run one after the
//! other then, but for a few changes between steps, and each load may read what is not the latest.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use poach_check::{Config, Coverage, Threads, explore};

/// No execution with at most `preemptions` preemptions is wrong: all of them run, or the first
/// `most`.
pub(crate) fn clean(preemptions: u32, most: u64, model: impl Fn(&mut Threads)) {
    let report = explore(&Config::c11().within(preemptions, most), &model);
    // Nothing was found, and nothing but these bounds ended the search.
    assert!(report.coverage().is_some(), "{:?}\n{:?}", report.verdict, report.counterexample);
}

/// The same, of all executions with that number of preemptions.
#[allow(dead_code, reason = "not every program has models that are small enough")]
pub(crate) fn clean_all(preemptions: u32, model: impl Fn(&mut Threads)) {
    let report = explore(&Config::c11().within(preemptions, u64::MAX), &model);
    let wanted = Coverage::Preemptions(preemptions);
    assert_eq!(report.clean(wanted), Ok(()), "{:?}", report.counterexample);
}
