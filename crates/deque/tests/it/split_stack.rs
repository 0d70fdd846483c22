//! The direct task stack, one thread at a time: order, limits, requests, and what is left when
//! thieves have been there.

use poach_deque::split::{
    Claim, Head, MAX_SLOTS, Popped, PushError, Pushed, Slot, Stack, StackError, Status,
};
use poach_memory::{Machine, Ordering, membarrier};

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

fn push(head: Head<Machine>, task: u64) -> Result<Head<Machine>, PushError> {
    // SAFETY: one thread, pops in reverse order, u64 is Copy.
    unsafe { head.push(descriptor(), &raw const task) }
}

fn pop(head: Head<Machine>) -> Popped {
    // SAFETY: one thread, pops in reverse order.
    unsafe { head.pop() }
}

fn payload(head: Head<Machine>) -> u64 {
    // SAFETY: one thread, for a slot it has pushed to.
    let slot = unsafe { head.slot() };
    // SAFETY: the slot holds a u64 that is ours.
    unsafe { slot.take() }
}

fn bottom(stack: &Stack<Machine>) -> Head<Machine> {
    // SAFETY: each test is one thread and keeps the stack.
    unsafe { stack.bottom() }
}

/// A thief that steals, runs and finishes one task.
fn steal_and_finish(stack: &Stack<Machine>) -> u64 {
    let stolen = stack.steal().expect("there is a shared task");
    // SAFETY: claimed.
    let task = unsafe { stolen.slot().take::<u64>() };
    // SAFETY: ours until DONE.
    unsafe { stolen.slot().put(task * 10) };
    stolen.slot().status().fetch_or(Status::DONE, Ordering::SeqCst);
    task
}

#[test]
fn pops_come_in_reverse_and_nothing_is_shared_unasked() {
    let stack = Stack::<Machine>::new(100, ()).unwrap();
    let mut heads = vec![bottom(&stack)];
    for task in 0..100 {
        heads.push(push(heads[task as usize], task).unwrap());
    }
    assert_eq!(stack.shared(), 0);
    for task in (0..100).rev() {
        assert_eq!(pop(heads[task as usize]), Popped::Own);
        assert_eq!(payload(heads[task as usize]), task);
    }
}

#[test]
fn a_full_stack_says_so_and_stays_as_it_was() {
    for slots in [1, 63, 64, 65, 200] {
        let stack = Stack::<Machine>::new(slots, ()).unwrap();
        let mut heads = vec![bottom(&stack)];
        for task in 0..slots {
            heads.push(push(heads[task], task as u64).unwrap());
        }
        let error = push(heads[slots], 7).err();
        assert_eq!(error, Some(PushError::Full { slots }));
        assert_eq!(push(heads[slots], 7).err(), Some(PushError::Full { slots }));
        for task in (0..slots).rev() {
            assert_eq!(pop(heads[task]), Popped::Own);
            assert_eq!(payload(heads[task]), task as u64);
        }
    }
}

#[test]
fn a_stale_head_is_refused() {
    let stack = Stack::<Machine>::new(8, ()).unwrap();
    let head = bottom(&stack);
    let above = push(head, 1).unwrap();
    assert_eq!(push(head, 2).err(), Some(PushError::Occupied));
    assert!(push(above, 2).is_ok());
}

#[test]
fn capacities_out_of_range_are_refused() {
    assert_eq!(Stack::<Machine>::new(0, ()).err(), Some(StackError::Capacity(0)));
    for large in [MAX_SLOTS + 1, usize::MAX] {
        assert_eq!(Stack::<Machine>::new(large, ()).err(), Some(StackError::Capacity(large)));
    }
    assert_eq!(Stack::<Machine>::new(MAX_SLOTS, ()).unwrap().capacity(), MAX_SLOTS);
    assert_eq!(MAX_SLOTS, if usize::BITS >= 64 { 1_572_864 } else { 24_576 });
}

