//! `join_all` and `join_array`: results in order, children and results of any size, panics of each
//! child wherever it runs, what is dropped and how often.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poach_runtime::{ThreadPool, Worker, join};
use send_wrapper::SendWrapper;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// What a call panics with.
fn payload<P: 'static>(f: impl FnOnce()) -> P {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    *payload.downcast().expect("another payload")
}

/// A value that is counted while it is alive.
struct Counted<'c>(&'c AtomicUsize, usize);

impl<'c> Counted<'c> {
    fn new(alive: &'c AtomicUsize, number: usize) -> Counted<'c> {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(alive, number)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Pools of several sizes, with numbers of children from none to more than a page.
fn each_size(test: impl Fn(&ThreadPool, usize)) {
    let counts: &[usize] =
        if cfg!(miri) { &[0, 1, 3, 66] } else { &[0, 1, 2, 3, 10, 63, 64, 65, 200] };
    for threads in if cfg!(miri) { 1..=2 } else { 1..=3 } {
        let pool = pool(threads);
        for &count in counts {
            test(&pool, count);
        }
    }
}

#[test]
fn results_come_in_order() {
    each_size(|pool, count| {
        let squares: Vec<usize> = pool.run(|mut w| w.join_all(0..count, |_, i| i * i));
        assert_eq!(squares, (0..count).map(|i| i * i).collect::<Vec<_>>());
    });
    let pool = pool(2);
    assert_eq!(pool.run(|mut w| w.join_array([], |_, (): ()| 1)), [0_i32; 0]);
    assert_eq!(pool.run(|mut w| w.join_array([5], |_, i| i + 1)), [6]);
    let letters = pool.run(|mut w| w.join_array(["a", "b", "c"], |_, s: &str| s.to_owned()));
    assert_eq!(letters, ["a", "b", "c"]);
    let many = std::array::from_fn::<usize, 100, _>(|i| i);
    assert_eq!(pool.run(|mut w| w.join_array(many, |_, i| i)), many);
}

#[test]
fn one_worker_calls_them_in_order() {
    let pool = pool(1);
    for count in [10, 200] {
        let order = pool.install(|| {
            poach_runtime::worker(|mut w| {
                let next = AtomicUsize::new(0);
                w.join_all(0..count, |_, _| next.fetch_add(1, Ordering::Relaxed))
            })
        });
        assert_eq!(order, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn a_hundred_thousand_children() {
    let count = if cfg!(miri) { 300 } else { 100_000 };
    for threads in [1, 2] {
        let sum: usize = pool(threads).run(|mut w| w.join_all(0..count, |_, i| i).iter().sum());
        assert_eq!(sum, count * (count - 1) / 2);
    }
}

#[test]
fn children_and_results_of_any_size() {
    #[repr(align(64))]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Aligned(u8);
    fn same<T: Clone + PartialEq + Send + Sync>(pool: &ThreadPool, child: &T) {
        let children = vec![child.clone(); 20];
        let results = pool.run(|mut w| w.join_all(children, |_, child| child));
        assert!(results.len() == 20 && results.iter().all(|result| result == child));
    }
    for threads in [1, 3] {
        let pool = pool(threads);
        same(&pool, &());
        same(&pool, &7_u8);
        same(&pool, &[1_u64; 5]);
        same(&pool, &[2_u64; 6]);
        same(&pool, &[3_u64; 100]);
        same(&pool, &Aligned(4));
        same(&pool, &"text".to_owned());
        same(&pool, &vec![String::from("moved"); 3]);
    }
}

#[test]
fn what_children_borrow_is_changed_where_it_is() {
    each_size(|pool, count| {
        let mut numbers = vec![1; count];
        let factor = 2;
        pool.run(|mut w| w.join_all(&mut numbers, |_, number| *number += factor));
        assert_eq!(numbers, vec![3; count]);
    });
}

fn tree(mut worker: Worker<'_>, depth: u32) -> usize {
    if depth == 0 {
        return 1;
    }
    // The forms in turn, so that each has to find the top that another has left.
    match depth % 3 {
        0 => worker.join_array([(); 4], |w, ()| tree(w, depth - 1)).iter().sum(),
        1 => worker.join_all(vec![depth - 1; 4], tree).iter().sum(),
        _ => {
            let half = |_: Worker<'_>| {
                let (a, b) = join(
                    || poach_runtime::worker(|w| tree(w, depth - 1)),
                    || poach_runtime::worker(|w| tree(w, depth - 1)),
                );
                a + b
            };
            let (a, b) = worker.join(half, half);
            a + b
        }
    }
}

#[test]
fn they_nest_with_joins_of_all_forms() {
    let depth = if cfg!(miri) { 3 } else { 7 };
    for threads in [1, 2, 4] {
        assert_eq!(pool(threads).run(|w| tree(w, depth)), 4_usize.pow(depth));
    }
}

#[test]
fn it_works_on_a_thread_outside_of_any_pool() {
    let doubled = poach_runtime::worker(|mut w| w.join_array([1, 2, 3], |_, i| 2 * i));
    assert_eq!(doubled, [2, 4, 6]);
}

/// Child `i` panics with `i`, if it is to.
fn call<'c>(
    child: Counted<'c>,
    panics: impl Fn(usize) -> bool,
    called: &AtomicUsize,
) -> Counted<'c> {
    called.fetch_add(1, Ordering::Relaxed);
    if panics(child.1) {
        panic_any(child.1);
    }
    child
}

#[test]
fn the_panic_of_the_first_child_that_panics_arrives_once_all_have_been_called() {
    each_size(|pool, count| {
        for first in (0..count).step_by(1 + count / 5) {
            for others in [false, true] {
                let (alive, called) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let panics = |i| i == first || others && i > first && i % 2 == 0;
                let got: usize = payload(|| {
                    let children: Vec<_> = (0..count).map(|i| Counted::new(&alive, i)).collect();
                    pool.run(|mut w| w.join_all(children, |_, child| call(child, panics, &called)));
                });
                assert_eq!(got, first, "of {count}");
                assert_eq!(called.into_inner(), count);
                assert_eq!(alive.into_inner(), 0, "each child and result is dropped once");
            }
        }
    });
}

#[test]
fn children_and_results_without_size_are_dropped_once_each() {
    static ALIVE: AtomicUsize = AtomicUsize::new(0);
    struct Empty;
    impl Drop for Empty {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    each_size(|pool, count| {
        ALIVE.fetch_add(count, Ordering::Relaxed);
        let children: Vec<Empty> = std::iter::repeat_with(|| Empty).take(count).collect();
        let results = pool.run(|mut w| w.join_all(children, |_, child| child));
        assert_eq!((results.len(), ALIVE.load(Ordering::Relaxed)), (count, count));
        let calls = AtomicUsize::new(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|mut w| {
                w.join_all(results, |_, child| {
                    assert!(calls.fetch_add(1, Ordering::Relaxed) != count / 2);
                    child
                })
            })
        }));
        assert_eq!(panicked.is_err(), count > 0);
        drop(panicked);
        assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
    });
}

/// Calls of which the first waits, for a while, until others have stolen all children but the
/// first, which they do from the last on.
fn with_stolen<R: Send>(
    pool: &ThreadPool,
    count: usize,
    child: impl Fn(usize) -> R + Sync,
) -> Vec<(bool, R)> {
    pool.run(|mut w| {
        let begun = AtomicUsize::new(0);
        let this = thread::current().id();
        w.join_all(0..count, |_, i| {
            if i == 0 {
                let patience = Instant::now();
                while begun.load(Ordering::Acquire) < count - 1
                    && patience.elapsed() < Duration::from_secs(20)
                {
                    // So that the request of a thief is met.
                    join(|| (), || ());
                    thread::yield_now();
                }
            }
            begun.fetch_add(1, Ordering::Release);
            (thread::current().id() != this, child(i))
        })
    })
}

#[test]
fn thieves_take_the_last_children_first_and_their_results_come_back() {
    let pool = pool(3);
    let results = with_stolen(&pool, 20, |i| vec![i; 10]);
    assert!(results.iter().map(|(_, result)| result[0]).eq(0..20));
    assert!(results[1..].iter().all(|(stolen, _)| *stolen), "all but the first were stolen");
}

#[test]
fn the_panics_of_stolen_children_arrive() {
    let pool = pool(3);
    for first in [1, 5, 19] {
        let alive = AtomicUsize::new(0);
        let got: usize = payload(|| {
            with_stolen(&pool, 20, |i| {
                let result = Counted::new(&alive, i);
                if i >= first {
                    panic_any(i);
                }
                result
            });
        });
        assert_eq!(got, first);
        assert_eq!(alive.into_inner(), 0);
    }
}

#[test]
fn a_panic_of_the_first_child_waits_for_stolen_ones() {
    let pool = pool(2);
    let alive = AtomicUsize::new(0);
    let got: usize = payload(|| {
        with_stolen(&pool, 20, |i| {
            if i == 0 {
                panic_any(i);
            }
            Counted::new(&alive, i)
        });
    });
    assert_eq!((got, alive.into_inner()), (0, 0));
}

#[test]
fn an_iterator_that_panics_does_so_before_any_call() {
    let called = AtomicUsize::new(0);
    let got: &str = payload(|| {
        pool(1).run(|mut w| {
            let children = (0..10).map(|i| if i == 5 { panic_any("the iterator") } else { i });
            w.join_all(children, |_, _| called.fetch_add(1, Ordering::Relaxed))
        });
    });
    assert_eq!((got, called.into_inner()), ("the iterator", 0));
}

/// How deep a full stack is met, and that all is as it was afterwards.
#[test]
fn a_full_task_stack_panics_and_drops_what_it_cannot_push() {
    fn deep(mut worker: Worker<'_>, alive: &AtomicUsize) {
        let children = std::array::from_fn::<_, 7, _>(|i| Counted::new(alive, i));
        worker.join_array(children, |w, child| {
            if child.1 == 0 {
                deep(w, alive);
            }
        });
    }
    for threads in [1, 2] {
        let pool = ThreadPool::builder().num_threads(threads).task_stack(100).build().unwrap();
        let alive = AtomicUsize::new(0);
        let text: String = payload(|| pool.run(|w| deep(w, &alive)));
        assert!(text.contains("the task stack is full"), "{text}");
        assert_eq!(alive.into_inner(), 0);
        assert_eq!(pool.run(|mut w| w.join_array([1, 2], |_, i| i)), [1, 2]);
    }
}

#[test]
fn a_token_smuggled_past_the_borrow_checker_is_caught() {
    let alive = AtomicUsize::new(0);
    let text: String = payload(|| {
        pool(2).run(|outer| {
            let outer = SendWrapper::new(outer);
            join(
                || {
                    let children = [0, 1].map(|i| Counted::new(&alive, i));
                    outer.take().join_array(children, |_, child| child.1)
                },
                || (),
            );
        });
    });
    assert!(text.contains("below the top"), "{text}");
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    // More children than are pushed at a time.
    let text: String = payload(|| {
        pool(2).run(|outer| {
            let outer = SendWrapper::new(outer);
            join(
                || {
                    let children: Vec<_> = (0..100).map(|i| Counted::new(&alive, i)).collect();
                    outer.take().join_all(children, |_, child| child.1)
                },
                || (),
            );
        });
    });
    assert!(text.contains("below the top"), "{text}");
    assert_eq!(alive.into_inner(), 0);
}
