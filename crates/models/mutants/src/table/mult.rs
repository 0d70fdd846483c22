//! Mistakes in the queue with multiplicity, its orderings among them.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/mult.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Multiplicity,
    scene: Scene::WeakAnew,
    caught: Caught::Lost,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "mult-no-second-look",
        why: "step 4 left out: a thief takes what it has read, though the slot may have been reused or not copied",
        was: "if tail.wrapping_sub(reached) >= capacity || (reached.wrapping_sub(first) as i64) < 0 {",
        is: "if false {",
        scene: Scene::Laps,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "mult-no-free-slot",
        why: "off by one: the owner fills the slot that is to stay free",
        was: "self.limit().set(reached.wrapping_add(slots.capacity() - 1));",
        is: "self.limit().set(reached.wrapping_add(slots.capacity()));",
        ..HERE
    },
    Mutant {
        name: "mult-passes-one-more",
        why: "off by one: a thief raises its number past a task that it has not taken",
        was: "let next = reached.wrapping_add(1);
        self.reached.store(next, Ordering::Relaxed);",
        is: "let next = reached.wrapping_add(2);
        self.reached.store(next, Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "mult-push-shows-first",
        why: "two stores swapped: a push stores `tail` before it has written the slot",
        was: "shared.slots.write(tail, word);
        // Release: the slot, and what the task names, are seen by who acquires this.
        shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);
        shared.slots.write(tail, word);",
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "mult-push-relaxed",
        why: "a push does not release its slot with `tail`",
        was: "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "mult-looks-relaxed",
        why: "a thief does not acquire the slots below the `tail` that it reads",
        was: "        // Acquire: pairs with the owner's release.
        let tail = shared.owner.tail.load(Ordering::Acquire);",
        is: "        let tail = shared.owner.tail.load(Ordering::Relaxed);",
        caught: Caught::Invented,
        ..HERE
    },
];
