//! Loops that collect, stop at an error, sort, or take an iterator; scopes and loops of a `Worker`.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::iter;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use poach_parallel::{
    Grain, Index, Items, WorkerLoops as _, par_bridge, par_for, par_for_init, par_map,
    par_map_init, par_reduce, par_sort, par_sort_by, par_sort_by_key, par_sort_unstable,
    par_sort_unstable_by, par_sort_unstable_by_key, try_par_for, try_par_map, try_par_reduce,
};
use poach_runtime::{ThreadPool, blocking, current_thread_index, join, scope, spawn};

const ITEMS: usize = if cfg!(miri) { 60 } else { 60_000 };

fn on_pools(test: impl Fn() + Send + Sync) {
    for threads in [1, 2, 4] {
        ThreadPool::builder().num_threads(threads).build().unwrap().install(&test);
    }
}

#[test]
fn ranges_of_all_integers_are_counted() {
    fn counts<I: Index>(range: Range<I>) -> usize {
        let calls = AtomicUsize::new(0);
        par_for(range, |_| _ = calls.fetch_add(1, Ordering::Relaxed));
        calls.into_inner()
    }
    on_pools(|| {
        assert_eq!((counts(0..u8::MAX), counts(i8::MIN..i8::MAX), counts(5..5_u16)), (255, 255, 0));
        assert_eq!((counts(-3..4_i64), counts(u64::MAX - 7..u64::MAX)), (7, 7));
        assert_eq!((counts(i64::MIN..i64::MIN + 9), counts(-2..3_isize)), (9, 5));
        assert_eq!((counts(-300..300_i16), counts(3..3_i32), counts(1..9_u32)), (600, 0, 8));
        assert_eq!(par_reduce(-100..0, || 0, |sum, i: i32| sum + i, |a, b| a + b), -5050);
    });
}

#[test]
fn inclusive_ranges_have_their_last_integer() {
    on_pools(|| {
        let sum = |sum: i64, i: u8| sum + i64::from(i);
        assert_eq!(par_reduce(0..=u8::MAX, || 0, sum, |a, b| a + b), 32_640);
        assert_eq!(par_map(i8::MIN..=i8::MAX, |i| i).len(), 256);
        assert_eq!(par_map(u64::MAX..=u64::MAX, |i| i), [u64::MAX]);
        assert_eq!(par_map(-2..=2_isize, |i| i * i), [4, 1, 0, 1, 4]);
        #[expect(clippy::reversed_empty_ranges)]
        let empty = 3..=2_u32;
        assert!(par_map(empty, |i| i).is_empty());
        let mut used_up = 7..=7_usize;
        assert_eq!(used_up.next(), Some(7));
        assert!(par_map(used_up, |i| i).is_empty());
    });
}

#[test]
fn a_loop_too_long_to_be_counted_is_refused() {
    on_pools(|| {
        let refused = std::panic::catch_unwind(|| par_for(0..=u64::MAX, |_| ()));
        let payload = refused.unwrap_err();
        let message = payload.downcast_ref::<String>().cloned();
        let message =
            message.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        assert!(message.is_some_and(|message| message.contains("usize::MAX iterations")));
    });
}

#[test]
fn slices_vectors_and_arrays_are_gone_over_as_they_are_given() {
    on_pools(|| {
        let mut items: Vec<usize> = (0..ITEMS).collect();
        let count = AtomicUsize::new(0);
        let add = |i: usize| _ = count.fetch_add(i, Ordering::Relaxed);
        par_for(&items, |&i| add(i));
        par_for(&items[..], |&i| add(i));
        par_for(&mut items, |i| add(std::mem::replace(i, *i + 1)));
        par_for(&mut items[..], |i| *i -= 1);
        par_for(items.clone(), add);
        assert_eq!(count.into_inner(), 4 * (ITEMS * (ITEMS - 1) / 2));
        assert!(items.iter().copied().eq(0..ITEMS));
        let mut three = [1, 2, 3];
        par_for(&mut three, |n| *n *= 2);
        assert_eq!(par_reduce(&three, || 0, |sum, n| sum + n, |a, b| a + b), 12);
        // A result may borrow from its item.
        let words = ["to be", "or not"].map(str::to_owned);
        let firsts: Vec<&str> = par_map(&words, |words| words.split(' ').next().unwrap());
        assert_eq!(firsts, ["to", "or"]);
    });
}

