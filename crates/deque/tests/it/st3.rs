//! What the documentation of st3 promises, through the face that has its names; each test for both
//! flavours.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use poach_deque::st3::{self, StealError};

const TASKS: usize = if cfg!(miri) { 300 } else { 100_000 };

/// What has the wanted bounds: the original's.
fn handle<T: Send + UnwindSafe + RefUnwindSafe + Debug>(_: &T) {}

fn shared<T: Sync>(_: &T) {}

macro_rules! flavours {
    ($($flavour:ident: $pops_oldest:literal),*) => {$(
        mod $flavour {
            use super::*;
            use super::st3::$flavour::{Stealer, Worker};

            const POPS_OLDEST: bool = $pops_oldest;

            fn filled(tasks: u32) -> Worker<u32> {
                let worker = Worker::new(16);
                worker.extend(0..tasks);
                worker
            }

            fn rest(worker: &Worker<u32>) -> Vec<u32> {
                std::iter::from_fn(|| worker.pop()).collect()
            }

            fn in_order(mut tasks: Vec<u32>) -> Vec<u32> {
                if !POPS_OLDEST {
                    tasks.reverse();
                }
                tasks
            }

            #[test]
            fn a_push_into_a_full_queue_gives_the_task_back() {
                for (least, capacity) in [(0, 1), (1, 1), (5, 8), (8, 8)] {
                    let worker = Worker::new(least);
                    assert_eq!((worker.capacity(), worker.spare_capacity()), (capacity, capacity));
                    (0..capacity).for_each(|task| worker.push(task).unwrap());
                    assert_eq!(worker.push(capacity), Err(capacity));
                    assert_eq!(worker.spare_capacity(), 0);
                    worker.pop();
                    assert_eq!(worker.spare_capacity(), 1);
                    assert_eq!((worker.push(7), worker.capacity()), (Ok(()), capacity));
                }
                assert!(catch_unwind(|| Worker::<u8>::new((1 << 30) + 1)).is_err());
            }

            #[test]
            fn a_steal_is_counted_and_takes_the_oldest() {
                let (from, to) = (filled(10), Worker::new(16));
                let thief = from.stealer();
                let mut told = 0;
                let count = |count: usize| {
                    told = count;
                    count / 2
                };
                assert_eq!(thief.steal(&to, count), Ok(5));
                assert_eq!(told, 10);
                assert_eq!(thief.steal_and_pop(&to, |_| 3), Ok((7, 2)));
                assert_eq!(thief.steal_and_pop(&to, |_| 99), Ok((9, 1)));
                assert_eq!(rest(&to), in_order(vec![0, 1, 2, 3, 4, 5, 6, 8]));
                assert_eq!(thief.steal(&to, |_| 1), Err(StealError::Empty));
                assert!(from.is_empty() && to.is_empty());
            }

            #[test]
            fn a_steal_takes_no_more_than_there_is_room_for() {
                let (from, to) = (filled(10), Worker::new(2));
                let thief = from.stealer();
                assert_eq!(thief.steal(&to, |_| 0), Err(StealError::Empty));
                assert_eq!(thief.steal(&to, |count| count), Ok(2));
                assert_eq!(thief.steal(&to, |count| count), Err(StealError::Empty));
                assert_eq!(thief.steal_and_pop(&to, |count| count), Ok((2, 0)));
                assert_eq!((rest(&to), rest(&from)), (in_order(vec![0, 1]), in_order((3..10).collect())));
            }

            #[test]
            fn an_iterator_is_asked_for_no_more_than_there_is_room_for() {
                let worker = Worker::new(4);
                let mut tasks = 0..9;
                worker.extend(&mut tasks);
                assert_eq!(tasks, 4..9);
                assert_eq!(rest(&worker), in_order((0..4).collect()));
            }

            /// It pushes, pops, and fills the queue: each task is in the queue or dropped, once.
            #[test]
            fn an_extend_adds_what_there_is_room_for_and_shows_it_to_thieves() {
                for before in 0..9 {
                    for asked in 0..10 {
                        let (worker, dest) = (Worker::new(8), Worker::new(8));
                        (0..before).for_each(|task| worker.push(task).unwrap());
                        let mut tasks = before..before + asked;
                        worker.extend(&mut tasks);
                        let all = (before + asked).min(8);
                        assert_eq!(tasks.start, all, "{before} and then {asked}");
                        assert_eq!(worker.spare_capacity(), 8 - all as usize);
                        if all > 0 {
                            assert_eq!(worker.stealer().steal(&dest, |count| count), Ok(all as usize));
                            assert_eq!(rest(&dest), in_order((0..all).collect()));
                        }
                        assert_eq!(rest(&worker), []);
                    }
                }
            }

            #[test]
            fn an_iterator_may_push_to_the_queue_that_it_extends() {
                for pushes_at in 0..6 {
                    let (worker, dest) = (Worker::new(16), Worker::new(16));
                    let tasks = (0..6).inspect(|task| {
                        if *task == pushes_at {
                            worker.push(100).unwrap();
                        }
                    });
                    worker.extend(tasks);
                    assert_eq!(worker.stealer().steal(&dest, |count| count), Ok(7));
                    let mut all = rest(&dest);
                    all.sort_unstable();
                    assert_eq!(all, [0, 1, 2, 3, 4, 5, 100]);
                }
                // What it has pushed takes slots.
                let worker = Worker::new(8);
                let mut tasks = (0..20).inspect(|task| {
                    if *task == 0 {
                        worker.push(100).unwrap();
                    }
                });
                worker.extend(&mut tasks);
                assert_eq!((tasks.next(), worker.spare_capacity()), (Some(7), 0));
            }

            #[test]
            fn an_extend_answers_a_thief_that_found_nothing() {
                let (worker, dest) = (Worker::new(8), Worker::new(8));
                let thief = worker.stealer();
                for _ in 0..100 {
                    worker.extend(0..4);
                    assert_eq!(rest(&worker).len(), 4);
                    assert_eq!(thief.steal(&dest, |count| count), Err(StealError::Empty));
                    worker.extend(0..4);
                    assert!(thief.steal(&dest, |count| count).is_ok());
                    rest(&dest);
                    rest(&worker);
                }
            }

            #[test]
            fn an_iterator_may_use_the_queue_that_it_extends() {
                for uses in [3, 2, 1] {
                    let (alive, worker) = (Arc::new(()), Worker::new(8));
                    let task = |number: usize| (number, Arc::clone(&alive));
                    let tasks = (0..20).map(|number| {
                        if number % uses == 0 {
                            drop(worker.push(task(100 + number)));
                        }
                        if number % 5 == 1 {
                            worker.pop();
                        }
                        task(number)
                    });
                    worker.extend(tasks);
                    let mut left: Vec<_> = std::iter::from_fn(|| worker.pop()).map(|task| task.0).collect();
                    assert_eq!(left.len(), 8);
                    left.sort_unstable();
                    left.dedup();
                    assert_eq!((left.len(), Arc::strong_count(&alive)), (8, 1));
                }
            }

            #[test]
            fn nobody_steals_while_a_drain_goes_on() {
                let (worker, to) = (filled(6), Worker::new(16));
                let thief = worker.stealer();
                let mut drain = worker.drain(|count| count - 2).unwrap();
                assert_eq!((drain.next(), drain.len()), (Some(0), 3));
                assert_eq!(thief.steal(&to, |_| 1), Err(StealError::Busy));
                assert_eq!(worker.drain(|_| 1).err(), Some(StealError::Busy));
                // The worker itself is not kept from anything.
                assert_eq!(worker.pop(), Some(if POPS_OLDEST { 4 } else { 5 }));
                worker.push(6).unwrap();
                assert_eq!(drain.by_ref().collect::<Vec<_>>(), [1, 2, 3]);
                assert_eq!(drain.next(), None);
                assert_eq!(thief.steal(&to, |_| 1), Ok(1));
                drop(drain);
                let drain = worker.drain(|_| 1).unwrap();
                drop(drain);
                assert_eq!((worker.spare_capacity(), thief.steal(&to, |_| 1)), (16, Err(StealError::Empty)));
                assert_eq!(worker.drain(|_| 1).err(), Some(StealError::Empty));
            }

            #[test]
            fn what_a_drain_has_left_is_dropped_even_if_one_panics() {
                struct Armed(#[expect(dead_code, reason = "counted")] Arc<()>, bool);
                impl Drop for Armed {
                    fn drop(&mut self) {
                        assert!(!self.1, "a destructor that panics");
                    }
                }
                let (alive, worker) = (Arc::new(()), Worker::new(8));
                worker.extend((0..6).map(|task| Armed(alive.clone(), task == 2)));
                let drain = worker.drain(|_| 4).unwrap();
                assert!(catch_unwind(AssertUnwindSafe(|| drop(drain))).is_err());
                assert_eq!(Arc::strong_count(&alive), 1 + 2, "all four of the drain are dropped");
                // Thieves may come again, and the slots are free.
                assert_eq!(worker.stealer().steal(&Worker::new(1), |_| 1), Ok(1));
                assert_eq!(worker.spare_capacity(), 7);
                drop(worker);
                assert_eq!(Arc::strong_count(&alive), 1);
            }

            #[test]
            fn a_destructor_may_use_the_queue_that_its_task_was_drained_from() {
                struct Task(Option<Rc<Worker<Task>>>, Rc<()>);
                impl Drop for Task {
                    fn drop(&mut self) {
                        let Some(worker) = self.0.take() else { return };
                        assert!(worker.push(Task(None, self.1.clone())).is_ok());
                        assert!(matches!(worker.drain(|all| all), Err(StealError::Busy)));
                        assert_eq!(worker.stealer().steal(&worker, |all| all), Err(StealError::Busy));
                        drop(worker.pop());
                    }
                }
                let (worker, alive) = (Rc::new(Worker::new(16)), Rc::new(()));
                for _ in 0..3 {
                    worker.extend((0..8).map(|_| Task(Some(worker.clone()), alive.clone())));
                    drop(worker.drain(|_| 6).unwrap());
                    assert_eq!(Rc::strong_count(&alive), 1 + 2);
                    std::iter::from_fn(|| worker.pop()).for_each(|mut task| task.0 = None);
                    assert_eq!((Rc::strong_count(&alive), worker.spare_capacity()), (1, 16));
                }
                assert_eq!(Rc::strong_count(&worker), 1);
            }

            #[test]
            fn handles_are_as_the_original_s() {
                let (worker, other) = (filled(3), filled(3));
                assert_eq!(worker.stealer(), worker.stealer().clone());
                assert_ne!(worker.stealer_ref(), other.stealer_ref());
                handle(&worker);
                handle(&worker.stealer());
                handle(&worker.drain(|_| 1).unwrap());
                shared(&worker.stealer());
                assert_eq!(
                    StealError::Busy.to_string(),
                    "another thread takes tasks from this queue: try again"
                );
            }

            #[test]
            fn each_task_comes_out_once_whoever_takes_it() {
                let seen: Vec<_> = (0..TASKS).map(|_| AtomicUsize::new(0)).collect();
                let done = AtomicBool::new(false);
                let see = |task: usize| {
                    seen[task].fetch_add(1, Ordering::Relaxed);
                };
                let worker = Worker::new(64);
                let steal = |thief: &Stealer<usize>, mine: &Worker<usize>, part: usize| {
                    if let Ok((task, _)) = thief.steal_and_pop(mine, |count| count / part) {
                        see(task);
                        std::iter::from_fn(|| mine.pop()).for_each(see);
                    }
                };
                thread::scope(|scope| {
                    for part in 1..3 {
                        let (thief, done, steal) = (worker.stealer(), &done, &steal);
                        scope.spawn(move || {
                            let mine = Worker::new(16);
                            while !done.load(Ordering::Acquire) {
                                steal(&thief, &mine, part);
                                thread::yield_now();
                            }
                        });
                    }
                    for task in 0..TASKS {
                        let mut task = task;
                        while let Err(back) = worker.push(task) {
                            task = back;
                            if let Ok(drain) = worker.drain(|count| count / 4) {
                                drain.for_each(see);
                            }
                            thread::yield_now();
                        }
                        if task % 3 == 0 {
                            worker.pop().into_iter().for_each(see);
                        }
                    }
                    std::iter::from_fn(|| worker.pop()).for_each(see);
                    done.store(true, Ordering::Release);
                });
                let wrong = seen.iter().position(|count| count.load(Ordering::Relaxed) != 1);
                assert_eq!(wrong, None, "the first task that did not come out once");
            }
        }
    )*};
}

flavours!(lifo: false, fifo: true);
