//! The injector: order, blocks that are used again, and pushes that are skipped.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use poach_deque::{Fifo, Injector, Steal};
use poach_memory::Machine;

const TASKS: u64 = if cfg!(miri) { 300 } else { 200_000 };

fn steal<const SLOTS: usize>(injector: &Injector<u64, Machine, SLOTS>) -> Option<u64> {
    loop {
        match injector.steal() {
            Steal::Success(task) => return Some(task),
            Steal::Empty => return None,
            Steal::Retry | Steal::Abort => {}
        }
    }
}

#[test]
fn tasks_come_out_in_order_through_blocks_of_any_length() {
    fn play<const SLOTS: usize>() {
        let injector = Injector::<u64, Machine, SLOTS>::new();
        let (mut pushed, mut stolen) = (0, 0);
        // It grows, shrinks to nothing, and grows again into memory that has been used.
        for (push, take) in [(5, 3), (40, 42), (1, 1), (200, 100), (7, 107), (0, 1)] {
            for _ in 0..push {
                injector.push(pushed);
                pushed += 1;
            }
            for _ in 0..take {
                let expected = (stolen < pushed).then_some(stolen);
                assert_eq!(steal(&injector), expected);
                stolen += u64::from(expected.is_some());
            }
            assert_eq!(injector.len() as u64, pushed - stolen);
            assert_eq!(injector.is_empty(), pushed == stolen);
        }
    }
    play::<1>();
    play::<2>();
    play::<64>();
}

#[test]
fn a_batch_is_half_and_ends_with_its_block() {
    let injector: Injector<u64> = Injector::new();
    (0..100).for_each(|task| injector.push(task));
    let mine = Fifo::<u64>::new();
    // Half of 100, then half of 50, but the block ends at 64.
    assert_eq!(injector.steal_half(&mine), Steal::Success(0));
    assert_eq!(mine.len(), 49);
    assert_eq!(injector.steal_half(&mine), Steal::Success(50));
    assert_eq!(mine.len(), 49 + 13);
    let in_order: Vec<_> = std::iter::from_fn(|| mine.pop()).collect();
    assert_eq!(in_order, (1..50).chain(51..64).collect::<Vec<_>>());
    assert_eq!(injector.len(), 36);
}

#[test]
fn what_is_left_is_dropped_even_if_one_panics() {
    struct Armed(#[expect(dead_code, reason = "counted")] Arc<()>, bool);
    impl Drop for Armed {
        fn drop(&mut self) {
            assert!(!self.1, "a destructor that panics");
        }
    }
    let alive = Arc::new(());
    let injector = Injector::<(Arc<()>, Option<u32>), Machine, 2>::new();
    (0..9).for_each(|task| injector.push((alive.clone(), Some(task))));
    drop(injector.steal());
    drop(injector);
    assert_eq!(Arc::strong_count(&alive), 1);
    let injector = Injector::<Armed, Machine, 2>::new();
    (0..7).for_each(|task| injector.push(Armed(alive.clone(), task == 3)));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(injector))).is_err());
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// Blocks of two slots, and no patience: pushes are skipped, and blocks change hands all the time.
#[test]
fn each_task_comes_out_once_whoever_pushes_and_steals() {
    fn play<const SLOTS: usize>(patience: u32, pushers: u64, thieves: usize) {
        let injector = Injector::<u64, Machine, SLOTS>::new().with_patience(patience);
        let (left, all) = (AtomicUsize::new(pushers as usize), Mutex::new(BTreeSet::new()));
        let count = AtomicU64::new(0);
        thread::scope(|scope| {
            for pusher in 0..pushers {
                let (injector, left) = (&injector, &left);
                scope.spawn(move || {
                    (0..TASKS).for_each(|task| injector.push(pusher * TASKS + task));
                    left.fetch_sub(1, Ordering::Release);
                });
            }
            for thief in 0..thieves {
                let (injector, left, all, count) = (&injector, &left, &all, &count);
                scope.spawn(move || {
                    let mine = Fifo::<u64>::new();
                    let mut taken = Vec::new();
                    loop {
                        let done = left.load(Ordering::Acquire) == 0;
                        let found = if thief == 0 {
                            steal(injector)
                        } else {
                            injector.steal_half(&mine).success()
                        };
                        taken.extend(found);
                        taken.extend(std::iter::from_fn(|| mine.pop()));
                        if found.is_none() && done && injector.is_empty() {
                            break;
                        }
                        if found.is_none() {
                            thread::yield_now();
                        }
                    }
                    // A thief sees each pusher's tasks in the order in which they were pushed.
                    for pusher in 0..pushers {
                        let of = |task: &&u64| **task / TASKS == pusher;
                        assert!(taken.iter().filter(of).is_sorted(), "thief {thief}");
                    }
                    count.fetch_add(taken.len() as u64, Ordering::Relaxed);
                    all.lock().unwrap().extend(taken);
                });
            }
        });
        assert_eq!(count.into_inner(), pushers * TASKS);
        assert_eq!(all.into_inner().unwrap().len() as u64, pushers * TASKS);
    }
    play::<2>(0, 2, 2);
    play::<64>(0, 2, 1);
    play::<64>(200, 1, 2);
}

/// A block of such tasks has 4 MiB, which are made where they are to be.
#[cfg(not(miri))] // It takes a minute for as many bytes.
#[test]
#[expect(clippy::large_stack_arrays, reason = "the task is to be that large")]
fn large_tasks_need_no_stack_for_a_block() {
    type Large = [u8; 64 << 10];
    let play = || {
        let injector = Injector::<Large>::new();
        for task in 0..65 {
            injector.push([task; 64 << 10]);
        }
        for task in 0..65 {
            let stolen = injector.steal().success().map(|large| (large[0], large[65_535]));
            assert_eq!(stolen, Some((task, task)));
        }
    };
    let stack = 32 * size_of::<Large>();
    thread::Builder::new().stack_size(stack).spawn(play).unwrap().join().unwrap();
}
