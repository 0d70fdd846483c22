//! What the documentation of crossbeam-deque promises, through the face that has its names.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use poach_deque::crossbeam::Steal::{Empty, Retry, Success};
use poach_deque::crossbeam::{Injector, Steal, Stealer, Worker};

fn drain<T: Send>(worker: &Worker<T>) -> Vec<T> {
    std::iter::from_fn(|| worker.pop()).collect()
}

fn filled(worker: Worker<u32>, tasks: u32) -> Worker<u32> {
    (1..=tasks).for_each(|task| worker.push(task));
    worker
}

#[test]
fn a_fifo_worker_pops_the_oldest_and_a_lifo_worker_the_youngest() {
    assert_eq!(drain(&filled(Worker::new_fifo(), 3)), [1, 2, 3]);
    assert_eq!(drain(&filled(Worker::new_lifo(), 3)), [3, 2, 1]);
}

#[test]
fn thieves_take_the_oldest_from_either() {
    for worker in [filled(Worker::new_fifo(), 3), filled(Worker::new_lifo(), 3)] {
        let thief = worker.stealer();
        assert_eq!(thief.clone().steal(), Success(1));
        assert_eq!(thief.steal(), Success(2));
        assert_eq!((worker.len(), thief.len()), (1, 1));
        assert_eq!(thief.steal(), Success(3));
        assert_eq!(thief.steal(), Empty);
        assert!(worker.is_empty() && thief.is_empty());
    }
}

#[test]
fn a_batch_that_is_larger_than_the_free_slots_makes_a_ring_grow() {
    for new in [Worker::new_fifo, Worker::new_lifo] {
        for free in 0..20 {
            let (worker, injector) = (filled(new(), 64 - free), Injector::new());
            (101..=163).for_each(|task| injector.push(task));
            assert_eq!(injector.steal_batch(&worker), Success(()));
            let taken = 63 - injector.len();
            let mut seen: Vec<_> = std::iter::from_fn(|| worker.pop()).collect();
            seen.sort_unstable();
            let all: Vec<_> = (1..=64 - free).chain(101..101 + taken as u32).collect();
            assert_eq!(seen, all, "with {free} free slots");
        }
    }
}

#[test]
fn an_injector_is_first_in_first_out() {
    let injector = Injector::default();
    (1..=3).for_each(|task| injector.push(task));
    assert_eq!(injector.len(), 3);
    assert_eq!(injector.steal(), Success(1));
    assert_eq!(injector.steal(), Success(2));
    assert_eq!(injector.steal(), Success(3));
    assert_eq!(injector.steal(), Empty);
    assert!(injector.is_empty());
}

/// A batch comes out of its new worker in the order in which the old one would have popped it.
#[test]
fn a_batch_keeps_its_order_across_flavours() {
    let flavours: [fn() -> Worker<u32>; 2] = [Worker::new_fifo, Worker::new_lifo];
    for to in flavours {
        let dest = to();
        assert_eq!(filled(Worker::new_fifo(), 8).stealer().steal_batch(&dest), Success(()));
        assert_eq!(drain(&dest), [1, 2, 3, 4]);
        assert_eq!(filled(Worker::new_lifo(), 8).stealer().steal_batch(&dest), Success(()));
        assert_eq!(drain(&dest), [4, 3, 2, 1]);

        assert_eq!(filled(Worker::new_fifo(), 8).stealer().steal_batch_and_pop(&dest), Success(1));
        assert_eq!(drain(&dest), [2, 3, 4]);
        assert_eq!(filled(Worker::new_lifo(), 8).stealer().steal_batch_and_pop(&dest), Success(4));
        assert_eq!(drain(&dest), [3, 2, 1]);

        let injector = Injector::new();
        (1..=8).for_each(|task| injector.push(task));
        assert_eq!(injector.steal_batch(&dest), Success(()));
        assert_eq!(drain(&dest), [1, 2, 3, 4]);
        assert_eq!(injector.steal_batch_and_pop(&dest), Success(5));
        assert_eq!(drain(&dest), [6]);
    }
}

