//! Mistakes in THEP.

use super::{Caught, Mutant, Scene};

const HERE: Mutant =
    Mutant::of("deque/src/papers/thep.rs", "unbounded-thep", Scene::Drain, Caught::Twice);

mutants! {
    HERE: "thep-no-echo",
        "the owner does not echo: a thief in doubt waits for an owner that waits for it",
        "shared.thieves.echo.store(u64::from(heartbeat(head)), Ordering::Release);" => "",
        scene: Scene::Echo, caught: Caught::Deadlock;
    HERE: "thep-tail-stays", "a pop does not lower `tail`",
        "shared.owner.tail.store(index, Ordering::Release);" => "", caught: Caught::Twice;
    HERE: "thep-conflict-overlooked",
        "off by one: the owner takes a task that a thief has raised `head` above",
        "if ahead(index, head) >= 0 {" => "if ahead(index, head) >= -1 {", scene: Scene::Pair;
    HERE: "thep-conflict-imagined",
        "off by one: the owner comes for the lock where it should have echoed, and the thief that \
              holds it waits for the echo",
        "if ahead(index, head) >= 0 {" => "if ahead(index, head) > 0 {", caught: Caught::Deadlock;
    HERE: "thep-loser-takes",
        "off by one: under the lock, the owner takes a task that a thief has taken",
        "let gone = ahead(next, head) <= 0;" => "let gone = ahead(next, head) < 0;",
        scene: Scene::Pair;
    HERE: "thep-same-heartbeat",
        "a steal does not step up the heartbeat, and takes an old echo for its own",
        "let beat = beat_after(heartbeat(head), || shared.thieves.echo.load(Ordering::Relaxed));" =>
        "let beat = heartbeat(head);";
    HERE: "thep-empty-unseen", "a thief in doubt goes on waiting when the queue has become empty",
        "if length <= 0 || u64::from(length as u32) > delta {" =>
        "if length > 0 && u64::from(length as u32) > delta {",
        caught: Caught::Deadlock;
    HERE: "thep-any-echo", "a thief takes any echo for its own",
        "if self.shared.thieves.echo.load(Ordering::Acquire) == u64::from(beat)" =>
        "if self.shared.thieves.echo.load(Ordering::Acquire) != SILENT";
    HERE: "thep-head-stays-raised",
        "a missing restore: a thief that withdraws does not put `head` back",
        "shared.thieves.head.store(pack(beat, index), Ordering::Relaxed);" => "",
        caught: Caught::Lost;
    HERE: "thep-delta-less-one", "off by one: a thief does not wait where `tail` is delta ahead",
        "if !OWN && length > 0 && u64::from(length as u32) <= delta {" =>
        "if length > 0 && u64::from(length as u32) < delta {",
        queue: "thep";
    HERE: "thep-closed-unseen", "a thief in doubt goes on waiting when the owner has gone",
        "|| owner.is_closed()" => "", scene: Scene::Leaves, caught: Caught::Deadlock;
}
