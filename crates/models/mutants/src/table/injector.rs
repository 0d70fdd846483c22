//! Mistakes in the injector: which thread has which index, and when a block is of no more use.

use super::{Caught, Mutant, Queue, Scene};

const INJECTOR: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/ours/injector/mod.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::Injector,
    scene: Scene::Injects,
    caught: Caught::Race,
};
const STEAL: Mutant = Mutant { file: "deque/src/ours/injector/steal.rs", ..INJECTOR };
const FINISH: Mutant = Mutant { file: "deque/src/ours/injector/finish.rs", ..INJECTOR };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "injector-ticket-for-two",
        why: "two pushers that read one ticket both have it",
        was: "self.tickets.compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed);",
        is: "Ok::<u64, u64>(self.tickets.swap(next, Ordering::SeqCst));",
        ..INJECTOR
    },
    Mutant {
        name: "injector-head-by-a-store",
        why: "two thieves that read one head both have its task",
        was: "self.head.index.compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()",
        is: "self.head.index.swap(next, Ordering::SeqCst) <= u64::MAX",
        caught: Caught::Twice,
        ..STEAL
    },
    Mutant {
        name: "injector-finishes-first",
        why: "two steps swapped: a thief finishes its index and then reads the slot",
        was: "        let task = unsafe { block.take(index) };
        self.finish(block, index, 1);",
        is: "        self.finish(block, index, 1);
        let task = unsafe { block.take(index) };",
        ..STEAL
    },
    Mutant {
        name: "injector-passes-the-unfinished",
        why: "who finishes an index moves the word `finished` past it, wherever the word stands",
        was: "if self.finished.load(Ordering::Acquire) == first {",
        is: "if self.finished.load(Ordering::Acquire) <= first {",
        ..FINISH
    },
    Mutant {
        name: "injector-passes-the-written",
        why: "a push moves the word `finished` over a slot whose task nobody has taken",
        was: "block.slot(to).state.load(Ordering::Acquire) == marked(to)",
        is: "block.slot(to).state.load(Ordering::Acquire) >= marked(to) - 2",
        caught: Caught::Refusal,
        ..FINISH
    },
    Mutant {
        name: "injector-gives-back-the-unfinished",
        why: "a push gives a block back of which an index is not finished",
        was: "                if here(to) {
                    return false;
                }
                break;",
        is: "                break;",
        caught: Caught::Refusal,
        ..FINISH
    },
    Mutant {
        name: "injector-given-back-twice",
        why: "two pushers give one block back",
        was: "        if passed.is_ok() {
            self.chain.put_back(oldest);
        }",
        is: "        self.chain.put_back(oldest);",
        ..FINISH
    },
    Mutant {
        name: "injector-takes-the-taken-back",
        why: "a thief takes the task of a contested index, whether its pusher takes it back or not",
        was: "let won = state.compare_exchange(was, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();",
        is: "let won = state.swap(now, Ordering::Relaxed) >= was;",
        scene: Scene::Skips,
        caught: Caught::Twice,
        ..STEAL
    },
    Mutant {
        name: "injector-takes-back-the-taken",
        why: "a pusher takes back the task of a contested index, whether a thief has taken it or not",
        was: "        if decided.is_err() {",
        is: "        if decided.is_err_and(|state| state < index) {",
        scene: Scene::Skips,
        caught: Caught::Twice,
        ..INJECTOR
    },
    Mutant {
        name: "injector-takes-the-contested-by-the-head",
        why: "a thief takes the task of a contested index as any other, while its pusher takes it back",
        was: "(head & CONTESTED == 0 && self.move_head",
        is: "(head & CONTESTED <= 1 && self.move_head",
        scene: Scene::Skips,
        caught: Caught::Twice,
        ..STEAL
    },
    Mutant {
        name: "injector-does-not-look",
        why: "a pusher does not look whether a thief has skipped its slot",
        was: "        if block.is_contested(place.number(), index) {",
        is: "        if block.is_contested(place.number(), index) && index == u64::MAX {",
        scene: Scene::Refills,
        caught: Caught::Lost,
        ..INJECTOR
    },
    Mutant {
        name: "injector-looks-too-early",
        why: "two steps swapped: a pusher looks whether the index is contested and then shows its task",
        was: "        slot.state.store(written(index), Ordering::Release);
        self.policy.owner();
        if block.is_contested(place.number(), index) {",
        is: "        let contested = block.is_contested(place.number(), index);
        self.policy.owner();
        slot.state.store(written(index), Ordering::Release);
        if contested {",
        scene: Scene::Refills,
        caught: Caught::Lost,
        ..INJECTOR
    },
    Mutant {
        name: "injector-skips-without-a-barrier",
        why: "a thief skips a slot whose push has ended: its store is still in the store buffer, and it has not seen the contest",
        was: "!self.policy.try_thief()",
        is: "false",
        scene: Scene::Skips,
        caught: Caught::Lost,
        ..STEAL
    },
    Mutant {
        name: "injector-skips-untold",
        why: "a thief skips a slot without telling the push",
        was: "|| !block.contest(place.number(), index) {",
        is: "|| index == u64::MAX {",
        scene: Scene::Refills,
        caught: Caught::Lost,
        ..STEAL
    },
];
