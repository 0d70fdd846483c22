//! Mistakes in the hazard pointers, as the bag uses them. Every retired chunk is looked for at
//! once.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "pool/src/baselines/hazard.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::EagerBag,
    scene: Scene::Third,
    caught: Caught::Freed,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "hazard-not-asked",
        why: "a scan frees what a thread has a hazard pointer on",
        was: "let keep = hazardous.binary_search(node).is_ok();",
        is: "let keep = false;",
        ..HERE
    },
    Mutant {
        name: "hazard-not-looked-at-again",
        why: "a thread does not look whether the node is still where it found it",
        was: "if now == node {",
        is: "if true {",
        ..HERE
    },
    Mutant {
        name: "hazard-no-fence",
        why: "a thread looks again with its hazard pointer still in the store buffer",
        was: "        // Pairs with the fence in `scan`.
        M::full();",
        is: "",
        ..HERE
    },
    Mutant {
        name: "hazard-never-freed",
        why: "a scan forgets what it may free",
        was: "M::free(unsafe { Freed::new(*node) });",
        is: "",
        caught: Caught::Leak,
        ..HERE
    },
];
