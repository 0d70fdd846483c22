//! Orderings that are weakened by one step, under the memory model of C11.

use super::{Caught, Mutant, Queue, Scene};

const HERE: Mutant = Mutant {
    name: "",
    why: "",
    file: "",
    was: "",
    is: "",
    besides: None,
    queue: Queue::ChaseLev,
    scene: Scene::WeakBrief,
    caught: Caught::Race,
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "weak-chase-lev-push",
        why: "a push shows `tail` without a release",
        file: "deque/src/papers/owner_line.rs",
        was: "self.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "weak-chase-lev-pop",
        why: "a pop shows `tail` without a release: what an earlier push had shown is no longer acquired with it",
        file: "deque/src/papers/chase_lev.rs",
        was: "shared.owner.tail.store(index, Ordering::Release);",
        is: "shared.owner.tail.store(index, Ordering::Relaxed);",
        scene: Scene::WeakRoomy,
        ..HERE
    },
    Mutant {
        name: "weak-ring-take",
        why: "a thief does not acquire the ring that it reads",
        file: "deque/src/ring/mod.rs",
        was: "let ring_pointer = self.current.load(Ordering::Acquire);",
        is: "let ring_pointer = self.current.load(Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "weak-ring-left",
        why: "the owner reads the claims by a load: a later claim does not see the new ring",
        file: "deque/src/papers/chase_lev.rs",
        was: "head.fetch_add(0, Ordering::AcqRel) as u32",
        is: "head.load(Ordering::Acquire) as u32",
        caught: Caught::Freed,
        ..HERE
    },
    Mutant {
        name: "weak-ring-finish",
        why: "a thief says without a release that its copy is over, and the ring that the owner has left is freed",
        file: "deque/src/ring/mod.rs",
        was: "self.finished.store(finished.wrapping_add(u64::from(count)), Ordering::Release);",
        is: "self.finished.store(finished.wrapping_add(u64::from(count)), Ordering::Relaxed);",
        caught: Caught::Freed,
        ..HERE
    },
    Mutant {
        name: "weak-ring-limit",
        why: "the owner uses a slot again without acquiring the end of the copy",
        file: "deque/src/ring/buffer.rs",
        was: "let finished = rings.finished.load(Ordering::Acquire);",
        is: "let finished = rings.finished.load(Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "weak-ring-grow",
        why: "a ring that has grown is shown without a release",
        file: "deque/src/ring/buffer.rs",
        was: "rings.current.store(new_ring, Ordering::Release);",
        is: "rings.current.store(new_ring, Ordering::Relaxed);",
        ..HERE
    },
    Mutant {
        name: "weak-lock-acquire",
        why: "a lock is taken without an acquire",
        file: "deque/src/lock.rs",
        was: "self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()",
        is: "self.0.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()",
        queue: Queue::Mutex,
        scene: Scene::WeakPair,
        ..HERE
    },
    Mutant {
        name: "weak-lock-release",
        why: "a lock is given back without a release",
        file: "deque/src/lock.rs",
        was: "self.0.0.store(0, Ordering::Release);",
        is: "self.0.0.store(0, Ordering::Relaxed);",
        queue: Queue::Mutex,
        scene: Scene::WeakPair,
        ..HERE
    },
    Mutant {
        name: "weak-the-push",
        why: "a push shows `tail` without a release",
        file: "deque/src/papers/owner_line.rs",
        was: "self.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        queue: Queue::The,
        ..HERE
    },
    Mutant {
        name: "weak-the-pop",
        why: "a pop shows `tail` without a release",
        file: "deque/src/papers/the.rs",
        was: "shared.owner.tail.store(index, Ordering::Release);",
        is: "shared.owner.tail.store(index, Ordering::Relaxed);",
        queue: Queue::The,
        scene: Scene::WeakRoomy,
        ..HERE
    },
    Mutant {
        name: "weak-fifo-tail",
        why: "a taker reads `tail` without an acquire",
        file: "deque/src/ours/fifo/thief.rs",
        was: "let mut tail = self.owner.tail.load(Ordering::Acquire);",
        is: "let mut tail = self.owner.tail.load(Ordering::Relaxed);",
        queue: Queue::Fifo,
        ..HERE
    },
    Mutant {
        name: "weak-private-answer",
        why: "the owner answers a thief without a release",
        file: "deque/src/papers/private.rs",
        was: "self.shared.mailbox.store(state, Ordering::Release);",
        is: "self.shared.mailbox.store(state, Ordering::Relaxed);",
        queue: Queue::Private,
        scene: Scene::WeakPair,
        ..HERE
    },
    Mutant {
        name: "weak-private-take",
        why: "a thief takes the answer without an acquire",
        file: "deque/src/papers/private.rs",
        was: "match shared.mailbox.load(Ordering::Acquire) {",
        is: "match shared.mailbox.load(Ordering::Relaxed) {",
        queue: Queue::Private,
        scene: Scene::WeakPair,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-deque-push",
        why: "a push shows `tail` without a release",
        file: "deque/src/papers/idempotent/deque.rs",
        was: "ends.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "ends.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        queue: Queue::IdempotentDeque,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-deque-steal",
        why: "a thief reads `tail` without an acquire",
        file: "deque/src/papers/idempotent/deque.rs",
        was: "if front.tasks(ends.tail.load(Ordering::Acquire)) <= 0 {",
        is: "if front.tasks(ends.tail.load(Ordering::Relaxed)) <= 0 {",
        queue: Queue::IdempotentDeque,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-fifo-push",
        why: "a push shows `tail` without a release",
        file: "deque/src/papers/idempotent/fifo.rs",
        was: "shared.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "shared.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        queue: Queue::IdempotentFifo,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-fifo-steal",
        why: "a thief reads `tail` without an acquire",
        file: "deque/src/papers/idempotent/fifo.rs",
        was: "let tail = shared.tail.load(Ordering::Acquire);",
        is: "let tail = shared.tail.load(Ordering::Relaxed);",
        queue: Queue::IdempotentFifo,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-lifo-push",
        why: "a push shows its anchor without a release",
        file: "deque/src/papers/idempotent/lifo.rs",
        was: "shared.anchor.store(next.pack(), Ordering::Release);",
        is: "shared.anchor.store(next.pack(), Ordering::Relaxed);",
        queue: Queue::IdempotentLifo,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-lifo-steal",
        why: "a thief reads the anchor without an acquire",
        file: "deque/src/papers/idempotent/lifo.rs",
        was: "let seen = shared.anchor.load(Ordering::Acquire);",
        is: "let seen = shared.anchor.load(Ordering::Relaxed);",
        queue: Queue::IdempotentLifo,
        caught: Caught::Invented,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-slots",
        why: "a thief does not acquire the array that it reads",
        file: "deque/src/papers/idempotent/slots.rs",
        was: "let array = self.current.load(Ordering::Acquire);",
        is: "let array = self.current.load(Ordering::Relaxed);",
        queue: Queue::IdempotentLifo,
        ..HERE
    },
    Mutant {
        name: "weak-idempotent-grow",
        why: "an array that has grown is shown without a release",
        file: "deque/src/papers/idempotent/slots.rs",
        was: "self.current.store(array, Ordering::Release);",
        is: "self.current.store(array, Ordering::Relaxed);",
        queue: Queue::IdempotentLifo,
        ..HERE
    },
];
