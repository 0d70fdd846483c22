//! Rows of the matrix that ask one question each: two thieves, growth under a bounded policy, the
//! policies that make a store of their own, and the pools whose nodes are freed.

use poach_memory::delta::hidden_pops;

use super::case::{Case, Named, PolicyKind, TWICE, case, delta, deques, find};
use super::plays::Play;
use super::{Algorithm, Scenario, Step};
use poach_check::Coverage;

pub(super) fn more(quick: bool) -> Vec<Case> {
    let sizes: &[u32] = if quick { &[1] } else { &[1, 2] };
    let mut cases = Vec::new();
    for &size in sizes {
        cases.extend(two_thieves(size));
        cases.extend(growth(size));
        cases.extend(pools(size, quick));
        cases.extend(biased(size));
        cases.extend(closed_fifo(size));
        cases.extend(halves(size));
        cases.extend(split(size, quick));
        cases.extend(displaced(size));
    }
    for &size in if quick { &[1, 3][..] } else { &[1, 2, 3, 4] } {
        cases.extend(own_stores(size));
    }
    cases.extend(never_empty(quick));
    cases.extend(chunks(quick));
    cases.extend(egress_entries(quick));
    cases
}

/// Thieves that take half of the tasks, of the queues that give batches. THEP is not among them:
/// its owner stays here, and its thief may then wait for ever. The split deque shares four of seven
/// when it is asked, of which half are two.
fn halves(size: u32) -> impl Iterator<Item = Case> {
    let queues = ["asymmetric-cl", "the", "split", "fifo", "closed-fifo", "mutex", "biased"];
    queues.into_iter().map(move |name| {
        let script = vec![Step::Push, Step::Pop];
        let scenario = match name {
            "split" => Scenario { script, capacity: 8, ..Scenario::drain(6, 0, 1, 2) },
            _ => Scenario { script, capacity: 4, ..Scenario::drain(3, 0, 1, 1) },
        };
        Case { play: Play::Halves, ..case(find(name), "halves", scenario, size, None) }
    })
}

/// What the thieves of the split deques do beside stealing: they expose, and they ask. And the
/// runtime's stack of forks.
fn split(size: u32, quick: bool) -> impl Iterator<Item = Case> {
    let row = move |name, scene, scenario, play| Case {
        play,
        ..case(find(name), scene, scenario, size, None)
    };
    let exposed = Scenario::drain(2, 0, 1, if quick { 1 } else { 2 });
    let forks = |tasks, thieves, steals| Scenario::drain(tasks, 0, thieves, steals);
    let rows = [
        row("split", "exposed", exposed, Play::Exposure),
        row("split", "request", Scenario::drain(0, 0, 2, 1), Play::Request),
        row("split-stack", "request", forks(0, 2, 1), Play::Request),
        row("split-stack", "forks", forks(1, 1, 2), Play::Forks),
        row("split-stack", "exposed", forks(1, 1, 1), Play::ExposedForks),
        // A million states each.
        row("split-stack", "forks", forks(2, 1, 2), Play::Forks),
        row("split-stack", "two", forks(1, 2, 1), Play::Forks),
    ];
    rows.into_iter().take(if quick || size > 1 { 5 } else { 7 })
}

/// Pools in which there is a task at every instant, and a consumer that asks whether they are
/// empty; and what the answer of SALSA rests on, that the theft of a chunk is announced. These do
/// not depend on store buffers, and are played without.
fn never_empty(quick: bool) -> impl Iterator<Item = Case> {
    let bound = Coverage::Preemptions(if quick { 2 } else { 3 });
    let pools = ["salsa", "salsa-cas", "conc-bag", "ws-msq", "ws-lifo"];
    let row = |name, scene, play, coverage| Case {
        coverage,
        play,
        ..case(find(name), scene, Scenario::drain(1, 0, 2, 1), 0, None)
    };
    let announced = row("salsa", "announced", Play::Announcement, Coverage::Complete);
    let looked_at = pools.into_iter();
    looked_at.map(move |name| row(name, "empty", Play::Emptiness, bound)).chain([announced])
}

