//! Programs over rayon's iterators, joins and scopes, timed as they are asked for.
//!
//! ```text
//! iterators THREADS
//! ```
//!
//! Reads lines with a workload's name and a size. The program answers each line with the
//! nanoseconds that one run takes: the median of the runs that fit into 40 ms, at least three. A
//! third word sets the number of runs, for counting instructions. `list` answers with all names.
//! The program is built on the original core and on the drop-in, so that another program can ask
//! both in turn.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use rayon::prelude::*;

/// What is run, and for what sizes it makes sense.
struct Workload {
    name: &'static str,
    most: usize,
    make: fn(usize) -> Box<dyn FnMut()>,
}

fn numbers(size: usize) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(size as u64);
    (0..size).map(|_| random.u64(..)).collect()
}

fn fib(n: usize) -> u64 {
    if n < 2 {
        return n as u64;
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

const ALL: usize = usize::MAX;

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "sum",
        most: ALL,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || _ = black_box(numbers.par_iter().map(|&n| n >> 32).sum::<u64>()))
        },
    },
    Workload {
        name: "map-collect",
        most: ALL,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                _ = black_box(numbers.par_iter().map(|n| n.wrapping_mul(3)).collect::<Vec<u64>>());
            })
        },
    },
    Workload {
        name: "filter-count",
        most: ALL,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || _ = black_box(numbers.par_iter().filter(|&n| n % 3 == 0).count()))
        },
    },
    Workload {
        name: "sort",
        most: 1_000_000,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                let mut copy = numbers.clone();
                copy.par_sort();
                black_box(copy);
            })
        },
    },
    Workload {
        name: "sort-unstable",
        most: 1_000_000,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                let mut copy = numbers.clone();
                copy.par_sort_unstable();
                black_box(copy);
            })
        },
    },
    Workload {
        name: "chunks",
        most: ALL,
        make: |size| {
            let numbers = numbers(size);
            let sum = |chunk: &[u64]| chunk.iter().fold(0, |a: u64, &b| a.wrapping_add(b));
            Box::new(move || _ = black_box(numbers.par_chunks(64).map(sum).max()))
        },
    },
    Workload {
        name: "bridge",
        most: 10_000,
        make: |size| {
            Box::new(move || {
                let work = |n: usize| (0..100).fold(n, |a, b| a.wrapping_mul(31) ^ b);
                _ = black_box((0..size).par_bridge().map(work).max());
            })
        },
    },
    Workload {
        name: "flat-map",
        most: 1_000_000,
        make: |size| {
            let numbers = numbers(size / 10);
            Box::new(move || {
                let ten =
                    |&n: &u64| (0..10_u64).into_par_iter().map(move |i| n.rotate_left(i as u32));
                _ = black_box(numbers.par_iter().flat_map(ten).max());
            })
        },
    },
    Workload {
        name: "reduce",
        most: ALL,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                _ = black_box(numbers.par_iter().copied().reduce(|| 0, |a, b| a.max(b)));
            })
        },
    },
    Workload {
        name: "max-len-1",
        most: 1_000_000,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                numbers.par_iter().with_max_len(1).for_each(|n| _ = black_box(n.count_ones()));
            })
        },
    },
    Workload {
        name: "strings",
        most: 1_000_000,
        make: |size| {
            let numbers = numbers(size);
            Box::new(move || {
                _ = black_box(numbers.par_iter().map(|n| n.to_string().len()).sum::<usize>());
            })
        },
    },
    Workload { name: "fib", most: 25, make: |size| Box::new(move || _ = black_box(fib(size))) },
    Workload {
        name: "spawns",
        most: 1_000_000,
        make: |size| {
            Box::new(move || {
                rayon::scope(|s| (0..size).for_each(|i| s.spawn(move |_| _ = black_box(i))));
            })
        },
    },
];

/// The median time of a run, in nanoseconds, of `runs` runs.
fn time(mut run: Box<dyn FnMut()>, runs: Option<usize>) -> u128 {
    let mut times = Vec::new();
    run();
    let start = Instant::now();
    let more = |done| match runs {
        Some(runs) => done < runs.max(1),
        None => done < 3 || start.elapsed() < Duration::from_millis(40),
    };
    while more(times.len()) {
        let begun = Instant::now();
        run();
        times.push(begun.elapsed().as_nanos());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).ok_or("say how many threads")?.parse()?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == "list" {
            for Workload { name, most, .. } in WORKLOADS {
                write!(out, "{name} {most} ")?;
            }
            writeln!(out)?;
        } else {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (&[name, size], runs) = words.split_first_chunk().ok_or("a workload and a size")?;
            let runs = runs.first().map(|runs| runs.parse()).transpose()?;
            let workload = WORKLOADS.iter().find(|workload| workload.name == name);
            let workload = workload.ok_or_else(|| format!("there is no {name}"))?;
            writeln!(out, "{}", time((workload.make)(size.parse()?), runs))?;
        }
        out.flush()?;
    }
    Ok(())
}
