//! Mistakes in SALSA.

use super::{Caught, Mutant, Scene};

const STEAL: &str = "pool/src/salsa/steal.rs";
const CORE: &str = "pool/src/salsa/core.rs";
const LIST: &str = "pool/src/salsa/list.rs";

const HERE: Mutant = Mutant::of("pool/src/salsa/mod.rs", "salsa", Scene::Once, Caught::Twice);

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

mutants! {
    HERE: "salsa-no-owner-fence",
        "a consumer looks at the term with its `taken` still in the store buffer, and no thief can \
              make it drain",
        "fence.thief();" => "", file: STEAL;
    HERE: "salsa-no-look-for-owner",
        "a thief leaves the fence out without asking whether the owner is at the chunk",
        "!is_protected(victim, chunk)" => "true", file: STEAL;
    HERE: "salsa-no-second-look",
        "line 91: a consumer does not look again whether the chunk was stolen",
        "        term.load(Ordering::Relaxed) == mine" => "true";
    HERE: "salsa-looks-before-it-tells",
        "two steps swapped: a consumer looks a second time and then says what it takes",
        "taken.store(next, Ordering::Release);
        record.fence.owner();
        // Line 91. Relaxed: ordered after the store by the fence.
        term.load(Ordering::Relaxed) == mine" =>
        "let second = term.load(Ordering::Relaxed);
        taken.store(next, Ordering::Release);
        record.fence.owner();
        second == mine";
    HERE: "salsa-no-first-look",
        "lines 87-88: a consumer does not look whether the chunk was stolen before it publishes a task that came meanwhile",
        "if term.load(Ordering::Relaxed) != mine {" => "if false {", scene: Scene::LateTask;
    HERE: "salsa-no-recheck",
        "line 125: a thief that was robbed in its window takes what the robber cannot see",
        "taken != before && chunk.term()" => "false && chunk.term()",
        file: STEAL, scene: Scene::RobbedAndFed;
    UNTAGGED: "salsa-untagged",
        "section 5.3: a change of owner gives the term no new tag, which the thief's hazard pointer makes up for",
        UNTAGGED.was => UNTAGGED.is, scene: Scene::Oversleeps;
    UNTAGGED: "salsa-untagged-thief",
        "the same, where the owner takes: the argument of steps 1 to 3 does not rest on the tag",
        UNTAGGED.was => UNTAGGED.is, scene: Scene::Once;
    UNTAGGED: "salsa-untagged-robber", "the same, where a thief is robbed: nor does that of step 4",
        UNTAGGED.was => UNTAGGED.is, scene: Scene::RobbedAndFed;
    PROTECTS_LATE: "salsa-protects-late",
        "a thief sets its hazard pointer after it has read the term, which the tag makes up for",
        PROTECTS_LATE.was => PROTECTS_LATE.is, caught: Caught::Nothing;
    PROTECTS_LATE: "salsa-oversleeps-untagged",
        "the hazard pointer comes late, and there is no tag: a thief steals the chunk in another life",
        PROTECTS_LATE.was => PROTECTS_LATE.is, besides: Some("salsa-untagged");
    HERE: "salsa-thief-forgets-its-own",
        "off by one: a thief leaves the task that it takes for the taking",
        "let next = taken + u64::from(has_task);" => "let next = taken;", file: STEAL;
    HERE: "salsa-everyone-claims", "two that are after one slot both get it",
        "fetch_or(bit, Ordering::Relaxed) & bit == 0" =>
        "fetch_or(bit, Ordering::Relaxed) & bit <= bit",
        file: "pool/src/salsa/chunk.rs";
    HERE: "salsa-not-stealable",
        "line 115 left out: a thief does not name the chunk in its own list, and forgets it when it \
              steals another",
        "self.record().held.add(chunk, stolen)?;" => "",
        file: STEAL, scene: Scene::Robbed, caught: Caught::Lost;
    HERE: "salsa-hazard-no-fence",
        "a consumer looks at the term with its hazard pointer still in the store buffer: a thief thinks that it is not there",
        "    // Pairs with the fence in `retire`, and with that of a thief.
    M::full();" =>
        "",
        file: CORE;
    HERE: "salsa-hazard-not-looked-at-again",
        "a consumer sets its hazard pointer and does not look whether the chunk is still its own",
        "if !term.is_settled_on(self.number) || !self.make_current(chunk, term) {" =>
        "if !self.make_current(chunk, term) {";
    // The consumer's own assertion sees it first, where it is compiled.
    HERE: "salsa-reuses-under-a-thief",
        "who retires a chunk does not look for the hazard pointers of consumers: a thief in its window finds another life",
        "self.consumers.iter().any(|other| is_protected(other, chunk))" => "false",
        file: "pool/src/salsa/chunk_pool.rs", scene: Scene::Refilled, caught: if cfg!(debug_assertions) { Caught::Broken } else { Caught::Twice };
    HERE: "salsa-goes-on-unseen",
        "line 136: a thief goes on in its chunk without a hazard pointer there, and who robs it thinks that it is not there",
        "            protect(self.record(), CURRENT, chunk);
            self.make_current(chunk, settled);" =>
        "            self.make_current(chunk, settled);",
        file: STEAL, scene: Scene::RobbedThief;
    HERE: "salsa-forgets-a-stolen-chunk",
        "a thief names its second chunk in the place of its first, which is its still",
        "array.entries.iter().find(|entry| entry.is_dead())" =>
        "array.entries.iter().find(|entry| true || entry.is_dead())",
        file: LIST, scene: Scene::TwoChunks, caught: Caught::Lost;
    HERE: "salsa-passes-a-live-chunk",
        "the head of a producer's list moves past a chunk that is the consumer's still",
        "if !self.array.get().entry(head).is_dead() {" => "if false {",
        file: LIST, scene: Scene::FedByTwo, caught: Caught::Lost;
    HERE: "salsa-one-list-of-two",
        "a producer that comes to a pool puts its list over that of another who comes at once",
        "match self.fifos.compare_exchange(first, made, Ordering::AcqRel, Ordering::Relaxed) {" =>
        "self.fifos.store(made, Ordering::Release);
            match Ok::<(), *mut Fifo<T, M>>(()) {",
        file: CORE, scene: Scene::FedByTwo, caught: Caught::Lost;
    HERE: "salsa-shows-a-list-before-copy",
        "two steps swapped: a list that has grown is shown before the chunks are named in it",
        "        fill(array_ref);
        // Release pairs with the Acquire in `get`.
        self.0.store(array, Ordering::Release);" =>
        "        self.0.store(array, Ordering::Release);
        fill(array_ref);",
        file: LIST, scene: Scene::HeldGrows, caught: Caught::FalseEmpty;
    HERE: "salsa-copies-too-few",
        "off by one: the oldest chunk of a list that grows is not in the new one",
        "for position in head..tail {" => "for position in head + 1..tail {",
        file: LIST, scene: Scene::ListGrows, caught: Caught::Lost;
    HERE: "salsa-visits-the-wrong-processor",
        "who robs a thief in its window visits the thief's processor, and the `taken` word that counts is the owner's",
        "core.consumers.get(old.source())?.fence" => "core.consumers.get(from)?.fence",
        file: STEAL, queue: "displaced-salsa", scene: Scene::RobbedInWindow;
    HERE: "salsa-does-not-visit", "a thief does not wait until it knows what the owner took",
        "while fence.delta() > 0 && !fence.resolve() {" => "while false {",
        file: STEAL, queue: "displaced-salsa";
}
