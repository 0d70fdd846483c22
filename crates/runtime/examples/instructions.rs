//! One operation of the runtime, so and so often, for an instruction counter.
//!
//! ```text
//! cargo build --release -p poach-runtime --example instructions
//! valgrind --tool=callgrind target/release/examples/instructions WHAT COUNT
//! ```
//!
//! The difference of the totals of two counts, divided by the difference of the counts, is the cost
//! of one, its empty body and its loop included. WHAT is one of:
//!
//! - `nothing`: a call of a function that is not inlined;
//! - `worker.join`, `join`;
//! - `fib`, forks of a Fibonacci program without a cut-off; `fib-sequential`, the same program
//!   without forks;
//! - `skynet`, nodes of a tree in which each has ten, by `join_array`; `skynet-all` by `join_all`,
//!   `skynet-forks` by a worker's scope, `skynet-scope` by `scope`;
//! - `scope.spawn`; `scope`, of one task;
//! - `spawn`, whose handle is dropped;
//! - `run`, from a thread that is no worker and becomes one.
//!
//! `steal` counts the steals that a second worker makes meanwhile: see the crate's page for how to
//! count their instructions.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use poach_runtime::{ThreadPool, Worker, join, scope, spawn_handle};

#[inline(never)]
fn leaf(n: u64) -> u64 {
    black_box(n)
}

/// How many joins `fib` makes for [`SMALL`].
const FORKS: u64 = 143;
/// Fibonacci's eleventh number.
const SMALL: u64 = 11;

fn fib(mut worker: Worker<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = worker.join(move |w| fib(w, n - 1), move |w| fib(w, n - 2));
    a + b
}

fn sequential_fib(n: u64) -> u64 {
    if n < 2 { n } else { sequential_fib(n - 1) + sequential_fib(n - 2) }
}

/// How many nodes the trees below have without their root.
const NODES: u64 = 1110;
/// How many leaves they have.
const LEAVES: u64 = 1000;

/// The first leaves below the ten children of a node with `leaves` leaves, the first of which is
/// `first`.
fn ten(first: u64, leaves: u64) -> [u64; 10] {
    std::array::from_fn(|i| first + i as u64 * (leaves / 10))
}

fn skynet(mut worker: Worker<'_>, first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let child = move |w: Worker<'_>, first| skynet(w, first, leaves / 10);
    worker.join_array(ten(first, leaves), child).iter().sum()
}

fn skynet_all(mut worker: Worker<'_>, first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let child = move |w: Worker<'_>, first| skynet_all(w, first, leaves / 10);
    worker.join_all(ten(first, leaves), child).iter().sum()
}

fn skynet_scope(first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let mut sums = [0; 10];
    scope(|s| {
        for (sum, first) in sums.iter_mut().zip(ten(first, leaves)) {
            s.spawn(move |_| *sum = skynet_scope(first, leaves / 10));
        }
    });
    sums.iter().sum()
}

fn skynet_forks(mut worker: Worker<'_>, first: u64, leaves: u64) -> u64 {
    if leaves == 1 {
        return first;
    }
    let mut sums = [0; 10];
    worker.scope(|s| {
        for (sum, first) in sums.iter_mut().zip(ten(first, leaves)) {
            s.spawn(move |w| *sum = skynet_forks(w, first, leaves / 10));
        }
    });
    sums.iter().sum()
}

/// A join whose second half is stolen before the first one ends.
fn stolen(worker: &mut Worker<'_>) {
    let begun = AtomicBool::new(false);
    worker.join(
        |_| {
            while !begun.load(Ordering::Acquire) {
                // So that the request of a thief is met.
                join(|| (), || ());
                thread::yield_now();
            }
        },
        |_| begun.store(true, Ordering::Release),
    );
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(Ok(count))) = (arguments.next(), arguments.next().map(|n| n.parse()))
    else {
        eprintln!("instructions WHAT COUNT");
        return ExitCode::from(2);
    };
    let threads = if what == "steal" { 2 } else { 1 };
    let pool = match ThreadPool::builder().num_threads(threads).build() {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    // Until the worker sleeps, so that all that follows is run by this thread in its place.
    thread::sleep(std::time::Duration::from_millis(100));
    let count: u64 = count;
    let each = |f: &(dyn Fn(u64) + Sync)| pool.install(|| (0..count).for_each(f));
    match &*what {
        "nothing" => pool.install(|| (0..count).for_each(|n| _ = (leaf(n), leaf(n)))),
        "worker.join" => pool.run(|mut worker| {
            for n in 0..count {
                worker.join(|_| leaf(n), |_| leaf(n));
            }
        }),
        "join" => pool.install(|| (0..count).for_each(|n| _ = join(|| leaf(n), || leaf(n)))),
        "fib" => pool.run(|mut worker| {
            for _ in 0..count / FORKS {
                // The outer join is there to have a token each time.
                worker.join(|w| black_box(fib(w, black_box(SMALL))), |_| ());
            }
        }),
        "fib-sequential" => pool.install(|| {
            for _ in 0..count / FORKS {
                black_box(sequential_fib(black_box(SMALL)));
            }
        }),
        "skynet" | "skynet-all" | "skynet-forks" => pool.run(|mut worker| {
            let tree = match &*what {
                "skynet" => skynet,
                "skynet-all" => skynet_all,
                _ => skynet_forks,
            };
            for _ in 0..count / NODES {
                worker.join(|w| black_box(tree(w, 0, black_box(LEAVES))), |_| ());
            }
        }),
        "skynet-scope" => pool.install(|| {
            for _ in 0..count / NODES {
                black_box(skynet_scope(0, black_box(LEAVES)));
            }
        }),
        "scope.spawn" => pool.install(|| {
            // In portions, so that the queue does not grow.
            for _ in 0..count / 100 {
                scope(|s| (0..100).for_each(|_| s.spawn(|_| _ = leaf(1))));
            }
        }),
        "scope" => each(&|n| scope(|s| s.spawn(|_| _ = leaf(n)))),
        "spawn" => pool.install(|| {
            for _ in 0..count {
                drop(spawn_handle(|| leaf(1)));
                poach_runtime::yield_local();
            }
        }),
        "run" => (0..count).for_each(|n| _ = pool.run(|_| leaf(n))),
        "steal" => pool.run(|mut worker| (0..count).for_each(|_| stolen(&mut worker))),
        _ => {
            eprintln!("instructions: there is no {what}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
