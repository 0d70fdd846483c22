//! The plain scheduler, on every queue that it admits: the same programs, the same results.

use std::panic::{AssertUnwindSafe, catch_unwind};

use poach_deque::{ChaseLev, Mutex, Private, Split, The, Thep};
use poach_memory::{Asymmetric, Machine, Unbounded};
use poach_runtime::on_queue::{Job, Queue, QueuePool, QueueWorker};

fn fib<Q: Queue>(worker: &QueueWorker<Q>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
    a + b
}

fn double_each<Q: Queue>(worker: &QueueWorker<Q>, numbers: &mut [u64]) {
    if let [number] = numbers {
        *number *= 2;
    } else {
        let (left, right) = numbers.split_at_mut(numbers.len() / 2);
        worker.join(|w| double_each(w, left), |w| double_each(w, right));
    }
}

fn panics_travel<Q: Queue>(pool: &QueuePool<Q>) {
    let text = |run: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        *payload.downcast_ref::<&str>().unwrap()
    };
    let first = || pool.run(|w| -> ((), u64) { w.join(|_| panic!("first"), |w| fib(w, 5)) });
    let second = || pool.run(|w| -> (u64, ()) { w.join(|w| fib(w, 5), |_| panic!("second")) });
    let both = || pool.run(|w| -> ((), ()) { w.join(|_| panic!("first"), |_| panic!("second")) });
    assert_eq!(text(&|| assert_eq!(first().1, 5)), "first");
    assert_eq!(text(&|| assert_eq!(second().0, 5)), "second");
    assert_eq!(text(&|| both().0), "first");
    assert_eq!(pool.run(|w| fib(w, 5)), 5, "the pool goes on");
}

fn all<Q: Queue>(make: impl Fn() -> Q) {
    let n = if cfg!(miri) { 8 } else { 17 };
    let expected = if cfg!(miri) { 21 } else { 1597 };
    for threads in [1, 2, 3, 8] {
        let pool = QueuePool::new(threads, &make).unwrap();
        for _ in 0..if cfg!(miri) { 1 } else { 10 } {
            assert_eq!(pool.run(|w| fib(w, n)), expected);
        }
        let mut numbers: Vec<u64> = (0..if cfg!(miri) { 20 } else { 3000 }).collect();
        pool.run(|w| double_each(w, &mut numbers));
        assert!(numbers.iter().zip(0..).all(|(number, at)| *number == 2 * at));
        if threads == 1 {
            assert_eq!(pool.steals().stolen, 0);
        }
        panics_travel(&pool);
    }
}

#[test]
fn on_mutex() {
    all(Mutex::<Job, Machine>::new);
}

#[test]
fn on_private() {
    all(Private::<Job, Machine>::new);
}

#[test]
fn on_split() {
    all(Split::<Job, Machine>::new);
}

#[test]
fn on_chase_lev() {
    all(ChaseLev::<Job>::new);
    all(|| ChaseLev::<Job, _>::with_policy(Asymmetric::new()));
}

#[test]
fn on_the() {
    all(The::<Job>::new);
    all(|| The::<Job, _>::with_policy(Asymmetric::new()));
}

#[test]
fn on_thep_of_unknown_bound() {
    all(|| Thep::<Job, _>::with_policy(Unbounded));
}

#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))] // Miri has C11's memory, and refuses the policies.
fn on_queues_of_bounded_machines() {
    use poach_memory::{Bounded, Delta, Resolved};
    // SAFETY: more than any processor of the table is known to hold back, as the processors that run these tests.
    let delta = || unsafe { Delta::new(128, 0) }.unwrap();
    all(|| ChaseLev::<Job, _>::with_policy(Bounded::new(delta()).unwrap()));
    all(|| The::<Job, _>::with_policy(Bounded::new(delta()).unwrap()));
    all(|| Thep::<Job, _>::with_policy(Bounded::new(delta()).unwrap()));
    all(|| ChaseLev::<Job, _>::with_policy(Resolved::new(delta()).unwrap()));
}

#[test]
fn no_threads_is_an_error() {
    let error = QueuePool::new(0, Mutex::<Job, Machine>::new).unwrap_err();
    assert!(error.to_string().contains("0 threads"), "{error}");
}