/// A processor with more than one entry behind its store buffer, and a client whose stores between
/// two pops are all to one word: clean at [`hidden_pops`], which is what `Delta::with_egress`
/// promises, and refuted one below.
fn egress_entries(quick: bool) -> impl Iterator<Item = Case> {
    let all = [(1, 2, 1), (1, 2, 2), (2, 3, 1), (1, 4, 2), (1, 10, 1)];
    all.into_iter().take(if quick { 2 } else { 5 }).flat_map(|(size, egress, stores)| {
        let pops = hidden_pops(size.into(), egress.into(), stores.into());
        let bound = pops.expect("it has a store buffer");
        let tasks = bound.get() as u32 + 1;
        let scenario = Scenario { one_line: true, ..Scenario::drain(tasks, stores, 1, 2) };
        let row = move |delta, expected| Case {
            delta,
            egress,
            ..case(find("ff-cl"), "egress", scenario.clone(), size, expected)
        };
        let below = core::num::NonZeroU64::new(bound.get() - 1);
        let clean = row(Some(bound), None);
        [Some(clean), below.map(|below| row(Some(below), TWICE))].into_iter().flatten()
    })
}

/// Two thieves, each of which steals once, against an owner that pops once and goes: who is first,
/// and what the others are told, is all that there is to it.
fn two_thieves(size: u32) -> impl Iterator<Item = Case> {
    // (A private deque's owner, gone, has taken its tasks with it.)
    let queues = deques().filter(|queue| queue.algorithm != Algorithm::Private);
    queues.map(move |queue| {
        // The client's, between two pops.
        let stores = u32::from(queue.policy.bounded());
        let bound = queue.policy.bounded().then(|| delta(size, true, stores));
        let tasks = bound.map_or(2, |delta| delta.get() as u32 + 1);
        let script = vec![Step::Pop];
        let scenario = Scenario { script, ..Scenario::drain(tasks, stores, 2, 1) };
        Case { delta: bound, ..case(queue, "two", scenario, size, None) }
    })
}

/// A bounded queue that begins with one slot and grows while a thief is at it.
fn growth(size: u32) -> impl Iterator<Item = Case> {
    ["ff-the", "ff-cl"].into_iter().map(move |name| {
        let bound = delta(size, true, 1);
        let mut script = vec![Step::Push; bound.get() as usize + 1];
        script.push(Step::PopAll);
        let scenario = Scenario { script, ..Scenario::brief(1, 1, 1) };
        Case { delta: Some(bound), ..case(find(name), "grows", scenario, size, None) }
    })
}

/// The policy makes the store between two pops, and the client makes none: clean at the bound for
/// one store between pops. The policy's store comes before the pop looks at `head`, so a hidden pop
/// always has two entries in the buffer. A delta one below the bound is refuted if S + 1 is even,
/// and clean if it is odd. `Resolved` makes the same store.
fn own_stores(size: u32) -> impl Iterator<Item = Case> {
    let bounded = ["ff-the", "ff-cl"].into_iter().flat_map(move |name| {
        let queue = Named { policy: PolicyKind::Filled, ..find(name) };
        let bound = delta(size, true, 1);
        let tasks = bound.get() as u32 + 1;
        let row = move |delta, expected| Case {
            delta,
            ..case(queue, "drain", Scenario::drain(tasks, 0, 1, 2), size, expected)
        };
        let below = core::num::NonZeroU64::new(bound.get() - 1);
        let fits = (size + 1) % 2 != 0;
        let below = below.map(|below| row(Some(below), if fits { None } else { TWICE }));
        [Some(row(Some(bound), None)), below].into_iter().flatten()
    });
    let resolved = Named { policy: PolicyKind::FilledResolved, ..find("resolved") };
    let bound = delta(size, true, 1);
    let drain = Scenario::drain(bound.get() as u32 + 1, 0, 1, 2);
    let resolved = Case { delta: Some(bound), ..case(resolved, "drain", drain, size, None) };
    bounded.chain([resolved])
}

/// The biased deque, whose thieves steal once: what they ask, open and claim are many steps for one
/// task.
fn biased(size: u32) -> impl Iterator<Item = Case> {
    let row = move |policy, scene, scenario, expected| {
        case(Named { policy, ..find("biased") }, scene, scenario, size, expected)
    };
    let clean = [PolicyKind::Full, PolicyKind::Asymmetric].into_iter().flat_map(move |policy| {
        [("drain", Scenario::drain(2, 0, 1, 1)), ("brief", Scenario::brief(0, 1, 1))]
            .map(|(scene, scenario)| row(policy, scene, scenario, None))
    });
    let late = row(PolicyKind::Asymmetric, "two", Scenario::drain(1, 0, 2, 1), None);
    let unfenced = row(PolicyKind::Unfenced, "drain", Scenario::drain(1, 0, 1, 1), TWICE);
    clean.chain([unfenced]).chain((size == 1).then_some(late))
}

