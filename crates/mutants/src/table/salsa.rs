//! Mistakes in SALSA.

use super::{Caught, Mutant, Queue, Scene};

const STEAL: &str = "pool/src/salsa/steal.rs";

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "pool/src/salsa/mod.rs",
    was: "",
    is: "",
    queue: Queue::Salsa,
    scene: Scene::Once,
    caught: Caught::Twice,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "salsa-no-owner-fence",
        why: "a consumer looks at the term with its `taken` still in the store buffer, and no thief can \
              make it drain",
        file: STEAL,
        was: "fence.thief();",
        is: "",
        ..HERE
    },
    Mutant {
        name: "salsa-no-look-for-owner",
        why: "a thief leaves the fence out without asking whether the owner is at the chunk",
        file: STEAL,
        was: "!(C::LOOK_FOR_OWNER && is_protected(victim, chunk))",
        is: "true",
        ..HERE
    },
    Mutant {
        name: "salsa-no-second-look",
        why: "line 91: a consumer does not look again whether the chunk was stolen",
        was: "!C::SECOND_LOOK || term.load(Ordering::Relaxed) == mine",
        is: "true",
        ..HERE
    },
    Mutant {
        name: "salsa-looks-before-it-tells",
        why: "two steps swapped: a consumer looks a second time and then says what it takes",
        was: "taken.store(next, Ordering::Release);
        record.fence.owner();
        // Line 91. Relaxed: ordered after the store by the fence.
        !C::SECOND_LOOK || term.load(Ordering::Relaxed) == mine",
        is: "let second = term.load(Ordering::Relaxed);
        taken.store(next, Ordering::Release);
        record.fence.owner();
        second == mine",
        ..HERE
    },
    Mutant {
        name: "salsa-thief-forgets-its-own",
        why: "off by one: a thief leaves the task that it takes for the taking",
        file: STEAL,
        was: "let next = taken + u64::from(has_task);",
        is: "let next = taken;",
        ..HERE
    },
    Mutant {
        name: "salsa-everyone-claims",
        why: "two that are after one slot both get it",
        file: "pool/src/salsa/chunk.rs",
        was: "fetch_or(bit, Ordering::Relaxed) & bit == 0",
        is: "fetch_or(bit, Ordering::Relaxed) & bit <= bit",
        ..HERE
    },
    Mutant {
        name: "salsa-not-stealable",
        why: "line 115 left out: a thief does not name the chunk in its own list, and forgets it when it \
              steals another",
        file: STEAL,
        was: "self.record().held.add(chunk)?;",
        is: "",
        scene: Scene::Robbed,
        caught: Caught::Lost,
        ..HERE
    },
];
