//! `call-asleep` and `call-hot`: what an empty call from outside takes; `install-asleep` and
//! `install-hot`: the same, handed to a thread of the pool. rayon has one way for both.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::library::Library;
use super::{REST, median};
use crate::{Case, Sample, Size, Unit};

/// Whether the pool rests before each call.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    name: &'static str,
    asleep: bool,
    /// Whether the call is handed to a thread of the pool.
    installed: bool,
}

pub(super) const WORKLOADS: [Workload; 4] = [
    Workload { name: "call-asleep", asleep: true, installed: false },
    Workload { name: "call-hot", asleep: false, installed: false },
    Workload { name: "install-asleep", asleep: true, installed: true },
    Workload { name: "install-hot", asleep: false, installed: true },
];

pub(super) fn case<L: Library>(workload: Workload, size: Size, workers: usize) -> Case {
    let calls = if workload.asleep {
        size.pick(3, 50, 200, 200)
    } else {
        size.pick(3, 2_000, 20_000, 20_000)
    };
    Case::new(workload.name, L::NAME, workers, Unit::NANOSECONDS, move || {
        let pool = L::new(workers)?;
        Ok(move || sample(&pool, calls, workload))
    })
}

/// Each call is timed alone, which has the clock's own reading in it, and hands its number back.
fn sample<L: Library>(pool: &L, calls: usize, workload: Workload) -> Result<Sample> {
    let mut times = Vec::with_capacity(calls);
    for number in 0..calls {
        if workload.asleep {
            thread::sleep(REST);
        }
        let start = Instant::now();
        let back = if workload.installed {
            pool.install(|| black_box(number))
        } else {
            pool.call(|| black_box(number))
        };
        times.push(start.elapsed());
        ensure!(back == number, "the call {number} came back as {back}");
    }
    let worker = if workload.installed { pool.install(L::worker) } else { pool.call(L::worker) };
    ensure!(worker.is_some(), "a call into the pool did not run in it");
    Ok(median(&times, 1e9).count("clock", clock()))
}

/// What a time of nothing comes out as, in nanoseconds.
fn clock() -> f64 {
    let nothing = || {
        let start = Instant::now();
        start.elapsed()
    };
    median(&[(); 99].map(|()| nothing()), 1e9).value
}

#[cfg(test)]
mod tests {
    use super::super::library::{Poach, Threads};
    use super::*;

    /// Runs what it is given where it is called.
    struct Nowhere(Poach);

    impl Library for Nowhere {
        const NAME: &'static str = "nowhere";

        fn new(workers: usize) -> Result<Self> {
            Poach::new(workers).map(Nowhere)
        }
        fn call<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
            f()
        }
        fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
            f()
        }
        fn join<A: Send, B: Send>(
            a: impl FnOnce() -> A + Send,
            b: impl FnOnce() -> B + Send,
        ) -> (A, B) {
            Poach::join(a, b)
        }
        fn scope<T: FnOnce() + Send>(tasks: u64, make: impl Fn(u64) -> T + Sync) {
            Poach::scope(tasks, make);
        }
        fn sort(_numbers: &mut [u64], _stable: bool) {}

        fn worker() -> Option<usize> {
            Poach::worker()
        }
        fn threads(&self) -> &Threads {
            self.0.threads()
        }
    }

    #[test]
    fn a_call_that_is_not_in_the_pool_is_noticed() {
        for workload in WORKLOADS {
            sample(&Poach::new(1).unwrap(), 2, workload).unwrap();
            let error = sample(&Nowhere::new(1).unwrap(), 2, workload).unwrap_err().to_string();
            assert!(error.contains("did not run in it"), "{error}");
        }
    }
}
