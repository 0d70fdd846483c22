//! Mistakes in the injector: which thread has which index, and when a block is of no more use.

use super::{Caught, Mutant, Scene};

const INJECTOR: Mutant =
    Mutant::of("deque/src/ours/injector/mod.rs", "injector", Scene::Injects, Caught::Race);
const STEAL: Mutant = Mutant { file: "deque/src/ours/injector/steal.rs", ..INJECTOR };
const FINISH: Mutant = Mutant { file: "deque/src/ours/injector/finish.rs", ..INJECTOR };

mutants! {
    INJECTOR: "injector-ticket-for-two", "two pushers that read one ticket both have it",
        "self.tickets.compare_exchange(index, next, Ordering::SeqCst, Ordering::Relaxed);" =>
        "Ok::<u64, u64>(self.tickets.swap(next, Ordering::SeqCst));";
    STEAL: "injector-head-by-a-store", "two thieves that read one head both have its task",
        "self.head.index.compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()" =>
        "self.head.index.swap(next, Ordering::SeqCst) <= u64::MAX",
        caught: Caught::Twice;
    STEAL: "injector-finishes-first",
        "two steps swapped: a thief finishes its index and then reads the slot",
        "        let task = unsafe { block.take(index) };
        self.finish(block, index, 1);" =>
        "        self.finish(block, index, 1);
        let task = unsafe { block.take(index) };";
    FINISH: "injector-passes-the-unfinished",
        "who finishes an index moves the word `finished` past it, wherever the word stands",
        "if self.finished.load(Ordering::Acquire) == first {" =>
        "if self.finished.load(Ordering::Acquire) <= first {";
    FINISH: "injector-passes-the-written",
        "a push moves the word `finished` over a slot whose task nobody has taken",
        "block.slot(to).state.load(Ordering::Acquire) == marked(to)" =>
        "block.slot(to).state.load(Ordering::Acquire) >= marked(to) - 2",
        caught: Caught::Refusal;
    FINISH: "injector-gives-back-the-unfinished",
        "a push gives a block back of which an index is not finished",
        "                if here(to) {
                    return false;
                }
                break;" =>
        "                break;",
        caught: Caught::Refusal;
    FINISH: "injector-given-back-twice", "two pushers give one block back",
        "        if passed.is_ok() {
            self.chain.put_back(oldest);
        }" =>
        "        self.chain.put_back(oldest);";
    STEAL: "injector-takes-the-taken-back",
        "a thief takes the task of a contested index, whether its pusher takes it back or not",
        "let won = state.compare_exchange(was, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();" =>
        "let won = state.swap(now, Ordering::Relaxed) >= was;",
        scene: Scene::Skips, caught: Caught::Twice;
    INJECTOR: "injector-takes-back-the-taken",
        "a pusher takes back the task of a contested index, whether a thief has taken it or not",
        "        if decided.is_err() {" => "        if decided.is_err_and(|state| state < index) {",
        scene: Scene::Skips, caught: Caught::Twice;
    STEAL: "injector-takes-the-contested-by-the-head",
        "a thief takes the task of a contested index as any other, while its pusher takes it back",
        "(head & CONTESTED == 0 && self.move_head" => "(head & CONTESTED <= 1 && self.move_head",
        scene: Scene::Skips, caught: Caught::Twice;
    INJECTOR: "injector-does-not-look",
        "a pusher does not look whether a thief has skipped its slot",
        "        if block.is_contested(place.number(), index) {" =>
        "        if block.is_contested(place.number(), index) && index == u64::MAX {",
        scene: Scene::Refills, caught: Caught::Lost;
    INJECTOR: "injector-looks-too-early",
        "two steps swapped: a pusher looks whether the index is contested and then shows its task",
        "        slot.state.store(written(index), Ordering::Release);
        self.policy.owner();
        if block.is_contested(place.number(), index) {" =>
        "        let contested = block.is_contested(place.number(), index);
        self.policy.owner();
        slot.state.store(written(index), Ordering::Release);
        if contested {",
        scene: Scene::Refills, caught: Caught::Lost;
    STEAL: "injector-skips-without-a-barrier",
        "a thief skips a slot whose push has ended: its store is still in the store buffer, and it has not seen the contest",
        "!self.policy.try_thief()" => "false", scene: Scene::Skips, caught: Caught::Lost;
    STEAL: "injector-skips-untold", "a thief skips a slot without telling the push",
        "|| !block.contest(place.number(), index) {" => "|| index == u64::MAX {",
        scene: Scene::Refills, caught: Caught::Lost;
}