#[test]
fn items_of_several_are_side_by_side_until_the_shortest_ends() {
    on_pools(|| {
        let factors: Vec<usize> = (0..ITEMS).collect();
        let mut values = vec![1; ITEMS + 7];
        par_for((&factors, &mut values), |(factor, value)| *value *= factor);
        assert!(values[..ITEMS] == factors && values[ITEMS..] == [1; 7]);
        let names: Vec<String> = (0..ITEMS / 2).map(|i| i.to_string()).collect();
        let with_index = par_map((0..ITEMS, &factors, names), |(i, &factor, name)| {
            assert_eq!((factor, name), (i, i.to_string()));
            i
        });
        assert!(with_index.into_iter().eq(0..ITEMS / 2));
    });
}

/// How many items each run has.
fn runs<I: Items>(items: I) -> Vec<usize> {
    let longer = |mut runs: Vec<usize>, _| {
        runs[0] += 1;
        // Others look for work meanwhile.
        thread::yield_now();
        runs
    };
    let runs = par_reduce(items, || vec![0], longer, |a, b| [a, b].concat());
    runs.into_iter().filter(|&run| run != 0).collect()
}

#[test]
fn runs_are_as_long_as_they_are_to_be() {
    const LENGTH: usize = ITEMS / 20;
    on_pools(|| {
        let all = |runs: &[usize], length: usize| assert_eq!(runs.iter().sum::<usize>(), length);
        let least = runs((0..LENGTH).with_min_len(100));
        all(&least, LENGTH);
        assert!(least == [LENGTH] || least.iter().all(|&run| run >= 100), "{least:?}");
        let most = runs((0..LENGTH).with_max_len(7));
        all(&most, LENGTH);
        assert!(most.iter().all(|&run| run <= 7), "{most:?}");
        // The least goes before the most; as rayon's example has it.
        let (nothing, everything) = (0, usize::MAX);
        let kept = [(10, 15), (everything, 1), (8, 1), (nothing, nothing)];
        for (limits, expected) in kept.into_iter().zip([1, 1, 2, 16]) {
            let runs = runs((0..16).with_min_len(limits.0).with_max_len(limits.1));
            all(&runs, 16);
            assert_eq!(runs.len(), expected, "{limits:?}: {runs:?}");
        }
        assert_eq!(runs((0..20).with_max_len(15).with_min_len(10)), [10, 10]);
        // The strictest of several.
        let (a, b) = (0..16, vec![(); 16]);
        let two = runs((a.clone().with_max_len(9), (&b).with_max_len(4)));
        all(&two, 16);
        assert!(two.iter().all(|&run| run <= 4), "{two:?}");
        let three = (a.with_max_len(2).with_max_len(8), &b, (&b).with_min_len(4));
        assert_eq!(runs(three), [4; 4]);
        assert!(runs((0..0).with_max_len(1)).is_empty());
        let doubled = par_map(vec![1, 2, 3].with_max_len(1), |n| 2 * n);
        assert_eq!(doubled, [2, 4, 6]);
    });
}

#[test]
fn items_that_are_owned_are_each_dropped_once() {
    struct Counts<'c>(&'c AtomicUsize, usize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    on_pools(|| {
        for fails in [ITEMS / 2, ITEMS] {
            let dropped = AtomicUsize::new(0);
            let items: Vec<_> = (0..ITEMS).map(|at| Counts(&dropped, at)).collect();
            let kept =
                try_par_map(items, |item| if item.1 == fails { Err(fails) } else { Ok(item) });
            assert_eq!(kept.as_ref().err().copied(), (fails < ITEMS).then_some(fails));
            assert!(fails < ITEMS || dropped.load(Ordering::Relaxed) == 0);
            drop(kept);
            assert_eq!(dropped.into_inner(), ITEMS);
        }
    });
}

#[test]
fn a_pool_without_settings_has_the_default_number_of_workers() {
    let by_default = ThreadPool::builder().build().unwrap().threads();
    assert_eq!(ThreadPool::new().unwrap().threads(), by_default);
}

/// Code that is generic over the items of its loop.
#[test]
fn what_a_loop_goes_over_has_a_name() {
    fn longest<'t, I: Items<Item = &'t String>>(items: I) -> usize {
        par_reduce(items, || 0, |most, text| most.max(text.len()), usize::max)
    }
    on_pools(|| {
        let texts = vec!["to".to_owned(), "be or not".to_owned()];
        assert_eq!((longest(&texts), longest(&texts[..1])), (9, 2));
    });
}

