//! loom: a request is not lost. A thief that finds nothing, since others have taken what the owner
//! has shared to answer an older request, leaves one of its own.

use loom::sync::Arc;
use loom::thread;
use poach_deque::Steal;
use poach_deque::split::{Claim, Head, Split, Stack, Thief};
use poach_memory::Loom;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

/// Sees that something is shared, and then that it was taken: this thief comes after the owner's
/// answer.
fn comes_late<S>(shared: impl Fn() -> bool, steal: impl Fn() -> Steal<S>) -> bool {
    if !shared() {
        return false;
    }
    loop {
        match steal() {
            Steal::Success(_) => return false,
            Steal::Empty => return true,
            Steal::Retry | Steal::Abort => thread::yield_now(),
        }
    }
}

#[test]
fn a_request_to_an_owner_of_spawned_tasks() {
    check(|| {
        let owner = Split::<u64, Loom>::with_capacity(4).unwrap();
        let [thief, late]: [Thief<u64, Loom>; 2] = [owner.thief(), owner.thief()];
        thief.request();
        let takes = thread::spawn(move || _ = thief.steal());
        let asks = thread::spawn(move || comes_late(|| !late.is_empty(), || late.steal()));
        owner.push(0);
        takes.join().unwrap();
        if asks.join().unwrap() {
            owner.push(1);
            assert_eq!(owner.thief().len(), 1, "a request was lost");
        }
    });
}

#[test]
fn a_request_to_an_owner_of_forks() {
    check(|| {
        let stack = Arc::new(Stack::<Loom>::new(4, ()).unwrap());
        stack.request();
        let (takes, late) = (Arc::clone(&stack), Arc::clone(&stack));
        let takes = thread::spawn(move || _ = takes.steal().is_ok());
        let steal = move || match late.steal() {
            Ok(_) => Steal::Success(()),
            Err(Claim::Lost) => Steal::Retry,
            Err(_) => Steal::Empty,
        };
        let other = Arc::clone(&stack);
        let asks = thread::spawn(move || comes_late(|| other.shared() != 0, steal));
        // SAFETY: this thread is the one owner, and the stack outlives its heads.
        let bottom = unsafe { stack.bottom() };
        let above = push(bottom, 0);
        takes.join().unwrap();
        if asks.join().unwrap() {
            push(above, 1);
            assert_eq!(stack.shared(), 1, "a request was lost");
        }
    });
}

fn push(head: Head<Loom>, task: u64) -> Head<Loom> {
    let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
    // SAFETY: the model's owner owns the stack; a u64 fits, and is Copy; nothing is popped, and
    // thieves leave the descriptor alone.
    unsafe { head.push(descriptor, &raw const task) }.expect("the model's stack has room")
}
