//! Mistakes in THE.

use super::{Caught, Mutant, Scene};

const HERE: Mutant = Mutant::of("deque/src/papers/the.rs", "the", Scene::Drain, Caught::Twice);

mutants! {
    HERE: "the-no-owner-fence", "the owner reads `head` with its `tail` still in the store buffer",
        "shared.owner.policy.owner();" => "";
    HERE: "the-fence-before-store", "the owner's store of `tail` and its fence are swapped",
        "shared.owner.tail.store(index, Ordering::Release);
        shared.owner.policy.owner();" =>
        "shared.owner.policy.owner();
        shared.owner.tail.store(index, Ordering::Release);";
    HERE: "the-tail-stays", "a pop does not lower `tail`",
        "shared.owner.tail.store(index, Ordering::Release);" => "";
    HERE: "the-conflict-overlooked",
        "off by one: the owner takes a task that a thief has raised `head` above",
        "if (index.wrapping_sub(head) as i64) < 0" => "if (index.wrapping_sub(head) as i64) < -1",
        scene: Scene::Pair;
    HERE: "the-loser-takes",
        "off by one: under the lock, the owner takes a task that a thief has taken",
        "let gone = head.wrapping_sub(next) as i64 >= 0;" =>
        "let gone = head.wrapping_sub(next) as i64 > 0;",
        scene: Scene::Pair;
    HERE: "the-contends-without-lock",
        "the owner judges a raised `head` without waiting for the thief to put it back",
        "let held = self.thieves.lock.lock();" => "let held = ();", caught: Caught::Lost;
    HERE: "the-two-thieves-inside", "a thief does not care whether it has got the lock",
        "let Some(held) = shared.thieves.lock.try_lock() else { return Steal::Retry };" =>
        "let held = shared.thieves.lock.try_lock();",
        scene: Scene::Thieves;
    HERE: "the-plain-store-of-head",
        "a thief without a fence of its own raises `head` by a plain store",
        "shared.thieves.head.swap(head.wrapping_add(1), Ordering::SeqCst);" =>
        "shared.thieves.head.store(head.wrapping_add(1), Ordering::Release);",
        queue: "ff-the";
    HERE: "the-no-thief-barrier", "a thief of an asymmetric queue does without its barrier",
        "shared.owner.policy.try_thief();" => "true;", queue: "asymmetric-the";
    HERE: "the-head-stays-raised",
        "a missing restore: a thief that withdraws does not put `head` back",
        "shared.thieves.head.store(head, Ordering::Relaxed);" => "",
        queue: "ff-the", caught: Caught::Refusal;
    HERE: "the-delta-less-one", "off by one: a thief trusts a `tail` that is delta ahead",
        "length as u64 > shared.owner.policy.delta()" =>
        "length as u64 >= shared.owner.policy.delta()",
        queue: "ff-the";
    HERE: "the-trusts-old-tail",
        "a thief that sees the owner gone does not look at `tail` again, which it has read before",
        "_ if self.length(head) <= 0 => Steal::Empty," => "",
        queue: "ff-the", scene: Scene::Leaving;
    HERE: "the-never-certain", "a thief aborts whatever it sees",
        "length if certain && length as u64 > shared.owner.policy.delta() => {" =>
        "length if length as u64 > u64::MAX - shared.owner.policy.delta() => {",
        queue: "ff-the", scene: Scene::Four, caught: Caught::Refusal;
    HERE: "the-no-abort", "a thief within delta goes on where it must abort",
        "_ if !self.certain() => Steal::Abort," => "_ if false => Steal::Abort,",
        queue: "ff-the";
    HERE: "the-push-shows-first",
        "two stores swapped: a push shows its task before it has written it",
        "unsafe { buffer.write(tail, task) };" =>
        "self.tail.store(tail.wrapping_add(1), Ordering::Release);
        unsafe { buffer.write(tail, task) };",
        file: "deque/src/papers/owner_line.rs", scene: Scene::Brief, caught: Caught::Race;
}