#[test]
fn a_slot_has_room_for_48_bytes_at_a_multiple_of_16() {
    #[repr(align(16))]
    struct Aligned<const A: usize>([u8; A]);
    #[repr(align(32))]
    struct MoreAligned;
    assert_eq!((size_of::<Aligned<48>>(), size_of::<Aligned<49>>()), (48, 64));
    assert!(Slot::<Machine>::fits::<Aligned<48>>() && !Slot::<Machine>::fits::<Aligned<49>>());
    assert!(!Slot::<Machine>::fits::<MoreAligned>());
}

#[test]
fn a_request_is_met_at_the_next_push() {
    let stack = Stack::<Machine>::new(8, ()).unwrap();
    let head = bottom(&stack);
    assert_eq!(stack.steal().err(), Some(Claim::Empty));
    let above = push(head, 5).unwrap();
    assert_eq!(stack.shared(), 1);
    assert_eq!(steal_and_finish(&stack), 5);
    assert_eq!(pop(head), Popped::Stolen);
    assert_eq!(payload(head), 50);
    // SAFETY: stolen, done, taken, nothing above.
    unsafe { head.retire() };
    // The slot serves again, and the thief that asked once is not given more.
    let again = push(head, 6).unwrap();
    assert_eq!(again.depth(), above.depth());
    assert_eq!(stack.shared(), 0);
    assert_eq!(pop(head), Popped::Own);
    assert_eq!(stack.counts(), (1, 0));
    // The next task that is stolen from it is not done before its thief says so.
    let above = push(head, 7).unwrap();
    // SAFETY: one thread, and the topmost head.
    assert!(unsafe { above.share() });
    let stolen = stack.steal().unwrap();
    assert_eq!(stolen.slot().status().load(Ordering::SeqCst), 0);
}

#[test]
fn a_request_is_met_at_the_next_pop_with_half_of_what_is_private() {
    let stack = Stack::<Machine>::new(16, ()).unwrap();
    let mut heads = vec![bottom(&stack)];
    for task in 0..9 {
        heads.push(push(heads[task as usize], task).unwrap());
    }
    stack.request();
    assert_eq!(pop(heads[8]), Popped::Own);
    assert_eq!(stack.shared(), 4);
    // The owner comes down to the split and takes shared tasks back, half at a time.
    for task in (4..8).rev() {
        assert_eq!(pop(heads[task]), Popped::Own);
    }
    assert_eq!(stack.shared(), 4);
    assert_eq!(pop(heads[3]), Popped::Own);
    assert_eq!(stack.shared(), 2);
    assert_eq!(stack.counts(), (1, 1));
}

#[test]
fn an_owner_shares_all_and_takes_back_what_nobody_took() {
    let stack = Stack::<Machine>::new(10, ()).unwrap();
    // SAFETY: one thread, and the topmost head.
    let share = |top: Head<Machine>| unsafe { top.share() };
    let zero = bottom(&stack);
    assert!(!share(zero));
    let one = push(zero, 1).unwrap();
    let two = push(one, 2).unwrap();
    let three = push(two, 3).unwrap();
    assert!(share(three) && !share(three));
    assert_eq!(stack.shared(), 3);
    assert_eq!(steal_and_finish(&stack), 1);
    assert_eq!((pop(two), payload(two)), (Popped::Own, 3));
    assert_eq!((pop(one), payload(one)), (Popped::Own, 2));
    assert_eq!((pop(zero), payload(zero)), (Popped::Stolen, 10));
    // SAFETY: stolen, finished, and nothing above it.
    unsafe { zero.retire() };
    // A request of before is up still.
    stack.request();
    assert!(!share(zero));
    push(zero, 4).unwrap();
    assert_eq!(stack.shared(), 1);
    assert_eq!((pop(zero), payload(zero)), (Popped::Own, 4));
}

