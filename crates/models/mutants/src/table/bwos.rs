//! Mistakes in the block-based queues, their orderings among them.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/bwos/block.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::BwosLifo,
    scene: Scene::WeakBrief,
    caught: Caught::Race,
};
const FIFO: Mutant = Mutant { queue: Queue::BwosFifo, ..HERE };
const TABLE: Mutant = Mutant { file: "deque/src/papers/bwos/blocks.rs", ..HERE };

const GRANTS: &str =
    "self.thieves.open.store(Open { round, end, next }.pack(), Ordering::Release);";
const CLAIMS: &str = "            claimed.pack(),
            Ordering::Acquire,";
const FINISHES: &str = "self.0.fetch_add(u64::from(self.1), Ordering::Release);";
const RECLAIMS: &str = "self.thieves.stolen.load(Ordering::Acquire)";

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "bwos-grants-relaxed",
        why: "step 1: a grant does not release the tasks of the block",
        was: GRANTS,
        is: "self.thieves.open.store(Open { round, end, next }.pack(), Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "bwos-claims-relaxed",
        why: "step 1: a thief does not acquire the tasks that it claims",
        was: CLAIMS,
        is: "            claimed.pack(),
            Ordering::Relaxed,",
        ..HERE
    },
    Mutant {
        name: "bwos-commits-relaxed",
        why: "step 1: a push of a FIFO queue does not release its task",
        was: "u64::from(round) << 32 | u64::from(tasks), Ordering::Release)",
        is: "u64::from(round) << 32 | u64::from(tasks), Ordering::Relaxed)",
        ..FIFO
    },
    Mutant {
        name: "bwos-looks-relaxed",
        why: "step 1: a thief of a FIFO queue does not acquire the tasks that it sees",
        was: "self.owner.committed.load(Ordering::Acquire)",
        is: "self.owner.committed.load(Ordering::Relaxed)",
        ..FIFO
    },
    Mutant {
        name: "bwos-finishes-relaxed",
        why: "step 2: a thief does not release its reading of the slot",
        was: FINISHES,
        is: "self.0.fetch_add(u64::from(self.1), Ordering::Relaxed);",
        scene: Scene::WeakAnew,
        ..HERE
    },
    Mutant {
        name: "bwos-reclaims-relaxed",
        why: "step 2: the owner does not acquire that the thieves have read the slots",
        was: RECLAIMS,
        is: "self.thieves.stolen.load(Ordering::Relaxed)",
        scene: Scene::WeakAnew,
        ..HERE
    },
    Mutant {
        name: "bwos-enters-relaxed",
        why: "step 3: the owner does not release the block that it puts into the table",
        was: "place.store(found, Ordering::Release);",
        is: "place.store(found, Ordering::Relaxed);",
        queue: Queue::BwosFifo,
        ..TABLE
    },
    Mutant {
        name: "bwos-finds-relaxed",
        why: "step 3: a thief does not acquire the block that it finds in the table",
        was: "(blocks.len() - 1)].load(Ordering::Acquire);
        // SAFETY: null, or a block that lives as long as `self`.
        unsafe { block.as_ref() }",
        is: "(blocks.len() - 1)].load(Ordering::Relaxed);
        unsafe { block.as_ref() }",
        queue: Queue::BwosFifo,
        ..TABLE
    },
    Mutant {
        name: "bwos-grows-relaxed",
        why: "step 3: the owner does not release the larger table",
        was: "self.table.store(table, Ordering::Release);",
        is: "self.table.store(table, Ordering::Relaxed);",
        scene: Scene::WeakAnew,
        ..TABLE
    },
    Mutant {
        name: "bwos-reads-table-relaxed",
        why: "step 3: a thief does not acquire the table",
        was: "self.table.load(Ordering::Acquire)",
        is: "self.table.load(Ordering::Relaxed)",
        scene: Scene::WeakAnew,
        ..TABLE
    },
    Mutant {
        name: "bwos-takes-over-nothing",
        why: "the owner goes back to a block that it does not close: thieves claim there, too",
        was: "fetch_and(!END, Ordering::Relaxed)",
        is: "fetch_and(u64::MAX, Ordering::Relaxed)",
        scene: Scene::WeakBack,
        ..HERE
    },
    Mutant {
        name: "bwos-takeover-by-load-and-store",
        why: "the owner closes a block by a load and a store: a claim between them is lost",
        was: "Open::unpack(self.thieves.open.fetch_and(!END, Ordering::Relaxed))",
        is: "let seen = self.open();
        self.thieves.open.store(Open { end: 0, ..seen }.pack(), Ordering::Relaxed);
        seen",
        scene: Scene::WeakBack,
        ..HERE
    },
    Mutant {
        name: "bwos-reclaims-under-a-thief",
        why: "the owner enters a block anew while a thief that has claimed a task has not read it",
        was: "if !known || stolen != u64::from(open.next - own.get()) {",
        is: "if !known {",
        scene: Scene::WeakAnew,
        ..HERE
    },
    Mutant {
        name: "bwos-stays-closed",
        why: "an owner that finds a block empty when it goes back leaves it closed: no thief passes it",
        file: "deque/src/papers/bwos/lifo.rs",
        was: "            block.grant(before as u32, left.next, left.end);
            return false;",
        is: "            return false;",
        scene: Scene::WeakBack,
        caught: Caught::Lost,
        ..HERE
    },
    Mutant {
        name: "bwos-goes-and-grants-nothing",
        why: "an owner that is dropped keeps what is in its block",
        file: "deque/src/papers/bwos/lifo.rs",
        was: "            self.block().grant(position as u32, head, tail);
        }",
        is: "        }",
        scene: Scene::WeakRobbed,
        caught: Caught::Lost,
        ..HERE
    },
];