#[test]
fn maps_keep_the_order_and_states_are_made_for_runs() {
    let items: Vec<usize> = (0..ITEMS).collect();
    on_pools(|| {
        assert!(par_map(&items, |i| i * 2).into_iter().eq((0..ITEMS).map(|i| i * 2)));
        let made = AtomicUsize::new(0);
        let init = || made.fetch_add(1, Ordering::Relaxed);
        assert!(par_map_init(&items, init, |_, &i| i).into_iter().eq(0..ITEMS));
        let seen = Mutex::new(HashSet::new());
        par_for_init(0..ITEMS, || (), |(), i| assert!(seen.lock().unwrap().insert(i)));
        assert_eq!(seen.into_inner().unwrap().len(), ITEMS);
        // The length of runs depends on the thieves; no run is empty.
        assert!(made.into_inner() <= ITEMS, "a state for no item");
        assert!(par_map(&[] as &[u8], |_| ()).is_empty());
    });
    // If no worker is idle, there is one run.
    let made = AtomicUsize::new(0);
    let init = || made.fetch_add(1, Ordering::Relaxed);
    let pool = ThreadPool::builder().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| par_map_init(&items, init, |_, &i| i)), items);
    assert!(made.into_inner() <= ITEMS / 2, "a state for nearly each item");
}

#[test]
fn loops_stop_at_an_error() {
    let items: Vec<usize> = (0..ITEMS).collect();
    on_pools(|| {
        let calls = AtomicUsize::new(0);
        let fail = |i: usize| {
            calls.fetch_add(1, Ordering::Relaxed);
            if i < 10 { Err(i) } else { Ok(()) }
        };
        assert_eq!(try_par_for(0..ITEMS, fail), Err(0));
        assert!(calls.into_inner() < ITEMS, "it went on to the end");
        assert_eq!(try_par_for(10..ITEMS, |i| if i < 10 { Err(i) } else { Ok(()) }), Ok(()));
        let map = |bad: usize| try_par_map(&items, |&i| if i == bad { Err(i) } else { Ok(i) });
        assert_eq!(map(ITEMS / 2), Err(ITEMS / 2));
        assert_eq!(map(ITEMS).unwrap(), items);
        let sum = try_par_reduce(0..ITEMS, || 0, |a, b| Ok::<_, ()>(a + b), |a, b| Ok(a + b));
        assert_eq!(sum, Ok(ITEMS * (ITEMS - 1) / 2));
    });
}

#[test]
fn an_iterator_is_shared_by_all_workers() {
    on_pools(|| {
        let sum = AtomicUsize::new(0);
        par_bridge((0..ITEMS).filter(|i| i % 3 == 0), |i| _ = sum.fetch_add(i, Ordering::Relaxed));
        assert_eq!(sum.into_inner(), (0..ITEMS).filter(|i| i % 3 == 0).sum::<usize>());
    });
}

/// The limit of a watchdog: an event that has not happened by then never will.
const LONG: Duration = Duration::from_secs(60);

/// Runs `body` in a pool of `threads` threads.
fn in_time<R: Send + 'static>(threads: usize, body: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let pool = ThreadPool::builder().num_threads(threads).build().unwrap();
        _ = send.send(pool.install(body));
    });
    receive.recv_timeout(LONG).expect("it hangs, or panics")
}

