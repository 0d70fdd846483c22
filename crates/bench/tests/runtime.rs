//! The suite `runtime` whole. A program of its own with one test: a case of two workers fails where
//! the second one gets no processor, as it does beside other tests that keep both of them busy.

#![forbid(unsafe_code)]

use poach_bench::{Plan, Runtime, Session, Size};

#[test]
fn every_case_gives_a_figure() {
    let plan = Plan { rounds: 1, size: Size::Tiny, workers: vec![1, 2], ..Plan::quick() };
    let session = Session::new(Plan { budget: None, ..plan });
    session.run(&Runtime, &|_| {}).unwrap();
    let document = session.document();
    assert_eq!(document.failures, []);
    let idle = if cfg!(target_os = "linux") { 2 } else { 0 };
    // Four sizes of scopes and four kinds of calls, by two systems on one worker and on two. The
    // tree by three systems, and once sequentially. Four sorts by two, and once sequentially. Two
    // workloads that take two workers. Regions from outside and inside by three systems, and
    // installed by two.
    assert_eq!(
        document.rows.len(),
        (4 + 4) * 2 * 2 + 3 * 2 + 1 + 4 * (2 * 2 + 1) + 2 * 2 + (3 + 2 + 3) * 2 + idle
    );
    for row in &document.rows {
        // A pool that sleeps well takes none.
        let positive = row.median > 0.0 || row.workload == "idle" && row.median == 0.0;
        assert!(positive, "{row:?}");
    }
}