#[test]
fn a_batch_ends_at_its_limit_or_at_half() {
    let flavours: [fn() -> Worker<u32>; 2] = [Worker::new_fifo, Worker::new_lifo];
    for from in flavours {
        for to in flavours {
            let (source, dest) = (filled(from(), 100), to());
            assert_eq!(source.stealer().steal_batch_with_limit(&dest, 2), Success(()));
            assert_eq!((source.len(), dest.len()), (98, 2));
            let popped = source.stealer().steal_batch_with_limit_and_pop(&dest, 3);
            assert!(popped.is_success());
            assert_eq!((source.len(), dest.len()), (95, 4));
            assert_eq!(source.stealer().steal_batch_with_limit(&dest, usize::MAX), Success(()));
            assert!(source.len() >= 95 / 2 && source.len() < 95);
            assert_eq!(source.len() + dest.len(), 99);
        }
    }
    let (injector, dest) = (Injector::new(), Worker::new_fifo());
    (0..100).for_each(|task| injector.push(task));
    assert_eq!(injector.steal_batch_with_limit(&dest, 5), Success(()));
    assert_eq!(injector.steal_batch_with_limit_and_pop(&dest, 5), Success(5));
    assert_eq!((injector.len(), dest.len()), (90, 9));
}

#[test]
fn a_batch_from_an_empty_queue_is_empty() {
    let dest = Worker::<u32>::new_lifo();
    assert_eq!(Worker::new_fifo().stealer().steal_batch(&dest), Empty);
    assert_eq!(Worker::new_lifo().stealer().steal_batch_and_pop(&dest), Empty);
    assert_eq!(Injector::new().steal_batch(&dest), Empty);
    assert_eq!(Injector::new().steal_batch_and_pop(&dest), Empty);
    assert!(dest.is_empty());
}

#[test]
fn a_batch_into_oneself_moves_nothing() {
    for worker in [filled(Worker::new_fifo(), 5), filled(Worker::new_lifo(), 5)] {
        let thief = worker.stealer();
        assert_eq!(thief.steal_batch(&worker), Success(()));
        assert_eq!(worker.len(), 5);
        let next = drain(&worker)[0];
        assert_eq!(thief.steal_batch(&worker), Empty);
        assert_eq!(thief.steal_batch_and_pop(&worker), Empty);
        worker.push(next);
        assert_eq!(thief.steal_batch_and_pop(&worker), Success(next));
    }
}

#[test]
#[should_panic(expected = "a batch of at most 0 tasks")]
fn a_batch_of_none_is_refused() {
    let worker = Worker::<u32>::new_lifo();
    let _ = worker.stealer().steal_batch_with_limit(&Worker::new_lifo(), 0);
}

#[test]
#[should_panic(expected = "a batch of at most 0 tasks")]
fn an_injectors_batch_of_none_is_refused() {
    let _ = Injector::<u32>::new().steal_batch_with_limit_and_pop(&Worker::new_lifo(), 0);
}

#[test]
fn steals_combine() {
    assert_eq!(Success(1).or_else(|| Success(2)), Success(1));
    assert_eq!(Retry.or_else(|| Success(2)), Success(2));
    assert_eq!(Retry.or_else(|| Empty), Retry::<u32>);
    assert_eq!(Empty.or_else(|| Retry), Retry::<u32>);
    assert_eq!(Empty.or_else(|| Empty), Empty::<u32>);
    let all = |steals: &[Steal<u32>]| steals.iter().copied().collect::<Steal<u32>>();
    assert_eq!(all(&[Empty, Retry, Success(3), Success(4)]), Success(3));
    assert_eq!(all(&[Empty, Retry, Empty]), Retry);
    assert_eq!(all(&[Empty, Empty]), Empty);
    assert_eq!(all(&[]), Empty);
    assert_eq!((Success(5).success(), Retry::<u32>.success()), (Some(5), None));
}

#[test]
fn handles_print_themselves() {
    let worker = Worker::<u32>::new_lifo();
    assert_eq!(format!("{worker:?}"), "Worker { .. }");
    assert_eq!(format!("{:?}", worker.stealer()), "Stealer { .. }");
    assert_eq!(format!("{:?}", Injector::<u32>::new()), "Injector { .. }");
    assert_eq!(format!("{:?}", [Success(1), Empty, Retry]), "[Success(..), Empty, Retry]");
}

