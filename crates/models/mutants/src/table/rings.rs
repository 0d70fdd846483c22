//! Mistakes in what the queues share: the ring and the lock.

use super::{Caught, Mutant, Scene};

const RING: Mutant =
    Mutant::of("deque/src/ring/buffer.rs", "chase-lev", Scene::Mixed, Caught::Race);
const LOCK: Mutant = Mutant { file: "deque/src/lock.rs", ..RING };

mutants! {
    RING: "ring-shows-before-copy",
        "two steps swapped: a ring that has grown is shown before the tasks are copied into it",
        "for step in 0..tail.wrapping_sub(first) {" =>
        "rings.current.store(new_ring, Ordering::Release);
        for step in 0..tail.wrapping_sub(first) {";
    RING: "ring-all-finished", "the owner takes every slot for free",
        "                self.marked(reclaimed)" => "                self.marked(reclaimed).max(1)",
        caught: Caught::Twice;
    RING: "ring-starts-marked",
        "the marks of a new ring are those of its first lap, which is then finished before anybody has taken of it",
        "unmarked: reclaimed.wrapping_sub(capacity as u64)" => "unmarked: reclaimed",
        file: "deque/src/ring/mod.rs", caught: Caught::Twice;
    RING: "ring-keeps-its-record",
        "the owner does not clear the bit of an index that it has finished: a lap later the slot is taken for free",
        "word.set(word.get() & !run);" => "", queue: "fifo", scene: Scene::Laps;
    RING: "ring-one-too-many", "off by one: the ring has room for one task more than it has slots",
        "self.reclaimed.get().wrapping_add(self.mask.get() + 1).wrapping_sub(tail)" =>
        "self.reclaimed.get().wrapping_add(self.mask.get() + 2).wrapping_sub(tail)",
        caught: Caught::Twice;
    RING: "ring-shrinks-at-once",
        "the owner leaves a larger ring while more is unfinished than the smaller one has slots",
        "unfinished <= needed - needed.div_ceil(4)" => "unfinished > 0";
    RING: "ring-freed-at-once", "the owner frees a ring that a thief may still copy a task out of",
        "if reclaimed.wrapping_sub(end) as i64 >= 0 {" =>
        "if reclaimed.wrapping_sub(end) as i64 >= i64::MIN {",
        scene: Scene::Grows, caught: Caught::Freed;
    RING: "ring-left-with-a-claim",
        "the owner frees a ring that it leaves though a thief has a claim",
        "if rings.finished.load(Ordering::Acquire) as u32 == claimed {" => "if claimed == claimed {",
        scene: Scene::Grows, caught: Caught::Freed;
    RING: "ring-never-freed", "the owner forgets a ring that has grown out of use",
        "M::free(unsafe { Freed::new(ring) });" => "", scene: Scene::Grows, caught: Caught::Leak;
    LOCK: "lock-for-two", "two threads that see the lock free both take it",
        "self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()" =>
        "self.0.load(Ordering::Acquire) == 0 && {
            self.0.store(1, Ordering::Relaxed);
            true
        }",
        queue: "mutex", scene: Scene::Brief;
    LOCK: "lock-not-taken", "who sees the lock free goes in without taking it",
        "self.0.load(Ordering::Relaxed) == 0 && self.take()" =>
        "self.0.load(Ordering::Relaxed) == 0 || self.take()",
        queue: "the", scene: Scene::Thieves, caught: Caught::Twice;
    LOCK: "lock-stays-taken", "a missing store: who goes out leaves the lock taken",
        "self.0.0.store(0, Ordering::Release);" => "",
        queue: "mutex", scene: Scene::Brief, caught: Caught::Deadlock;
}
