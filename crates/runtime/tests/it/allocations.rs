//! What allocates nothing: forks, and spawns of small closures. And that a pool's memory is so much
//! for each thread.

#![forbid(unsafe_code)]

use std::hint::black_box;

use poach_runtime::{ThreadPool, join, scope};

const TASKS: u64 = if cfg!(miri) { 300 } else { 10_000 };

fn on_a_worker<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    ThreadPool::builder().num_threads(1).build().unwrap().install(f)
}

/// How often tasks that capture `BYTES` bytes allocate, in a queue that has held as many tasks
/// before.
fn allocations_of_tasks<const BYTES: usize>() -> u64 {
    let tasks = || {
        scope(|s| {
            for _ in 0..TASKS {
                let captured = black_box([7_u8; BYTES]);
                s.spawn(move |_| assert_eq!(black_box(captured), [7; BYTES]));
            }
        });
    };
    on_a_worker(|| {
        tasks();
        allocation_counter::measure(tasks).count_total
    })
}

#[test]
fn a_task_of_up_to_48_bytes() {
    assert_eq!(allocations_of_tasks::<0>(), 0);
    assert_eq!(allocations_of_tasks::<16>(), 0);
    assert_eq!(allocations_of_tasks::<17>(), 0);
    assert_eq!(allocations_of_tasks::<48>(), 0);
    assert_eq!(
        allocations_of_tasks::<49>(),
        TASKS,
        "a larger one is boxed, and the counter counts"
    );
}

#[test]
fn a_fork() {
    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = join(|| fib(n - 1), || fib(n - 2));
        a + b
    }
    let fib = || assert_eq!(fib(black_box(12)), 144);
    let counted = on_a_worker(|| {
        fib();
        allocation_counter::measure(fib).count_total
    });
    assert_eq!(counted, 0);
}

#[test]
fn what_a_pool_takes_is_so_much_for_each_thread() {
    let step = if cfg!(miri) { 2 } else { 64 };
    let bytes = |threads| {
        let build = || drop(ThreadPool::builder().num_threads(threads).build().unwrap());
        allocation_counter::measure(build).bytes_total
    };
    // Other tests may have made what is made once in a process, or not.
    bytes(1);
    let [one, two, three] = [1, 2, 3].map(|steps| bytes(steps * step));
    let beyond = (one + three).abs_diff(2 * two);
    // Names have one digit more from the hundredth thread on.
    assert!(beyond < 2 << 10, "{one}, {two} and {three} bytes");
}
