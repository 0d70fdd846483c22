//! From idle to the second worker running: how long a fork waits for a sleeping thief.
//!
//! `cargo run --release -p poach-runtime --example wake -- [ROUNDS] [PAUSE_US] [pin]`
//!
//! Each round lets all workers fall asleep, then forks; the first half waits until the second one
//! says that it runs. Prints the median and the percentiles of the time from the fork to that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{hint, thread};

use poach_runtime::ThreadPool;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(2000), |n| n.parse())?;
    let pause = Duration::from_micros(arguments.next().map_or(Ok(2000), |n| n.parse())?);
    let pin = arguments.next().is_some_and(|word| word == "pin");
    let pool = ThreadPool::builder().num_threads(2).pin(pin).build()?;
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        thread::sleep(pause);
        let runs = AtomicBool::new(false);
        times.push(pool.run(|mut worker| {
            let start = Instant::now();
            let wait = |_: poach_runtime::Worker<'_>| {
                while !runs.load(Ordering::Acquire) {
                    hint::spin_loop();
                }
            };
            let tell = |_: poach_runtime::Worker<'_>| {
                let elapsed = start.elapsed();
                runs.store(true, Ordering::Release);
                elapsed
            };
            worker.join(wait, tell).1
        }));
    }
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    println!(
        "{rounds} forks after {pause:?} of rest{}: median {:?}, 90 % {:?}, 99 % {:?}, most {:?}",
        if pin { ", workers pinned" } else { "" },
        at(50),
        at(90),
        at(99),
        at(100)
    );
    println!("{}", pool.stats());
    Ok(())
}
