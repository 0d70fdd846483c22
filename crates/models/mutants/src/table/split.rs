//! Mistakes in the split deque.

use super::{Caught, Mutant, Queue, Scene};

const BOUNDS: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/split/bounds.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Split,
    scene: Scene::Mixed,
    caught: Caught::Twice,
};
const EXPOSED: Mutant = Mutant {
    file: "deque/src/papers/split/sharing.rs",
    queue: Queue::Exposed,
    scene: Scene::Once,
    ..BOUNDS
};
const OWNER: Mutant = Mutant { file: "deque/src/papers/split/growing.rs", ..BOUNDS };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "split-takes-back-none",
        why: "off by one: the owner takes no task back, and pops one that is still shared",
        was: "let new = tail.wrapping_add(shared / 2);",
        is: "let new = tail.wrapping_add(shared.div_ceil(2));",
        ..BOUNDS
    },
    Mutant {
        name: "split-claims-two",
        why: "off by one: a thief moves `tail` over two tasks and takes one",
        was: "let new = pack(tail.wrapping_add(count), split);",
        is: "let new = pack(tail.wrapping_add(count + 1), split);",
        scene: Scene::Four,
        caught: Caught::Lost,
        ..BOUNDS
    },
    Mutant {
        name: "split-loser-takes",
        why: "a thief whose exchange fails takes the tasks all the same",
        was: "Err(_) => Claim::Lost,",
        is: "Err(_) => Claim::Taken { first: tail, count },",
        ..BOUNDS
    },
    Mutant {
        name: "split-takes-back-what-it-saw",
        why: "the owner, when it is outrun by a thief, takes back what it saw before",
        was: "                Ok(_) => return Some(new),
                Err(now) => seen = now,",
        is: "                Ok(_) => return Some(new),
                Err(now) => { seen = now; return Some(new) }",
        ..BOUNDS
    },
    Mutant {
        name: "split-past-the-split",
        why: "off by one: a pop at the split does not stop there",
        was: "head > self.request.value()",
        is: "head >= self.request.value()",
        ..OWNER
    },
    Mutant {
        name: "split-never-takes-back",
        why: "the owner pops below the split without taking tasks back",
        was: "let at_the_split = below(self.known().get());",
        is: "let at_the_split = false;",
        ..OWNER
    },
    Mutant {
        name: "split-no-barrier",
        why: "a thief that exposes private tasks makes no process-wide barrier",
        was: "Fence::Heavy => M::try_heavy(),",
        is: "Fence::Heavy => true,",
        ..EXPOSED
    },
    Mutant {
        name: "split-pops-without-its-fence",
        why: "where there is no barrier, the owner pops with its last store still in its store buffer",
        was: "            // O2, where no thief's fence is process-wide.
            M::full();
",
        is: "",
        file: "deque/src/papers/split/growing.rs",
        queue: Queue::FencedExposed,
        ..EXPOSED
    },
    Mutant {
        name: "split-half-drops-the-rest",
        why: "a batch's first task is returned, and the others are dropped",
        was: "                for task in claimed {
                    into.push(task);
                }
",
        is: "                drop(claimed);
",
        scene: Scene::Halves,
        caught: Caught::Lost,
        ..OWNER
    },
    Mutant {
        name: "split-shares-before-it-listens",
        why: "the owner shares, and then takes down a request that a thief has raised since: who took all and asks again is overlooked",
        was: "            let to_or_later = to.wrapping_add(u32::from(later));
",
        is: "            if half > 0 && self.bounds.answer(split, to) {
                request.take_down(place(to));
                known.set(to);
                return true;
            }
            let to_or_later = to.wrapping_add(u32::from(later));
",
        scene: Scene::Asks,
        caught: Caught::RequestLost,
        ..EXPOSED
    },
    Mutant {
        name: "split-does-not-ask",
        why: "a thief that finds nothing shared leaves no request",
        was: "                self.request();
                Steal::Empty",
        is: "                Steal::Empty",
        file: "deque/src/papers/split/growing.rs",
        scene: Scene::Asks,
        caught: Caught::RequestLost,
        ..EXPOSED
    },
    Mutant {
        name: "split-puts-back-unseen",
        why: "an owner that puts a task back does not look whether a thief has asked: the thief has found nothing, and sleeps",
        was: "        if self.shared.request.is_asked() {
            self.answer();
        }
",
        is: "",
        file: "deque/src/papers/split/growing/emplace.rs",
        scene: Scene::PutsBack,
        caught: Caught::RequestLost,
        ..EXPOSED
    },
    Mutant {
        name: "split-never-steals",
        why: "a thief takes none of the tasks that it finds shared, and says that there are none",
        was: "if shared == 0 {
            return Claim::Empty;",
        is: "if shared < u32::MAX {
            return Claim::Empty;",
        caught: Caught::NeverSteals,
        ..BOUNDS
    },
    Mutant {
        name: "split-late-head",
        why: "a pop compares its head with the request before it stores the head",
        was: "        shared.set_head(index);
        if !shared.undisturbed(head) {
            return self.pop_disturbed(index);
        }
",
        is: "        if !shared.undisturbed(head) {
            shared.set_head(index);
            return self.pop_disturbed(index);
        }
        shared.set_head(index);
",
        file: "deque/src/papers/split/growing.rs",
        ..EXPOSED
    },
    Mutant {
        name: "split-does-not-settle",
        why: "a pop that meets an exposure leaves it to go on",
        was: "self.known().set(bounds.settle());",
        is: "self.known().set(bounds.tail());",
        file: "deque/src/papers/split/growing.rs",
        ..EXPOSED
    },
    Mutant {
        name: "split-follow-overwrites",
        why: "an owner that takes tasks back overwrites the request of an exposure that has just begun",
        was: "self.0.compare_exchange(own, split, Ordering::Relaxed, Ordering::Relaxed).is_ok()",
        is: "{ self.0.store(split, Ordering::Relaxed); true }",
        file: "deque/src/papers/split/growing/request.rs",
        scene: Scene::Four,
        ..EXPOSED
    },
    Mutant {
        name: "split-answers-an-exposure",
        why: "the owner shares where it knows the split to be, though a thief has moved it",
        was: "self.share_from(pack(from, from), from, to)",
        is: "{ self.word.store(pack(from, to), Ordering::Release); true }",
        file: "deque/src/papers/split/bounds.rs",
        scene: Scene::Pair,
        ..EXPOSED
    },
];
