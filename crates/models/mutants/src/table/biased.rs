//! Mistakes in the biased deque.

use super::{Caught, Mutant, Scene};

const OWNER: Mutant =
    Mutant::of("deque/src/ours/biased/mod.rs", "biased", Scene::Once, Caught::Twice);
const THIEF: Mutant = Mutant { file: "deque/src/ours/biased/thief.rs", ..OWNER };

mutants! {
    THIEF: "biased-no-barrier",
        "a missing fence: a thief opens what it sees without making the owner's pop visible",
        "shared.owner.policy.try_thief() && " => "";
    OWNER: "biased-floor-too-high",
        "off by one: an owner that finds no task remembers that there is none one index above, either",
        "shared.owner.floor.store(tail, Ordering::Relaxed);" =>
        "shared.owner.floor.store(tail.wrapping_add(1), Ordering::Relaxed);",
        scene: Scene::Returns, caught: Caught::Order;
    THIEF: "biased-asks-nobody", "a missing store: a thief opens tasks and raises no request",
        "shared.request.swap(RAISED, Ordering::SeqCst);" => "";
    THIEF: "biased-reads-tail-first",
        "two steps swapped: a thief reads `tail` and then makes its barrier",
        "        let certain = shared.owner.policy.try_thief() && shared.owner.policy.delta() == 0;
        if !certain && !shared.owner.policy.resolve() {
            // The request stays: the owner answers at its next push or pop. The caller takes what
            // is open.
            return opened(head, open) == 0;
        }
        // Acquire: pairs with the owner's releases; sees the tasks below.
        let tail = shared.owner.tail.load(Ordering::Acquire);" =>
        "        let tail = shared.owner.tail.load(Ordering::Acquire);
        shared.owner.policy.thief();";
    THIEF: "biased-opens-under-a-new-tag",
        "a thief opens with the tag that `head` has in the end, not with the one before it asked",
        "                pack(tag, tail),
                Ordering::Release,
                Ordering::Relaxed," =>
        "                pack(unpack(shared.thieves.head.load(Ordering::Acquire)).0, tail),
                Ordering::Release,
                Ordering::Relaxed,",
        scene: Scene::Short;
    THIEF: "biased-claims-one-more",
        "off by one: a thief moves `top` over one task more than is open",
        "self.take_from(head, want(count).clamp(1, count))" =>
        "self.take_from(head, want(count).clamp(1, count) + 1)",
        caught: Caught::Lost;
    THIEF: "biased-loser-takes", "a thief whose exchange fails takes the task all the same",
        "Err(_) => Steal::Retry," => "Err(_) => Steal::Success((top, count)),";
    OWNER: "biased-keeps-its-tag",
        "the owner closes and leaves the tag as it was, so that what is open stays so",
        "                pack(tag.wrapping_add(1), u64::from(top)),
                Ordering::Release," =>
        "                pack(tag, u64::from(top)),
                Ordering::Release,";
    OWNER: "biased-request-too-low",
        "off by one: the owner takes the youngest open task without closing",
        "let request = if eager { RAISED } else { bound };" =>
        "let request = if eager { RAISED } else { bound.saturating_sub(1) };",
        scene: Scene::Drain;
    OWNER: "biased-stays-low",
        "a missing restore: the owner that finds thieves have taken all leaves the request low, and forgets what it has found",
        "                if lowered {
                    // Relaxed: to raise it needs no order; see \"Nothing left\".
                    shared.request.store(RAISED, Ordering::Relaxed);
                }
                // Relaxed: only the owner has it.
                shared.owner.floor.store(tail, Ordering::Relaxed);" =>
        "",
        scene: Scene::Returns;
    OWNER: "biased-pops-without-a-look", "the owner does not look at the request",
        "        if tail <= shared.request.load(Ordering::Relaxed) {
            return self.pop_requested(tail);
        }" =>
        "";
    OWNER: "biased-pop-hides-nothing",
        "a missing store: a pop does not say in `tail` which task it takes",
        "        let index = tail.wrapping_sub(1);
        // Release: a thief that reads the tail here sees the tasks below.
        shared.owner.tail.store(index, Ordering::Release);" =>
        "        let index = tail.wrapping_sub(1);";
    OWNER: "biased-push-shows-first",
        "two stores swapped: a push moves `tail` before it has written its task",
        "unsafe { self.buffer().write(tail, task) };" =>
        "self.tail_word().store(tail.wrapping_add(1), Ordering::Release);
        unsafe { self.buffer().write(tail, task) };",
        file: "deque/src/ours/owners_end.rs", scene: Scene::Short, caught: Caught::Race;
}
