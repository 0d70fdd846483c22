//! `join`, both forms: results, nesting, large closures and results, panics in either half.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use poach_runtime::{ThreadPool, Worker, join};
use send_wrapper::SendWrapper;

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

fn message(payload: &(dyn std::any::Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("another payload")
}

fn fib(mut worker: Worker<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
    a + b
}

fn plain_fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| plain_fib(n - 1), || plain_fib(n - 2));
    a + b
}

/// The two forms in turn, so that each has to find the top the other has left.
fn mixed_fib(mut worker: Worker<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = if n % 3 == 0 {
        worker.join(|_| poach_runtime::worker(|w| mixed_fib(w, n - 1)), |_| plain_fib(n - 2))
    } else {
        worker.join(|w| mixed_fib(w, n - 1), |w| mixed_fib(w, n - 2))
    };
    a + b
}

/// An interpreter does less.
const SMALL: bool = cfg!(miri);

#[test]
fn both_halves_come_back() {
    let (n, result) = if SMALL { (8, 21) } else { (18, 2584) };
    for threads in [1, 2, 3, 8] {
        let pool = pool(threads);
        assert_eq!(pool.run(|w| fib(w, n)), result);
        assert_eq!(pool.install(|| plain_fib(n)), result);
        assert_eq!(pool.run(|w| mixed_fib(w, n)), result);
    }
}

#[test]
fn a_token_join_at_the_same_level_again_and_again() {
    let sum = pool(2).run(|mut w| {
        (0..100).map(|i| w.join(|_| i, |_| i)).map(|(a, b): (u64, u64)| a + b).sum::<u64>()
    });
    assert_eq!(sum, 9_900);
}

/// A half that waits to be stolen, so that the result comes back through the slot.
fn stolen<R: Send>(pool: &ThreadPool, half: impl Fn() -> R + Send + Sync) -> R {
    pool.run(|mut w| {
        let home = thread::current().id();
        loop {
            let taken = AtomicUsize::new(0);
            let ((), (elsewhere, result)) = w.join(
                |_| {
                    // Until a thief has the other half, or long enough to try again.
                    for _ in 0..2000 {
                        if taken.load(Ordering::Acquire) != 0 {
                            break;
                        }
                        thread::sleep(Duration::from_micros(50));
                    }
                },
                |_| {
                    taken.store(1, Ordering::Release);
                    (thread::current().id() != home, half())
                },
            );
            if elsewhere {
                return result;
            }
        }
    })
}

#[test]
fn results_of_any_size_come_back_from_a_thief() {
    let pool = pool(2);
    assert_eq!(stolen(&pool, || ()), ());
    assert_eq!(stolen(&pool, || 7_u8), 7);
    assert_eq!(stolen(&pool, || [1_u64; 5]), [1; 5]);
    assert_eq!(stolen(&pool, || [2_u64; 6]), [2; 6]);
    assert_eq!(stolen(&pool, || [3_u64; 100]), [3; 100]);
    assert_eq!(stolen(&pool, || vec![String::from("moved"); 3]), vec!["moved"; 3]);
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Aligned(u64);

#[test]
fn closures_of_any_size_reach_a_thief() {
    let pool = pool(2);
    let large = [5_u64; 40];
    assert_eq!(stolen(&pool, move || large.iter().sum::<u64>()), 200);
    let aligned = Aligned(9);
    assert_eq!(
        stolen(&pool, move || {
            let here = aligned;
            assert_eq!((&raw const here).addr() % 64, 0);
            here.0
        }),
        9
    );
}

#[test]
fn a_panic_in_the_first_half_arrives_after_the_second_has_ended() {
    for threads in [1, 2] {
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool(threads).run(|mut w| {
                w.join(
                    |_| panic!("first"),
                    |_| {
                        thread::sleep(Duration::from_millis(5));
                        ended.fetch_add(1, Ordering::SeqCst);
                    },
                );
            });
        }));
        assert_eq!(message(&*result.unwrap_err()), "first");
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_panic_in_the_second_half_arrives() {
    for threads in [1, 2] {
        let result = catch_unwind(|| {
            pool(threads).run(|mut w| w.join(|_| (), |_| panic!("second")).0);
        });
        assert_eq!(message(&*result.unwrap_err()), "second");
    }
    let pool = pool(2);
    let result = catch_unwind(AssertUnwindSafe(|| stolen(&pool, || panic!("stolen"))));
    assert_eq!(message(&*result.unwrap_err()), "stolen");
    // The pool is none the worse.
    assert_eq!(pool.run(|w| fib(w, 9)), 34);
}

