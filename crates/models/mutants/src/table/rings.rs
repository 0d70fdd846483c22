//! Mistakes in what the queues share: the ring and the lock.

use super::{Caught, Mutant, Queue, Scene};

const RING: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/ring/buffer.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::ChaseLev,
    scene: Scene::Mixed,
    caught: Caught::Race,
};
const LOCK: Mutant = Mutant { file: "deque/src/lock.rs", ..RING };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "ring-shows-before-copy",
        why: "two steps swapped: a ring that has grown is shown before the tasks are copied into it",
        was: "for step in 0..tail.wrapping_sub(first) {",
        is: "rings.current.store(new_ring, Ordering::Release);
        for step in 0..tail.wrapping_sub(first) {",
        ..RING
    },
    Mutant {
        name: "ring-all-finished",
        why: "the owner takes every slot for free",
        was: "                self.marked(reclaimed)",
        is: "                self.marked(reclaimed).max(1)",
        caught: Caught::Twice,
        ..RING
    },
    Mutant {
        name: "ring-starts-marked",
        why: "the marks of a new ring are those of its first lap, which is then finished before anybody has taken of it",
        file: "deque/src/ring/mod.rs",
        was: "unmarked: reclaimed.wrapping_sub(capacity as u64)",
        is: "unmarked: reclaimed",
        caught: Caught::Twice,
        ..RING
    },
    Mutant {
        name: "ring-keeps-its-record",
        why: "the owner does not clear the bit of an index that it has finished: a lap later the slot is taken for free",
        was: "word.set(word.get() & !run);",
        is: "",
        queue: Queue::Fifo,
        scene: Scene::Laps,
        ..RING
    },
    Mutant {
        name: "ring-one-too-many",
        why: "off by one: the ring has room for one task more than it has slots",
        was: "self.reclaimed.get().wrapping_add(self.mask.get() + 1).wrapping_sub(tail)",
        is: "self.reclaimed.get().wrapping_add(self.mask.get() + 2).wrapping_sub(tail)",
        caught: Caught::Twice,
        ..RING
    },
    Mutant {
        name: "ring-shrinks-at-once",
        why: "the owner leaves a larger ring while more is unfinished than the smaller one has slots",
        was: "unfinished <= needed - needed.div_ceil(4)",
        is: "unfinished > 0",
        ..RING
    },
    Mutant {
        name: "ring-freed-at-once",
        why: "the owner frees a ring that a thief may still copy a task out of",
        was: "if reclaimed.wrapping_sub(end) as i64 >= 0 {",
        is: "if reclaimed.wrapping_sub(end) as i64 >= i64::MIN {",
        scene: Scene::Grows,
        caught: Caught::Freed,
        ..RING
    },
    Mutant {
        name: "ring-left-with-a-claim",
        why: "the owner frees a ring that it leaves though a thief has a claim",
        was: "if rings.finished.load(Ordering::Acquire) as u32 == claimed {",
        is: "if claimed == claimed {",
        scene: Scene::Grows,
        caught: Caught::Freed,
        ..RING
    },
    Mutant {
        name: "ring-never-freed",
        why: "the owner forgets a ring that has grown out of use",
        was: "M::free(unsafe { Freed::new(ring) });",
        is: "",
        scene: Scene::Grows,
        caught: Caught::Leak,
        ..RING
    },
    Mutant {
        name: "lock-for-two",
        why: "two threads that see the lock free both take it",
        was: "self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()",
        is: "self.0.load(Ordering::Acquire) == 0 && {
            self.0.store(1, Ordering::Relaxed);
            true
        }",
        queue: Queue::Mutex,
        scene: Scene::Brief,
        ..LOCK
    },
    Mutant {
        name: "lock-not-taken",
        why: "who sees the lock free goes in without taking it",
        was: "self.0.load(Ordering::Relaxed) == 0 && self.take()",
        is: "self.0.load(Ordering::Relaxed) == 0 || self.take()",
        queue: Queue::The,
        scene: Scene::Thieves,
        caught: Caught::Twice,
        ..LOCK
    },
    Mutant {
        name: "lock-stays-taken",
        why: "a missing store: who goes out leaves the lock taken",
        was: "self.0.0.store(0, Ordering::Release);",
        is: "",
        queue: Queue::Mutex,
        scene: Scene::Brief,
        caught: Caught::Deadlock,
        ..LOCK
    },
];
