//! Mistakes in the runtime's stack of forks.

use super::{Caught, Mutant, Scene};

const HEAD: Mutant =
    Mutant::of("deque/src/papers/split/stack/head.rs", "split-stack", Scene::Forks, Caught::Race);
const STACK: Mutant = Mutant { file: "deque/src/papers/split/stack/mod.rs", ..HEAD };
const SHARING: Mutant = Mutant { file: "deque/src/papers/split/sharing.rs", ..HEAD };

mutants! {
    SHARING: "stack-no-barrier",
        "a thief exposes with the owner's last pop still in its store buffer",
        "Fence::Heavy => M::try_heavy()," => "Fence::Heavy => true,";
    HEAD: "stack-pops-without-its-fence",
        "where there is no barrier, the owner pops with its last store still in its store buffer",
        "        if fences {
            // O2, where no thief's fence is process-wide.
            M::full();
        }
" =>
        "",
        queue: "fenced-stack", scene: Scene::Exposes;
    HEAD: "stack-pops-past-the-floor",
        "the owner does not look whether the task that it pops is shared",
        "self.address() >= header.hot.floor.load(Ordering::Relaxed).addr()" => "true";
    HEAD: "stack-never-takes-back", "the owner runs a shared task that it has not taken back",
        "let Some(split) = header.sharing.bounds.take_back() else {" =>
        "let Some(split) = header.sharing.bounds.take_back().or(Some(self.index())) else {";
    HEAD: "stack-leaves-it-standing",
        "the owner pops a task and does not say so: a thief exposes it",
        "slot.task.store(task.map_addr(|address| address & !PRESENT), Ordering::Relaxed);" => "";
    HEAD: "stack-does-not-settle",
        "the owner pops at the floor while a thief exposes, and lets it go on",
        "self.index() < header.sharing.bounds.settle()" =>
        "self.index() < header.sharing.bounds.tail()";
    STACK: "stack-stops-no-pops",
        "a thief that exposes does not raise the floor first: the owner pops the task at the same time",
        "        // Relaxed: fences on both sides order it.
        self.floor.store(REQUESTED, Ordering::Relaxed);" =>
        "",
        scene: Scene::Exposes;
    STACK: "stack-exposes-what-is-not-there", "a thief exposes a slot in which no task stands",
        "slot.task.load(Ordering::Acquire).addr() & PRESENT != 0" => "true";
    HEAD: "stack-pushes-unreleased", "under C11: a push shows its task before the payload",
        "slot.task.store(descriptor.map_addr(|address| address | PRESENT), Ordering::Release);" =>
        "slot.task.store(descriptor.map_addr(|address| address | PRESENT), Ordering::Relaxed);",
        scene: Scene::WeakExposes;
}
