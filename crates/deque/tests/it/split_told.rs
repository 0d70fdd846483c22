//! What a split deque tells its context: once for each thing that happens, and nothing otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use poach_deque::split::{Context, Head, Popped, PushError, Stack};
use poach_deque::{Split, Steal};
use poach_memory::Machine;

#[derive(Default)]
struct Told {
    shared: AtomicU32,
    took_back: AtomicU32,
    reached_split: AtomicU32,
    refuses: AtomicBool,
    asked: AtomicU32,
}

#[derive(Clone, Default)]
struct Listener(Arc<Told>);

impl Listener {
    /// How often it was told of each since the last call: shared, took back, came down.
    fn since(&self) -> (u32, u32, u32) {
        let take = |count: &AtomicU32| count.swap(0, Relaxed);
        (take(&self.0.shared), take(&self.0.took_back), take(&self.0.reached_split))
    }
}

impl Context for Listener {
    fn shared(&self) {
        self.0.shared.fetch_add(1, Relaxed);
    }

    fn took_back(&self) {
        self.0.took_back.fetch_add(1, Relaxed);
    }

    fn reached_split(&self) {
        self.0.reached_split.fetch_add(1, Relaxed);
    }

    fn should_share(&self, _: u32) -> bool {
        self.0.asked.fetch_add(1, Relaxed);
        !self.0.refuses.load(Relaxed)
    }
}

#[test]
fn a_queue_tells_what_it_does() {
    let told = Listener::default();
    let queue = Split::<u64, Machine, Listener>::with_context(8, 0, told.clone()).unwrap();
    let thief = queue.thief();
    assert_eq!((queue.share(), told.since()), (false, (0, 0, 0)));
    queue.push(1);
    queue.push(2);
    assert_eq!((queue.poll(), told.since()), (false, (0, 0, 0)));
    assert_eq!((queue.share(), told.since()), (true, (1, 0, 0)));
    assert_eq!((thief.steal(), thief.steal()), (Steal::Success(1), Steal::Success(2)));
    // A request is answered by a push,
    assert!(thief.steal().is_empty());
    queue.push(3);
    assert_eq!(told.since(), (1, 0, 0));
    assert_eq!(thief.steal(), Steal::Success(3));
    // by a look,
    (4..9).for_each(|task| queue.push(task));
    assert_eq!(told.since(), (0, 0, 0));
    assert!(thief.steal().is_empty());
    assert_eq!((queue.poll(), told.since()), (true, (1, 0, 0)));
    for task in 4..7 {
        assert_eq!(thief.steal(), Steal::Success(task));
    }
    // or by a pop.
    queue.push(9);
    assert!(thief.steal().is_empty());
    assert_eq!((queue.pop(), told.since()), (Some(9), (1, 0, 0)));
    assert_eq!((queue.pop(), told.since()), (Some(8), (0, 0, 0)));
    // The last one is shared, and taken back.
    assert_eq!((queue.pop(), told.since()), (Some(7), (0, 1, 0)));
    assert_eq!((queue.pop(), told.since()), (None, (0, 0, 0)));
    // With a request that finds nothing to share: there is nothing to tell.
    queue.push(10);
    assert!(thief.steal().is_empty());
    assert_eq!((queue.pop(), told.since()), (Some(10), (0, 0, 0)));
    // Of what a pop takes back it shares something again, if a thief has asked meanwhile.
    (11..15).for_each(|task| queue.push(task));
    assert_eq!(told.since(), (1, 0, 0));
    assert_eq!((queue.share(), told.since()), (true, (1, 0, 0)));
    thief.request();
    assert_eq!((queue.pop(), told.since()), (Some(14), (1, 1, 0)));
}

fn push(head: Head<Machine, Listener>, task: u64) -> Result<Head<Machine, Listener>, PushError> {
    static DESCRIPTOR: u64 = 0;
    let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
    // SAFETY: one thread, pops in reverse order, u64 is Copy.
    unsafe { head.push(descriptor, &raw const task) }
}

fn pop(head: Head<Machine, Listener>) -> Popped {
    // SAFETY: one thread, pops in reverse order.
    unsafe { head.pop() }
}

fn share(head: Head<Machine, Listener>) -> bool {
    // SAFETY: one thread, and the topmost head.
    unsafe { head.share() }
}

#[test]
fn a_stack_tells_what_it_does() {
    let told = Listener::default();
    let stack = Stack::<Machine, _>::new(8, told.clone()).unwrap();
    // SAFETY: one thread, which keeps the stack.
    let zero = unsafe { stack.bottom() };
    assert_eq!((share(zero), told.since(), stack.counts()), (false, (0, 0, 0), (0, 0)));
    let one = push(zero, 1).unwrap();
    let two = push(one, 2).unwrap();
    let three = push(two, 3).unwrap();
    let four = push(three, 4).unwrap();
    assert_eq!((share(four), told.since(), stack.counts()), (true, (1, 0, 0), (1, 0)));
    // The pop takes half back, and answers the request with half of what is then private.
    stack.request();
    assert_eq!((pop(three), told.since(), stack.counts()), (Popped::Own, (1, 1, 0), (2, 1)));
    assert_eq!(stack.shared(), 3);
    assert!(stack.steal().is_ok() && stack.steal().is_ok() && stack.steal().is_ok());
    assert_eq!((pop(two), told.since(), stack.counts()), (Popped::Stolen, (0, 0, 0), (2, 1)));
    assert_eq!(push(two, 5).err(), Some(PushError::Occupied), "the thief's result comes there");
}

#[test]
fn a_stack_tells_that_it_came_down_to_what_was_put_off() {
    let told = Listener::default();
    let stack = Stack::<Machine, _>::new(8, told.clone()).unwrap();
    // SAFETY: one thread, which keeps the stack.
    let zero = unsafe { stack.bottom() };
    told.0.refuses.store(true, Relaxed);
    stack.request();
    let one = push(zero, 1).unwrap();
    let two = push(one, 2).unwrap();
    assert_eq!((told.since(), stack.shared()), ((0, 0, 0), 0));
    let _ = two;
    assert_eq!((pop(one), told.since()), (Popped::Own, (0, 0, 0)));
    assert_eq!((pop(zero), told.since()), (Popped::Own, (0, 0, 1)));
    // The next push is asked again, and those above it are not.
    told.0.asked.store(0, Relaxed);
    let one = push(zero, 3).unwrap();
    push(one, 4).unwrap();
    assert_eq!((told.since(), stack.shared(), told.0.asked.load(Relaxed)), ((0, 0, 0), 0, 1));
    assert_eq!((pop(one), told.since()), (Popped::Own, (0, 0, 0)));
    assert_eq!((pop(zero), told.since()), (Popped::Own, (0, 0, 1)));
    told.0.refuses.store(false, Relaxed);
    push(zero, 3).unwrap();
    assert_eq!((told.since(), stack.shared()), ((1, 0, 0), 1));
}
