//! Loops that split themselves.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use poach_parallel::{par_chunks, par_chunks_mut, par_for, par_reduce};
use poach_runtime::{ThreadPool, interrupt};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

const ITEMS: usize = if cfg!(miri) { 50 } else { 10_000 };

#[test]
fn each_index_is_called_once() {
    for threads in [1, 2, 4] {
        let pool = pool(threads);
        for range in [0..0, 5..5, 0..1, 3..10, 7..ITEMS, usize::MAX - 9..usize::MAX] {
            let counts: Vec<_> = range.clone().map(|_| AtomicUsize::new(0)).collect();
            pool.install(|| {
                par_for(range.clone(), |i| {
                    counts[i - range.start].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(counts.into_iter().all(|count| count.into_inner() == 1));
        }
        #[expect(clippy::reversed_empty_ranges, reason = "it must be nothing, too")]
        pool.install(|| par_for(9..3, |_| panic!("an empty range")));
    }
}

#[test]
fn folds_keep_their_order() {
    for threads in [1, 2, 4] {
        let all = pool(threads).install(|| {
            par_reduce(
                0..ITEMS,
                Vec::new,
                |mut run, i| {
                    run.push(i);
                    run
                },
                |mut left, right| {
                    left.extend(right);
                    left
                },
            )
        });
        assert!(all.into_iter().eq(0..ITEMS));
    }
    assert_eq!(pool(1).install(|| par_reduce(0..0, || 7, |_, _| 8, |a, _| a)), 7);
}

#[test]
fn chunks_cover_a_slice() {
    let numbers: Vec<_> = (0..ITEMS).collect();
    for size in [1, 3, 64, ITEMS, usize::MAX] {
        let sum = AtomicUsize::new(0);
        pool(2).install(|| {
            par_chunks(&numbers, size, |number, chunk| {
                assert_eq!(chunk[0], number * size);
                assert!(chunk.len() == size || chunk[chunk.len() - 1] == ITEMS - 1);
                sum.fetch_add(chunk.iter().sum(), Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), ITEMS * (ITEMS - 1) / 2);
        let mut copy = vec![0; ITEMS];
        pool(2).install(|| {
            par_chunks_mut(&mut copy, size, |number, chunk| {
                for (i, item) in chunk.iter_mut().enumerate() {
                    *item = number * size + i;
                }
            });
        });
        assert_eq!(copy, numbers);
    }
    pool(1).install(|| {
        par_chunks::<u8>(&[], 5, |_, _| panic!("no chunk"));
        par_chunks_mut::<u8>(&mut [], 5, |_, _| panic!("no chunk"));
    });
}

#[test]
fn chunks_of_nothing_are_refused() {
    for result in [
        catch_unwind(|| par_chunks(&[1], 0, |_, _| ())),
        catch_unwind(|| par_chunks_mut(&mut [1], 0, |_, _| ())),
    ] {
        let text = result.unwrap_err().downcast::<&str>().unwrap();
        assert!(text.contains("at least 1"), "{text}");
    }
}

#[test]
fn idle_workers_get_a_part() {
    let pool = pool(3);
    let mut ids = HashSet::new();
    while ids.len() < 3 {
        let seen = Mutex::new(HashSet::new());
        pool.install(|| {
            par_for(0..ITEMS, |_| {
                seen.lock().unwrap().insert(thread::current().id());
                thread::yield_now();
            });
        });
        ids.extend(seen.into_inner().unwrap());
    }
}

#[test]
fn loops_nest_panic_and_are_interrupted() {
    let pool = pool(2);
    let sum = pool.install(|| {
        par_reduce(
            0..20_usize,
            || 0,
            |sum, i| {
                if i == 10 {
                    assert_eq!(
                        interrupt(|| par_reduce(0..9, || 0, |a, b| a + b, |a, b| a + b)),
                        36
                    );
                }
                sum + par_reduce(0..i, || 0, |inner, j| inner + j, |a, b| a + b)
            },
            |a, b| a + b,
        )
    });
    assert_eq!(sum, (0..20).map(|i: usize| i * i.saturating_sub(1) / 2).sum::<usize>());
    let result = catch_unwind(AssertUnwindSafe(|| {
        pool.install(|| par_for(0..ITEMS, |i| assert!(i != ITEMS / 2, "half way")));
    }));
    assert_eq!(result.unwrap_err().downcast_ref::<&str>(), Some(&"half way"));
    assert_eq!(pool.run(|_| poach_runtime::join(|| 1, || 2)), (1, 2));
}