/// The FIFO queue that its owner has closed, and thieves that steal once: as of the biased deque,
/// what they ask, open and claim are many steps for one task.
fn closed_fifo(size: u32) -> impl Iterator<Item = Case> {
    let row = move |scene, scenario| case(find("closed-fifo"), scene, scenario, size, None);
    let closes = Scenario { script: vec![Step::Pop; 3], ..Scenario::drain(3, 0, 1, 1) };
    let clean = [
        row("drain", Scenario::drain(2, 0, 1, 1)),
        row("brief", Scenario::brief(0, 1, 1)),
        // Opened, and closed by the owner again.
        row("closes", closes),
    ];
    let late = row("two", Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 2, 1) });
    clean.into_iter().chain((size == 1).then_some(late))
}

/// Thieves that visit the owner's processor.
fn displaced(size: u32) -> impl Iterator<Item = Case> {
    let row = move |name, scene, scenario| {
        case(Named { policy: PolicyKind::Displaced, ..find(name) }, scene, scenario, size, None)
    };
    let one = Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 1, 1) };
    let two = Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 2, 1) };
    [
        row("chase-lev", "drain", Scenario::drain(3, 0, 1, 2)),
        row("chase-lev", "two", two.clone()),
        row("the", "drain", Scenario::drain(3, 0, 1, 2)),
        row("the", "two", two),
        row("salsa", "robbed", one),
    ]
    .into_iter()
}

/// SALSA's chunks on their way from consumer to consumer, and the pools' producers. There are too
/// many executions to see all, so each row has a bound on preemptions; what a store buffer does is
/// asked where two threads alone move.
fn chunks(quick: bool) -> Vec<Case> {
    use PolicyKind::{Asymmetric, Displaced, Unfenced};
    let to = Coverage::Preemptions;
    let (few, more) = if quick { (to(1), to(2)) } else { (to(2), to(3)) };
    let row = |name, policy, scene, play, size, coverage| {
        let queue = Named { policy, ..find(name) };
        let case = case(queue, scene, Scenario::drain(1, 0, 2, 1), size, None);
        Case { coverage, play, ..case }
    };
    let mut rows = vec![
        row("salsa", Asymmetric, "robbed-thief", Play::RobbedThief, 0, more),
        row("salsa", Asymmetric, "robbed-in-window", Play::RobbedInWindow, 0, to(2)),
        row("salsa", Displaced, "robbed-in-window", Play::RobbedInWindow, 0, to(2)),
        row("salsa", Displaced, "refused", Play::Refused, 0, few),
        row("salsa", Asymmetric, "two-chunks", Play::TwoChunks, 0, more),
        row("salsa", Asymmetric, "list-grows", Play::ListGrows, 0, to(2)),
        row("salsa", Asymmetric, "list-grows", Play::ListGrows, 1, to(1)),
        row("salsa", Asymmetric, "held-grows", Play::HeldGrows, 1, Coverage::Complete),
    ];
    for policy in [Asymmetric, Displaced] {
        rows.push(row("salsa", policy, "robbed-thief", Play::RobbedThief, 1, to(1)));
        rows.push(row("salsa", policy, "two-chunks", Play::TwoChunks, 1, to(1)));
    }
    for (scene, play) in [("robbed-thief", Play::RobbedThief), ("two-chunks", Play::TwoChunks)] {
        let refuted = row("salsa", Unfenced, scene, play, 1, Coverage::Complete);
        rows.push(Case { expected: TWICE, ..refuted });
    }
    for name in ["salsa", "salsa-cas", "ws-msq", "ws-lifo"] {
        let policy = find(name).policy;
        rows.push(row(name, policy, "fed-by-two", Play::FedByTwo, 0, few));
        rows.push(row(name, policy, "refilled", Play::Refilled, 0, few));
    }
    rows
}

/// The pools whose nodes are freed as soon as no hazard pointer is on them.
fn pools(size: u32, quick: bool) -> impl Iterator<Item = Case> {
    ["conc-bag", "ws-msq", "ws-lifo"].into_iter().flat_map(move |name| {
        let robbed = Scenario { script: vec![Step::Pop], ..Scenario::drain(2, 0, 1, 1) };
        let fed = Scenario { script: vec![Step::Push, Step::Pop], ..Scenario::drain(1, 0, 1, 1) };
        [("robbed", robbed), ("fed", fed)]
            .into_iter()
            .take(if quick { 1 } else { 2 })
            .map(move |(scene, scenario)| case(find(name), scene, scenario, size, None))
    })
}
