//! `region-outside`, `region-install` and `region-inside`: short parallel regions, called again and
//! again.
//!
//! A caller runs a balanced tree of joins whose leaves take a microsecond each, W leaves in all.
//! Then it computes alone for G microseconds, and calls the next region, as games, solvers and
//! query engines do. A sample has every cell of [`LENGTHS`] by [`GAPS`]. A cell's ratio is the
//! region's time over the time of the same region run sequentially on the calling thread. The
//! sample's value is the geometric mean of the ratios, and its counters are the speed-ups of the
//! cells, by the names of [`cell`]. No time includes the gap.
//!
//! | workload | the region is called |
//! |---|---|
//! | `region-outside` | from a thread that is no worker, by the form of each system's join for such threads |
//! | `region-install` | from a thread that is no worker, and handed to the pool's own threads |
//! | `region-inside` | by a task of the pool, which computes in the gaps as well |
//!
//! rayon has one way in from outside, which stands in the first two; chili's runs on the calling
//! thread.
//!
//! A leaf is a fixed number of dependent operations, calibrated once, not a time: a leaf that is
//! kept from its processor takes longer. Sequential and parallel regions come in turn, in groups of
//! some milliseconds, with the same gaps: a region after a pause finds its caches colder, in either
//! form. The first quarter of each group is not timed, since a runtime may learn from it.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use poach_runtime::ThreadPool;

use super::library::comparable;
use crate::fork::{Chili, Fork, Rayon, Sequential, Split, System, Task};
use crate::{Case, Request, Sample, Size, Unit, geometric_mean};

/// The leaves of a region, a microsecond each.
pub(crate) const LENGTHS: [u32; 5] = [8, 32, 128, 512, 2_048];

/// The microseconds between two regions.
pub(crate) const GAPS: [u32; 4] = [0, 20, 200, 2_000];

/// The name of a cell's counter.
pub(crate) fn cell(gap: u32, length: u32) -> String {
    format!("gap {gap} us, {length} leaves")
}

/// Times of the sequential program.
const RELATIVE: Unit = Unit { name: "x seq.", better: crate::Better::Lower };

pub(super) fn cases(request: &Request, cases: &mut Vec<Case>) {
    for workers in request.workers.iter().copied() {
        let size = request.size;
        cases.push(case("region-outside", size, workers, from_outside::<Split>));
        cases.push(case("region-outside", size, workers, from_outside::<Rayon>));
        cases.push(case("region-outside", size, workers, from_outside::<Chili>));
        cases.push(case("region-install", size, workers, from_outside::<Installed>));
        cases.push(case("region-install", size, workers, from_outside::<Rayon>));
        cases.push(case("region-inside", size, workers, from_inside::<Split>));
        cases.push(case("region-inside", size, workers, from_inside::<Rayon>));
        cases.push(case("region-inside", size, workers, from_inside::<Chili>));
    }
}

/// Regions of one cell, one after the other: the time that they took, without the gaps.
type Run<S> = fn(&S, &Group) -> Result<Duration>;

fn case<S: System>(workload: &'static str, size: Size, workers: usize, run: Run<S>) -> Case {
    Case::new(workload, S::NAME, workers, RELATIVE, move || {
        comparable(workers)?;
        let system = S::new(workers)?;
        Ok(move || sample(size, |group| run(&system, group)))
    })
}

/// A number of regions of one cell.
#[derive(Clone, Copy)]
struct Group {
    leaves: u32,
    gap: Duration,
    /// The number of regions before the timed regions.
    untimed: u32,
    timed: u32,
}

impl Group {
    /// Calls `region` again and again, and returns the time that the timed calls took.
    fn each(&self, mut region: impl FnMut(Region) -> u64) -> Result<Duration> {
        let mut time = Duration::ZERO;
        for number in 0..self.untimed + self.timed {
            let start = Instant::now();
            let sum = region(Region { from: 0, to: self.leaves });
            let end = Instant::now();
            ensure!(
                sum == u64::from(self.leaves),
                "a region of {} leaves computed {sum} of them",
                self.leaves
            );
            if number >= self.untimed {
                time += end - start;
            }
            while end.elapsed() < self.gap {
                leaf();
            }
        }
        Ok(time)
    }
}

