//! Mistakes about emptiness in the five pools, and in what else SALSA's consumers and producers
//! share.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "pool/src/salsa/mod.rs",
    was: "",
    is: "",
    besides: None,
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
        was: "        record.announced.store(announced, Ordering::Release);
        let is_mine = Self::publish(record, term, taken, next, mine);",
        is: "        let is_mine = Self::publish(record, term, taken, next, mine);
        record.announced.store(announced, Ordering::Release);",
        ..HERE
    },
    Mutant {
        name: "salsa-cas-announces-late",
        why: "two steps swapped: a consumer takes the last task and then announces it",
        file: "pool/src/salsa/cas.rs",
        was: "            if taken + 1 == filled {
                self.announced += 2;
                // Release: step A of `policy`. A thread that sees the take sees it, too.
                self.record().announced.store(self.announced, Ordering::Release);
            }
            self.exchanges += 1;
            // Release carries the announcement to a thread that sees the take; Acquire on failure
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
        file: "pool/src/baselines/concbag.rs",
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
        file: "pool/src/baselines/ws_msq.rs",
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
        file: "pool/src/baselines/ws_lifo.rs",
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
        name: "salsa-pops-without-second-look",
        why: "a4 left out: a producer does not read again whether the chunk is still the topmost",
        was: "            if now != head {
                head = now;
                continue;
            }",
        is: "",
        scene: Scene::HeadReturns,
        caught: Caught::Broken,
        ..POOL
    },
    Mutant {
        name: "salsa-announcements-unheard",
        why: "who looks whether the pool is empty hears of no announcement: the same as if it did not compare them in the end",
        file: "pool/src/salsa/core.rs",
        was: "self.consumers.get(pool).map_or(0, |record| record.announced.load(Ordering::Acquire))",
        is: "self.consumers.get(pool).map_or(0, |_| 0)",
        ..HERE
    },
    Mutant {
        name: "salsa-theft-unannounced",
        why: "a thief moves a chunk from pool to pool and does not announce it",
        was: "        self.announce(1 + self.announced() % 2);",
        is: "",
        scene: Scene::Announced,
        ..HERE
    },
    Mutant {
        name: "salsa-theft-announced-late",
        why: "two steps swapped: a thief takes the chunk and then announces it",
        file: "pool/src/salsa/steal.rs",
        was: "        self.announce_move();
        // Line 116.",
        is: "        // Line 116.",
        scene: Scene::Announced,
        ..HERE
    },
    Mutant {
        name: "salsa-claim-unannounced",
        why: "a thief takes the task of its stolen chunk and does not announce that its own pool may become empty",
        file: "pool/src/salsa/steal.rs",
        was: "        self.announce_move();
        mine.store(next, Ordering::Release);",
        is: "        mine.store(next, Ordering::Release);",
        scene: Scene::Announced,
        ..HERE
    },
    Mutant {
        name: "salsa-steals-for-ever",
        why: "a thief does not say that its theft is over: who looks goes by two times more for ever",
        was: "        if self.announced() % 2 == 1 {",
        is: "        if false {",
        scene: Scene::Announced,
        caught: Caught::Broken,
        ..HERE
    },
    Mutant {
        name: "salsa-take-unannounced",
        why: "an owner takes the last task that it has seen and does not announce it",
        was: "        record.announced.store(announced, Ordering::Release);",
        is: "        let _ = announced;",
        ..HERE
    },
    Mutant {
        name: "salsa-cas-take-unannounced",
        why: "a consumer takes the last task and does not announce it",
        file: "pool/src/salsa/cas.rs",
        was: "                self.record().announced.store(self.announced, Ordering::Release);",
        is: "",
        queue: Queue::SalsaCas,
        ..HERE
    },
    Mutant {
        name: "salsa-closes-at-once",
        why: "who closes a pool does not look again whether anybody has come to it",
        was: "let left = if is_in_use(last) { open } else { open - 2 };",
        is: "let left = open - 2;",
        ..EXTENT
    },
    Mutant {
        name: "salsa-opens-too-early",
        why: "a producer reads that a pool is open with its chunk's entry still in the store buffer",
        was: "        M::full();
        // Acquire, as in `count`.",
        is: "        // Acquire, as in `count`.",
        ..EXTENT
    },
    Mutant {
        name: "salsa-opens-nothing",
        why: "a producer that finds a pool being closed puts a task there all the same",
        was: "if now & OPEN < least {",
        is: "if now & OPEN < least - 1 {",
        ..EXTENT
    },
    Mutant {
        name: "ws-msq-looks-at-too-few",
        why: "off by one: the check that the pool is empty does not look at the last consumer's queue",
        file: "pool/src/baselines/shared_queue.rs",
        was: "        self.core.pools.len()
    }",
        is: "        (self.core.pools.len() - 1).max(1)
    }",
        queue: Queue::WsMsq,
        ..EXTENT
    },
    Mutant {
        name: "bag-looks-at-one-list",
        why: "the check that the bag is empty looks at the first producer's list alone",
        file: "pool/src/baselines/concbag.rs",
        was: "core.lists.iter().all(|list| Core::is_empty(list, hazards))",
        is: "core.lists.iter().take(1).all(|list| Core::is_empty(list, hazards))",
        queue: Queue::ConcBag,
        ..HERE
    },
];
