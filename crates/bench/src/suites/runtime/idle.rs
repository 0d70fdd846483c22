//! `idle`: the processor time that a pool takes while it has nothing to do.
//!
//! A sample gives the pool work, and waits for a tenth of a second, the same for each system. Then
//! it reads twice what the system has counted of the pool's own threads.

use std::time::{Duration, Instant};
use std::{fs, hint, thread};

use anyhow::{Context as _, Result, ensure};

use super::library::Library;
use crate::{Case, Sample, Size, Unit};

/// The time for which a pool may look around after its work.
const SETTLE: Duration = Duration::from_millis(100);

/// The leaves of the work before, and what each takes: a hundredth of a second in all.
const LEAVES: u32 = 128;
const LEAF: Duration = Duration::from_micros(80);

pub(super) fn case<L: Library>(size: Size, workers: usize) -> Case {
    let span = Duration::from_millis(size.pick(20, 500, 2_000, 2_000));
    Case::new("idle", L::NAME, workers, Unit::MICROSECONDS, move || {
        let pool = L::new(workers)?;
        Ok(move || sample(&pool, workers, span))
    })
}

fn sample<L: Library>(pool: &L, workers: usize, span: Duration) -> Result<Sample> {
    let leaves = pool.install(|| spread::<L>(LEAVES));
    ensure!(leaves == LEAVES, "of {LEAVES} leaves {leaves} were computed");
    thread::sleep(SETTLE);
    let threads = pool.threads().numbers();
    ensure!(
        threads.len() == workers,
        "{} of the {workers} threads of the pool have started",
        threads.len()
    );
    let before = processor_time(&threads)?;
    ensure!(before > 0, "the system has counted no time of the pool's threads, which have started");
    thread::sleep(span);
    Ok(Sample::from(processor_time(&threads)?.saturating_sub(before) as f64 / 1e3))
}

fn spread<L: Library>(leaves: u32) -> u32 {
    if leaves == 1 {
        let start = Instant::now();
        while start.elapsed() < LEAF {
            hint::spin_loop();
        }
        return 1;
    }
    let (a, b) = L::join(|| spread::<L>(leaves / 2), || spread::<L>(leaves - leaves / 2));
    a + b
}

/// The nanoseconds that these threads of this process have been on a processor.
fn processor_time(threads: &[u32]) -> Result<u64> {
    let of = |number: &u32| {
        let path = format!("/proc/self/task/{number}/schedstat");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{path}: this system does not say what a thread takes"))?;
        let nanoseconds =
            text.split_whitespace().next().and_then(|field| field.parse::<u64>().ok());
        nanoseconds.with_context(|| format!("{path}: `{}` begins with no time", text.trim_end()))
    };
    threads.iter().map(of).sum()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::library::Rayon;
    use super::*;

    #[test]
    fn threads_at_work_are_counted_and_none_that_are_missing() {
        let pool = Rayon::new(1).unwrap();
        pool.install(|| spread::<Rayon>(LEAVES));
        let time = processor_time(&pool.threads().numbers()).unwrap();
        assert!(time >= 1_000_000, "{time} ns for {LEAVES} leaves of {LEAF:?}");
        let error = format!("{:#}", sample(&pool, 2, SETTLE).unwrap_err());
        assert!(error.contains("1 of the 2 threads"), "{error}");
        let error = format!("{:#}", processor_time(&[u32::MAX]).unwrap_err());
        assert!(error.contains("does not say what a thread takes"), "{error}");
    }
}
