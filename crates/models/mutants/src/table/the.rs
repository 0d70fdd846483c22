//! Mistakes in THE.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/the.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::The,
    scene: Scene::Drain,
    caught: Caught::Twice,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "the-no-owner-fence",
        why: "the owner reads `head` with its `tail` still in the store buffer",
        was: "shared.owner.policy.owner();",
        is: "",
        ..HERE
    },
    Mutant {
        name: "the-fence-before-store",
        why: "the owner's store of `tail` and its fence are swapped",
        was: "shared.owner.tail.store(index, Ordering::Release);
        shared.owner.policy.owner();",
        is: "shared.owner.policy.owner();
        shared.owner.tail.store(index, Ordering::Release);",
        ..HERE
    },
    Mutant {
        name: "the-tail-stays",
        why: "a pop does not lower `tail`",
        was: "shared.owner.tail.store(index, Ordering::Release);",
        is: "",
        ..HERE
    },
    Mutant {
        name: "the-conflict-overlooked",
        why: "off by one: the owner takes a task that a thief has raised `head` above",
        was: "if (index.wrapping_sub(head) as i64) < 0",
        is: "if (index.wrapping_sub(head) as i64) < -1",
        scene: Scene::Pair,
        ..HERE
    },
    Mutant {
        name: "the-loser-takes",
        why: "off by one: under the lock, the owner takes a task that a thief has taken",
        was: "let gone = head.wrapping_sub(next) as i64 >= 0;",
        is: "let gone = head.wrapping_sub(next) as i64 > 0;",
        scene: Scene::Pair,
        ..HERE
    },
    Mutant {
        name: "the-contends-without-lock",
        why: "the owner judges a raised `head` without waiting for the thief to put it back",
        was: "let held = self.thieves.lock.lock();",
        is: "let held = ();",
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "the-two-thieves-inside",
        why: "a thief does not care whether it has got the lock",
        was: "let Some(held) = shared.thieves.lock.try_lock() else { return Steal::Retry };",
        is: "let held = shared.thieves.lock.try_lock();",
        scene: Scene::Thieves,
        ..HERE
    },
    Mutant {
        name: "the-plain-store-of-head",
        why: "a thief without a fence of its own raises `head` by a plain store",
        was: "shared.thieves.head.swap(head.wrapping_add(1), Ordering::SeqCst);",
        is: "shared.thieves.head.store(head.wrapping_add(1), Ordering::Release);",
        queue: Queue::FfThe,
        ..HERE
    },
    Mutant {
        name: "the-no-thief-barrier",
        why: "a thief of an asymmetric queue does without its barrier",
        was: "shared.owner.policy.try_thief();",
        is: "true;",
        queue: Queue::AsymmetricThe,
        ..HERE
    },
    Mutant {
        name: "the-head-stays-raised",
        why: "a missing restore: a thief that withdraws does not put `head` back",
        was: "shared.thieves.head.store(head, Ordering::Relaxed);",
        is: "",
        queue: Queue::FfThe,
        caught: Caught::Refusal,
        ..HERE
    },
    Mutant {
        name: "the-delta-less-one",
        why: "off by one: a thief trusts a `tail` that is delta ahead",
        was: "length as u64 > shared.owner.policy.delta()",
        is: "length as u64 >= shared.owner.policy.delta()",
        queue: Queue::FfThe,
        ..HERE
    },
    Mutant {
        name: "the-trusts-old-tail",
        why: "a thief that sees the owner gone does not look at `tail` again, which it has read before",
        was: "_ if self.length(head) <= 0 => Steal::Empty,",
        is: "",
        queue: Queue::FfThe,
        scene: Scene::Leaving,
        ..HERE
    },
    Mutant {
        name: "the-never-certain",
        why: "a thief aborts whatever it sees",
        was: "length if certain && length as u64 > shared.owner.policy.delta() => {",
        is: "length if length as u64 > u64::MAX - shared.owner.policy.delta() => {",
        queue: Queue::FfThe,
        scene: Scene::Four,
        caught: Caught::Refusal,
        ..HERE
    },
    Mutant {
        name: "the-no-abort",
        why: "a thief within delta goes on where it must abort",
        was: "_ if !self.certain() => Steal::Abort,",
        is: "_ if false => Steal::Abort,",
        queue: Queue::FfThe,
        ..HERE
    },
    Mutant {
        name: "the-push-shows-first",
        why: "two stores swapped: a push shows its task before it has written it",
        file: "deque/src/papers/owner_line.rs",
        was: "unsafe { buffer.write(tail, task) };",
        is: "self.tail.store(tail.wrapping_add(1), Ordering::Release);
        unsafe { buffer.write(tail, task) };",
        scene: Scene::Brief,
        caught: Caught::Race,
        ..HERE
    },
];
