//! Every mutant is caught, and no original is.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

use poach_mutants::{Caught, Mutant, mutants};

/// Does something with each mutant, as many at once as there are processors: a model is of one
/// thread.
fn each(act: impl Fn(&Mutant) + Sync) {
    let queue = Mutex::new(mutants());
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(mutant) = next else { break };
                    act(mutant);
                }
            });
        }
    });
}

#[test]
fn every_mutant_is_caught_as_the_table_says() {
    let wrong = Mutex::new(Vec::new());
    each(|mutant| {
        let report = mutant.run();
        let time = report.elapsed.as_secs_f64();
        println!(
            "{:28} {:?}: {} executions, {time:.2} s",
            mutant.name, mutant.caught, report.executions
        );
        wrong.lock().unwrap().extend(mutant.judge(&report).err());
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_original_is() {
    let seen = Mutex::new(HashSet::new());
    each(|mutant| {
        if !seen.lock().unwrap().insert((mutant.queue, mutant.scene as u8)) {
            return;
        }
        let report = mutant.original();
        let time = report.elapsed.as_secs_f64();
        let (queue, scene) = (mutant.queue, mutant.scene);
        println!("{queue} {scene:?}: {} executions, {time:.2} s", report.executions);
        let covered = scene.coverage().iter().any(|wanted| report.clean(*wanted).is_ok());
        assert!(covered, "{queue} {scene:?}: {:?}", report.verdict);
        assert!(report.stolen || !scene.steals(), "{queue} {scene:?}: no thief ever gets a task");
    });
}

#[test]
fn they_are_many_and_each_has_a_name_of_its_own() {
    let names: HashSet<&str> = mutants().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), mutants().count());
    let broken = mutants().filter(|mutant| mutant.caught != Caught::Nothing).count();
    let said = format!("Here are {broken} ways to break a queue");
    assert!(include_str!("../README.md").contains(&said), "the README does not say: {said}");
    assert!(mutants().all(|mutant| !mutant.why.is_empty() && mutant.was != mutant.is));
}
