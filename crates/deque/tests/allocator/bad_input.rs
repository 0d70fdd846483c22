//! What the queues answer to what they cannot do.

use std::num::NonZeroU64;

use poach_deque::{
    AsymmetricCl, CapacityError, ChaseLev, Fifo, IdempotentDeque, IdempotentFifo, IdempotentLifo,
    Injector, Multiplicity, Mutex, OutOfMemory, Owner, PrivateDeque, Split, Steal, The, Thep,
};
use poach_memory::delta::DeltaError;
use poach_memory::order::Refused;
use poach_memory::{Asymmetric, Bounded, Delta, Full, Loom, Machine, Resolved};

use crate::LARGEST;

/// The largest block for a queue that is to grow until it cannot, and more tasks than fit into it.
/// (An interpreter has less of both.)
const BLOCK: usize = if cfg!(miri) { 2048 } else { 8192 };
const TASKS: u64 = if cfg!(miri) { 500 } else { 10_000 };

fn short_of_memory<R>(largest: usize, body: impl FnOnce() -> R) -> R {
    LARGEST.set(largest);
    let result = body();
    LARGEST.set(usize::MAX);
    result
}

fn refusals<Q>(with_capacity: impl Fn(usize) -> Result<Q, CapacityError>) {
    let refusal = |capacity| with_capacity(capacity).err();
    assert_eq!(refusal(0), Some(CapacityError::Zero));
    assert_eq!(refusal(3), Some(CapacityError::NotPowerOfTwo(3)));
    assert_eq!(refusal(usize::MAX), Some(CapacityError::NotPowerOfTwo(usize::MAX)));
    assert_eq!(refusal(1 << 31), Some(CapacityError::TooLarge(1 << 31)));
    let scarce = short_of_memory(4096, || refusal(1 << 20));
    assert_eq!(scarce, Some(CapacityError::OutOfMemory(1 << 20)));
    assert_eq!(refusal(1), None);
    assert_eq!(refusal(64), None);
}

#[test]
fn capacities_that_cannot_be_are_refused() {
    refusals(|capacity| ChaseLev::<u64, _>::with_capacity(Full, capacity));
    refusals(|capacity| AsymmetricCl::<u64>::with_capacity(Asymmetric::new(), capacity));
    refusals(|capacity| The::<u64, _>::with_capacity(Full, capacity));
    refusals(|capacity| Thep::<u64, _>::with_capacity(Full, capacity));
    refusals(Split::<u64>::with_capacity);
    refusals(Fifo::<u64>::with_capacity);
    refusals(Injector::<u64>::with_capacity);
    refusals(IdempotentLifo::<u64>::with_capacity);
    refusals(IdempotentFifo::<u64>::with_capacity);
    refusals(IdempotentDeque::<u64>::with_capacity);
    refusals(Multiplicity::<u64>::with_capacity);
}

#[test]
fn a_refusal_says_what_to_do() {
    let says = |error: CapacityError| error.to_string();
    assert!(says(CapacityError::Zero).contains("at least 1"));
    assert!(says(CapacityError::NotPowerOfTwo(100)).contains("ask for 128"));
    assert!(says(CapacityError::TooLarge(1 << 40)).contains("at most 1073741824"));
    assert!(says(CapacityError::OutOfMemory(8)).contains("ask for fewer"));
    assert!(OutOfMemory(1).to_string().contains("is returned"));
}

/// A push that finds no memory gives the task back; the tasks are all there, and it goes on when
/// there is memory again.
fn growth_fails_and_goes_on<O: Owner<Box<u64>>>(queue: &O) {
    let boxes: Vec<Box<u64>> = (0..TASKS).map(Box::new).collect();
    let mut boxes = boxes.into_iter();
    let (pushed, refused) = short_of_memory(BLOCK, || {
        let mut pushed = 0;
        loop {
            let task = boxes.next().expect("so many boxes do not fit the block");
            match queue.try_push(task) {
                Ok(()) => pushed += 1,
                Err(OutOfMemory(task)) => return (pushed, task),
            }
        }
    });
    assert_eq!(*refused, pushed);
    assert_eq!(queue.len() as u64, pushed);
    queue.push(refused);
    for task in (0..=pushed).rev() {
        assert_eq!(queue.pop().as_deref(), Some(&task));
    }
    assert_eq!(queue.pop(), None);
}

#[test]
fn out_of_memory_on_growth_gives_the_task_back() {
    growth_fails_and_goes_on(&ChaseLev::new());
    growth_fails_and_goes_on(&The::new());
    growth_fails_and_goes_on(&Thep::new());
    growth_fails_and_goes_on(&Split::<_, Machine>::new());
    growth_fails_and_goes_on(&Mutex::<_, Machine>::new());
    growth_fails_and_goes_on(&PrivateDeque::<_, Machine>::new());
}

