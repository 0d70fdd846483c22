//! Mistakes in the queue with multiplicity, its orderings among them.

use super::{Caught, Mutant, Scene};

const HERE: Mutant =
    Mutant::of("deque/src/papers/mult.rs", "multiplicity", Scene::WeakAnew, Caught::Lost);

mutants! {
    HERE: "mult-no-second-look",
        "step 4 left out: a thief takes what it has read, though the slot may have been reused or not copied",
        "if tail.wrapping_sub(reached) >= capacity || (reached.wrapping_sub(first) as i64) < 0 {" =>
        "if false {",
        scene: Scene::Laps, caught: Caught::Invented;
    HERE: "mult-no-free-slot", "off by one: the owner fills the slot that is to stay free",
        "self.limit().set(reached.wrapping_add(slots.capacity() - 1));" =>
        "self.limit().set(reached.wrapping_add(slots.capacity()));";
    HERE: "mult-passes-one-more",
        "off by one: a thief raises its number past a task that it has not taken",
        "let next = reached.wrapping_add(1);
        self.reached.store(next, Ordering::Relaxed);" =>
        "let next = reached.wrapping_add(2);
        self.reached.store(next, Ordering::Relaxed);";
    HERE: "mult-push-shows-first",
        "two stores swapped: a push stores `tail` before it has written the slot",
        "shared.slots.write(tail, word);
        // Release: the slot, and what the task names, are seen by who acquires this.
        shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);
        shared.slots.write(tail, word);",
        caught: Caught::Invented;
    HERE: "mult-push-relaxed", "a push does not release its slot with `tail`",
        "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "shared.owner.tail.store(tail.wrapping_add(1), Ordering::Relaxed);",
        caught: Caught::Invented;
    HERE: "mult-looks-relaxed", "a thief does not acquire the slots below the `tail` that it reads",
        "        // Acquire: pairs with the owner's release.
        let tail = shared.owner.tail.load(Ordering::Acquire);" =>
        "        let tail = shared.owner.tail.load(Ordering::Relaxed);",
        caught: Caught::Invented;
}
