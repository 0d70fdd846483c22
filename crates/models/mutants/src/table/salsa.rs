//! Mistakes in SALSA.

use super::{Caught, Mutant, Queue, Scene};

const STEAL: &str = "pool/src/salsa/steal.rs";
const CORE: &str = "pool/src/salsa/core.rs";
const LIST: &str = "pool/src/salsa/list.rs";

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "pool/src/salsa/mod.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Salsa,
    scene: Scene::Once,
    caught: Caught::Twice,
};

const UNTAGGED: Mutant = Mutant {
    file: "pool/src/salsa/chunk.rs",
    was: "(self.0 >> (2 * ID_BITS)).wrapping_add(1)",
    is: "(self.0 >> (2 * ID_BITS))",
    caught: Caught::Nothing,
    ..HERE
};

const PROTECTS_LATE: Mutant = Mutant {
    file: STEAL,
    was: "        protect(self.record(), TARGET, chunk);
        // Acquire: what follows is read in this term or a later one.
        let old = Term(chunk.term().load(Ordering::Acquire));
        if old.owner() != from || from == self.number {
            return None;
        }
        // Lines 112-114.
        let before = chunk.taken_in(old)?;
        // Acquire pairs with the producer's Release.
        if chunk.filled().load(Ordering::Acquire) <= before {
            return None;
        }
        let mine = chunk.make_taken(self.number)?;",
    is: "        let old = Term(chunk.term().load(Ordering::Acquire));
        if old.owner() != from || from == self.number {
            return None;
        }
        let before = chunk.taken_in(old)?;
        if chunk.filled().load(Ordering::Acquire) <= before {
            return None;
        }
        let mine = chunk.make_taken(self.number)?;
        protect(self.record(), TARGET, chunk);",
    scene: Scene::Oversleeps,
    ..HERE
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
        was: "!is_protected(victim, chunk)",
        is: "true",
        ..HERE
    },
    Mutant {
        name: "salsa-no-second-look",
        why: "line 91: a consumer does not look again whether the chunk was stolen",
        was: "        term.load(Ordering::Relaxed) == mine",
        is: "true",
        ..HERE
    },
    Mutant {
        name: "salsa-looks-before-it-tells",
        why: "two steps swapped: a consumer looks a second time and then says what it takes",
        was: "taken.store(next, Ordering::Release);
        record.fence.owner();
        // Line 91. Relaxed: ordered after the store by the fence.
        term.load(Ordering::Relaxed) == mine",
        is: "let second = term.load(Ordering::Relaxed);
        taken.store(next, Ordering::Release);
        record.fence.owner();
        second == mine",
        ..HERE
    },
    Mutant {
        name: "salsa-no-first-look",
        why: "lines 87-88: a consumer does not look whether the chunk was stolen before it publishes a task that came meanwhile",
        was: "if term.load(Ordering::Relaxed) != mine {",
        is: "if false {",
        scene: Scene::LateTask,
        ..HERE
    },
    Mutant {
        name: "salsa-no-recheck",
        why: "line 125: a thief that was robbed in its window takes what the robber cannot see",
        file: STEAL,
        was: "taken != before && chunk.term()",
        is: "false && chunk.term()",
        scene: Scene::RobbedAndFed,
        ..HERE
    },
    Mutant {
        name: "salsa-untagged",
        why: "section 5.3: a change of owner gives the term no new tag, which the thief's hazard pointer makes up for",
        scene: Scene::Oversleeps,
        ..UNTAGGED
    },
    Mutant {
        name: "salsa-untagged-thief",
        why: "the same, where the owner takes: the argument of steps 1 to 3 does not rest on the tag",
        scene: Scene::Once,
        ..UNTAGGED
    },
    Mutant {
        name: "salsa-untagged-robber",
        why: "the same, where a thief is robbed: nor does that of step 4",
        scene: Scene::RobbedAndFed,
        ..UNTAGGED
    },
    Mutant {
        name: "salsa-protects-late",
        why: "a thief sets its hazard pointer after it has read the term, which the tag makes up for",
        caught: Caught::Nothing,
        ..PROTECTS_LATE
    },
    Mutant {
        name: "salsa-oversleeps-untagged",
        why: "the hazard pointer comes late, and there is no tag: a thief steals the chunk in another life",
        besides: Some("salsa-untagged"),
        ..PROTECTS_LATE
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
        was: "self.record().held.add(chunk, stolen)?;",
        is: "",
        scene: Scene::Robbed,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "salsa-hazard-no-fence",
        why: "a consumer looks at the term with its hazard pointer still in the store buffer: a thief thinks that it is not there",
        file: CORE,
        was: "    // Pairs with the fence in `retire`, and with that of a thief.
    M::full();",
        is: "",
        ..HERE
    },
    Mutant {
        name: "salsa-hazard-not-looked-at-again",
        why: "a consumer sets its hazard pointer and does not look whether the chunk is still its own",
        was: "if !term.is_settled_on(self.number) || !self.make_current(chunk, term) {",
        is: "if !self.make_current(chunk, term) {",
        ..HERE
    },
    Mutant {
        name: "salsa-reuses-under-a-thief",
        why: "who retires a chunk does not look for the hazard pointers of consumers: a thief in its window finds another life",
        file: "pool/src/salsa/chunk_pool.rs",
        was: "self.consumers.iter().any(|other| is_protected(other, chunk))",
        is: "false",
        scene: Scene::Refilled,
        // The consumer's own assertion sees it first, where it is compiled.
        caught: if cfg!(debug_assertions) { Caught::Broken } else { Caught::Twice },
        ..HERE
    },
    Mutant {
        name: "salsa-goes-on-unseen",
        why: "line 136: a thief goes on in its chunk without a hazard pointer there, and who robs it thinks that it is not there",
        file: STEAL,
        was: "            protect(self.record(), CURRENT, chunk);
            self.make_current(chunk, settled);",
        is: "            self.make_current(chunk, settled);",
        scene: Scene::RobbedThief,
        ..HERE
    },
    Mutant {
        name: "salsa-forgets-a-stolen-chunk",
        why: "a thief names its second chunk in the place of its first, which is its still",
        file: LIST,
        was: "array.entries.iter().find(|entry| entry.is_dead())",
        is: "array.entries.iter().find(|entry| true || entry.is_dead())",
        scene: Scene::TwoChunks,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "salsa-passes-a-live-chunk",
        why: "the head of a producer's list moves past a chunk that is the consumer's still",
        file: LIST,
        was: "if !self.array.get().entry(head).is_dead() {",
        is: "if false {",
        scene: Scene::FedByTwo,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "salsa-one-list-of-two",
        why: "a producer that comes to a pool puts its list over that of another who comes at once",
        file: CORE,
        was: "match self.fifos.compare_exchange(first, made, Ordering::AcqRel, Ordering::Relaxed) {",
        is: "self.fifos.store(made, Ordering::Release);
            match Ok::<(), *mut Fifo<T, M>>(()) {",
        scene: Scene::FedByTwo,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "salsa-shows-a-list-before-copy",
        why: "two steps swapped: a list that has grown is shown before the chunks are named in it",
        file: LIST,
        was: "        fill(array_ref);
        // Release pairs with the Acquire in `get`.
        self.0.store(array, Ordering::Release);",
        is: "        self.0.store(array, Ordering::Release);
        fill(array_ref);",
        scene: Scene::HeldGrows,
        caught: Caught::FalseEmpty,
        ..HERE
    },
    Mutant {
        name: "salsa-copies-too-few",
        why: "off by one: the oldest chunk of a list that grows is not in the new one",
        file: LIST,
        was: "for position in head..tail {",
        is: "for position in head + 1..tail {",
        scene: Scene::ListGrows,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "salsa-visits-the-wrong-processor",
        why: "who robs a thief in its window visits the thief's processor, and the `taken` word that counts is the owner's",
        file: STEAL,
        was: "core.consumers.get(old.source())?.fence",
        is: "core.consumers.get(from)?.fence",
        queue: Queue::DisplacedSalsa,
        scene: Scene::RobbedInWindow,
        ..HERE
    },
    Mutant {
        name: "salsa-does-not-visit",
        why: "a thief does not wait until it knows what the owner took",
        file: STEAL,
        was: "while fence.delta() > 0 && !fence.resolve() {",
        is: "while false {",
        queue: Queue::DisplacedSalsa,
        ..HERE
    },
];