/// All cells, each by groups of parallel and of sequential regions in turn.
fn sample(size: Size, parallel: impl Fn(&Group) -> Result<Duration>) -> Result<Sample> {
    // About the time of a group's regions with their gaps, and the number of groups of a cell.
    let (span, groups) = size.pick((1, 1), (12_000, 1), (50_000, 4), (50_000, 4));
    let mut sample = Sample::default();
    let mut relative = Vec::new();
    for gap in GAPS {
        for leaves in LENGTHS {
            let timed = (span / (gap + leaves)).clamp(4, 400);
            let group = Group {
                leaves,
                gap: Duration::from_micros(u64::from(gap)),
                untimed: timed / 4,
                timed,
            };
            let (mut sequential, mut time) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..groups {
                sequential += group.each(|region| region.run(Sequential))?;
                time += parallel(&group)?;
            }
            let speed_up = sequential.as_secs_f64() / time.as_secs_f64();
            relative.push(1.0 / speed_up);
            sample = sample.count(&cell(gap, leaves), speed_up);
        }
    }
    sample.value = geometric_mean(relative).context("no cell was measured")?;
    Ok(sample)
}

fn from_outside<S: System>(system: &S, group: &Group) -> Result<Duration> {
    group.each(|region| system.run(region))
}

fn from_inside<S: System>(system: &S, group: &Group) -> Result<Duration> {
    system.run(*group)
}

impl Task for Group {
    type Output = Result<Duration>;

    fn run<F: Fork>(self, mut fork: F) -> Result<Duration> {
        self.each(|region| region.fork(&mut fork))
    }
}

/// Leaves of a region: those from one number to another.
struct Region {
    from: u32,
    to: u32,
}

impl Region {
    /// The number of leaves, each of which has been computed.
    #[inline]
    fn fork<F: Fork>(self, fork: &mut F) -> u64 {
        if self.to - self.from == 1 {
            leaf();
            return 1;
        }
        let middle = self.from.midpoint(self.to);
        let halves = (Region { to: middle, ..self }, Region { from: middle, ..self });
        let (a, b) = fork.join(halves.0, halves.1);
        a + b
    }
}

impl Task for Region {
    type Output = u64;

    fn run<F: Fork>(self, mut fork: F) -> u64 {
        self.fork(&mut fork)
    }
}

/// A microsecond of dependent operations.
fn leaf() {
    static STEPS: OnceLock<u32> = OnceLock::new();
    steps(*STEPS.get_or_init(calibrate));
}

#[inline(never)]
fn steps(count: u32) {
    let mut x = black_box(1_u64);
    for _ in 0..count {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

/// The number of steps in a microsecond, by the quickest of some tries, which was not interrupted.
fn calibrate() -> u32 {
    const TRY: u32 = 20_000;
    let one = || {
        let start = Instant::now();
        steps(TRY);
        start.elapsed()
    };
    let best = (0..50).map(|_| one()).min().unwrap_or_default();
    let nanoseconds = best.as_nanos().max(1) as u64;
    u32::try_from(u64::from(TRY) * 1_000 / nanoseconds).map_or(1, |steps| steps.max(1))
}

/// Poach, with each call handed to the pool's own threads.
struct Installed(ThreadPool);

impl System for Installed {
    const NAME: &'static str = "split";

    fn new(workers: usize) -> Result<Self> {
        let pool = ThreadPool::builder().num_threads(workers).build();
        Ok(Installed(pool.context("split: the pool could not be made")?))
    }

    fn run<T: Task>(&self, task: T) -> T::Output {
        self.0.install(|| poach_runtime::worker(|worker| task.run(worker)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_every_cell_and_their_mean() {
        let sample = sample(Size::Tiny, |group| group.each(|region| region.run(Sequential)));
        let sample = sample.unwrap();
        assert_eq!(sample.counters.len(), LENGTHS.len() * GAPS.len());
        let product: f64 = sample.counters.values().map(|speed_up| 1.0 / speed_up).product();
        let mean = product.powf(1.0 / sample.counters.len() as f64);
        assert!((mean - sample.value).abs() < 1e-9, "{mean} {sample:?}");
    }

    #[test]
    fn a_region_that_loses_leaves_is_noticed() {
        let group = Group { leaves: 8, gap: Duration::ZERO, untimed: 1, timed: 1 };
        group.each(|region| region.run(Sequential)).unwrap();
        let error = group.each(|_| 7).unwrap_err().to_string();
        assert!(error.contains("8 leaves computed 7"), "{error}");
    }

    #[test]
    fn a_region_from_inside_runs_in_the_pool() {
        let pool = Installed::new(2).unwrap();
        let group = Group { leaves: 8, gap: Duration::ZERO, untimed: 0, timed: 2 };
        assert!(from_inside(&pool, &group).unwrap() > Duration::ZERO);
        assert!(pool.0.stats().total().fields().any(|(_, count)| count > 0));
    }
}