#[test]
fn out_of_memory_of_an_injector_gives_the_task_back() {
    let injector: Injector<u64> = Injector::new();
    let full = short_of_memory(BLOCK, || (0..TASKS).find(|&task| injector.try_push(task).is_err()));
    assert_eq!(injector.len() as u64, full.expect("so many tasks do not fit the block"));
    assert_eq!(injector.steal(), Steal::Success(0));
}

/// Their tasks come out in different orders, so they are counted.
#[test]
fn out_of_memory_of_a_queue_of_words_gives_the_task_back() {
    fn goes_on<O: Owner<u64>>(queue: &O) {
        let push = |task: &u64| queue.try_push(*task).is_err();
        let full = short_of_memory(BLOCK, || (0..TASKS).find(push));
        let full = full.expect("so many tasks do not fit the block");
        assert_eq!(queue.len() as u64, full);
        queue.push(full);
        let mut all: Vec<u64> = std::iter::from_fn(|| queue.pop()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..=full).collect::<Vec<_>>());
    }
    goes_on(&IdempotentLifo::<_, Machine>::new());
    goes_on(&IdempotentFifo::<_, Machine>::new());
    goes_on(&IdempotentDeque::<_, Machine>::new());
    goes_on(&Multiplicity::<_, Machine>::new());
    goes_on(&Fifo::<_, Machine>::new());
}

/// The double-ended idempotent queue has a most, and says so by the same error.
#[cfg(not(miri))] // for which two million tasks take too long, and there is nothing to make fewer
#[test]
fn the_idempotent_deque_is_full_at_its_most() {
    let queue: IdempotentDeque<u32> = IdempotentDeque::with_capacity(1 << 21).unwrap();
    (0..1 << 21).for_each(|task| queue.push(task));
    assert_eq!(queue.try_push(7), Err(OutOfMemory(7)));
    assert_eq!(queue.pop(), Some((1 << 21) - 1));
    assert_eq!(queue.try_push(7), Ok(()));
    assert_eq!(queue.thief().steal(), Steal::Success(0));
}

#[test]
fn a_bounded_policy_is_refused_where_nothing_is_bounded() {
    // SAFETY: no queue is given it.
    let delta = unsafe { Delta::exactly(NonZeroU64::MIN) };
    assert_eq!(Bounded::<Loom>::new(delta).err(), Some(Refused::NotTotalStoreOrder));
    assert_eq!(Resolved::<Loom>::new(delta).err(), Some(Refused::NotTotalStoreOrder));
    assert!(Refused::NotTotalStoreOrder.to_string().contains("use `Asymmetric` or `Full`"));
    let here = Bounded::<Machine>::new(delta).err();
    let bounded = cfg!(all(target_arch = "x86_64", not(miri)));
    assert_eq!(here, (!bounded).then_some(Refused::NotTotalStoreOrder));
}

#[test]
fn a_store_buffer_of_no_entries_is_refused() {
    // SAFETY: there is none.
    assert_eq!(unsafe { Delta::new(0, 1) }, Err(DeltaError::NoCapacity));
}

/// Within delta a thief refuses, and leaves the task to the owner; the owner's end makes it
/// certain.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))] // Miri has C11's memory, and refuses the policy.
fn a_thief_within_delta_aborts_until_the_owner_is_gone() {
    use poach_deque::Thief as _;

    fn aborts<O: Owner<u32>>(queue: O) {
        let thief = queue.thief();
        assert_eq!(thief.steal(), Steal::Empty);
        queue.push(1);
        assert_eq!(thief.steal(), Steal::Abort);
        assert_eq!(thief.len(), 1);
        drop(queue);
        assert_eq!(thief.steal(), Steal::Success(1));
    }
    // SAFETY: owner and thief are one thread, whose loads see its own stores.
    let delta = || unsafe { Delta::new(56, 0) }.unwrap();
    let policy = || Bounded::new(delta()).unwrap();
    aborts(ChaseLev::with_policy(policy()));
    aborts(The::with_policy(policy()));
}

/// A private deque takes its tasks with it.
#[test]
fn a_thief_of_a_private_deque_finds_nothing_after_its_owner() {
    let queue: PrivateDeque<u32> = PrivateDeque::new();
    let thief = queue.thief();
    queue.push(1);
    drop(queue);
    assert_eq!(thief.steal(), Steal::Empty);
}

/// Nor does it wait for ever for an owner that is the thief itself.
#[test]
fn a_steal_from_ones_own_private_deque_gives_up() {
    let queue: PrivateDeque<u32> = PrivateDeque::new();
    queue.push(1);
    assert_eq!(queue.thief().steal_half(&queue), Steal::Retry);
    assert_eq!((queue.pop(), queue.pop()), (Some(1), None));
}
