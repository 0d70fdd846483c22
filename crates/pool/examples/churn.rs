//! Very many tasks through a pool whose handles come and go throughout, each accounted for.
//!
//! ```console
//! $ cargo run --release -p poach-pool --example churn -- 1000000000
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use poach_pool::TaskPool;

/// How many producers and how many consumers there are at a time.
const THREADS: u64 = 2;
const STINT: u64 = 10_007;

fn main() -> ExitCode {
    let tasks = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 10_000_000,
        Some(Ok(tasks)) => tasks,
        Some(Err(error)) => {
            eprintln!("churn: the number of tasks: {error}");
            return ExitCode::from(2);
        }
    };
    // Between two of them there may be no handle.
    let pool = TaskPool::builder().stays_open(true).build().expect("memory");
    let handles = AtomicU64::new(0);
    let began = Instant::now();
    let (count, sum, squares) = thread::scope(|scope| {
        let consumers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut count, mut sum, mut squares) = (0u64, 0u64, 0u64);
                    loop {
                        handles.fetch_add(1, Ordering::Relaxed);
                        let mut consumer = pool.consumer().expect("a seat for each thread");
                        let before = count;
                        for task in consumer.iter().take(STINT as usize) {
                            count += 1;
                            sum = sum.wrapping_add(task);
                            squares = squares.wrapping_add(task.wrapping_mul(task));
                        }
                        if count - before < STINT {
                            return (count, sum, squares);
                        }
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..THREADS)
            .map(|number| {
                let (pool, handles) = (&pool, &handles);
                scope.spawn(move || {
                    let mut mine = (number..tasks).step_by(THREADS as usize).peekable();
                    while mine.peek().is_some() {
                        handles.fetch_add(1, Ordering::Relaxed);
                        let mut producer = pool.producer().expect("a seat for each thread");
                        producer.put_many(mine.by_ref().take(STINT as usize)).expect("memory");
                        // Ahead by no more than the caches hold.
                        while pool.len() > 1 << 20 {
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for producer in producers {
            producer.join().expect("a producer that does not panic");
        }
        pool.close();
        consumers.into_iter().fold((0, 0u64, 0u64), |all, consumer| {
            let one = consumer.join().expect("a consumer that does not panic");
            (all.0 + one.0, all.1.wrapping_add(one.1), all.2.wrapping_add(one.2))
        })
    });
    let seconds = began.elapsed().as_secs_f64();
    let wanted = (0..tasks).fold((0, 0u64, 0u64), |all, task| {
        (all.0 + 1, all.1.wrapping_add(task), all.2.wrapping_add(task.wrapping_mul(task)))
    });
    println!("{count} tasks, {} handles, {seconds:.1} s", handles.load(Ordering::Relaxed));
    if (count, sum, squares) == wanted {
        ExitCode::SUCCESS
    } else {
        eprintln!("churn: of {tasks} tasks some were lost or doubled");
        ExitCode::FAILURE
    }
}
