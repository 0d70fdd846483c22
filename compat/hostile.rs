//! What a thread pool does on a machine that gives it little: `cargo xtask hostile` runs each row
//! of [`ROWS`] under limits and filters.
//!
//! `hostile list` prints the names of the rows. `hostile ROW [late]` does one, and prints its
//! processor time in milliseconds; `late` refuses `membarrier(2)` to all threads once a pool has
//! worked. A wrong result or an error ends it with code 1.

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

use rayon::iter::{ParallelBridge as _, ParallelIterator as _};
use rayon_core::{ThreadPool, ThreadPoolBuilder};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter_all_threads};

type Outcome = Result<(), Box<dyn Error>>;

/// A name, and what is done: given whether the filter comes late.
type Row = (&'static str, fn(bool) -> Outcome);

const ROWS: &[Row] = &[
    ("a pool of 8 builds", |late| pool(8, late).map(drop)),
    ("a pool of 64 builds", |late| pool(64, late).map(drop)),
    ("fib(25) is right", |late| fib(4, 25, 75_025, late)),
    ("fib(36) by one thread", |late| fib(1, 36, 14_930_352, late)),
    ("10^7 spawns by one thread", spawns),
    ("spawn, then recv", spawn_then_recv),
    ("scope tasks that meet", tasks_that_meet),
    ("a first half waits for the second", halves_that_meet),
    ("install from outside", install_from_outside),
    ("10^7 spawns into one scope", one_scope),
    ("par_bridge: next joins 2^5 leaves", |late| bridge(5, 300, late)),
    ("par_bridge: next joins 2^7 leaves", |late| bridge(7, 100, late)),
    ("par_bridge: next joins 2^9 leaves", |late| bridge(9, 50, late)),
];

/// How often a row does its operation.
const TIMES: usize = 24;

/// A pool that has worked; then the filter comes, and it works once more, so that each thread may
/// find out.
fn pool(threads: usize, late: bool) -> Result<ThreadPool, Box<dyn Error>> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let works = || pool.install(|| rayon_core::broadcast(|_| rayon_core::join(|| 1, || 2)));
    if works().iter().any(|&halves| halves != (1, 2)) {
        return Err("a join is wrong".into());
    }
    if late {
        refuse_membarrier()?;
        (0..TIMES).for_each(|_| _ = works());
    }
    Ok(pool)
}

fn refuse_membarrier() -> Outcome {
    let rules = [(libc::SYS_membarrier, Vec::new())].into_iter().collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        refused,
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(apply_filter_all_threads(&BpfProgram::try_from(filter)?)?)
}

fn fib(threads: usize, n: u64, right: u64, late: bool) -> Outcome {
    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = rayon_core::join(|| fib(n - 1), || fib(n - 2));
        a + b
    }
    let result = pool(threads, late)?.install(|| fib(n));
    if result == right { Ok(()) } else { Err(format!("fib({n}) = {result}").into()) }
}

fn spawns(late: bool) -> Outcome {
    let run = AtomicUsize::new(0);
    let scope = || {
        rayon_core::scope(|s| {
            (0..1000).for_each(|_| s.spawn(|_| _ = run.fetch_add(1, Ordering::Relaxed)));
        });
    };
    pool(1, late)?.install(|| (0..10_000).for_each(|_| scope()));
    let run = run.into_inner();
    if run == 10_000_000 { Ok(()) } else { Err(format!("{run} have run").into()) }
}

fn one_scope(late: bool) -> Outcome {
    let run = AtomicUsize::new(0);
    pool(1, late)?.scope(|s| {
        (0..10_000_000).for_each(|_| s.spawn(|_| _ = run.fetch_add(1, Ordering::Relaxed)));
    });
    let run = run.into_inner();
    if run == 10_000_000 { Ok(()) } else { Err(format!("{run} have run").into()) }
}

/// Loops whose lock is held across joins: a worker that takes a part of another's loop on top of
/// what the holder waits for makes both wait for ever.
fn bridge(depth: u32, loops: usize, late: bool) -> Outcome {
    fn leaves(depth: u32) -> u64 {
        if depth == 0 {
            return ((0..60).fold(1, |sum: u64, n| black_box(sum.wrapping_mul(31) ^ n)) | 1) & 1;
        }
        let (a, b) = rayon_core::join(|| leaves(depth - 1), || leaves(depth - 1));
        a + b
    }
    let right = 30 << depth;
    let sum = || (0..30).map(|_| leaves(depth)).par_bridge().sum::<u64>();
    let wrong = pool(8, late)?.install(|| (0..loops).find(|_| sum() != right));
    if wrong.is_none() { Ok(()) } else { Err("a sum is wrong".into()) }
}

fn spawn_then_recv(late: bool) -> Outcome {
    let pool = pool(4, late)?;
    for round in 0..TIMES {
        let (send, receive) = mpsc::channel();
        let received = pool.install(move || {
            rayon_core::spawn(move || send.send(round).unwrap_or_default());
            receive.recv()
        })?;
        if received != round {
            return Err("another task's message".into());
        }
    }
    Ok(())
}

fn tasks_that_meet(late: bool) -> Outcome {
    let pool = pool(4, late)?;
    for _ in 0..TIMES {
        let meeting = Barrier::new(3);
        pool.scope(|s| {
            s.spawn(|_| _ = meeting.wait());
            s.spawn(|_| _ = meeting.wait());
            meeting.wait();
        });
    }
    Ok(())
}

fn halves_that_meet(late: bool) -> Outcome {
    let pool = pool(4, late)?;
    for _ in 0..TIMES {
        let (outer, inner) = (Barrier::new(2), Barrier::new(2));
        let wait = |barrier: &Barrier| _ = barrier.wait();
        pool.install(|| {
            rayon_core::join(
                || rayon_core::join(|| wait(&inner), || wait(&inner)),
                || rayon_core::join(|| wait(&outer), || wait(&outer)),
            )
        });
    }
    Ok(())
}

fn install_from_outside(late: bool) -> Outcome {
    let pool = pool(4, late)?;
    let installs = || (0..1000).all(|n| pool.install(|| rayon_core::join(|| n, || n)) == (n, n));
    let right = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, installs)?;
        Ok::<_, std::io::Error>(installs() && thread.join().unwrap_or(false))
    })?;
    if right { Ok(()) } else { Err("a join is wrong".into()) }
}

/// Milliseconds of processor time that this process has had.
fn processor_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold anything: the state, and so on.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    // 100 ticks are a second, for programs, on all platforms.
    (ticks(12).unwrap_or(0) + ticks(13).unwrap_or(0)) * 10
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == "list" {
        ROWS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    let (_, does) = ROWS.iter().find(|(row, _)| *row == name).ok_or("no row has this name")?;
    does(arguments.next().as_deref() == Some("late"))?;
    println!("{}", processor_time());
    Ok(())
}
