//! Mistakes in the biased deque.

use super::{Caught, Mutant, Queue, Scene};

const OWNER: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/ours/biased/mod.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Biased,
    scene: Scene::Once,
    caught: Caught::Twice,
};
const THIEF: Mutant = Mutant { file: "deque/src/ours/biased/thief.rs", ..OWNER };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "biased-no-barrier",
        why: "a missing fence: a thief opens what it sees without making the owner's pop visible",
        was: "shared.owner.policy.try_thief() && ",
        is: "",
        ..THIEF
    },
    Mutant {
        name: "biased-floor-too-high",
        why: "off by one: an owner that finds no task remembers that there is none one index above, either",
        was: "shared.owner.floor.store(tail, Ordering::Relaxed);",
        is: "shared.owner.floor.store(tail.wrapping_add(1), Ordering::Relaxed);",
        scene: Scene::Returns,
        caught: Caught::Order,
        ..OWNER
    },
    Mutant {
        name: "biased-asks-nobody",
        why: "a missing store: a thief opens tasks and raises no request",
        was: "shared.request.swap(RAISED, Ordering::SeqCst);",
        is: "",
        ..THIEF
    },
    Mutant {
        name: "biased-reads-tail-first",
        why: "two steps swapped: a thief reads `tail` and then makes its barrier",
        was: "        let certain = shared.owner.policy.try_thief() && shared.owner.policy.delta() == 0;
        if !certain && !shared.owner.policy.resolve() {
            // The request stays: the owner answers at its next push or pop. The caller takes what
            // is open.
            return opened(head, open) == 0;
        }
        // Acquire: pairs with the owner's releases; sees the tasks below.
        let tail = shared.owner.tail.load(Ordering::Acquire);",
        is: "        let tail = shared.owner.tail.load(Ordering::Acquire);
        shared.owner.policy.thief();",
        ..THIEF
    },
    Mutant {
        name: "biased-opens-under-a-new-tag",
        why: "a thief opens with the tag that `head` has in the end, not with the one before it asked",
        was: "                pack(tag, tail),
                Ordering::Release,
                Ordering::Relaxed,",
        is: "                pack(unpack(shared.thieves.head.load(Ordering::Acquire)).0, tail),
                Ordering::Release,
                Ordering::Relaxed,",
        scene: Scene::Short,
        ..THIEF
    },
    Mutant {
        name: "biased-claims-one-more",
        why: "off by one: a thief moves `top` over one task more than is open",
        was: "self.take_from(head, want(count).clamp(1, count))",
        is: "self.take_from(head, want(count).clamp(1, count) + 1)",
        caught: Caught::Lost,
        ..THIEF
    },
    Mutant {
        name: "biased-loser-takes",
        why: "a thief whose exchange fails takes the task all the same",
        was: "Err(_) => Steal::Retry,",
        is: "Err(_) => Steal::Success((top, count)),",
        ..THIEF
    },
    Mutant {
        name: "biased-keeps-its-tag",
        why: "the owner closes and leaves the tag as it was, so that what is open stays so",
        was: "                pack(tag.wrapping_add(1), u64::from(top)),
                Ordering::Release,",
        is: "                pack(tag, u64::from(top)),
                Ordering::Release,",
        ..OWNER
    },
    Mutant {
        name: "biased-request-too-low",
        why: "off by one: the owner takes the youngest open task without closing",
        was: "let request = if eager { RAISED } else { bound };",
        is: "let request = if eager { RAISED } else { bound.saturating_sub(1) };",
        scene: Scene::Drain,
        ..OWNER
    },
    Mutant {
        name: "biased-stays-low",
        why: "a missing restore: the owner that finds thieves have taken all leaves the request low, and forgets what it has found",
        was: "                if lowered {
                    // Relaxed: to raise it needs no order; see \"Nothing left\".
                    shared.request.store(RAISED, Ordering::Relaxed);
                }
                // Relaxed: only the owner has it.
                shared.owner.floor.store(tail, Ordering::Relaxed);",
        is: "",
        scene: Scene::Returns,
        ..OWNER
    },
    Mutant {
        name: "biased-pops-without-a-look",
        why: "the owner does not look at the request",
        was: "        if tail <= shared.request.load(Ordering::Relaxed) {
            return self.pop_requested(tail);
        }",
        is: "",
        ..OWNER
    },
    Mutant {
        name: "biased-pop-hides-nothing",
        why: "a missing store: a pop does not say in `tail` which task it takes",
        was: "        let index = tail.wrapping_sub(1);
        // Release: a thief that reads the tail here sees the tasks below.
        shared.owner.tail.store(index, Ordering::Release);",
        is: "        let index = tail.wrapping_sub(1);",
        ..OWNER
    },
    Mutant {
        name: "biased-push-shows-first",
        why: "two stores swapped: a push moves `tail` before it has written its task",
        file: "deque/src/ours/owners_end.rs",
        was: "unsafe { self.buffer().write(tail, task) };",
        is: "self.tail_word().store(tail.wrapping_add(1), Ordering::Release);
        unsafe { self.buffer().write(tail, task) };",
        scene: Scene::Short,
        caught: Caught::Race,
        ..OWNER
    },
];
