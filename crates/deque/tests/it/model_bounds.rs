//! `Bounds`, the word that holds `tail` and `split`: a thief that claims what the owner has shared
//! sees what the owner wrote before.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.
#![forbid(unsafe_code)]

use std::sync::Arc;

use poach_check::{
    Config, Demand, Kind, Orderings, Report, Simulated, Threads, Verdict, explore, fail,
};
use poach_deque::split::{Bounds, Claim};
use poach_memory::Ordering::Relaxed;
use poach_memory::{Memory, Word};

fn sharing(threads: &mut Threads) {
    let bounds = Arc::new(Bounds::<Simulated>::new(0));
    let task = Arc::new(<Simulated as Memory>::Word::new(0));
    let (shares, writes) = (Arc::clone(&bounds), Arc::clone(&task));
    threads.spawn("owner", move || {
        writes.store(7, Relaxed);
        assert!(shares.share(0, 0, 1));
    });
    threads.spawn("thief", move || {
        let claim = bounds.claim(|_| 1);
        if claim == (Claim::Taken { first: 0, count: 1 }) && task.load(Relaxed) != 7 {
            fail(Kind::Invented, "a thief has claimed a task and reads another");
        }
    });
}

fn explored(orderings: Orderings) -> Report {
    explore(&Config { orderings, shorten: 0, ..Config::c11() }, &sharing)
}

#[test]
fn what_is_shared_is_seen_by_the_thief_that_claims_it() {
    let report = explored(Orderings::Listed);
    assert_eq!(report.verdict, Verdict::Clean);
    // Without the release of `share` the thief may read what was there before.
    let release = report.demands.into_iter().find(|demand| demand.demand == Demand::Release);
    let weaker = explored(Orderings::Without(release.expect("`share` releases")));
    assert!(matches!(weaker.verdict, Verdict::Violation(_)), "{:?}", weaker.verdict);
}