fn fib(n: usize) -> usize {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

/// Any worker may run the task that `next` waits for; no worker waits for `next`.
#[test]
fn an_iterator_may_fork_to_make_an_item() {
    const MADE: usize = if cfg!(miri) { 3 } else { 10 };
    for round in 0..if cfg!(miri) { 4 } else { 60 } {
        let threads = [1, 2, 4, 8][round % 4];
        let sum = in_time(threads, move || {
            let mut left = MADE;
            let items = iter::from_fn(|| {
                left = left.checked_sub(1)?;
                let small = AtomicUsize::new(0);
                scope(|s| {
                    for _ in 0..4 {
                        s.spawn(|_| _ = small.fetch_add(fib(3), Ordering::Relaxed));
                    }
                });
                Some(
                    par_reduce(0..100_usize, || 0, |sum, i| sum + i + fib(5), |a, b| a + b)
                        + small.into_inner(),
                )
            });
            let sum = AtomicUsize::new(0);
            par_bridge(items, |item| _ = sum.fetch_add(item, Ordering::Relaxed));
            sum.into_inner()
        });
        assert_eq!(sum, MADE * (4950 + 500 + 8));
    }
}

#[test]
fn nobody_else_waits_while_the_iterator_does() {
    let (item, others) = in_time(2, || {
        let (send, receive) = mpsc::channel();
        let items = iter::once_with(move || {
            spawn(move || send.send(current_thread_index()).unwrap());
            // The other worker's part.
            blocking(|| receive.recv().unwrap())
        });
        let seen = Mutex::new(Vec::new());
        par_bridge(items, |item| seen.lock().unwrap().push((item, current_thread_index())));
        seen.into_inner().unwrap().pop().unwrap()
    });
    assert_ne!(item, others);
}

#[test]
fn a_bridge_goes_on_after_a_panic_until_as_many_have_panicked_as_there_are_workers() {
    for (threads, calls) in [(1, 1), (2, 2), (3, 3)] {
        let pool = ThreadPool::builder().num_threads(threads).build().unwrap();
        let called = AtomicUsize::new(0);
        let bridge = || {
            par_bridge(iter::repeat(()), |()| {
                called.fetch_add(1, Ordering::Relaxed);
                panic!("each");
            });
        };
        let panicked = catch_unwind(AssertUnwindSafe(|| pool.install(bridge)));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"each"));
        // Other calls may be running when the last call that counts panics.
        assert!((calls..=2 * calls).contains(&called.into_inner()));
        let (mut next, called) = (0, AtomicUsize::new(0));
        let once = iter::from_fn(|| {
            next += 1;
            assert!(next != 3, "the third");
            (next < 10).then_some(())
        });
        let bridge = || par_bridge(once, |()| _ = called.fetch_add(1, Ordering::Relaxed));
        assert!(catch_unwind(AssertUnwindSafe(|| pool.install(bridge))).is_err());
        assert_eq!(called.into_inner(), if threads == 1 { 2 } else { 8 });
    }
}

type Pairs = Vec<(usize, usize)>;

/// Items with many equal keys, and the position of each.
fn pairs(keys: usize, seed: usize) -> Pairs {
    let random = |at: usize| (at + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) % keys;
    (0..ITEMS).map(|at| (random(at), at)).collect()
}

#[test]
fn sorts_agree_with_those_of_std() {
    on_pools(|| {
        for (seed, keys) in [(1, 1), (2, 7), (3, 1000), (4, usize::MAX)] {
            let items = pairs(keys, seed);
            let mut expected = items.clone();
            expected.sort_unstable();
            let check = |sort: fn(&mut Pairs)| {
                let mut sorted = items.clone();
                sort(&mut sorted);
                assert_eq!(sorted, expected, "seed {seed}");
            };
            // Stable: the second component, which is not compared, stays in order.
            check(|v| par_sort_by_key(v, |pair| pair.0));
            check(|v| par_sort_by(v, |a, b| a.0.cmp(&b.0)));
            check(|v| par_sort(v));
            check(|v| par_sort_unstable(v));
            check(|v| par_sort_unstable_by(v, Ord::cmp));
            check(|v| par_sort_unstable_by_key(v, |pair| *pair));
        }
        let mut sorted: Vec<_> = (0..ITEMS).collect();
        par_sort(&mut sorted);
        sorted.reverse();
        par_sort(&mut sorted);
        assert!(sorted.is_sorted());
    });
}

#[test]
fn a_comparison_that_panics_loses_nothing() {
    on_pools(|| {
        for stable in [true, false] {
            let mut items: Vec<_> =
                pairs(1000, 5).into_iter().map(|(key, _)| key.to_string()).collect();
            let mut expected: Vec<_> = items.clone();
            let calls = AtomicUsize::new(0);
            let compare = |a: &String, b: &String| {
                assert!(calls.fetch_add(1, Ordering::Relaxed) < ITEMS, "enough");
                a.cmp(b)
            };
            let sort = || {
                if stable {
                    par_sort_by(&mut items, compare);
                } else {
                    par_sort_unstable_by(&mut items, compare);
                }
            };
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(sort)).is_err());
            let mut left: Vec<_> = items;
            left.sort_unstable();
            expected.sort_unstable();
            assert_eq!(left, expected);
        }
    });
}

