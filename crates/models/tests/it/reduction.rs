//! The search that leaves out what differs in nothing says what the search says that leaves out
//! less: on random scenes of the queues, with policies that are right and policies that are not.
//!
//! Without states (`prune`) every history is followed to its end, whatever the thieves have
//! forgotten and whatever the specification no longer tells apart. Without sleep sets and eager
//! steps (`reduce`) every order is tried.

use std::num::NonZeroU64;

use poach_check::{Config, Incomplete, Kind, Strategy, Verdict};
use poach_models::{Algorithm, Policy, Scenario, Step, check};

/// What is found, if the search comes to its end.
fn found(
    algorithm: Algorithm,
    policy: Policy,
    scene: &Scenario,
    config: &Config,
) -> Result<Option<Kind>, Incomplete> {
    match check(algorithm, policy, scene, config).verdict {
        Verdict::Clean => Ok(None),
        Verdict::Violation(found) => Ok(Some(found.kind())),
        Verdict::Incomplete(why) => Err(why),
    }
}

fn subjects() -> Vec<(Algorithm, Policy)> {
    let delta = |delta| NonZeroU64::new(delta).unwrap();
    let bounded = |pops| Policy::Bounded { delta: delta(pops), fill: false };
    vec![
        (Algorithm::ChaseLev, Policy::Full),
        (Algorithm::ChaseLev, Policy::Asymmetric),
        (Algorithm::ChaseLev, Policy::Unfenced),
        (Algorithm::ChaseLev, bounded(1)),
        (Algorithm::ChaseLev, bounded(2)),
        (Algorithm::ChaseLev, Policy::Resolved { delta: delta(1), fill: true }),
        (Algorithm::The, Policy::Full),
        (Algorithm::The, Policy::Unfenced),
        (Algorithm::The, bounded(1)),
        (Algorithm::Thep, Policy::Unbounded),
        (Algorithm::Split, Policy::Full),
        (Algorithm::Fifo, Policy::Full),
        (Algorithm::IdempotentLifo, Policy::Full),
        (Algorithm::IdempotentDeque, Policy::Full),
        (Algorithm::Mutex, Policy::Full),
    ]
}

#[test]
fn a_search_that_leaves_out_more_finds_the_same() {
    let subjects = subjects();
    let mut random = fastrand::Rng::with_seed(23);
    let (mut compared, mut refuted) = (0, 0);
    for round in 0..150 {
        let (algorithm, policy) = subjects[round % subjects.len()];
        let steps = [Step::Push, Step::Pop, Step::Pop, Step::PopAll];
        let script =
            (0..random.usize(1..=3)).map(|_| random.choice(steps).expect("one of four")).collect();
        let thieves = random.u32(1..=2);
        let scene = Scenario {
            script,
            stores: random.u32(0..=1),
            ..Scenario::drain(random.u32(1..=3), 0, thieves, random.u32(1..=3 - thieves))
        };
        let size = random.u32(1..=2);
        let machine = |reduce, prune| Config {
            strategy: Strategy::Exhaustive { preemptions: None, reduce, prune },
            max_executions: 20_000,
            shorten: 0,
            ..Config::bounded(size, round % 2 == 1)
        };
        let Ok(all) = found(algorithm, policy, &scene, &machine(true, true)) else { continue };
        for (reduce, prune) in [(true, false), (false, true)] {
            let Ok(other) = found(algorithm, policy, &scene, &machine(reduce, prune)) else {
                continue;
            };
            compared += 1;
            refuted += u32::from(other.is_some());
            assert_eq!(
                all.is_some(),
                other.is_some(),
                "{algorithm:?} {policy:?} S {size} {scene:?}: {all:?}, and {other:?} with reduce {reduce}, prune {prune}"
            );
        }
    }
    println!("{compared} searches compared, {refuted} of them with a violation");
    assert!(compared >= 150 && refuted >= 10, "{compared} compared, {refuted} refuted");
}
