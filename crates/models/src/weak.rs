//! Rows of the matrix under the memory model of C11: the queues that ship where the processor is
//! not TSO, with the policies that work there. Each thread keeps what it takes, and in the end each
//! task must have been taken once.

use super::case::{Case, Named, PolicyKind, TWICE, case, deques, find};
use super::matrix::Extent;
use super::plays::Play;
use super::{Scenario, Step};
use poach_check::{Consistency, Coverage, Kind};

pub(super) fn row(
    queue: Named,
    scene: &'static str,
    scenario: Scenario,
    expected: Option<Kind>,
) -> Case {
    Case { consistency: Consistency::C11, ..case(queue, scene, scenario, 0, expected) }
}

/// A thief that steals while the owner pops; a thief that steals while the owner pushes, pops and
/// lets the queue grow; and two that meet at the last task.
fn scenes(queue: Named, tasks: u32, steals: u32) -> [Case; 3] {
    let two = Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 2, 1) };
    [
        row(queue, "drain", Scenario::drain(tasks, 0, 1, steals), None),
        row(queue, "brief", Scenario::brief(0, 1, steals), None),
        row(queue, "two", two, None),
    ]
}

pub(super) fn rows(extent: Extent) -> Vec<Case> {
    use PolicyKind::{Asymmetric, Full, Unbounded, Unfenced};
    let quick = extent == Extent::Quick;
    let with = |name, policy| Named { policy, ..find(name) };
    let mut rows = Vec::new();
    for name in ["chase-lev", "the"] {
        for policy in [Full, Asymmetric] {
            rows.extend(scenes(with(name, policy), 3, 2));
        }
        rows.push(row(with(name, Unfenced), "drain", Scenario::drain(2, 0, 1, 2), TWICE));
    }
    for queue in deques().filter(|queue| queue.policy == PolicyKind::None) {
        rows.extend(scenes(queue, 3, 2));
    }
    rows.extend(scenes(
        with("thep", Unbounded),
        if quick { 2 } else { 3 },
        if quick { 1 } else { 2 },
    ));
    for policy in [Full, Asymmetric] {
        // Two thieves of the biased deque have more executions than end in a minute.
        rows.extend(scenes(with("biased", policy), 2, 1).into_iter().take(2));
    }
    rows.push(row(with("biased", Unfenced), "drain", Scenario::drain(1, 0, 1, 1), TWICE));
    rows.extend(scenes(find("closed-fifo"), 2, 1).into_iter().take(2));
    let exposed = Scenario::drain(2, 0, 1, 1);
    rows.push(Case { play: Play::Exposure, ..row(find("split"), "exposed", exposed, None) });
    let request = Scenario::drain(0, 0, 2, 1);
    for name in ["split", "split-stack"] {
        let request = row(find(name), "request", request.clone(), None);
        rows.push(Case { play: Play::Request, ..request });
    }
    let forks = Scenario::drain(1, 0, 1, 2);
    rows.push(Case { play: Play::Forks, ..row(find("split-stack"), "forks", forks, None) });
    let bold = Scenario::drain(1, 0, 1, 1);
    let exposed = Play::ExposedForks;
    rows.push(Case { play: exposed, ..row(find("split-stack"), "exposed", bold, None) });
    for (name, tasks, steals) in [
        ("asymmetric-cl", 3, 1),
        ("the", 3, 1),
        ("split", 6, 2),
        ("fifo", 3, 1),
        ("closed-fifo", 3, 1),
    ] {
        let script = vec![Step::Push, Step::Pop];
        let scenario = Scenario { script, capacity: 8, ..Scenario::drain(tasks, 0, 1, steals) };
        rows.push(Case { play: Play::Halves, ..row(find(name), "halves", scenario, None) });
    }
    let pushes = Scenario { script: vec![Step::Push], ..Scenario::drain(0, 0, 1, 1) };
    // A push that has met another pauses, and each pause is a choice: those with two preemptions,
    // and those with one, do not end in five minutes.
    let coverage = Coverage::Executions(match extent {
        Extent::Quick => 20_000,
        Extent::Usual => 200_000,
        Extent::Full => 4_000_000,
    });
    rows.push(Case { coverage, ..row(find("injector"), "pushes", pushes, None) });
    let robbed = Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 1, 1) };
    let policies = [(Full, None), (Asymmetric, None), (Unfenced, TWICE)];
    for (policy, expected) in policies {
        rows.push(row(with("salsa", policy), "robbed", robbed.clone(), expected));
    }
    for name in ["salsa-cas", "conc-bag", "ws-msq", "ws-lifo"] {
        rows.push(row(find(name), "robbed", robbed.clone(), None));
    }
    rows.extend(chunks(quick));
    rows
}

/// SALSA's chunks on their way, and pools that are never empty: to one preemption, since more have
/// more executions than end in a minute.
fn chunks(quick: bool) -> impl Iterator<Item = Case> {
    let scene = |name, scene, play| {
        let row = row(find(name), scene, Scenario::drain(1, 0, 2, 1), None);
        Case { play, coverage: Coverage::Preemptions(1), ..row }
    };
    let plays = [
        ("robbed-thief", Play::RobbedThief),
        ("two-chunks", Play::TwoChunks),
        ("held-grows", Play::HeldGrows),
        ("list-grows", Play::ListGrows),
    ];
    let pools = ["salsa", "salsa-cas", "conc-bag", "ws-msq", "ws-lifo"];
    // The first two have 30,000 and 60,000 executions.
    let plays = plays.into_iter().skip(if quick { 2 } else { 0 });
    let salsa = plays.map(move |(name, play)| scene("salsa", name, play));
    salsa.chain(pools.into_iter().map(move |name| scene(name, "empty", Play::Emptiness)))
}
