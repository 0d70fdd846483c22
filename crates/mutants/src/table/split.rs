//! Mistakes in the split deque.

use super::{Caught, Mutant, Queue, Scene};

const BOUNDS: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/split/bounds.rs",
    was: "",
    is: "",
    queue: Queue::Split,
    scene: Scene::Mixed,
    caught: Caught::Twice,
};
const OWNER: Mutant = Mutant { file: "deque/src/split/growing.rs", ..BOUNDS };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "split-takes-back-none",
        why: "off by one: the owner takes no task back, and pops one that is still shared",
        was: "let new = tail.wrapping_add(shared / 2);",
        is: "let new = tail.wrapping_add(shared.div_ceil(2));",
        ..BOUNDS
    },
    Mutant {
        name: "split-claims-two",
        why: "off by one: a thief moves `tail` over two tasks and takes one",
        was: "let new = pack(tail.wrapping_add(count), split);",
        is: "let new = pack(tail.wrapping_add(count + 1), split);",
        scene: Scene::Four,
        caught: Caught::Lost,
        ..BOUNDS
    },
    Mutant {
        name: "split-loser-takes",
        why: "a thief whose exchange fails takes the tasks all the same",
        was: "Err(_) => Claim::Lost,",
        is: "Err(_) => Claim::Taken { first: tail, count },",
        ..BOUNDS
    },
    Mutant {
        name: "split-takes-back-what-it-saw",
        why: "the owner, when it is outrun by a thief, takes back what it saw before",
        was: "                Ok(_) => return Some(new),
                Err(now) => seen = now,",
        is: "                Ok(_) => return Some(new),
                Err(now) => { seen = now; return Some(new) }",
        ..BOUNDS
    },
    Mutant {
        name: "split-bottom-stays",
        why: "a missing step: the owner goes on taking what it has shared for private",
        was: "bottom.set(to);",
        is: "",
        ..OWNER
    },
    Mutant {
        name: "split-past-the-split",
        why: "off by one: a pop at the split does not stop there",
        was: "head > self.alarm.load(Ordering::Relaxed)",
        is: "head >= self.alarm.load(Ordering::Relaxed)",
        ..OWNER
    },
    Mutant {
        name: "split-never-takes-back",
        why: "the owner pops below the split without taking tasks back",
        was: "let at_the_split = private.head.get() == old;",
        is: "let at_the_split = false;",
        ..OWNER
    },
];
