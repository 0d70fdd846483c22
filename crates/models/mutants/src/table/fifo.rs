//! Mistakes in the FIFO queue, open and closed.

use super::{Caught, Mutant, Scene};

const THIEF: Mutant =
    Mutant::of("deque/src/ours/fifo/thief.rs", "closed-fifo", Scene::Once, Caught::Twice);
const OWNER: Mutant = Mutant { file: "deque/src/ours/fifo/mod.rs", ..THIEF };
const OPEN: Mutant = Mutant { queue: "fifo", scene: Scene::Brief, ..THIEF };

mutants! {
    OPEN: "fifo-half-drops-the-rest",
        "a batch's first task is returned, and the others are dropped",
        "                        for task in claimed {
                            into.push(task);
                        }
" =>
        "                        drop(claimed);
",
        file: "deque/src/ours/owners_end.rs", scene: Scene::Halves, caught: Caught::Lost;
    OPEN: "fifo-claims-one-more",
        "off by one: a thief moves `head` over one task more than it takes",
        "let next = head.wrapping_add(u64::from(count) * ONE);" =>
        "let next = head.wrapping_add(u64::from(count) * ONE + ONE);",
        caught: Caught::Lost;
    OPEN: "fifo-always-outrun", "a thief says that it was outrun although no other thief was there",
        "self.thieves.head.compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed)" =>
        "Err::<u64, u64>(head)",
        caught: Caught::Refusal;
    OPEN: "fifo-loser-takes", "a thief whose exchange fails takes the task all the same",
        "Err(_) => Steal::Retry," => "Err(_) => Steal::Success((index_of(head), count)),";
    OPEN: "fifo-owner-adds-in-two", "the owner of an open queue takes by a load and a store",
        "let seen = head.fetch_add(ONE, Ordering::AcqRel);" =>
        "let seen = head.load(Ordering::Relaxed);
        head.store(seen.wrapping_add(ONE), Ordering::Release);",
        file: "deque/src/ours/fifo/mod.rs";
    OPEN: "fifo-push-shows-first",
        "two stores swapped: a push moves `tail` before it has written its task",
        "unsafe { self.buffer().write(tail, task) };" => "self.publish(tail.wrapping_add(1));
        unsafe { self.buffer().write(tail, task) };",
        file: "deque/src/ours/owners_end.rs", caught: Caught::Race;
    THIEF: "closed-fifo-no-barrier",
        "a missing fence: a thief opens at what it sees without making the owner's pop visible",
        "!self.owner.policy.try_thief()" => "false";
    THIEF: "closed-fifo-asks-nobody",
        "a missing store: a thief opens the queue and raises no request",
        "self.request.swap(1, Ordering::SeqCst);" => "";
    THIEF: "closed-fifo-reads-taken-first",
        "two steps swapped: a thief reads `taken` and then makes its barrier",
        "        if !self.owner.policy.try_thief() {
            // The request stays: the owner answers at its next pop, or push that finds the ring
            // full.
            return;
        }
        // Acquire: pairs with the release in `pop`; so the exchange hands on a tail at or above it.
        let taken = self.owner.taken.load(Ordering::Acquire);" =>
        "        let taken = self.owner.taken.load(Ordering::Acquire);
        self.owner.policy.thief();";
    THIEF: "closed-fifo-thief-opens-above",
        "off by one: a thief opens above the task that the owner is to take next",
        "opened(taken)," => "opened(taken.wrapping_add(1)),", caught: Caught::Lost;
    OWNER: "closed-fifo-pop-keeps-its-task",
        "an owner that a thief was faster than takes the task that the thief has opened",
        "if (start ^ opened(next)) & ODD != 0 {" => "if start == 0 {";
    OWNER: "closed-fifo-ignores-the-request",
        "the owner of a closed queue does not look whether a thief has asked",
        "if self.shared.request.load(Ordering::Relaxed) != 0 {" =>
        "if self.shared.request.load(Ordering::Relaxed) > 1 {";
}