#[test]
fn of_two_panics_the_first_halfs_arrives() {
    let result = catch_unwind(|| {
        pool(2).run(|mut w| w.join(|_| panic!("first"), |_| panic!("second")));
    });
    assert_eq!(message(&*result.unwrap_err()), "first");
}

#[test]
fn a_deep_panic_unwinds_every_join_above_it() {
    fn down(mut worker: Worker<'_>, depth: u32, ended: &AtomicUsize) {
        assert!(depth > 0, "bottom");
        worker.join(
            |w| down(w, depth - 1, ended),
            |_| {
                ended.fetch_add(1, Ordering::SeqCst);
            },
        );
    }
    for threads in [1, 3] {
        let pool = pool(threads);
        let ended = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| pool.run(|w| down(w, 20, &ended))));
        assert_eq!(message(&*result.unwrap_err()), "bottom");
        assert_eq!(ended.load(Ordering::SeqCst), 20);
        assert_eq!(pool.run(|w| fib(w, 9)), 34);
    }
}

/// Counts its drops.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn captures_and_results_are_dropped_once() {
    let drops = AtomicUsize::new(0);
    let pool = pool(2);
    for _ in 0..if SMALL { 5 } else { 200 } {
        let (first, second) = (Counted(&drops), Counted(&drops));
        let (a, b) = pool.run(|mut w| w.join(move |_| first, move |_| second));
        drop((a, b));
    }
    assert_eq!(drops.load(Ordering::SeqCst), if SMALL { 10 } else { 400 });
    drops.store(0, Ordering::SeqCst);
    for _ in 0..5 {
        let second = Counted(&drops);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(|mut w| w.join(|_| panic!("first"), move |_| drop(second)));
        }));
        assert!(result.is_err());
    }
    assert_eq!(drops.load(Ordering::SeqCst), 5);
}

#[test]
fn a_full_task_stack_panics_and_says_why() {
    fn down(mut worker: Worker<'_>, depth: u32) -> u32 {
        if depth == 0 { 0 } else { 1 + worker.join(|w| down(w, depth - 1), |_| ()).0 }
    }
    let pool = ThreadPool::builder().num_threads(2).task_stack(100).build().unwrap();
    assert_eq!(pool.run(|w| down(w, 100)), 100);
    let drops = AtomicUsize::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.run(|mut w| {
            let counted = Counted(&drops);
            w.join(|w| down(w, 100), move |_| drop(counted))
        })
    }));
    let payload = result.unwrap_err();
    let text = payload.downcast_ref::<String>().expect("a formatted message");
    assert!(text.contains("task stack is full: 100 forks"), "{text}");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(pool.run(|w| down(w, 100)), 100);
}

/// Calls `f` with a second token for the level at which this worker stands, in a wrapper that says
/// that it may cross threads, and checks the thread when it is used.
fn with_twin<R: Send>(f: impl FnOnce(SendWrapper<Worker<'_>>) -> R) -> R {
    let f = SendWrapper::new(f);
    poach_runtime::worker(move |w| f.take()(SendWrapper::new(w)))
}

/// So are those of the forks below it.
#[test]
fn what_the_half_captures_that_a_full_stack_refuses_is_dropped() {
    fn deep<const WORDS: usize>(mut worker: Worker<'_>, kept: &Arc<()>) {
        let (mine, large) = (Arc::clone(kept), [0_u64; WORDS]);
        let inner = Arc::clone(kept);
        worker.join(move |w| deep::<WORDS>(w, &inner), move |_| drop((mine, large)));
    }
    let pool = ThreadPool::builder().num_threads(1).task_stack(20).build().unwrap();
    for deep in [deep::<0>, deep::<16>] {
        let kept = Arc::new(());
        let refused = catch_unwind(AssertUnwindSafe(|| pool.run(|worker| deep(worker, &kept))));
        assert!(refused.is_err());
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}

#[test]
fn a_token_smuggled_past_the_borrow_checker_is_caught() {
    let result = catch_unwind(|| {
        pool(1).run(|mut outer| {
            with_twin(|mut twin| {
                outer.join(move |_| twin.join(|_| (), |_| ()), |_| ());
            });
        });
    });
    let payload = result.unwrap_err();
    let text = payload.downcast_ref::<String>().expect("a formatted message");
    assert!(text.contains("below the top"), "{text}");
}
