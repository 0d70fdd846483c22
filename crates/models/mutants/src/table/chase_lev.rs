//! Mistakes in the Chase-Lev deque.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/chase_lev.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::ChaseLev,
    scene: Scene::Drain,
    caught: Caught::Twice,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "cl-no-owner-fence",
        why: "the owner reads `head` with its `tail` still in the store buffer",
        was: "shared.owner.policy.owner();",
        is: "",
        ..HERE
    },
    Mutant {
        name: "cl-fence-before-store",
        why: "the owner's store of `tail` and its fence are swapped",
        was: "shared.owner.tail.store(index, Ordering::Release);
        shared.owner.policy.owner();",
        is: "shared.owner.policy.owner();
        shared.owner.tail.store(index, Ordering::Release);",
        ..HERE
    },
    Mutant {
        name: "cl-tail-stays",
        why: "a pop does not lower `tail`",
        was: "shared.owner.tail.store(index, Ordering::Release);",
        is: "",
        ..HERE
    },
    Mutant {
        name: "cl-last-uncontested",
        why: "off by one: the owner takes the last task without competing for it",
        was: "if index.wrapping_sub(head) as i64 <= 0 {",
        is: "if (index.wrapping_sub(head) as i64) < 0 {",
        ..HERE
    },
    Mutant {
        name: "cl-last-either-way",
        why: "the owner takes the last task whether or not its exchange succeeds",
        was: "let won = index == head
            && shared",
        is: "let won = index == head
            || shared",
        ..HERE
    },
    Mutant {
        name: "cl-tail-before-exchange",
        why: "two stores swapped, as in Figure 2c: `tail` is put back before the competition is over",
        was: "let won = index == head",
        is: "shared.owner.tail.store(next, Ordering::Release);
        let won = index == head",
        caught: Caught::Order,
        ..HERE
    },
    Mutant {
        name: "cl-pop-too-low",
        why: "off by one: a pop takes the task below its own",
        was: "unsafe { self.buffer().read(index) })",
        is: "unsafe { self.buffer().read(index.wrapping_sub(1)) })",
        scene: Scene::Pair,
        caught: Caught::Order,
        ..HERE
    },
    Mutant {
        name: "cl-no-thief-barrier",
        why: "a thief of an asymmetric queue does without its barrier",
        was: "policy.try_thief();",
        is: "true;",
        queue: Queue::AsymmetricCl,
        ..HERE
    },
    Mutant {
        name: "cl-head-read-again",
        why: "a thief reads `head` after `tail`, not before",
        was: "let length = tail.wrapping_sub(head) as i64;",
        is: "let head = shared.thieves.head.load(Ordering::Acquire);
        let length = tail.wrapping_sub(head) as i64;",
        ..HERE
    },
    Mutant {
        name: "cl-empty-in-doubt",
        why: "off by one: a thief is in doubt about a queue that it has seen to be empty, and aborts",
        was: "if length <= 0 {",
        is: "if length < 0 {",
        caught: Caught::Refusal,
        ..HERE
    },
    Mutant {
        name: "cl-steal-two",
        why: "a thief moves `head` over two tasks and takes one",
        was: "head.wrapping_add(1),",
        is: "head.wrapping_add(2),",
        caught: Caught::Order,
        ..HERE
    },
    Mutant {
        name: "cl-loser-takes",
        why: "a thief whose exchange fails takes the task all the same",
        was: "Err(_) => Steal::Retry,",
        is: "Err(_) => Steal::Success(unsafe { shared.thieves.rings.take(head) }),",
        ..HERE
    },
    Mutant {
        name: "cl-delta-less-one",
        why: "off by one: a thief trusts a `tail` that is delta ahead",
        was: "length as u64 <= policy.delta()",
        is: "(length as u64) < policy.delta()",
        queue: Queue::FfCl,
        ..HERE
    },
    Mutant {
        name: "cl-no-abort",
        why: "a thief within delta goes on where it must abort",
        was: "return Err(Steal::Abort);",
        is: "return Ok(());",
        queue: Queue::FfCl,
        ..HERE
    },
    Mutant {
        name: "cl-resolved-off-by-one",
        why: "after its barrier a thief takes the task that the owner has taken",
        was: "if (tail.wrapping_sub(head) as i64) <= 0 { Err(Steal::Empty) }",
        is: "if (tail.wrapping_sub(head) as i64) < 0 { Err(Steal::Empty) }",
        queue: Queue::Resolved,
        ..HERE
    },
    Mutant {
        name: "cl-push-shows-first",
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
