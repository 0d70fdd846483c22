//! Every program under every system, with 1, 2, 3 and 8 workers: its result is the one that an
//! independent computation gives.

mod promise;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use poach_bench::{Document, ForkJoin, Graphs, Plan, Session, Size, Suite};
use poach_memory::{Machine, Memory as _};

const WORKERS: [usize; 4] = [1, 2, 3, 8];

/// Tests run at once, and the workers of two sessions on two processors mostly wait for each other: 100 to 480 s in place of 25.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn all_are_right(suite: &dyn Suite) -> Document {
    let _one_at_a_time = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    promise::with_a_bound();
    let plan = Plan {
        size: Size::Tiny,
        workers: WORKERS.to_vec(),
        rounds: 3,
        budget: None,
        // As if the standard library's threads had stacks for any tree: at this size they have.
        thread_stack: 1 << 30,
        ..Plan::full()
    };
    let cases = plan.cases(suite).unwrap().len();
    let session = Session::new(plan);
    session.run(suite, &|_| {}).unwrap();
    let document = session.document();
    assert_eq!(document.failures, []);
    assert_eq!(document.rows.len(), cases);
    assert!(document.rows.iter().all(|row| row.samples.len() == 3));
    document
}

/// That each of the programs has run on each of the systems with each number of workers.
fn each_on_each(document: &Document, suite: &str, programs: &[&str], systems: &[&str]) {
    for program in programs {
        assert!(document.row(suite, program, "sequential", 1).is_some(), "{program}");
        for (system, workers) in systems.iter().flat_map(|s| WORKERS.map(|workers| (s, workers))) {
            let row = document.row(suite, program, system, workers);
            assert!(row.is_some(), "{program} has not run on {system} with {workers}");
        }
    }
    // And that the lists above have all that there is.
    let there = |name: fn(&poach_bench::Row) -> &str| -> BTreeSet<&str> {
        document.rows.iter().map(name).collect()
    };
    assert_eq!(there(|row| &row.workload), programs.iter().copied().collect());
    let systems = systems.iter().copied().chain(["sequential"]).collect();
    assert_eq!(there(|row| &row.system), systems);
}

#[test]
fn every_program_is_right_under_every_system() {
    let mut systems = vec![
        "split",
        "poach-join",
        "rayon",
        "chili",
        "mutex",
        "the",
        "asymmetric-the",
        "thep-infinite",
        "chase-lev",
        "asymmetric-cl",
        "private",
        "split-queue",
    ];
    if Machine::total_store_order() {
        systems.extend(["ff-the", "ff-the-4", "thep", "ff-cl"]);
    }
    if Machine::total_store_order() && Machine::asymmetric() {
        systems.push("resolved");
    }
    let programs = [
        "fib",
        "tree-sum",
        "tree-sum-1000",
        "queens",
        "uts-t1",
        "uts-t2l",
        "uts-t3l",
        "matmul",
        "jacobi",
        "quicksort",
        "integrate",
        "knapsack",
        "cholesky",
        "heat",
        "lud",
        "strassen",
        "fft",
        "mergesort",
        "sieve",
        "life",
    ];
    let mut document = all_are_right(&ForkJoin);
    // The queue without a fence is for one worker alone.
    let unfenced = |row: &poach_bench::Row| row.system == "unfenced-the";
    assert_eq!(document.rows.iter().filter(|row| unfenced(row)).count(), programs.len());
    assert!(document.rows.iter().filter(|row| unfenced(row)).all(|row| row.workers == 1));
    document.rows.retain(|row| !unfenced(row));
    each_on_each(&document, "fork-join", &programs, &systems);
}

#[test]
fn every_search_is_right_on_every_queue() {
    let mut systems = vec![
        "chase-lev",
        "asymmetric-cl",
        "the",
        "thep-infinite",
        "split",
        "private",
        "mutex",
        "idempotent-lifo",
        "idempotent-fifo",
        "idempotent-deque",
    ];
    if Machine::total_store_order() {
        systems.extend(["ff-cl", "ff-the", "thep"]);
    }
    if Machine::total_store_order() && Machine::asymmetric() {
        systems.push("resolved");
    }
    let programs = [
        "closure-k-graph",
        "closure-random",
        "closure-torus",
        "tree-k-graph",
        "tree-random",
        "tree-torus",
    ];
    each_on_each(&all_are_right(&Graphs), "graphs", &programs, &systems);
}

#[test]
fn a_program_of_deep_recursion_has_no_system_of_small_stacks() {
    let plan = Plan { size: Size::Tiny, workers: vec![1, 2], ..Plan::quick() };
    let cases = plan.cases(&ForkJoin).unwrap();
    let workers = |program: &str| -> Vec<usize> {
        let there = cases.iter().filter(|case| case.workload == program && case.system == "chili");
        there.map(|case| case.workers).collect()
    };
    assert_eq!((workers("fib"), workers("uts-t3l")), (vec![1, 2], vec![1]));
}