#[test]
fn a_request_with_nothing_to_share_waits_for_a_push() {
    let stack = Stack::<Machine>::new(16, ()).unwrap();
    let head = bottom(&stack);
    let above = push(head, 1).unwrap();
    stack.request();
    // The only task goes back to the owner, so there is nothing left.
    assert_eq!(pop(head), Popped::Own);
    assert_eq!(stack.shared(), 0);
    let _ = above;
    push(head, 2).unwrap();
    assert_eq!(stack.shared(), 1);
}

/// Pushes so far that [`Head::push_at_limit`] would have to follow; the head of that task.
fn push_to_limit(mut head: Head<Machine>) -> Head<Machine> {
    let task = 7_u64;
    loop {
        // SAFETY: one thread; the callers pop nothing, and u64 is Copy.
        match unsafe { head.push_below_limit(descriptor(), &raw const task) } {
            Pushed::Above(above) => head = above,
            Pushed::AtLimit => return head,
            Pushed::Occupied => panic!("the topmost head's slot is free"),
        }
    }
}

/// A thief looks between the two halves of a push.
#[test]
fn a_thief_sees_the_task_of_a_push_under_way_but_none_that_will_be_refused() {
    // An owner that fences knows it from the beginning then.
    let _ = membarrier::register();
    let steal_all = |stack: &Stack<Machine>| while stack.steal().is_ok() {};
    // At the last slot that is ready.
    let stack = Stack::<Machine>::new(200, ()).unwrap();
    let last = push_to_limit(bottom(&stack));
    assert!(last.depth() > 0 && last.depth() < 199);
    // SAFETY: one thread, and what is below is pushed.
    assert!(unsafe { last.share() });
    steal_all(&stack);
    assert!(stack.has_private_tasks());
    // SAFETY: it was pushed so far.
    assert!(unsafe { last.push_at_limit() }.is_ok());
    // In the slot beyond the last one.
    let stack = Stack::<Machine>::new(1, ()).unwrap();
    let one = push(bottom(&stack), 1).unwrap();
    // SAFETY: one thread, and the topmost head.
    assert!(unsafe { one.share() });
    steal_all(&stack);
    let spare = push_to_limit(one);
    assert_eq!((spare.depth(), stack.has_private_tasks()), (1, false));
    // SAFETY: it was pushed so far.
    assert_eq!(unsafe { spare.push_at_limit() }.err(), Some(PushError::Full { slots: 1 }));
}

#[test]
fn heads_are_found_again_from_any_guess() {
    let stack = Stack::<Machine>::new(300, ()).unwrap();
    let mut heads = vec![bottom(&stack)];
    for task in 0..300 {
        heads.push(push(heads[task as usize], task).unwrap());
    }
    for depth in (0..300).rev() {
        assert_eq!(pop(heads[depth]), Popped::Own);
        for guess in [0, 1, depth / 2, depth.saturating_sub(1), depth, (depth + 3).min(299), 299] {
            // SAFETY: one thread.
            let found = unsafe { heads[guess].locate() };
            assert_eq!(found.depth(), depth, "from a guess of {guess}");
        }
    }
}

/// Where one lay another is asked for; and where that is taken, elsewhere.
#[test]
fn stacks_of_all_sizes_come_and_go_in_any_order() {
    let make = |round: usize| {
        let stack = Stack::<Machine>::new(1000 << (round % 8), ()).unwrap();
        let mut head = bottom(&stack);
        for task in 0..200 {
            head = push(head, task + round as u64).unwrap();
        }
        (stack, round as u64)
    };
    let mut stacks: Vec<_> = (0..6).map(make).collect();
    for round in 6..if cfg!(miri) { 10 } else { 200 } {
        drop(stacks.swap_remove(round * 7 % 6));
        if round % 3 == 0 {
            drop(stacks.remove(0));
            stacks.push(make(round));
        }
        stacks.push(make(round));
        for (stack, first) in &stacks {
            assert_eq!(payload(bottom(stack)), *first);
        }
    }
}
