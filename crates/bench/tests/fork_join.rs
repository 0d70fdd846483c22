//! Every program under every system, with 1, 2, 3 and 8 workers: its result is the one that an
//! independent computation gives.

use poach_bench::{ForkJoin, Graphs, Plan, Session, Size, Suite};

fn all_are_right(suite: &dyn Suite) {
    let plan = Plan {
        size: Size::Tiny,
        workers: vec![1, 2, 3, 8],
        rounds: 3,
        budget: None,
        ..Plan::full()
    };
    let cases = plan.cases(suite).unwrap().len();
    let session = Session::new(plan);
    session.run(suite, &|_| {}).unwrap();
    let document = session.document();
    assert_eq!(document.failures, []);
    assert_eq!(document.rows.len(), cases);
    assert!(document.rows.iter().all(|row| row.samples.len() == 3));
}

#[test]
fn every_program_is_right_under_every_system() {
    all_are_right(&ForkJoin);
}

#[test]
fn every_search_is_right_on_every_queue() {
    all_are_right(&Graphs);
}

#[test]
fn each_system_has_its_rows() {
    let plan = Plan { size: Size::Tiny, workers: vec![1, 2], ..Plan::quick() };
    let cases = plan.cases(&ForkJoin).unwrap();
    let count = |system: &str| {
        cases.iter().filter(|case| case.workload == "fib" && case.system == system).count()
    };
    assert_eq!([count("sequential"), count("split"), count("rayon"), count("chili")], [1, 2, 2, 2]);
    assert_eq!(ForkJoin.name(), "fork-join");
}
