//! Mistakes in the hazard pointers, as the bag uses them. Every retired chunk is looked for at
//! once.

use super::{Caught, Mutant, Scene};

const HERE: Mutant =
    Mutant::of("pool/src/baselines/hazard.rs", "eager-bag", Scene::Third, Caught::Freed);

mutants! {
    HERE: "hazard-not-asked", "a scan frees what a thread has a hazard pointer on",
        "let keep = hazardous.binary_search(node).is_ok();" => "let keep = false;";
    HERE: "hazard-not-looked-at-again",
        "a thread does not look whether the node is still where it found it",
        "if now == node {" => "if true {";
    HERE: "hazard-no-fence",
        "a thread looks again with its hazard pointer still in the store buffer",
        "        // Pairs with the fence in `scan`.
        M::full();" =>
        "";
    HERE: "hazard-never-freed", "a scan forgets what it may free",
        "M::free(unsafe { Freed::new(*node) });" => "", caught: Caught::Leak;
}
