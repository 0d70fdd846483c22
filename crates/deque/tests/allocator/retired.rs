//! Retired memory. A ring that was replaced by a larger one is freed once no thief can be at it,
//! and not only with the queue; an injector reuses blocks whose tasks are taken.

#![cfg(not(miri))] // Its allocator counts, and Miri's own checks say more.

use poach_deque::{
    Biased, ChaseLev, Fifo, Full, Injector, Owner, Split, Steal, The, Thep, Thief, crossbeam,
};
use poach_memory::Machine;

use crate::{ALLOCATED, LIVE};

#[test]
fn a_ring_is_freed_when_all_that_was_in_it_is_taken() {
    // Of a queue that frees none at once.
    let queue = Thep::<u64>::with_capacity(Full, 2).unwrap();
    let thief = queue.thief();
    let one_ring = LIVE.get();
    (0..3).for_each(|task| queue.push(task));
    assert_eq!(queue.capacity(), 4);
    let two_rings = LIVE.get();
    assert!(two_rings > one_ring);
    // The task that was pushed with the larger ring is not one of those in the smaller.
    assert_eq!((thief.steal(), thief.steal()), (Steal::Success(0), Steal::Success(1)));
    queue.push(3);
    assert_eq!(LIVE.get(), two_rings, "the owner looks only when it needs a slot");
    queue.push(4);
    assert_eq!((queue.capacity(), LIVE.get()), (4, one_ring));
    // Several at once, of which none may be freed before.
    (5..100).for_each(|task| queue.push(task));
    assert_eq!(queue.capacity(), 128);
    assert_eq!(LIVE.get() - one_ring, 5 * (two_rings - one_ring));
    (2..100).for_each(|task| assert_eq!(thief.steal(), Steal::Success(task)));
    (100..300).for_each(|task| {
        queue.push(task);
        assert_eq!(thief.steal(), Steal::Success(task));
    });
    assert_eq!((queue.capacity(), LIVE.get()), (128, one_ring));
}

/// While no thief has a claim the ring that is left goes at once, however many there were before;
/// `capacity` is that of the queue.
fn keeps_one_ring<O: Owner<u64>>(make: impl Fn(usize) -> O, capacity: impl Fn(&O) -> usize) {
    let live = |tasks: u64| {
        let before = LIVE.get();
        let queue = make(2);
        let thief = queue.thief();
        (0..tasks).for_each(|task| queue.push(task));
        while thief.steal().is_success() {}
        (0..tasks).for_each(|task| queue.push(task));
        let most = capacity(&queue);
        assert!(most as u64 >= tasks && most as u64 <= 4 * tasks);
        LIVE.get() - before
    };
    assert_eq!(live(2), live(100));
}

#[test]
fn a_ring_that_no_thief_is_at_is_freed_when_it_is_left() {
    keeps_one_ring(|n| ChaseLev::<u64>::with_capacity(Full, n).unwrap(), ChaseLev::capacity);
    keeps_one_ring(|n| Split::<u64>::with_capacity(n).unwrap(), Split::capacity);
    keeps_one_ring(|n| Fifo::<u64>::with_capacity(n).unwrap(), Fifo::capacity);
    keeps_one_ring(|n| The::<u64>::with_capacity(Full, n).unwrap(), The::capacity);
    keeps_one_ring(|n| Biased::<u64>::with_capacity(Full, n).unwrap(), Biased::capacity);
}

/// How often this allocates when it is done again and again, after the first times.
fn allocates_again(act: impl Fn()) -> usize {
    (0..20).for_each(|_| act());
    let before = ALLOCATED.get();
    (0..100).for_each(|_| act());
    ALLOCATED.get() - before
}

/// The first block is there; the next is made by the push to slot 8 of a block, and not before nor
/// later.
#[test]
fn an_injector_makes_a_block_ahead_of_its_first_push() {
    let injector: Injector<u64> = Injector::new();
    let allocates = |pushes: usize| {
        let before = ALLOCATED.get();
        (0..pushes).for_each(|_| injector.push(0));
        ALLOCATED.get() - before
    };
    assert_eq!([allocates(8), allocates(1), allocates(63)], [0, 1, 0]);
}

#[test]
fn an_injector_uses_its_blocks_again() {
    fn play<const SLOTS: usize>() {
        let live = LIVE.get();
        for ahead in [0, 3, 70] {
            let injector = Injector::<u64, Machine, SLOTS>::new();
            (0..ahead).for_each(|task| injector.push(task));
            let again = allocates_again(|| {
                (0..100).for_each(|task| injector.push(task));
                (0..100).for_each(|_| assert!(injector.steal().is_success()));
            });
            assert_eq!(again, 0, "one by one, with {ahead} in it and {SLOTS} slots a block");
        }
        let injector = Injector::<u64, Machine, SLOTS>::new();
        let mine = Fifo::<u64>::with_capacity(256).unwrap();
        let again = allocates_again(|| {
            (0..100).for_each(|task| injector.push(task));
            while injector.steal_half(&mine).is_success() {}
            while mine.pop().is_some() {}
        });
        assert_eq!(again, 0, "by halves, with {SLOTS} slots a block");
        drop((injector, mine));
        assert_eq!(LIVE.get(), live, "with {SLOTS} slots a block");
    }
    play::<1>();
    play::<2>();
    play::<64>();
    let injector = crossbeam::Injector::new();
    let worker = crossbeam::Worker::new_fifo();
    let again = allocates_again(|| {
        (0..100).for_each(|task| injector.push(task));
        while injector.steal_batch(&worker).is_success() {}
        assert_eq!(std::iter::from_fn(|| worker.pop()).count(), 100);
    });
    assert_eq!(again, 0, "in batches");
}
