//! Mistakes about emptiness in the five pools, and in what else SALSA's consumers and producers share.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "pool/src/salsa/mod.rs",
    was: "",
    is: "",
    queue: Queue::Salsa,
    scene: Scene::Pass,
    caught: Caught::FalseEmpty,
};
const POOL: Mutant = Mutant { file: "pool/src/salsa/chunk_pool.rs", scene: Scene::Again, ..HERE };
const EXTENT: Mutant =
    Mutant { file: "pool/src/salsa/extent.rs", scene: Scene::Goes, caught: Caught::Lost, ..HERE };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "salsa-announces-late",
        why: "two steps swapped: an owner takes the last task and then announces it",
        was: "        if next == filled {
            // Lines 141-147, before the event: it may be the last task. Release, as in `announce`.
            self.announced += 2;
            record.announced.store(self.announced, Ordering::Release);
        }
        // Line 90, \"tell the world\": Release carries what was announced before to who sees it.
        taken.store(next, Ordering::Release);",
        is: "        taken.store(next, Ordering::Release);
        if next == filled {
            self.announced += 2;
            record.announced.store(self.announced, Ordering::Release);
        }",
        ..HERE
    },
    Mutant {
        name: "salsa-cas-announces-late",
        why: "two steps swapped: a consumer takes the last task and then announces it",
        file: "pool/src/salsa/cas.rs",
        was: "            if taken + 1 == filled {
                self.announced += 2;
                // Release: step A of `policy`. Who sees the take sees it, too.
                self.record().announced.store(self.announced, Ordering::Release);
            }
            self.exchanges += 1;
            // Release carries what was announced to who sees the take; Acquire on failure
            // keeps the loads in order.
            match word.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {",
        is: "            self.exchanges += 1;
            match word.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if taken + 1 == filled {
                        self.announced += 2;
                        self.record().announced.store(self.announced, Ordering::Release);
                    }",
        queue: Queue::SalsaCas,
        ..HERE
    },
    Mutant {
        name: "bag-looks-after",
        why: "a consumer looks at the next slot after it has taken the one before: a task may have come",
        file: "pool/src/bag.rs",
        was: "                    self.announce_if_last(chunk, at);
                    self.exchanges += 1;
                    // Acquire: the task is read after it. AcqRel carries what was announced before.
                    if slot
                        .state
                        .compare_exchange(FULL, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {",
        is: "                    self.exchanges += 1;
                    if slot
                        .state
                        .compare_exchange(FULL, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        self.announce_if_last(chunk, at);",
        queue: Queue::ConcBag,
        ..HERE
    },
    Mutant {
        name: "ms-queue-looks-after",
        why: "a consumer looks whether its task was the last after it has taken it: another may have come",
        file: "pool/src/ms_queue.rs",
        was: "            if next_node.next.load(Ordering::Relaxed).is_null() {
                announce();
            }
            // AcqRel: the old head is done with; what the new one links to was acquired.
            if self.head.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {",
        is: "            if self.head.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                if next_node.next.load(Ordering::Relaxed).is_null() {
                    announce();
                }",
        queue: Queue::WsMsq,
        ..HERE
    },
    Mutant {
        name: "stack-announces-late",
        why: "two steps swapped: a consumer takes the last task and then announces it",
        file: "pool/src/stack.rs",
        was: "            if next.is_null() {
                announce();
            }
            if self.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {",
        is: "            if self.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if next.is_null() {
                    announce();
                }",
        queue: Queue::WsLifo,
        ..HERE
    },
    Mutant {
        name: "salsa-pops-unprotected",
        why: "a producer's hazard pointer is missing: a chunk comes back on top of the stack while it pops",
        was: "popper.popping.store(ptr::from_ref(chunk).cast_mut(), Ordering::Relaxed);",
        is: "",
        caught: Caught::Broken,
        ..POOL
    },
    Mutant {
        name: "salsa-pops-without-fence",
        why: "a producer reads the top again with its hazard pointer still in the store buffer",
        was: "            // a3. Pairs with b2 in `retire`.
            M::full();",
        is: "",
        caught: Caught::Broken,
        ..POOL
    },
    Mutant {
        name: "salsa-closes-at-once",
        why: "who closes a pool does not look again whether anybody has come to it",
        was: "let new = if self.is_in_use(last as usize) {",
        is: "let new = if false {",
        ..EXTENT
    },
    Mutant {
        name: "salsa-opens-too-early",
        why: "a producer reads that a pool is open with its chunk's entry still in the store buffer",
        was: "        M::full();
        // Acquire, here and below, as in `pools`.",
        is: "        // Acquire, here and below, as in `pools`.",
        ..EXTENT
    },
    Mutant {
        name: "salsa-opens-nothing",
        why: "a producer that finds a pool being closed puts a task there all the same",
        was: "let closing = now & CLOSING != 0 && count == least;",
        is: "let closing = false;",
        ..EXTENT
    },
];
