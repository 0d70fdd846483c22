//! A split deque's context may use the deque whose call it is in: no task is lost or comes out
//! twice.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use poach_deque::split::Context;
use poach_deque::{Split, Steal};
use poach_memory::Machine;

type Queue = Split<Box<u64>, Machine, CallsBack>;

/// What a context does with its own deque.
type Act = fn(&Queue, &mut Vec<u64>);

#[derive(Clone, Copy)]
struct CallsBack {
    shared: Act,
    took_back: Act,
}

thread_local! {
    static QUEUE: RefCell<Option<Rc<Queue>>> = const { RefCell::new(None) };
    static SEEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<u64> = const { Cell::new(0) };
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn call(act: Act) {
    // One call deep: a context that answers its own calls without end is its author's affair.
    if WITHIN.replace(true) {
        return;
    }
    CALLS.set(CALLS.get() + 1);
    let queue = QUEUE.with_borrow(Clone::clone);
    if let Some(queue) = queue {
        let mut taken = Vec::new();
        act(&queue, &mut taken);
        SEEN.with_borrow_mut(|seen| seen.append(&mut taken));
    }
    WITHIN.set(false);
}

impl Context for CallsBack {
    fn shared(&self) {
        call(self.shared);
    }

    fn took_back(&self) {
        call(self.took_back);
    }
}

fn next() -> u64 {
    NEXT.replace(NEXT.get() + 1)
}

fn nothing(_: &Queue, _: &mut Vec<u64>) {}

fn pop_one(queue: &Queue, taken: &mut Vec<u64>) {
    taken.extend(queue.pop().map(|task| *task));
}

fn pop_all(queue: &Queue, taken: &mut Vec<u64>) {
    taken.extend(std::iter::from_fn(|| queue.pop()).map(|task| *task));
}

fn push_some(queue: &Queue, _: &mut Vec<u64>) {
    (0..3).for_each(|_| queue.push(Box::new(next())));
}

fn pop_all_and_push(queue: &Queue, taken: &mut Vec<u64>) {
    pop_all(queue, taken);
    push_some(queue, taken);
}

fn steal_and_ask(queue: &Queue, taken: &mut Vec<u64>) {
    let thief = queue.thief();
    while let Steal::Success(task) = thief.steal() {
        taken.push(*task);
    }
}

/// Pushes, shares, and pops down through the split, with a context that does this within each call.
fn play(shared: Act, took_back: Act) -> usize {
    NEXT.set(0);
    CALLS.set(0);
    let queue = Rc::new(Queue::with_context(2, 0, CallsBack { shared, took_back }).unwrap());
    QUEUE.set(Some(Rc::clone(&queue)));
    let take = |task: Box<u64>| SEEN.with_borrow_mut(|seen| seen.push(*task));
    for round in 0..20 {
        (0..7).for_each(|_| queue.push(Box::new(next())));
        // Asks; the next push or pop shares.
        if let Steal::Success(task) = queue.thief().steal() {
            take(task);
        }
        queue.push(Box::new(next()));
        for _ in 0..if round % 2 == 0 { 3 } else { usize::MAX } {
            let Some(task) = queue.pop() else { break };
            take(task);
        }
    }
    QUEUE.set(None);
    while let Some(task) = queue.pop() {
        take(task);
    }
    let mut seen = SEEN.take();
    seen.sort_unstable();
    assert_eq!(seen, (0..NEXT.get()).collect::<Vec<_>>());
    CALLS.get()
}

#[test]
fn a_context_may_use_its_own_deque() {
    let acts = [nothing, pop_one, pop_all, push_some, pop_all_and_push, steal_and_ask];
    for shared in acts {
        for took_back in acts {
            assert!(play(shared, took_back) > 0, "the context must be called");
        }
    }
}