#[test]
fn a_token_opens_scopes_and_loops_and_an_array_has_an_element_for_each_index() {
    let pool = ThreadPool::builder().num_threads(2).spares(1).build().unwrap();
    assert!(pool.index_limit() >= 3);
    let calls: Vec<_> = (0..pool.index_limit()).map(|_| AtomicUsize::new(0)).collect();
    let count = || {
        _ = calls[poach_runtime::current_thread_index().unwrap()].fetch_add(1, Ordering::Relaxed);
    };
    pool.run(|mut w| {
        w.join(
            |mut w| w.scope(|s| (0..10).for_each(|_| s.spawn(|_| count()))),
            |mut w| w.par_for(0..10_u8, |_| count()),
        );
        assert_eq!(w.par_reduce(0..10_u64, || 0, |sum, i| sum + i, |a, b| a + b), 45);
    });
    assert_eq!(calls.into_iter().map(AtomicUsize::into_inner).sum::<usize>(), 20);
}

/// A `combine` fails in the first half while a call in the second half waits for that.
#[test]
#[cfg(not(miri))] // which takes minutes for it
fn an_error_of_combine_stops_the_loop() {
    const HALF: usize = 3000;
    let pool = ThreadPool::builder().num_threads(4).build().unwrap();
    // Timing decides whether the first half is cut, and how soon the other workers see the error. A
    // loop that goes on has half of the second half left.
    let stopped = (0..1000).any(|_| {
        let (failed, gives_up) = (AtomicBool::new(false), AtomicBool::new(false));
        let [first, second, late] = [(); 3].map(|()| AtomicUsize::new(0));
        let fold = |(), i: usize| {
            if failed.load(Ordering::SeqCst) {
                late.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
            } else if i < HALF {
                first.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
            } else {
                let mut patience = 1000;
                while !failed.load(Ordering::SeqCst) && !gives_up.load(Ordering::SeqCst) {
                    patience -= usize::from(first.load(Ordering::SeqCst) == HALF);
                    gives_up.store(patience == 0, Ordering::SeqCst);
                    thread::yield_now();
                }
                second.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        };
        let combine = |(), ()| {
            let fails = second.load(Ordering::SeqCst) < HALF / 2;
            failed.fetch_or(fails, Ordering::SeqCst);
            if fails { Err("combine") } else { Ok(()) }
        };
        let result = pool.install(|| try_par_reduce(0..2 * HALF, || (), fold, combine));
        let failed = failed.load(Ordering::SeqCst);
        assert_eq!(result, if failed { Err("combine") } else { Ok(()) });
        failed && late.load(Ordering::SeqCst) < HALF / 4
    });
    assert!(stopped, "the first half was never cut, or the loop goes on each time");
}

/// Two parts fail at the same time.
#[test]
fn of_several_errors_the_first_items_is_returned() {
    let pool = ThreadPool::builder().num_threads(2).build().unwrap();
    let mut both = false;
    for _ in 0..1000 {
        let (first, second) = (AtomicBool::new(false), AtomicBool::new(false));
        let meets = |own: &AtomicBool, other: &AtomicBool| {
            own.store(true, Ordering::SeqCst);
            (0..10_000).any(|_| {
                thread::yield_now();
                other.load(Ordering::SeqCst)
            })
        };
        let result = pool.install(|| {
            try_par_for(0..2, |i| {
                let met = if i == 0 { meets(&first, &second) } else { meets(&second, &first) };
                Err::<(), _>((i, met))
            })
        });
        if result == Err((0, true)) {
            both = true;
            break;
        }
        assert!(matches!(result, Err((_, false))), "{result:?}");
    }
    assert!(both, "the second part was never stolen");
}

#[test]
fn grains_of_any_length() {
    for target in [Duration::ZERO, Duration::from_micros(10), Duration::MAX] {
        let grain = Grain::lasting(target);
        for units in [0, 1, usize::MAX, 7] {
            assert_eq!(grain.leaf(units, || units), units);
            assert!(grain.units() > 0);
        }
        let panics = catch_unwind(AssertUnwindSafe(|| grain.leaf(1, || panic!("a leaf"))));
        assert!(panics.is_err() && grain.units() > 0);
    }
    assert_eq!(Grain::new().units(), 1);
}
