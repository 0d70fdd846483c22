//! Queues with an asymmetric fence whose thief loses its barrier: every task comes out once, and a
//! thief gets tasks again once the owner fences.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell as Count;
use std::rc::Rc;

use poach_check::{Config, Report, Threads, Verdict, explore};
use poach_deque::{ChaseLev, ExactlyOnce, Steal, The, Thep, Thief as _};
use poach_memory::{Asymmetric, Memory};

use crate::barrierless::{Losing, LosingFenceless};

const TASKS: usize = 3;

/// The owner pops what it has pushed. A thief tries three times, the first time, at which its
/// barrier fails, before all else if it is `early`.
fn model<O: ExactlyOnce<u64> + 'static>(threads: &mut Threads, make: fn() -> O, early: bool)
where
    O::Thief: 'static,
{
    let losing = Losing::begins();
    let owner = make();
    (0..TASKS as u64).for_each(|task| owner.push(task));
    let (thief, last) = (owner.thief(), owner.thief());
    if early {
        assert_eq!(thief.steal(), Steal::Abort);
    }
    let runs: Rc<[Count<u32>; TASKS]> = Rc::default();
    let run = |runs: &[Count<u32>; TASKS], task: u64| {
        let count = &runs[task as usize];
        count.set(count.get() + 1);
        assert_eq!(count.get(), 1, "task {task} came out twice");
    };
    let (mine, theirs, stolen) = (Rc::clone(&runs), Rc::clone(&runs), Rc::new(Count::new(0)));
    threads.spawn("owner", move || {
        while let Some(task) = owner.pop() {
            run(&mine, task);
        }
    });
    let count = Rc::clone(&stolen);
    threads.spawn("thief", move || {
        for _ in 0..3 - usize::from(early) {
            if let Steal::Success(task) = thief.steal() {
                run(&theirs, task);
                count.set(count.get() + 1);
            }
        }
    });
    threads.finally(move || {
        while let Steal::Success(task) = last.steal() {
            run(&runs, task);
        }
        assert!(runs.iter().all(|runs| runs.get() == 1), "a task was lost");
        drop(losing);
        poach_check::observe(0, stolen.get());
    });
}

fn check<O: ExactlyOnce<u64> + 'static>(config: &Config, make: fn() -> O, early: bool) -> Report
where
    O::Thief: 'static,
{
    explore(config, &move |threads: &mut Threads| model(threads, make, early))
}

fn chase_lev<M: Memory>() -> ChaseLev<u64, Asymmetric<M>, M> {
    ChaseLev::starting_at(Asymmetric::new(), 4, 0).expect("a small queue")
}

fn the<M: Memory>() -> The<u64, Asymmetric<M>, M> {
    The::starting_at(Asymmetric::new(), 4, 0).expect("a small queue")
}

fn thep<M: Memory>() -> Thep<u64, Asymmetric<M>, M> {
    Thep::starting_at(Asymmetric::new(), 4, 0).expect("a small queue")
}

const MACHINES: fn() -> [Config; 2] = || [Config::bounded(2, true), Config::c11()];

#[test]
fn every_task_comes_out_once_after_the_loss() {
    for config in MACHINES() {
        for (name, report) in [
            ("chase-lev", check(&config, chase_lev::<Losing>, true)),
            ("the", check(&config, the::<Losing>, true)),
        ] {
            assert_eq!(report.verdict, Verdict::Clean, "{name} {:?}", report.counterexample);
            println!("{name}: {} executions, {:?} stolen", report.executions, report.outcomes);
            assert!(report.complete && report.outcomes.len() > 1, "{name}: {report:?}");
        }
    }
}

#[test]
fn every_task_comes_out_once_during_the_loss() {
    for config in MACHINES().map(|config| config.within(3, 20_000)) {
        for (name, report) in [
            ("chase-lev", check(&config, chase_lev::<Losing>, false)),
            ("the", check(&config, the::<Losing>, false)),
            ("thep", check(&config, thep::<Losing>, false)),
        ] {
            // Most are not searched to the end.
            assert_ne!(report.verdict.word(), "violation", "{name} {:?}", report.counterexample);
            println!("{name}: {} executions, {:?} stolen", report.executions, report.outcomes);
        }
    }
}

#[test]
fn if_the_owner_does_not_fence_a_task_comes_out_twice() {
    for config in MACHINES() {
        for (name, report) in [
            ("chase-lev", check(&config, chase_lev::<LosingFenceless>, true)),
            ("the", check(&config, the::<LosingFenceless>, true)),
        ] {
            assert_eq!(report.verdict.word(), "violation", "{name}: {report:?}");
        }
    }
}
