//! The queues under the memory model of C11: what the matrix has of them, and what a search without
//! reductions says.

#![forbid(unsafe_code)]

use std::rc::Rc;

use poach_check::{
    Config, Consistency, Kind, Simulated, Strategy, Threads, Verdict, explore, observe,
    parse_choices,
};
use poach_deque::IdempotentFifo;
use poach_memory::{Memory, Ordering::Relaxed, Word};
use poach_models::matrix::{Extent, cases};
use poach_models::stack::{Exposes, Forks, RESULT, done, forks, late_request, wait_for};
use poach_models::taken::{Taken, Then, singles};
use poach_models::{Algorithm, Policy, Scenario, check};

#[test]
fn the_rows_of_the_quick_matrix_are_as_expected() {
    let rows: Vec<_> = cases(Extent::Quick)
        .into_iter()
        .filter(|case| case.consistency == Consistency::C11)
        .collect();
    assert!(rows.len() >= 50, "{} rows", rows.len());
    for case in rows {
        let report = case.run(&case.config());
        let found = &report.verdict;
        assert!(case.as_expected(&report), "{} {}: {found:?}", case.name, case.scene);
    }
}

#[test]
fn a_search_that_leaves_out_more_finds_the_same() {
    let subjects = [
        (Algorithm::ChaseLev, Policy::Full),
        (Algorithm::ChaseLev, Policy::Asymmetric),
        (Algorithm::ChaseLev, Policy::Unfenced),
        (Algorithm::The, Policy::Unfenced),
        (Algorithm::Fifo, Policy::Full),
        (Algorithm::Mutex, Policy::Full),
        (Algorithm::Split, Policy::Full),
        (Algorithm::IdempotentFifo, Policy::Full),
    ];
    let scenes =
        [Scenario::drain(2, 0, 1, 1), Scenario::drain(2, 0, 1, 2), Scenario::brief(0, 1, 1)];
    let (mut compared, mut refuted) = (0, 0);
    for (algorithm, policy) in subjects {
        for scene in &scenes {
            let found = |reduce, prune| {
                let strategy = Strategy::Exhaustive { preemptions: None, reduce, prune };
                let max_executions = 30_000;
                let config = Config { strategy, max_executions, shorten: 0, ..Config::c11() };
                match check(algorithm, policy, scene, &config).verdict {
                    Verdict::Clean => Some(None),
                    Verdict::Violation(found) => Some(Some(found.kind())),
                    Verdict::Incomplete(_) => None,
                }
            };
            let all = found(true, true).expect("these are small");
            for other in [found(true, false), found(false, true)].into_iter().flatten() {
                compared += 1;
                refuted += u32::from(other.is_some());
                assert_eq!(all, other, "{algorithm:?} {policy:?} {scene:?}");
            }
        }
    }
    println!("{compared} searches compared, {refuted} of them with a violation");
    assert!(compared >= 20 && refuted >= 5, "{compared} compared, {refuted} refuted");
}

#[test]
fn a_counterexample_can_be_had_again() {
    let scene = Scenario::drain(2, 0, 1, 2);
    let found = check(Algorithm::The, Policy::Unfenced, &scene, &Config::c11());
    let example = found.counterexample.expect("it has no fence");
    assert!(example.to_string().contains("newer)"), "{example}");
    let choices = parse_choices(&example.choices).unwrap();
    let again = Config { strategy: Strategy::Replay(choices), ..Config::c11() };
    let verdict = check(Algorithm::The, Policy::Unfenced, &scene, &again).verdict;
    assert!(matches!(verdict, Verdict::Violation(found) if found.kind() == Kind::Duplicate));
}

#[test]
fn what_may_be_taken_by_several_is_taken_twice() {
    let scene = Scenario::drain(1, 0, 1, 1);
    let verdict = |taken| {
        let make = || IdempotentFifo::<u64, Simulated>::with_capacity(1).unwrap();
        explore(&Config::c11(), &singles(&scene, make, taken, Then::Stays)).verdict
    };
    assert_eq!(verdict(Taken::AtLeastOnce), Verdict::Clean);
    let found = verdict(Taken::Once);
    assert!(matches!(found, Verdict::Violation(found) if found.kind() == Kind::Duplicate));
}

/// A stack of forks that shares nothing, and gives its owner `EXTRA` more than was forked.
struct Alone<const EXTRA: u64>;

impl<const EXTRA: u64> Forks for Alone<EXTRA> {
    type Owner = Vec<u64>;

    fn new(_: usize) -> Self {
        Alone
    }

    fn owner(&self) -> Vec<u64> {
        Vec::new()
    }

    fn fork(owner: &mut Vec<u64>, task: u64) {
        owner.push(task);
    }

    fn join(owner: &mut Vec<u64>) -> u64 {
        owner.pop().unwrap() + EXTRA
    }

    fn steal(&self, _: impl FnOnce()) -> bool {
        false
    }

    fn expose(&self) {}

    fn request(&self) {}

    fn shares(&self) -> bool {
        false
    }
}

#[test]
fn a_stack_of_forks_gives_back_what_was_forked() {
    let scene = Scenario::drain(2, 0, 1, 1);
    for exposes in [Exposes::AtOnce, Exposes::Later] {
        let report = explore(&Config::c11(), &forks::<Alone<0>>(&scene, exposes));
        assert_eq!(report.verdict, Verdict::Clean);
        assert!(!report.stolen);
        let found = explore(&Config::c11(), &forks::<Alone<1>>(&scene, exposes)).verdict;
        assert!(matches!(found, Verdict::Violation(found) if found.kind() == Kind::Order));
        // As if a thief had run it, and none has.
        let found = explore(&Config::c11(), &forks::<Alone<RESULT>>(&scene, exposes)).verdict;
        assert!(matches!(found, Verdict::Violation(found) if found.kind() == Kind::Lost));
    }
    // Nobody sees anything shared, so nobody asks.
    let report = explore(&Config::c11(), &late_request::<Alone<0>>);
    assert_eq!(report.verdict, Verdict::Clean);
}

#[test]
fn who_waits_for_a_result_hears_of_it() {
    let model = |says: bool| {
        move |threads: &mut Threads| {
            let status = Rc::new(<Simulated as Memory>::Word::new(0));
            let result = Rc::new(<Simulated as Memory>::Word::new(0));
            let (thief, left) = (Rc::clone(&status), Rc::clone(&result));
            threads.spawn("thief", move || {
                left.store(1, Relaxed);
                if says {
                    done(&*thief, 2);
                }
            });
            threads.spawn("owner", move || {
                wait_for(&*status, 2);
                observe(0, result.load(Relaxed));
            });
        }
    };
    let report = explore(&Config::c11(), &model(true));
    assert_eq!((report.verdict, report.outcomes), (Verdict::Clean, [vec![1]].into()));
    let found = explore(&Config::c11(), &model(false)).verdict;
    assert!(matches!(found, Verdict::Violation(found) if found.kind() == Kind::Deadlock));
}
