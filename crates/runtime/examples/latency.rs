//! How long somebody waits for the pool, and what the pool costs while nobody does.
//!
//! `cargo run --release -p poach-runtime --example latency -- [SECONDS] [CALLS] [LEAVES]`
//!
//! - the processor time that a pool's threads take while they have nothing to do, for a number of
//!   seconds;
//! - an empty call from a thread of no pool: of a pool that sleeps, and of a pool that was called
//!   just now;
//! - the number of ten times as many such calls that take more than a microsecond. The pool was
//!   given a few tasks just before, so that its workers look for more;
//! - a private task behind a leaf of 100 ms, forked and spawned: its owner makes it while the other
//!   worker is at work, and then does not come back to its deque. Timed from that worker's last
//!   task to the start of this one, which takes 1 ms. (The worker's tasks take some time: of empty
//!   ones a thief soon has enough, and rests between them.)

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, hint, thread};

use poach_runtime::ThreadPool;

const LEAF: Duration = Duration::from_millis(100);
const TASK: Duration = Duration::from_millis(1);

/// The processor time of all threads of this process but the first, where the system says it.
fn processor_time() -> Option<Duration> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok);
    let first = std::process::id().to_string();
    let times = tasks.filter(|task| task.file_name() != *first).map(|task| {
        let line = fs::read_to_string(task.path().join("schedstat")).ok()?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    });
    times.sum::<Option<u64>>().map(Duration::from_nanos)
}

fn work(time: Duration) -> Instant {
    let begun = Instant::now();
    while begun.elapsed() < time {
        hint::spin_loop();
    }
    begun
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::Acquire) {
        hint::spin_loop();
    }
}

/// From the end of the other worker's task to the start of the one behind the leaf.
fn behind_a_leaf(pool: &ThreadPool) -> Duration {
    let (away, in_leaf) = (AtomicBool::new(false), AtomicBool::new(false));
    pool.run(|mut worker| {
        let owner = |mut worker: poach_runtime::Worker<'_>| {
            wait_for(&away);
            let leaf = |_: poach_runtime::Worker<'_>| {
                in_leaf.store(true, Ordering::Release);
                work(LEAF);
            };
            worker.join(leaf, |_| work(TASK)).1
        };
        let other = |_: poach_runtime::Worker<'_>| {
            away.store(true, Ordering::Release);
            wait_for(&in_leaf);
            Instant::now()
        };
        let (started, free) = worker.join(owner, other);
        started.saturating_duration_since(free)
    })
}

/// As [`behind_a_leaf`], of a task that is spawned.
fn spawned_behind_a_leaf(pool: &ThreadPool) -> Duration {
    let (away, in_leaf) = (AtomicBool::new(false), AtomicBool::new(false));
    let (started, free) = (OnceLock::new(), OnceLock::new());
    pool.run(|_| {
        poach_runtime::scope(|s| {
            s.spawn(|_| {
                away.store(true, Ordering::Release);
                wait_for(&in_leaf);
                let _ = free.set(Instant::now());
            });
            wait_for(&away);
            // A request that is still up is answered with this one; it comes back.
            s.spawn(|_| ());
            poach_runtime::yield_local();
            s.spawn(|_| _ = started.set(work(TASK)));
            in_leaf.store(true, Ordering::Release);
            work(LEAF);
        });
    });
    let [started, free] = [started, free].map(|time| time.into_inner().expect("it was set"));
    started.saturating_duration_since(free)
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    println!("{what}: median {:?}, 99 % {:?}, most {:?}", at(50), at(99), at(100));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(2), |n| n.parse())?;
    let calls: usize = arguments.next().map_or(Ok(2000), |n| n.parse())?;
    let leaves: usize = arguments.next().map_or(Ok(30), |n| n.parse())?;
    let pool = ThreadPool::builder().num_threads(2).build()?;
    pool.install(|| poach_runtime::join(|| (), || ()));
    thread::sleep(Duration::from_millis(100));

    let before = processor_time();
    thread::sleep(Duration::from_secs(seconds));
    match before.zip(processor_time()) {
        Some((before, after)) => {
            println!("idle for {seconds} s: {:?} of CPU", after.saturating_sub(before));
        }
        None => println!("idle for {seconds} s: this system does not say what it took"),
    }

    let call = || {
        let start = Instant::now();
        pool.run(|_| hint::black_box(()));
        start.elapsed()
    };
    let asleep = || {
        thread::sleep(Duration::from_micros(200));
        call()
    };
    report("an empty call from outside, pool asleep", (0..calls).map(|_| asleep()).collect());
    report(
        "an empty call from outside, pool called just now",
        (0..calls).map(|_| call()).collect(),
    );

    let mut slow: Vec<usize> = (0..10)
        .map(|round| {
            (0..=round % 3).for_each(|_| pool.spawn(|| ()));
            let slow = (0..calls).filter(|_| call() > Duration::from_micros(1)).count();
            thread::sleep(Duration::from_millis(5));
            slow
        })
        .collect();
    slow.sort_unstable();
    let (all, total) = (10 * calls, slow.iter().sum::<usize>());
    println!("an empty call from outside, after a few tasks: {total} of {all} over 1us {slow:?}");

    let behind = (0..leaves).map(|_| behind_a_leaf(&pool)).collect();
    report("a private task behind a leaf of 100 ms", behind);
    let behind = (0..leaves).map(|_| spawned_behind_a_leaf(&pool)).collect();
    report("a private spawned task behind a leaf of 100 ms", behind);
    println!("{}", pool.stats());
    Ok(())
}
