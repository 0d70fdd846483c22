//! Mistakes in the idempotent queues. That a task comes out twice is none.

use super::{Caught, Mutant, Scene};

const LIFO: Mutant = Mutant::of(
    "deque/src/papers/idempotent/lifo.rs",
    "idempotent-lifo",
    Scene::Mixed,
    Caught::Lost,
);
const FIFO: Mutant =
    Mutant { file: "deque/src/papers/idempotent/fifo.rs", queue: "idempotent-fifo", ..LIFO };
const DEQUE: Mutant =
    Mutant { file: "deque/src/papers/idempotent/deque.rs", queue: "idempotent-deque", ..LIFO };

mutants! {
    LIFO: "ilifo-no-tag",
        "a push does not step up the tag: a thief that has slept over a pop and a push takes away \
              the new task and returns the old",
        "tag: tag.wrapping_add(1) };" => "tag };";
    LIFO: "ilifo-push-shows-first",
        "two stores swapped: a push counts its task before it has written it",
        "shared.slots.write(u64::from(tail), word);
        // Release: the slot is seen by who acquires this.
        let next = Top { tail: tail + 1, tag: tag.wrapping_add(1) };
        shared.anchor.store(next.pack(), Ordering::Release);" =>
        "let next = Top { tail: tail + 1, tag: tag.wrapping_add(1) };
        shared.anchor.store(next.pack(), Ordering::Release);
        shared.slots.write(u64::from(tail), word);",
        caught: Caught::Invented;
    LIFO: "ilifo-pop-too-high", "off by one: a pop reads the slot above its task",
        "let word = shared.slots.read(u64::from(top));
        // Release: who acquires it still" =>
        "let word = shared.slots.read(u64::from(tail));
        // Release: who acquires it still",
        scene: Scene::Drain, caught: Caught::Invented;
    LIFO: "ilifo-pop-undone",
        "a missing store: a pop does not count its task off, and pops it for ever",
        "shared.anchor.store(Top { tail: top, tag }.pack(), Ordering::Release);" => "",
        caught: Caught::Endless;
    LIFO: "ilifo-steal-two", "a thief counts two tasks off and returns one",
        "let next = Top { tail: top, tag }.pack();" =>
        "let next = Top { tail: top.saturating_sub(1), tag }.pack();",
        scene: Scene::Drain;
    FIFO: "ififo-pop-two", "off by one: a pop moves `head` over two tasks, and past `tail`",
        "shared.head.store(head.wrapping_add(1), Ordering::Release);" =>
        "shared.head.store(head.wrapping_add(2), Ordering::Release);",
        caught: Caught::Endless;
    FIFO: "ififo-pop-from-now",
        "a pop steps up the `head` that thieves have made, not the one that it took its task from",
        "shared.head.store(head.wrapping_add(1), Ordering::Release);" =>
        "let now = shared.head.load(Ordering::Relaxed);
        shared.head.store(now.wrapping_add(1), Ordering::Release);",
        scene: Scene::Drain, caught: Caught::Invented;
    FIFO: "ififo-push-shows-first",
        "two stores swapped: a push moves `tail` before it has written its task",
        "shared.slots.write(tail, word);
        // Release: the slot is seen by who acquires this.
        shared.tail.store(tail.wrapping_add(1), Ordering::Release);" =>
        "shared.tail.store(tail.wrapping_add(1), Ordering::Release);
        shared.slots.write(tail, word);",
        caught: Caught::Invented;
    FIFO: "ififo-full-unseen",
        "off by one: a push into a full queue does not grow it, and overwrites the oldest task",
        "if tail.wrapping_sub(head) == shared.slots.capacity()" =>
        "if tail.wrapping_sub(head) == shared.slots.capacity() + 1";
    FIFO: "ififo-steal-from-empty",
        "off by one: a thief takes from an empty queue, and moves `head` beyond the next task",
        "if tail.wrapping_sub(head) as i64 <= 0 {" => "if (tail.wrapping_sub(head) as i64) < 0 {",
        caught: Caught::Invented;
    DEQUE: "ideque-no-tag",
        "a run of pushes does not step up the tag: a thief that has slept over a pop and a push takes away \
              the new task and returns the old",
        "Front { tag: front.tag + 1, ..front }" => "front";
    DEQUE: "ideque-steps-too-far",
        "off by one: a thief takes a task and steps `head` over the next one, too",
        "let next = Front { head: front.head + 1, ..front }.pack();" =>
        "let next = Front { head: front.head + 2, ..front }.pack();",
        scene: Scene::Drain;
    DEQUE: "ideque-pop-too-high", "off by one: a pop reads the slot above its task",
        "let word = slots.read(tail);" => "let word = slots.read(tail + 1);",
        scene: Scene::Drain, caught: Caught::Invented;
    DEQUE: "ideque-push-shows-first",
        "two stores swapped: a push counts its task before it has written it",
        "slots.write(tail, word);" => "ends.tail.store(tail.wrapping_add(1), Ordering::Release);
        slots.write(tail, word);",
        caught: Caught::Invented;
    DEQUE: "ideque-head-stays-above",
        "a missing restore: a push leaves `head` above `tail`, where thieves took what the owner popped, and its task is \
              below",
        "            front.head = tail;" => "";
    DEQUE: "ideque-pop-ends-no-run",
        "a missing store: a push after a pop reuses an index with the tag as it was",
        "self.run_end().set(tail);" => "";
    DEQUE: "ideque-run-too-long",
        "off by one: a run makes one push more than there are free slots, and overwrites the oldest task",
        "let mut free = capacity - tasks;" => "let mut free = capacity - tasks + 1;",
        scene: Scene::Brief;
    FIFO: "islots-copy-short", "off by one: a queue that grows leaves its oldest task behind",
        "let mut index = from;" => "let mut index = from.wrapping_add(1);",
        file: "deque/src/papers/idempotent/slots.rs", caught: Caught::Invented;
}
