//! Mistakes in the block-based queues, their orderings among them.

use super::{Caught, Mutant, Scene};

const HERE: Mutant =
    Mutant::of("deque/src/papers/bwos/block.rs", "bwos-lifo", Scene::WeakBrief, Caught::Race);
const FIFO: Mutant = Mutant { queue: "bwos-fifo", ..HERE };
const TABLE: Mutant = Mutant { file: "deque/src/papers/bwos/blocks.rs", ..HERE };

const GRANTS: &str =
    "self.thieves.open.store(Open { round, end, next }.pack(), Ordering::Release);";
const CLAIMS: &str = "            claimed.pack(),
            Ordering::Acquire,";
const FINISHES: &str = "self.0.fetch_add(u64::from(self.1), Ordering::Release);";
const RECLAIMS: &str = "self.thieves.stolen.load(Ordering::Acquire)";

mutants! {
    HERE: "bwos-grants-relaxed", "step 1: a grant does not release the tasks of the block",
        GRANTS => "self.thieves.open.store(Open { round, end, next }.pack(), Ordering::Relaxed);";
    HERE: "bwos-claims-relaxed", "step 1: a thief does not acquire the tasks that it claims",
        CLAIMS => "            claimed.pack(),
            Ordering::Relaxed,";
    FIFO: "bwos-commits-relaxed", "step 1: a push of a FIFO queue does not release its task",
        "u64::from(round) << 32 | u64::from(tasks), Ordering::Release)" =>
        "u64::from(round) << 32 | u64::from(tasks), Ordering::Relaxed)";
    FIFO: "bwos-looks-relaxed",
        "step 1: a thief of a FIFO queue does not acquire the tasks that it sees",
        "self.owner.committed.load(Ordering::Acquire)" =>
        "self.owner.committed.load(Ordering::Relaxed)";
    HERE: "bwos-finishes-relaxed", "step 2: a thief does not release its reading of the slot",
        FINISHES => "self.0.fetch_add(u64::from(self.1), Ordering::Relaxed);",
        scene: Scene::WeakAnew;
    HERE: "bwos-reclaims-relaxed",
        "step 2: the owner does not acquire that the thieves have read the slots",
        RECLAIMS => "self.thieves.stolen.load(Ordering::Relaxed)", scene: Scene::WeakAnew;
    TABLE: "bwos-enters-relaxed",
        "step 3: the owner does not release the block that it puts into the table",
        "place.store(found, Ordering::Release);" => "place.store(found, Ordering::Relaxed);",
        queue: "bwos-fifo";
    TABLE: "bwos-finds-relaxed",
        "step 3: a thief does not acquire the block that it finds in the table",
        "(blocks.len() - 1)].load(Ordering::Acquire);
        // SAFETY: null, or a block that lives as long as `self`.
        unsafe { block.as_ref() }" =>
        "(blocks.len() - 1)].load(Ordering::Relaxed);
        unsafe { block.as_ref() }",
        queue: "bwos-fifo";
    TABLE: "bwos-grows-relaxed", "step 3: the owner does not release the larger table",
        "self.table.store(table, Ordering::Release);" =>
        "self.table.store(table, Ordering::Relaxed);",
        scene: Scene::WeakAnew;
    TABLE: "bwos-reads-table-relaxed", "step 3: a thief does not acquire the table",
        "self.table.load(Ordering::Acquire)" => "self.table.load(Ordering::Relaxed)",
        scene: Scene::WeakAnew;
    HERE: "bwos-takes-over-nothing",
        "the owner goes back to a block that it does not close: thieves claim there, too",
        "fetch_and(!END, Ordering::Relaxed)" => "fetch_and(u64::MAX, Ordering::Relaxed)",
        scene: Scene::WeakBack;
    HERE: "bwos-takeover-by-load-and-store",
        "the owner closes a block by a load and a store: a claim between them is lost",
        "Open::unpack(self.thieves.open.fetch_and(!END, Ordering::Relaxed))" =>
        "let seen = self.open();
        self.thieves.open.store(Open { end: 0, ..seen }.pack(), Ordering::Relaxed);
        seen",
        scene: Scene::WeakBack;
    HERE: "bwos-reclaims-under-a-thief",
        "the owner enters a block anew while a thief that has claimed a task has not read it",
        "if !known || stolen != u64::from(open.next - own.get()) {" => "if !known {",
        scene: Scene::WeakAnew;
    HERE: "bwos-stays-closed",
        "an owner that finds a block empty when it goes back leaves it closed: no thief passes it",
        "            block.grant(before as u32, left.next, left.end);
            return false;" =>
        "            return false;",
        file: "deque/src/papers/bwos/lifo.rs", scene: Scene::WeakBack, caught: Caught::Lost;
    HERE: "bwos-goes-and-grants-nothing", "an owner that is dropped keeps what is in its block",
        "            self.block().grant(position as u32, head, tail);
        }" =>
        "        }",
        file: "deque/src/papers/bwos/lifo.rs", scene: Scene::WeakRobbed, caught: Caught::Lost;
}
