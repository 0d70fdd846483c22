//! Mistakes in the FIFO queue, open and closed.

use super::{Caught, Mutant, Queue, Scene};

const THIEF: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/ours/fifo/thief.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::ClosedFifo,
    scene: Scene::Once,
    caught: Caught::Twice,
};
const OWNER: Mutant = Mutant { file: "deque/src/ours/fifo/mod.rs", ..THIEF };
const OPEN: Mutant = Mutant { queue: Queue::Fifo, scene: Scene::Brief, ..THIEF };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "fifo-half-drops-the-rest",
        why: "a batch's first task is returned, and the others are dropped",
        file: "deque/src/ours/owners_end.rs",
        was: "                        for task in claimed {
                            into.push(task);
                        }
",
        is: "                        drop(claimed);
",
        scene: Scene::Halves,
        caught: Caught::Lost,
        ..OPEN
    },
    Mutant {
        name: "fifo-claims-one-more",
        why: "off by one: a thief moves `head` over one task more than it takes",
        was: "let next = head.wrapping_add(u64::from(count) * ONE);",
        is: "let next = head.wrapping_add(u64::from(count) * ONE + ONE);",
        caught: Caught::Lost,
        ..OPEN
    },
    Mutant {
        name: "fifo-always-outrun",
        why: "a thief says that it was outrun, whoever else is there",
        was: "self.thieves.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed)",
        is: "Err::<u64, u64>(head)",
        caught: Caught::Refusal,
        ..OPEN
    },
    Mutant {
        name: "fifo-loser-takes",
        why: "a thief whose exchange fails takes the task all the same",
        was: "Err(_) => Steal::Retry,",
        is: "Err(_) => Steal::Success((index_of(head), count)),",
        ..OPEN
    },
    Mutant {
        name: "fifo-owner-adds-in-two",
        why: "the owner of an open queue takes by a load and a store",
        was: "let seen = head.fetch_add(ONE, Ordering::AcqRel);",
        is: "let seen = head.load(Ordering::Relaxed);
        head.store(seen.wrapping_add(ONE), Ordering::Release);",
        file: "deque/src/ours/fifo/mod.rs",
        ..OPEN
    },
    Mutant {
        name: "fifo-push-shows-first",
        why: "two stores swapped: a push moves `tail` before it has written its task",
        file: "deque/src/ours/owners_end.rs",
        was: "unsafe { self.buffer().write(tail, task) };",
        is: "self.publish(tail.wrapping_add(1));
        unsafe { self.buffer().write(tail, task) };",
        caught: Caught::Race,
        ..OPEN
    },
    Mutant {
        name: "closed-fifo-no-barrier",
        why: "a missing fence: a thief opens at what it sees without making the owner's pop visible",
        was: "!self.owner.policy.try_thief()",
        is: "false",
        ..THIEF
    },
    Mutant {
        name: "closed-fifo-asks-nobody",
        why: "a missing store: a thief opens the queue and raises no request",
        was: "self.request.swap(1, Ordering::SeqCst);",
        is: "",
        ..THIEF
    },
    Mutant {
        name: "closed-fifo-reads-taken-first",
        why: "two steps swapped: a thief reads `taken` and then makes its barrier",
        was: "        if !self.owner.policy.try_thief() {
            // The request stays: the owner answers at its next pop, or push that finds the ring
            // full.
            return;
        }
        // Acquire: pairs with the release in `pop`; so the exchange hands on a tail at or above it.
        let taken = self.owner.taken.load(Ordering::Acquire);",
        is: "        let taken = self.owner.taken.load(Ordering::Acquire);
        self.owner.policy.thief();",
        ..THIEF
    },
    Mutant {
        name: "closed-fifo-thief-opens-above",
        why: "off by one: a thief opens above the task that the owner is to take next",
        was: "opened(taken),",
        is: "opened(taken.wrapping_add(1)),",
        caught: Caught::Lost,
        ..THIEF
    },
    Mutant {
        name: "closed-fifo-pop-keeps-its-task",
        why: "an owner that a thief was faster than takes the task that the thief has opened",
        was: "if (start ^ opened(next)) & ODD != 0 {",
        is: "if start == 0 {",
        ..OWNER
    },
    Mutant {
        name: "closed-fifo-ignores-the-request",
        why: "the owner of a closed queue does not look whether a thief has asked",
        was: "if self.shared.request.load(Ordering::Relaxed) != 0 {",
        is: "if self.shared.request.load(Ordering::Relaxed) > 1 {",
        ..OWNER
    },
];
