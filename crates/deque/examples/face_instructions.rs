//! A chosen number of operations of one kind through an interface of this crate or through the
//! original, for `valgrind --tool=callgrind`. The difference of the counts of two runs, divided by
//! the difference of their numbers, is the instructions of one operation.
//!
//! The workloads are those of `poach bench faces` that one thread can do.
//!
//! ```console
//! $ cargo build --release -p poach-deque --example face_instructions
//! $ for n in 20000 120000; do
//! >     valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/face_instructions ours lifo-owner $n 2>&1 |
//! >         grep Collected
//! > done
//! ```
//!
//! With `time` after the number it prints the nanoseconds of one operation, the least of 15 runs.

use std::hint::black_box;
use std::time::Instant;

/// Tasks before a thread turns around.
const BATCH: u64 = 1000;

/// The ring of a queue that does not grow.
const CAPACITY: usize = 2048;

fn see<T>(value: T) {
    let _ = black_box(value);
}

fn unknown(workload: &str) -> ! {
    panic!("no workload {workload}")
}

macro_rules! crossbeam {
    ($module:ident, $($source:tt)*) => {
        mod $module {
            use super::{BATCH, see, unknown};
            use $($source)*::{Injector, Worker};

            pub(super) fn worker(workload: &str, new: fn() -> Worker<u64>, number: u64) {
                let (worker, mine) = (new(), new());
                let thief = worker.stealer();
                let rounds = number / BATCH;
                let fill = || (0..BATCH).for_each(|task| worker.push(task));
                match workload {
                    "empty-pop" => (0..number).for_each(|_| see(worker.pop())),
                    "alternate" => (0..number).for_each(|task| {
                        worker.push(task);
                        see(worker.pop());
                    }),
                    "owner" => (0..rounds).for_each(|_| {
                        fill();
                        (0..BATCH).for_each(|_| see(worker.pop()));
                    }),
                    "empty-steal" => (0..number).for_each(|_| see(thief.steal())),
                    "idle-steals" => (0..rounds).for_each(|_| {
                        fill();
                        (0..BATCH).for_each(|_| see(thief.steal()));
                    }),
                    "idle-batch" => (0..rounds).for_each(|_| {
                        fill();
                        while !thief.steal_batch_and_pop(&mine).is_empty() {}
                        while mine.pop().is_some() {}
                    }),
                    "one-steal" => (0..number).for_each(|task| {
                        worker.push(task);
                        see(thief.steal());
                    }),
                    "one-batch" => (0..number).for_each(|task| {
                        worker.push(task);
                        see(thief.steal_batch_and_pop(&mine));
                    }),
                    "is-empty" => {
                        worker.push(1);
                        (0..number).for_each(|_| see(thief.is_empty()));
                    }
                    _ => unknown(workload),
                }
            }

            pub(super) fn run(workload: &str, number: u64) {
                let Some((queue, workload)) = workload.split_once('-') else { unknown(workload) };
                match queue {
                    "lifo" => worker(workload, Worker::new_lifo, number),
                    "fifo" => worker(workload, Worker::new_fifo, number),
                    "injector" => injector(workload, number),
                    _ => unknown(queue),
                }
            }

            pub(super) fn injector(workload: &str, number: u64) {
                let (injector, mine) = (Injector::new(), Worker::new_fifo());
                let fill = || (0..BATCH).for_each(|task| injector.push(task));
                match workload {
                    "pair" => (0..number).for_each(|task| {
                        injector.push(task);
                        see(injector.steal());
                    }),
                    // A push and, untimed in the suite, a steal.
                    "idle-steals" => (0..number / BATCH).for_each(|_| {
                        fill();
                        (0..BATCH).for_each(|_| see(injector.steal()));
                    }),
                    "idle-batch" => (0..number / BATCH).for_each(|_| {
                        fill();
                        while !injector.steal_batch_and_pop(&mine).is_empty() {}
                        while mine.pop().is_some() {}
                    }),
                    _ => unknown(workload),
                }
            }
        }
    };
}

macro_rules! st3 {
    ($module:ident, $($source:tt)*) => {
        mod $module {
            use super::{BATCH, CAPACITY, see, unknown};
            use $($source)*::Worker;

            pub(super) fn run(workload: &str, number: u64) {
                let (worker, mine) = (Worker::new(CAPACITY), Worker::new(CAPACITY));
                let thief = worker.stealer();
                let rounds = number / BATCH;
                match workload {
                    "empty-pop" => (0..number).for_each(|_| see::<Option<u64>>(worker.pop())),
                    "alternate" => (0..number).for_each(|task| {
                        see(worker.push(task));
                        see(worker.pop());
                    }),
                    "owner" => (0..rounds).for_each(|_| {
                        (0..BATCH).for_each(|task| see(worker.push(task)));
                        (0..BATCH).for_each(|_| see(worker.pop()));
                    }),
                    "extend-drain" => (0..rounds).for_each(|_| {
                        worker.extend(0..BATCH);
                        worker.drain(|count| count).into_iter().flatten().for_each(see);
                    }),
                    "empty-steal" => (0..number).for_each(|_| see(thief.steal(&mine, |count| count))),
                    // Two pushes and two pops go with each task.
                    "idle-half" => (0..rounds).for_each(|_| {
                        (0..BATCH).for_each(|task| see(worker.push(task)));
                        while thief.steal_and_pop(&mine, |count| count - count / 2).is_ok() {}
                        while mine.pop().is_some() {}
                    }),
                    // The same without the steals.
                    "fill" => (0..rounds).for_each(|_| {
                        (0..BATCH).for_each(|task| see(worker.push(task)));
                        while worker.pop().is_some() {}
                    }),
                    _ => unknown(workload),
                }
            }
        }
    };
}

crossbeam!(crossbeam_original, crossbeam_deque);
crossbeam!(crossbeam_ours, poach_deque::crossbeam);
st3!(lifo_original, st3::lifo);
st3!(lifo_ours, poach_deque::st3::lifo);
st3!(fifo_original, st3::fifo);
st3!(fifo_ours, poach_deque::st3::fifo);

fn run(ours: bool, workload: &str, number: u64) {
    if let Some(workload) = workload.strip_prefix("st3-lifo-") {
        if ours { lifo_ours::run(workload, number) } else { lifo_original::run(workload, number) }
    } else if let Some(workload) = workload.strip_prefix("st3-fifo-") {
        if ours { fifo_ours::run(workload, number) } else { fifo_original::run(workload, number) }
    } else if ours {
        crossbeam_ours::run(workload, number);
    } else {
        crossbeam_original::run(workload, number);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, workload, number, rest @ ..] = &arguments[..] else {
        panic!("ours|original WORKLOAD NUMBER [time]")
    };
    let (ours, number) = (source == "ours", number.parse().expect("a number"));
    if rest.is_empty() {
        return run(ours, workload, number);
    }
    let nanoseconds = (0..15).map(|_| {
        let start = Instant::now();
        run(ours, workload, number);
        start.elapsed().as_secs_f64() * 1e9 / number as f64
    });
    println!("{:.2}", nanoseconds.fold(f64::INFINITY, f64::min));
}
