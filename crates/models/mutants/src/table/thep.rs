//! Mistakes in THEP.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/thep.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Thep,
    scene: Scene::Drain,
    caught: Caught::Twice,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "thep-no-echo",
        why: "the owner does not echo: a thief in doubt waits for an owner that waits for it",
        was: "shared.echo.store(u64::from(heartbeat(head)), Ordering::Release);",
        is: "",
        scene: Scene::Echo,
        caught: Caught::Deadlock,
        ..HERE
    },
    Mutant {
        name: "thep-tail-stays",
        why: "a pop does not lower `tail`",
        was: "shared.owner.tail.store(index, Ordering::Release);",
        is: "",
        caught: Caught::Twice,
        ..HERE
    },
    Mutant {
        name: "thep-conflict-overlooked",
        why: "off by one: the owner takes a task that a thief has raised `head` above",
        was: "if ahead(index, head) >= 0 {",
        is: "if ahead(index, head) >= -1 {",
        scene: Scene::Pair,
        ..HERE
    },
    Mutant {
        name: "thep-conflict-imagined",
        why: "off by one: the owner comes for the lock where it should have echoed, and the thief that \
              holds it waits for the echo",
        was: "if ahead(index, head) >= 0 {",
        is: "if ahead(index, head) > 0 {",
        caught: Caught::Deadlock,
        ..HERE
    },
    Mutant {
        name: "thep-loser-takes",
        why: "off by one: under the lock, the owner takes a task that a thief has taken",
        was: "let gone = ahead(next, head) <= 0;",
        is: "let gone = ahead(next, head) < 0;",
        scene: Scene::Pair,
        ..HERE
    },
    Mutant {
        name: "thep-same-heartbeat",
        why: "a steal does not step up the heartbeat, and takes an old echo for its own",
        was: "let beat = beat_after(heartbeat(head), || shared.echo.load(Ordering::Relaxed));",
        is: "let beat = heartbeat(head);",
        ..HERE
    },
    Mutant {
        name: "thep-empty-unseen",
        why: "a thief in doubt goes on waiting when the queue has become empty",
        was: "if length <= 0 || u64::from(length as u32) > delta {",
        is: "if length > 0 && u64::from(length as u32) > delta {",
        caught: Caught::Deadlock,
        ..HERE
    },
    Mutant {
        name: "thep-any-echo",
        why: "a thief takes any echo for its own",
        was: "if self.shared.echo.load(Ordering::Acquire) == u64::from(beat)",
        is: "if self.shared.echo.load(Ordering::Acquire) != SILENT",
        ..HERE
    },
    Mutant {
        name: "thep-head-stays-raised",
        why: "a missing restore: a thief that withdraws does not put `head` back",
        was: "shared.thieves.head.store(pack(beat, index), Ordering::Relaxed);",
        is: "",
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "thep-delta-less-one",
        why: "off by one: a thief does not wait where `tail` is delta ahead",
        was: "if !OWN && length > 0 && u64::from(length as u32) <= delta {",
        is: "if length > 0 && u64::from(length as u32) < delta {",
        queue: Queue::FfThep,
        ..HERE
    },
    Mutant {
        name: "thep-closed-unseen",
        why: "a thief in doubt goes on waiting when the owner has gone",
        was: "|| owner.is_closed()",
        is: "",
        scene: Scene::Leaves,
        caught: Caught::Deadlock,
        ..HERE
    },
];
