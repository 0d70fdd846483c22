//! Mistakes about emptiness in the five pools, and in what else SALSA's consumers and producers
//! share.

use super::{Caught, Mutant, Scene};

const HERE: Mutant = Mutant::of("pool/src/salsa/mod.rs", "salsa", Scene::Pass, Caught::FalseEmpty);
const POOL: Mutant = Mutant { file: "pool/src/salsa/chunk_pool.rs", scene: Scene::Again, ..HERE };
const EXTENT: Mutant =
    Mutant { file: "pool/src/salsa/extent.rs", scene: Scene::Goes, caught: Caught::Lost, ..HERE };

mutants! {
    HERE: "salsa-announces-late",
        "two steps swapped: an owner takes the last task and then announces it",
        "        record.announced.store(announced, Ordering::Release);
        let is_mine = Self::publish(record, term, taken, next, mine);" =>
        "        let is_mine = Self::publish(record, term, taken, next, mine);
        record.announced.store(announced, Ordering::Release);";
    HERE: "salsa-cas-announces-late",
        "two steps swapped: a consumer takes the last task and then announces it",
        "            if taken + 1 == filled {
                self.announced += 2;
                // Release: step A of `policy`. A thread that sees the take sees it, too.
                self.record().announced.store(self.announced, Ordering::Release);
            }
            self.exchanges += 1;
            // Release carries the announcement to a thread that sees the take; Acquire on failure
            // keeps the loads in order.
            match word.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {" =>
        "            self.exchanges += 1;
            match word.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if taken + 1 == filled {
                        self.announced += 2;
                        self.record().announced.store(self.announced, Ordering::Release);
                    }",
        file: "pool/src/salsa/cas.rs", queue: "salsa-cas";
    HERE: "bag-looks-after",
        "a consumer looks at the next slot after it has taken the one before: a task may have come",
        "                    self.announce_if_last(chunk, at);
                    self.exchanges += 1;
                    // Acquire: the task is read after it. AcqRel carries what was announced before.
                    if slot
                        .state
                        .compare_exchange(FULL, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {" =>
        "                    self.exchanges += 1;
                    if slot
                        .state
                        .compare_exchange(FULL, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        self.announce_if_last(chunk, at);",
        file: "pool/src/baselines/concbag.rs", queue: "conc-bag";
    HERE: "ms-queue-looks-after",
        "a consumer looks whether its task was the last after it has taken it: another may have come",
        "            if next_node.next.load(Ordering::Relaxed).is_null() {
                announce();
            }
            // AcqRel: the old head is done with; what the new one links to was acquired.
            if self.head.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {" =>
        "            if self.head.compare_exchange(first, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            {
                if next_node.next.load(Ordering::Relaxed).is_null() {
                    announce();
                }",
        file: "pool/src/baselines/ws_msq.rs", queue: "ws-msq";
    HERE: "stack-announces-late",
        "two steps swapped: a consumer takes the last task and then announces it",
        "            if next.is_null() {
                announce();
            }
            if self.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {" =>
        "            if self.top.compare_exchange(top, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                if next.is_null() {
                    announce();
                }",
        file: "pool/src/baselines/ws_lifo.rs", queue: "ws-lifo";
    POOL: "salsa-pops-unprotected",
        "a producer's hazard pointer is missing: a chunk comes back on top of the stack while it pops",
        "popper.popping.store(ptr::from_ref(chunk).cast_mut(), Ordering::Relaxed);" => "",
        caught: Caught::Broken;
    POOL: "salsa-pops-without-fence",
        "a producer reads the top again with its hazard pointer still in the store buffer",
        "            // a3. Pairs with b2 in `retire`.
            M::full();" =>
        "",
        caught: Caught::Broken;
    POOL: "salsa-pops-without-second-look",
        "a4 left out: a producer does not read again whether the chunk is still the topmost",
        "            if now != head {
                head = now;
                continue;
            }" =>
        "",
        scene: Scene::HeadReturns, caught: Caught::Broken;
    HERE: "salsa-announcements-unheard",
        "who looks whether the pool is empty hears of no announcement: the same as if it did not compare them in the end",
        "self.consumers.get(pool).map_or(0, |record| record.announced.load(Ordering::Acquire))" =>
        "self.consumers.get(pool).map_or(0, |_| 0)",
        file: "pool/src/salsa/core.rs";
    HERE: "salsa-theft-unannounced",
        "a thief moves a chunk from pool to pool and does not announce it",
        "        self.announce(1 + self.announced() % 2);" => "", scene: Scene::Announced;
    HERE: "salsa-theft-announced-late",
        "two steps swapped: a thief takes the chunk and then announces it",
        "        self.announce_move();
        // Line 116." =>
        "        // Line 116.",
        file: "pool/src/salsa/steal.rs", scene: Scene::Announced;
    HERE: "salsa-claim-unannounced",
        "a thief takes the task of its stolen chunk and does not announce that its own pool may become empty",
        "        self.announce_move();
        mine.store(next, Ordering::Release);" =>
        "        mine.store(next, Ordering::Release);",
        file: "pool/src/salsa/steal.rs", scene: Scene::Announced;
    HERE: "salsa-steals-for-ever",
        "a thief does not say that its theft is over: who looks goes by two times more for ever",
        "        if self.announced() % 2 == 1 {" => "        if false {",
        scene: Scene::Announced, caught: Caught::Broken;
    HERE: "salsa-take-unannounced",
        "an owner takes the last task that it has seen and does not announce it",
        "        record.announced.store(announced, Ordering::Release);" =>
        "        let _ = announced;";
    HERE: "salsa-cas-take-unannounced", "a consumer takes the last task and does not announce it",
        "                self.record().announced.store(self.announced, Ordering::Release);" => "",
        file: "pool/src/salsa/cas.rs", queue: "salsa-cas";
    EXTENT: "salsa-closes-at-once",
        "who closes a pool does not look again whether anybody has come to it",
        "let left = if is_in_use(last) { open } else { open - 2 };" => "let left = open - 2;";
    EXTENT: "salsa-opens-too-early",
        "a producer reads that a pool is open with its chunk's entry still in the store buffer",
        "        M::full();
        // Acquire, as in `count`." =>
        "        // Acquire, as in `count`.";
    EXTENT: "salsa-opens-nothing",
        "a producer that finds a pool being closed puts a task there all the same",
        "if now & OPEN < least {" => "if now & OPEN < least - 1 {";
    EXTENT: "ws-msq-looks-at-too-few",
        "off by one: the check that the pool is empty does not look at the last consumer's queue",
        "        self.core.pools.len()
    }" =>
        "        (self.core.pools.len() - 1).max(1)
    }",
        file: "pool/src/baselines/shared_queue.rs", queue: "ws-msq";
    HERE: "bag-looks-at-one-list",
        "the check that the bag is empty looks at the first producer's list alone",
        "core.lists.iter().all(|list| Core::is_empty(list, hazards))" =>
        "core.lists.iter().take(1).all(|list| Core::is_empty(list, hazards))",
        file: "pool/src/baselines/concbag.rs", queue: "conc-bag";
}
