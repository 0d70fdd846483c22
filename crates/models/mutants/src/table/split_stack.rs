//! Mistakes in the runtime's stack of forks.

use super::{Caught, Mutant, Queue, Scene};

const HEAD: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/split/stack/head.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Forks,
    scene: Scene::Forks,
    caught: Caught::Race,
};
const STACK: Mutant = Mutant { file: "deque/src/papers/split/stack/mod.rs", ..HEAD };
const SHARING: Mutant = Mutant { file: "deque/src/papers/split/sharing.rs", ..HEAD };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "stack-no-barrier",
        why: "a thief exposes with the owner's last pop still in its store buffer",
        was: "Fence::Heavy => M::try_heavy(),",
        is: "Fence::Heavy => true,",
        ..SHARING
    },
    Mutant {
        name: "stack-pops-without-its-fence",
        why: "where there is no barrier, the owner pops with its last store still in its store buffer",
        was: "        if fences {
            // O2, where no thief's fence is process-wide.
            M::full();
        }
",
        is: "",
        queue: Queue::FencedForks,
        scene: Scene::Exposes,
        ..HEAD
    },
    Mutant {
        name: "stack-pops-past-the-floor",
        why: "the owner does not look whether the task that it pops is shared",
        was: "self.address() >= header.hot.floor.load(Ordering::Relaxed).addr()",
        is: "true",
        ..HEAD
    },
    Mutant {
        name: "stack-never-takes-back",
        why: "the owner runs a shared task that it has not taken back",
        was: "let Some(split) = header.sharing.bounds.take_back() else {",
        is: "let Some(split) = header.sharing.bounds.take_back().or(Some(self.index())) else {",
        ..HEAD
    },
    Mutant {
        name: "stack-leaves-it-standing",
        why: "the owner pops a task and does not say so: a thief exposes it",
        was: "slot.task.store(task.map_addr(|address| address & !PRESENT), Ordering::Relaxed);",
        is: "",
        ..HEAD
    },
    Mutant {
        name: "stack-does-not-settle",
        why: "the owner pops at the floor while a thief exposes, and lets it go on",
        was: "self.index() < header.sharing.bounds.settle()",
        is: "self.index() < header.sharing.bounds.tail()",
        ..HEAD
    },
    Mutant {
        name: "stack-stops-no-pops",
        why: "a thief that exposes does not raise the floor first: the owner pops the task at the same time",
        was: "        // Relaxed: fences on both sides order it.
        self.floor.store(REQUESTED, Ordering::Relaxed);",
        is: "",
        scene: Scene::Exposes,
        ..STACK
    },
    Mutant {
        name: "stack-exposes-what-is-not-there",
        why: "a thief exposes a slot in which no task stands",
        was: "slot.task.load(Ordering::Acquire).addr() & PRESENT != 0",
        is: "true",
        ..STACK
    },
    Mutant {
        name: "stack-pushes-unreleased",
        why: "under C11: a push shows its task before the payload",
        was: "slot.task.store(descriptor.map_addr(|address| address | PRESENT), Ordering::Release);",
        is: "slot.task.store(descriptor.map_addr(|address| address | PRESENT), Ordering::Relaxed);",
        scene: Scene::WeakExposes,
        ..HEAD
    },
];
