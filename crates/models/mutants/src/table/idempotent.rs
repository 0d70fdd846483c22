//! Mistakes in the idempotent queues. That a task comes out twice is none.

use super::{Caught, Mutant, Queue, Scene};

const LIFO: Mutant = Mutant {
    name: "",
    why: "",
    file: "deque/src/papers/idempotent/lifo.rs",
    was: "",
    is: "",
    besides: None,
    queue: Queue::IdempotentLifo,
    scene: Scene::Mixed,
    caught: Caught::Lost,
};
const FIFO: Mutant =
    Mutant { file: "deque/src/papers/idempotent/fifo.rs", queue: Queue::IdempotentFifo, ..LIFO };
const DEQUE: Mutant =
    Mutant { file: "deque/src/papers/idempotent/deque.rs", queue: Queue::IdempotentDeque, ..LIFO };

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "ilifo-no-tag",
        why: "a push does not step up the tag: a thief that has slept over a pop and a push takes away \
              the new task and returns the old",
        was: "tag: tag.wrapping_add(1) };",
        is: "tag };",
        ..LIFO
    },
    Mutant {
        name: "ilifo-push-shows-first",
        why: "two stores swapped: a push counts its task before it has written it",
        was: "shared.slots.write(u64::from(tail), word);
        // Release: the slot is seen by who acquires this.
        let next = Top { tail: tail + 1, tag: tag.wrapping_add(1) };
        shared.anchor.store(next.pack(), Ordering::Release);",
        is: "let next = Top { tail: tail + 1, tag: tag.wrapping_add(1) };
        shared.anchor.store(next.pack(), Ordering::Release);
        shared.slots.write(u64::from(tail), word);",
        caught: Caught::Invented,
        ..LIFO
    },
    Mutant {
        name: "ilifo-pop-too-high",
        why: "off by one: a pop reads the slot above its task",
        was: "let word = shared.slots.read(u64::from(top));
        // Release: who acquires it still",
        is: "let word = shared.slots.read(u64::from(tail));
        // Release: who acquires it still",
        scene: Scene::Drain,
        caught: Caught::Invented,
        ..LIFO
    },
    Mutant {
        name: "ilifo-pop-undone",
        why: "a missing store: a pop does not count its task off, and pops it for ever",
        was: "shared.anchor.store(Top { tail: top, tag }.pack(), Ordering::Release);",
        is: "",
        caught: Caught::Endless,
        ..LIFO
    },
    Mutant {
        name: "ilifo-steal-two",
        why: "a thief counts two tasks off and returns one",
        was: "let next = Top { tail: top, tag }.pack();",
        is: "let next = Top { tail: top.saturating_sub(1), tag }.pack();",
        scene: Scene::Drain,
        ..LIFO
    },
    Mutant {
        name: "ififo-pop-two",
        why: "off by one: a pop moves `head` over two tasks, and past `tail`",
        was: "shared.head.store(head.wrapping_add(1), Ordering::Release);",
        is: "shared.head.store(head.wrapping_add(2), Ordering::Release);",
        caught: Caught::Endless,
        ..FIFO
    },
    Mutant {
        name: "ififo-pop-from-now",
        why: "a pop steps up the `head` that thieves have made, not the one that it took its task from",
        was: "shared.head.store(head.wrapping_add(1), Ordering::Release);",
        is: "let now = shared.head.load(Ordering::Relaxed);
        shared.head.store(now.wrapping_add(1), Ordering::Release);",
        scene: Scene::Drain,
        caught: Caught::Invented,
        ..FIFO
    },
    Mutant {
        name: "ififo-push-shows-first",
        why: "two stores swapped: a push moves `tail` before it has written its task",
        was: "shared.slots.write(tail, word);
        // Release: the slot is seen by who acquires this.
        shared.tail.store(tail.wrapping_add(1), Ordering::Release);",
        is: "shared.tail.store(tail.wrapping_add(1), Ordering::Release);
        shared.slots.write(tail, word);",
        caught: Caught::Invented,
        ..FIFO
    },
    Mutant {
        name: "ififo-full-unseen",
        why: "off by one: a push into a full queue does not grow it, and overwrites the oldest task",
        was: "if tail.wrapping_sub(head) == shared.slots.capacity()",
        is: "if tail.wrapping_sub(head) == shared.slots.capacity() + 1",
        ..FIFO
    },
    Mutant {
        name: "ififo-steal-from-empty",
        why: "off by one: a thief takes from an empty queue, and moves `head` beyond the next task",
        was: "if tail.wrapping_sub(head) as i64 <= 0 {",
        is: "if (tail.wrapping_sub(head) as i64) < 0 {",
        caught: Caught::Invented,
        ..FIFO
    },
    Mutant {
        name: "ideque-no-tag",
        why: "a run of pushes does not step up the tag: a thief that has slept over a pop and a push takes away \
              the new task and returns the old",
        was: "Front { tag: front.tag + 1, ..front }",
        is: "front",
        ..DEQUE
    },
    Mutant {
        name: "ideque-steps-too-far",
        why: "off by one: a thief takes a task and steps `head` over the next one, too",
        was: "let next = Front { head: front.head + 1, ..front }.pack();",
        is: "let next = Front { head: front.head + 2, ..front }.pack();",
        scene: Scene::Drain,
        ..DEQUE
    },
    Mutant {
        name: "ideque-pop-too-high",
        why: "off by one: a pop reads the slot above its task",
        was: "let word = slots.read(tail);",
        is: "let word = slots.read(tail + 1);",
        scene: Scene::Drain,
        caught: Caught::Invented,
        ..DEQUE
    },
    Mutant {
        name: "ideque-push-shows-first",
        why: "two stores swapped: a push counts its task before it has written it",
        was: "slots.write(tail, word);",
        is: "ends.tail.store(tail.wrapping_add(1), Ordering::Release);
        slots.write(tail, word);",
        caught: Caught::Invented,
        ..DEQUE
    },
    Mutant {
        name: "ideque-head-stays-above",
        why: "a missing restore: a push leaves `head` above `tail`, where thieves took what the owner popped, and its task is \
              below",
        was: "            front.head = tail;",
        is: "",
        ..DEQUE
    },
    Mutant {
        name: "ideque-pop-ends-no-run",
        why: "a missing store: a push after a pop reuses an index with the tag as it was",
        was: "self.run_end().set(tail);",
        is: "",
        ..DEQUE
    },
    Mutant {
        name: "ideque-run-too-long",
        why: "off by one: a run makes one push more than there are free slots, and overwrites the oldest task",
        was: "let mut free = capacity - tasks;",
        is: "let mut free = capacity - tasks + 1;",
        scene: Scene::Brief,
        ..DEQUE
    },
    Mutant {
        name: "islots-copy-short",
        why: "off by one: a queue that grows leaves its oldest task behind",
        file: "deque/src/papers/idempotent/slots.rs",
        was: "let mut index = from;",
        is: "let mut index = from.wrapping_add(1);",
        caught: Caught::Invented,
        ..FIFO
    },
];