/// Threads that push to an injector, take batches from it and steal from one another.
#[test]
fn all_tasks_come_through_once() {
    let tasks: usize = if cfg!(miri) { 200 } else { 100_000 };
    for flavour in [Worker::new_fifo, Worker::new_lifo] {
        let injector = Injector::new();
        let seen: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        let taken = AtomicUsize::new(0);
        let workers: Vec<Worker<usize>> = (0..3).map(|_| flavour()).collect();
        let thieves: Vec<Stealer<usize>> = workers.iter().map(Worker::stealer).collect();
        thread::scope(|scope| {
            for worker in workers {
                let (injector, seen, taken, thieves) = (&injector, &seen, &taken, &thieves);
                scope.spawn(move || {
                    while taken.load(Ordering::Relaxed) < tasks {
                        let task = worker.pop().or_else(|| {
                            injector
                                .steal_batch_and_pop(&worker)
                                .or_else(|| thieves.iter().map(Stealer::steal).collect())
                                .success()
                        });
                        match task {
                            Some(task) => {
                                seen[task].fetch_add(1, Ordering::Relaxed);
                                taken.fetch_add(1, Ordering::Relaxed);
                            }
                            None => thread::yield_now(),
                        }
                    }
                });
            }
            for half in 0..2 {
                let injector = &injector;
                scope.spawn(move || (half..tasks).step_by(2).for_each(|task| injector.push(task)));
            }
        });
        assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        assert!(injector.is_empty());
    }
}

/// What the types promise without a look at their tasks.
#[test]
fn the_bounds_are_the_original_s() {
    use std::panic::{RefUnwindSafe, UnwindSafe};
    use std::rc::Rc;

    fn unwind_safe<T: UnwindSafe + RefUnwindSafe>() {}
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    unwind_safe::<Worker<&mut u32>>();
    unwind_safe::<Stealer<&mut u32>>();
    unwind_safe::<Injector<&mut u32>>();
    send::<Worker<u32>>();
    send::<(Stealer<u32>, Injector<u32>)>();
    sync::<(Stealer<u32>, Injector<u32>)>();
    // Tasks that are not `Send` stay on their thread, and so do the handles.
    let (worker, injector) = (Worker::new_lifo(), Injector::new());
    worker.push(Rc::new(1));
    injector.push(Rc::new(2));
    assert!(injector.steal_batch(&worker).is_success());
    assert_eq!(worker.pop().as_deref(), Some(&2));
    assert_eq!(worker.stealer().steal().success().as_deref(), Some(&1));
    // Any closure that steals can be caught.
    let stealer = worker.stealer();
    assert!(std::panic::catch_unwind(move || stealer.steal().is_empty()).unwrap());
}

/// Tasks in the queue, and how many a batch takes: about half, at most 32 (an injector that pops
/// one: 33).
#[test]
fn batches_are_half_and_no_more_than_the_documented_limit() {
    for (tasks, stolen) in [(1, 1), (2, 1), (3, 2), (40, 20), (63, 32), (64, 32), (1000, 32)] {
        for from in [Worker::new_fifo, Worker::new_lifo] {
            let (source, dest) = (filled(from(), tasks), Worker::new_fifo());
            assert!(source.stealer().steal_batch(&dest).is_success());
            assert_eq!((dest.len(), source.len()), (stolen, tasks as usize - stolen));
        }
        let injector = Injector::new();
        (0..tasks).for_each(|task| injector.push(task));
        let dest = Worker::new_fifo();
        assert!(injector.steal_batch(&dest).is_success());
        assert_eq!((dest.len(), injector.len()), (stolen, tasks as usize - stolen));
    }
    let injector = Injector::new();
    (0..1000).for_each(|task| injector.push(task));
    let dest = Worker::new_lifo();
    assert_eq!(injector.steal_batch_and_pop(&dest), Success(0));
    assert_eq!(dest.len(), 32);
}

/// A batch into the queue that it comes from moves nothing: the tasks stay, in their order, of
/// either kind.
#[test]
fn a_batch_into_ones_own_queue_moves_nothing() {
    for (worker, newest_first) in [(Worker::new_fifo(), false), (Worker::new_lifo(), true)] {
        let own = worker.stealer();
        assert_eq!(
            (own.steal_batch(&worker), own.steal_batch_and_pop(&worker)),
            (Steal::Empty, Steal::Empty)
        );
        (0..20).for_each(|task| worker.push(task));
        assert_eq!(own.steal_batch(&worker), Steal::Success(()));
        assert_eq!(own.steal_batch_with_limit(&worker, 3), Steal::Success(()));
        let mut order: Vec<u32> = (0..20).collect();
        if newest_first {
            order.reverse();
        }
        let popped =
            [own.steal_batch_and_pop(&worker), own.steal_batch_with_limit_and_pop(&worker, 2)];
        assert_eq!(popped, [Steal::Success(order[0]), Steal::Success(order[1])]);
        assert!(std::iter::from_fn(|| worker.pop()).eq(order[2..].iter().copied()));
    }
}
