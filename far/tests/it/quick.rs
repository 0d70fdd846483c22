//! A minute's worth of the other files, with two ranks: `cargo xtask mpi --quick`.

#![forbid(unsafe_code)]

use crate::launch::{jobs, program, run};

#[test]
fn a_tree_has_its_published_size_by_messages_and_by_windows() {
    for steal in ["messages", "window"] {
        let arguments = ["uts", "T1", "--json", "--threads", "1", "--steal", steal];
        let document = run(2, program(), &arguments).document();
        assert_eq!(document["nodes"], 4_130_071, "{steal}");
    }
}

#[test]
fn calls_wait_for_both_halves() {
    let arguments = ["n-queens", "9", "--by-join", "--json", "--threads", "2"];
    assert_eq!(run(2, program(), &arguments).document()["solutions"], 352);
    assert_eq!(run(2, &jobs(), &["ordered"]).stdout(), "true\n");
    assert_eq!(run(2, &jobs(), &["divide"]).stdout(), "true\n");
    assert_eq!(run(2, &jobs(), &["forks"]).stdout(), "true\n");
}

#[test]
fn a_panic_ends_the_job_with_its_rank() {
    let ran = run(2, &jobs(), &["panic"]);
    assert!(!ran.output.status.success());
    let message = "jobs: rank 1: a task panicked: as it was told to";
    assert!(ran.stderr().contains(message), "{}", ran.stderr());
}

#[test]
fn jobs_with_delays_between_their_ranks_run_each_task_once() {
    for steal in ["messages", "window"] {
        let ran = run(2, program(), &["soak", "--runs", "100", "--steal", steal, "--json"]);
        let document = ran.document();
        assert_eq!(document["wrong"].as_array().unwrap().len(), 0, "{document}");
        // Stolen, or by lifelines: which of them is up to the scheduler of a machine that is
        // shared.
        assert!(document["balance"]["tasks"].as_u64().unwrap() > 0, "{document}");
    }
}
