//! The scenes in which every ordering of the queues and pools is played weaker than it is written.
//!
//! They are the rows of the matrix under C11, and these beside them. The rows leave out threads
//! that continue the work of another, and words that return to an earlier value.

use super::Scenario;
use super::Step::{Pop, PopAll, Push};
use super::case::{Case, Named, PolicyKind, deques, find};
use super::matrix::Extent;
use super::plays::Play;
use super::weak::{row, rows};
use poach_check::Coverage;

/// All scenes, each of which is clean as far as it is searched.
pub fn scenes() -> Vec<Case> {
    let mut scenes = rows(Extent::Full);
    scenes.retain(|case| case.expected.is_none());
    // (FF-CL and FF-THE without a bound: there a thief goes by `closed` alone. `Resolved` without
    // one is that, too.)
    let deques = deques().filter(|queue| queue.policy != PolicyKind::Resolved);
    for queue in deques.chain(["biased", "closed-fifo"].map(find)) {
        scenes.extend(left(c11(queue)));
    }
    for name in ["bwos-lifo", "bwos-fifo", "multiplicity"] {
        scenes.extend(anew(find(name)));
    }
    scenes.push(row(find("biased"), "two", Scenario::drain(1, 0, 2, 1), None));
    let queues = [("asymmetric-cl", 3), ("the", 3), ("fifo", 3), ("biased", 3), ("mutex", 3)];
    for (name, tasks) in queues {
        // A thief that takes half of what the owner has pushed before its eyes.
        let script = vec![Push; tasks];
        let scenario = Scenario { script, capacity: 4, ..Scenario::drain(0, 0, 1, 1) };
        scenes.push(Case { play: Play::Halves, ..row(find(name), "halves", scenario, None) });
    }
    for name in ["asymmetric-cl", "the", "fifo", "closed-fifo"] {
        // Two thieves finish in either order, and the owner uses their slots again.
        let script = vec![Push, Push];
        let reused = Scenario { script, capacity: 2, ..Scenario::drain(2, 0, 2, 1) };
        scenes.push(row(find(name), "reused", reused, None));
    }
    scenes.extend(injector());
    scenes.extend(split());
    scenes.extend(pools());
    for scene in &mut scenes {
        scene.coverage = Coverage::Complete;
    }
    scenes
}

/// A queue, with a policy that has no bound.
fn c11(queue: Named) -> Named {
    let policy = if queue.policy.bounded() { PolicyKind::Unbounded } else { queue.policy };
    Named { policy, ..queue }
}

/// Owners that push before thieves' eyes, and go.
fn left(queue: Named) -> [Case; 5] {
    let scene = |name, script, capacity, thieves, steals| {
        let scenario = Scenario { script, capacity, ..Scenario::drain(0, 0, thieves, steals) };
        row(queue, name, scenario, None)
    };
    [
        scene("left", vec![Push, Push], 2, 1, 2),
        scene("grown", vec![Push, Push, Push], 1, 1, 2),
        // The slot and the index are used again.
        scene("back", vec![Push, Pop, Push], 1, 1, 2),
        scene("shared", vec![Push, Push, Pop], 2, 2, 1),
        scene("handed on", vec![Push, Push, Push], 4, 2, 1),
    ]
}

/// Owners whose blocks, or slots, are used again while thieves come to them.
fn anew(queue: Named) -> [Case; 4] {
    let scene = |name, script, capacity, thieves, steals| {
        let scenario = Scenario { script, capacity, ..Scenario::drain(0, 0, thieves, steals) };
        row(queue, name, scenario, None)
    };
    [
        scene("entered anew", vec![Push; 4], 1, 1, 3),
        scene("entered anew by two", vec![Push; 4], 1, 2, 2),
        scene("goes back", vec![Push, Push, Pop, Pop, Push, Push], 1, 1, 2),
        scene("blocks of two", vec![Push, Push, Push, Pop, Pop, Push], 4, 1, 2),
    ]
}

/// What the split deques have beside: exposure, requests, forks that come back to a slot, and slots
/// made ready.
fn split() -> impl Iterator<Item = Case> {
    let exposes = |name, script: &[_], thieves, steals| {
        let script = script.to_vec();
        let scenario = Scenario { script, capacity: 4, ..Scenario::drain(0, 0, thieves, steals) };
        Case { play: Play::Exposure, ..row(find("split"), name, scenario, None) }
    };
    let forks = |name, play, tasks, script: &[_], thieves, steals| {
        let script = script.to_vec();
        let scenario = Scenario { script, ..Scenario::drain(tasks, 0, thieves, steals) };
        Case { play, ..row(find("split-stack"), name, scenario, None) }
    };
    [
        exposes("exposed", &[Push, Push, Push], 1, 2),
        exposes("exposed by one", &[Push, Push, Push], 2, 1),
        exposes("exposed again", &[Push, Pop, Push, PopAll], 1, 2),
        forks("again", Play::Forks, 1, &[Pop, Push, Pop], 1, 3),
        forks("again for two", Play::Forks, 1, &[Pop, Push, Pop], 2, 2),
        forks("exposed again", Play::ExposedForks, 1, &[Pop, Push, Pop], 1, 2),
        forks("three", Play::ExposedForks, 3, &[PopAll], 1, 2),
        forks("three for two", Play::ExposedForks, 3, &[PopAll], 2, 1),
        forks("made ready", Play::ReadyForks, 1, &[PopAll], 1, 1),
    ]
    .into_iter()
}

/// The injector with blocks of one task, which go round: two threads push, and take, and thieves
/// come.
fn injector() -> impl Iterator<Item = Case> {
    let scene = |name, tasks, script: &[_], thieves, steals| {
        let script = script.to_vec();
        let scenario =
            Scenario { script, capacity: 1, ..Scenario::drain(tasks, 0, thieves, steals) };
        row(find("injector"), name, scenario, None)
    };
    [
        scene("fed", 0, &[Push, Pop, Pop], 0, 0),
        scene("goes round", 0, &[Push, Pop, Push, Pop], 0, 0),
        scene("goes round twice", 1, &[Pop, Push, Pop, Push], 1, 2),
        scene("taken by two", 2, &[], 2, 2),
        scene("taken and fed", 2, &[Pop, Push], 1, 1),
    ]
    .into_iter()
}

/// Pools whose producers put before a thief's eyes, and what the pools' policies go by.
fn pools() -> impl Iterator<Item = Case> {
    ["salsa", "salsa-cas", "conc-bag", "ws-msq", "ws-lifo"].into_iter().flat_map(|name| {
        let row = move |scene, script: &[_], thieves, play| {
            let script = script.to_vec();
            let scenario = Scenario { script, ..Scenario::drain(1, 0, thieves, 1) };
            Case { play, ..row(find(name), scene, scenario, None) }
        };
        [
            row("fed", &[Push, Pop], 1, Play::Tasks),
            row("fed twice", &[Push, Push, Pop, Pop], 1, Play::Tasks),
            row("robbed by two", &[Push, Pop], 2, Play::Tasks),
            row("again", &[], 0, Play::Again),
            row("consumer goes", &[], 0, Play::ConsumerGoes),
            row("producer goes", &[], 0, Play::ProducerGoes),
            row("fed by two", &[], 0, Play::FedByTwo),
        ]
        .into_iter()
        // The bag has no pools that one consumer steals from.
        .take(if name == "conc-bag" { 6 } else { 7 })
    })
}
