//! The scenes know what the queues' orderings are for.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::rc::Rc;

use poach_check::{
    Config, Consistency, Demand, Kind, Orderings, Simulated, Strategy, Threads, Verdict, Weakening,
    explore,
};
use poach_deque::Multiplicity;
use poach_models::matrix::{Case, Extent, cases};
use poach_models::orderings::scenes;
use poach_models::plays::Play;

/// What a scene finds with one demand of a queue's left out: the one on the line that holds this
/// text.
fn refuted(queue: &str, scene: &str, line: &str, demand: Demand) -> Option<Kind> {
    let scenes = scenes();
    let case = scenes.iter().find(|case| case.name == queue && case.scene == scene);
    let case: &Case = case.expect("there is such a scene");
    let strategy = Strategy::Exhaustive { preemptions: Some(2), reduce: true, prune: true };
    let config = Config { strategy, max_executions: 1_000_000, ..case.config() };
    let clean = case.run(&Config { orderings: Orderings::Listed, ..config.clone() });
    assert!(!matches!(clean.verdict, Verdict::Violation(_)), "{:?}", clean.verdict);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let is_it = |all: &&Weakening| {
        let text = std::fs::read_to_string(root.join(&all.file)).unwrap_or_default();
        let found = text.lines().nth(all.line as usize - 1).is_some_and(|text| text.contains(line));
        found && all.demand == demand
    };
    let weakening = clean.demands.iter().find(is_it).expect("the scene comes there").clone();
    match case.run(&Config { orderings: Orderings::Without(weakening), ..config }).verdict {
        Verdict::Violation(found) => Some(found.kind()),
        _ => None,
    }
}

#[test]
fn the_split_deques_orderings_are_needed() {
    let race = Some(Kind::Race);
    // An owner that goes hands its tasks over by the one exchange that has no fence before it.
    let share = ".compare_exchange(";
    assert_eq!(refuted("split", "left", share, Demand::Release), race);
    // The word comes back to a value that the thief has read, with another task at the same index.
    let claim = "match self.word.compare_exchange(seen, new";
    assert_eq!(refuted("split", "back", claim, Demand::Acquire), race);
    let seen = "let seen = self.word.load(Ordering::Acquire);";
    assert_eq!(refuted("split", "request", seen, Demand::Acquire), Some(Kind::Request));
    let head = "self.owner.head.store(head, Ordering::Release);";
    assert_eq!(refuted("split", "exposed by one", head, Demand::Release), race);
}

#[test]
fn a_ring_is_used_again_only_when_all_thieves_are_done() {
    let race = Some(Kind::Race);
    let mark = "let past = mark.load(Ordering::Acquire).wrapping_sub(one);";
    assert_eq!(refuted("fifo", "reused", mark, Demand::Acquire), race);
    let marks = "mark.store(one.wrapping_add(u64::from(count - 1)), Ordering::Release);";
    assert_eq!(refuted("fifo", "reused", marks, Demand::Release), race);
    // A ring that was left is freed at once: what is read there is gone, not only written by
    // another.
    let before = "let finished = self.finished.load(Ordering::Acquire);";
    assert_eq!(refuted("fifo", "reused", before, Demand::Acquire), Some(Kind::Freed));
}

/// BWoS's authors say that their checker found each ordering that is needed: here none is left that
/// is not.
#[test]
fn each_ordering_of_the_block_based_queues_is_needed() {
    let scenes: Vec<Case> = scenes()
        .into_iter()
        .filter(|case| {
            let scene = (case.name, case.scene);
            matches!(scene, ("bwos-lifo", "back" | "grown") | ("bwos-fifo", "left"))
        })
        .collect();
    assert_eq!(scenes.len(), 3);
    let played = |case: &Case, orderings| {
        let strategy = Strategy::Exhaustive { preemptions: Some(2), reduce: true, prune: true };
        case.run(&Config { strategy, orderings, max_executions: 10_000, ..case.config() })
    };
    let listed = scenes.iter().flat_map(|case| played(case, Orderings::Listed).demands);
    let demands: BTreeSet<Weakening> =
        listed.filter(|demand| demand.file.contains("papers/bwos")).collect();
    assert_eq!(demands.len(), 10, "{demands:#?}");
    for demand in demands {
        let refuted = scenes.iter().any(|case| {
            let report = played(case, Orderings::Without(demand.clone()));
            matches!(report.verdict, Verdict::Violation(_))
        });
        assert!(refuted, "no scene needs {demand}");
    }
}

