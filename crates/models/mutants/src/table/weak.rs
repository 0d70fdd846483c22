//! Orderings that are weakened by one step, under the memory model of C11.

use super::{Caught, Mutant, Scene};

const HERE: Mutant = Mutant::of("", "chase-lev", Scene::WeakBrief, Caught::Race);

mutants! {
    HERE: "weak-chase-lev-push", "a push shows `tail` without a release",
        "self.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        file: "deque/src/papers/owner_line.rs";
    HERE: "weak-chase-lev-pop",
        "a pop shows `tail` without a release: what an earlier push had shown is no longer acquired with it",
        "shared.owner.tail.store(index, Ordering::Release);" =>
        "shared.owner.tail.store(index, Ordering::Relaxed);",
        file: "deque/src/papers/chase_lev.rs", scene: Scene::WeakRoomy;
    HERE: "weak-ring-take", "a thief does not acquire the ring that it reads",
        "let ring_pointer = self.current.load(Ordering::Acquire);" =>
        "let ring_pointer = self.current.load(Ordering::Relaxed);",
        file: "deque/src/ring/mod.rs";
    HERE: "weak-ring-left",
        "the owner reads the claims by a load: a later claim does not see the new ring",
        "head.fetch_add(0, Ordering::AcqRel) as u32" => "head.load(Ordering::Acquire) as u32",
        file: "deque/src/papers/chase_lev.rs", caught: Caught::Freed;
    HERE: "weak-ring-finish",
        "a thief says without a release that its copy is over, and the ring that the owner has left is freed",
        "self.finished.store(finished.wrapping_add(u64::from(count)), Ordering::Release);" =>
        "self.finished.store(finished.wrapping_add(u64::from(count)), Ordering::Relaxed);",
        file: "deque/src/ring/mod.rs", caught: Caught::Freed;
    HERE: "weak-ring-limit", "the owner uses a slot again without acquiring the end of the copy",
        "let finished = rings.finished.load(Ordering::Acquire);" =>
        "let finished = rings.finished.load(Ordering::Relaxed);",
        file: "deque/src/ring/buffer.rs";
    HERE: "weak-ring-grow", "a ring that has grown is shown without a release",
        "rings.current.store(new_ring, Ordering::Release);" =>
        "rings.current.store(new_ring, Ordering::Relaxed);",
        file: "deque/src/ring/buffer.rs";
    HERE: "weak-lock-acquire", "a lock is taken without an acquire",
        "self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()" =>
        "self.0.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()",
        file: "deque/src/lock.rs", queue: "mutex", scene: Scene::WeakPair;
    HERE: "weak-lock-release", "a lock is given back without a release",
        "self.0.0.store(0, Ordering::Release);" => "self.0.0.store(0, Ordering::Relaxed);",
        file: "deque/src/lock.rs", queue: "mutex", scene: Scene::WeakPair;
    HERE: "weak-the-push", "a push shows `tail` without a release",
        "self.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "self.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        file: "deque/src/papers/owner_line.rs", queue: "the";
    HERE: "weak-the-pop", "a pop shows `tail` without a release",
        "shared.owner.tail.store(index, Ordering::Release);" =>
        "shared.owner.tail.store(index, Ordering::Relaxed);",
        file: "deque/src/papers/the.rs", queue: "the", scene: Scene::WeakRoomy;
    HERE: "weak-fifo-tail", "a taker reads `tail` without an acquire",
        "let mut tail = self.owner.tail.load(Ordering::Acquire);" =>
        "let mut tail = self.owner.tail.load(Ordering::Relaxed);",
        file: "deque/src/ours/fifo/thief.rs", queue: "fifo";
    HERE: "weak-private-answer", "the owner answers a thief without a release",
        "self.shared.mailbox.store(state, Ordering::Release);" =>
        "self.shared.mailbox.store(state, Ordering::Relaxed);",
        file: "deque/src/papers/private.rs", queue: "private", scene: Scene::WeakPair;
    HERE: "weak-private-take", "a thief takes the answer without an acquire",
        "match shared.mailbox.load(Ordering::Acquire) {" =>
        "match shared.mailbox.load(Ordering::Relaxed) {",
        file: "deque/src/papers/private.rs", queue: "private", scene: Scene::WeakPair;
    HERE: "weak-idempotent-deque-push", "a push shows `tail` without a release",
        "ends.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "ends.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/deque.rs", queue: "idempotent-deque", caught: Caught::Invented;
    HERE: "weak-idempotent-deque-steal", "a thief reads `tail` without an acquire",
        "if front.tasks(ends.tail.load(Ordering::Acquire)) <= 0 {" =>
        "if front.tasks(ends.tail.load(Ordering::Relaxed)) <= 0 {",
        file: "deque/src/papers/idempotent/deque.rs", queue: "idempotent-deque", caught: Caught::Invented;
    HERE: "weak-idempotent-fifo-push", "a push shows `tail` without a release",
        "shared.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "shared.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/fifo.rs", queue: "idempotent-fifo", caught: Caught::Invented;
    HERE: "weak-idempotent-fifo-steal", "a thief reads `tail` without an acquire",
        "let tail = shared.tail.load(Ordering::Acquire);" =>
        "let tail = shared.tail.load(Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/fifo.rs", queue: "idempotent-fifo", caught: Caught::Invented;
    HERE: "weak-idempotent-lifo-push", "a push shows its anchor without a release",
        "shared.anchor.store(next.pack(), Ordering::Release);" =>
        "shared.anchor.store(next.pack(), Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/lifo.rs", queue: "idempotent-lifo", caught: Caught::Invented;
    HERE: "weak-idempotent-lifo-steal", "a thief reads the anchor without an acquire",
        "let seen = shared.anchor.load(Ordering::Acquire);" =>
        "let seen = shared.anchor.load(Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/lifo.rs", queue: "idempotent-lifo", caught: Caught::Invented;
    HERE: "weak-idempotent-slots", "a thief does not acquire the array that it reads",
        "let array = self.current.load(Ordering::Acquire);" =>
        "let array = self.current.load(Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/slots.rs", queue: "idempotent-lifo";
    HERE: "weak-idempotent-grow", "an array that has grown is shown without a release",
        "self.current.store(array, Ordering::Release);" =>
        "self.current.store(array, Ordering::Relaxed);",
        file: "deque/src/papers/idempotent/slots.rs", queue: "idempotent-lifo";
}