/// A queue that is never empty: the second task is pushed before the first is taken, by the owner
/// or by a thief that has seen both. Another thief steals meanwhile.
fn never_empty(owner_takes: bool) -> impl Fn(&mut Threads) {
    move |threads| {
        let owner = Rc::new(Multiplicity::<u64, Simulated>::with_capacity(2).unwrap());
        owner.push(1);
        let [takes, looks] = [owner.thief(), owner.thief()];
        let pushes = Rc::clone(&owner);
        threads.spawn("owner", move || {
            pushes.push(2);
            if owner_takes {
                assert!(pushes.pop().is_some());
            }
        });
        threads.spawn("takes", move || {
            if !owner_takes && takes.len() == 2 {
                assert!(!takes.steal().is_empty());
            }
        });
        threads.spawn("looks", move || assert!(!looks.steal().is_empty(), "it is never empty"));
        threads.finally(move || drop(owner));
    }
}

/// The orderings of `head` in the queue with multiplicity: without one of them a thief says that a
/// queue is empty which never is. The scenes above need its other three.
#[test]
fn the_orderings_of_a_head_that_is_only_read_and_written_are_needed() {
    let played = |owner_takes, orderings| {
        explore(&Config { orderings, shorten: 0, ..Config::c11() }, &never_empty(owner_takes))
    };
    let demands = |owner_takes| {
        let report = played(owner_takes, Orderings::Listed);
        assert_eq!(report.verdict, Verdict::Clean);
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let of_head = move |demand: &Weakening| {
            let text = std::fs::read_to_string(root.join(&demand.file)).unwrap_or_default();
            let line = text.lines().nth(demand.line as usize - 1).unwrap_or_default();
            demand.file.ends_with("papers/mult.rs")
                && (line.contains("self.head.load") || line.contains("shared.head.store"))
        };
        report.demands.into_iter().filter(of_head).collect::<Vec<_>>()
    };
    let mut seen = BTreeSet::new();
    for owner_takes in [true, false] {
        for demand in demands(owner_takes) {
            let verdict = played(owner_takes, Orderings::Without(demand.clone())).verdict;
            if matches!(verdict, Verdict::Violation(_)) {
                seen.insert(demand);
            }
        }
    }
    assert_eq!(seen.len(), 3, "{seen:#?}");
}

#[test]
fn every_play_has_a_scene() {
    println!(
        "ROWS {} {}",
        cases(Extent::Usual).len(),
        cases(Extent::Usual).iter().filter(|c| c.consistency == Consistency::C11).count()
    );
    let plays = [
        Play::Tasks,
        Play::Halves,
        Play::Exposure,
        Play::Request,
        Play::Forks,
        Play::ExposedForks,
        Play::ReadyForks,
        Play::Again,
        Play::ConsumerGoes,
        Play::ProducerGoes,
        Play::FedByTwo,
        Play::RobbedThief,
        Play::TwoChunks,
        Play::HeldGrows,
        Play::ListGrows,
        Play::Emptiness,
    ];
    let scenes = scenes();
    assert!(plays.iter().all(|play| scenes.iter().any(|case| case.play == *play)));
}

#[test]
fn requests_are_answered_under_both_memories() {
    let requests = cases(Extent::Quick).into_iter().filter(|case| case.scene == "request");
    let mut queues = Vec::new();
    for case in requests {
        let report = case.run(&case.config());
        assert!(case.as_expected(&report), "{}: {:?}", case.name, report.verdict);
        queues.push((case.name, case.consistency == Consistency::C11));
    }
    let both = [("split", false), ("split-stack", false), ("split", true), ("split-stack", true)];
    assert_eq!(queues, both);
}
