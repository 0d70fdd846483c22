//! Short parallel regions, called again and again, beside the same with rayon and run sequentially.
//!
//! `cargo run --release -p poach-runtime --example regions -- WHERE [GAPS] [LENGTHS] [ROUNDS]`
//!
//! WHERE is `outside`, `install` or `inside`; GAPS and LENGTHS are lists of microseconds, as in
//! `0,20,200,2000` and `8,32,128,512,2048`. Each cell is a balanced tree of joins with a leaf of
//! one microsecond for each of its length, called at an interval. In each round come groups of such
//! regions, run sequentially, by Poach and by rayon, in turn; the first quarter of a group is not
//! timed.
//!
//! Each printed number is a median, over the rounds, of the sequential group's time divided by the
//! other's: Poach / rayon. The first is for the median region of each group, the one in brackets
//! for the mean of all but the slowest tenth. Interference by other programs hardly shows in the
//! first, and occasional costs of a runtime show in the second. `poach bench runtime` has the same
//! workload in its suite.

use std::hint::black_box;
use std::time::{Duration, Instant};

use poach_runtime::{ThreadPool, Worker};

/// Two workers each.
const WORKERS: usize = 2;
/// The regions of a group take about so long with their gaps.
const SPAN: u32 = 20_000;

#[derive(Clone, Copy)]
struct Group {
    leaves: u32,
    gap: Duration,
    count: u32,
    steps: u32,
}

impl Group {
    fn time(&self, mut region: impl FnMut(u32, u32)) -> Times {
        let mut times = Vec::with_capacity(self.count as usize);
        for number in 0..self.count + self.count / 4 {
            let start = Instant::now();
            region(self.leaves, self.steps);
            let end = Instant::now();
            if number >= self.count / 4 {
                times.push((end - start).as_secs_f64());
            }
            while end.elapsed() < self.gap {
                leaf(self.steps);
            }
        }
        times.sort_by(f64::total_cmp);
        let most = &times[..times.len() - times.len() / 10];
        Times { median: quantile(&times, 0.5), mean: most.iter().sum::<f64>() / most.len() as f64 }
    }
}

/// Seconds of the regions of a group.
struct Times {
    median: f64,
    mean: f64,
}

/// A microsecond of dependent operations.
#[inline(never)]
fn leaf(steps: u32) {
    let mut x = black_box(1_u64);
    for _ in 0..steps {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(x);
}

fn calibrate() -> u32 {
    const TRY: u32 = 20_000;
    let one = |_| {
        let start = Instant::now();
        leaf(TRY);
        start.elapsed()
    };
    let best = (0..50).map(one).min().unwrap_or_default().as_nanos().max(1) as u64;
    (u64::from(TRY) * 1_000 / best).max(1) as u32
}

fn sequential(leaves: u32, steps: u32) {
    if leaves == 1 {
        return leaf(steps);
    }
    sequential(leaves / 2, steps);
    sequential(leaves - leaves / 2, steps);
}

fn poach(worker: &mut Worker<'_>, leaves: u32, steps: u32) {
    if leaves == 1 {
        return leaf(steps);
    }
    let half = leaves / 2;
    worker.join(
        |mut worker| poach(&mut worker, half, steps),
        |mut worker| poach(&mut worker, leaves - half, steps),
    );
}

fn rayon(leaves: u32, steps: u32) {
    if leaves == 1 {
        return leaf(steps);
    }
    let half = leaves / 2;
    rayon::join(|| rayon(half, steps), || rayon(leaves - half, steps));
}

fn quantile(sorted: &[f64], of: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * of).round() as usize]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "outside".to_owned());
    let mut list = |default: &str| {
        let list = arguments.next().unwrap_or_else(|| default.to_owned());
        list.split(',').map(str::parse).collect::<Result<Vec<u32>, _>>()
    };
    let (gaps, lengths) = (list("0,20,200,2000")?, list("8,32,128,512,2048")?);
    let rounds = list("9")?[0];
    let ours = ThreadPool::builder().num_threads(WORKERS).build()?;
    let theirs = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build()?;
    let steps = calibrate();
    let with_poach = |group: &Group| match &*place {
        "inside" => ours.install(|| {
            poach_runtime::worker(|mut worker| {
                group.time(|leaves, steps| poach(&mut worker, leaves, steps))
            })
        }),
        "install" => group.time(|leaves, steps| {
            ours.install(|| poach_runtime::worker(|mut worker| poach(&mut worker, leaves, steps)));
        }),
        _ => group.time(|leaves, steps| ours.run(|mut worker| poach(&mut worker, leaves, steps))),
    };
    let with_rayon = |group: &Group| match &*place {
        "inside" => theirs.install(|| group.time(rayon)),
        _ => group.time(|leaves, steps| theirs.install(|| rayon(leaves, steps))),
    };
    println!("{place}, {WORKERS} workers, {steps} steps a leaf: Poach / rayon");
    for &gap in &gaps {
        print!("G {gap:>5} |");
        for &leaves in &lengths {
            let count = (SPAN / (gap + leaves)).clamp(4, 400);
            let group = Group { leaves, gap: Duration::from_micros(u64::from(gap)), count, steps };
            let alone = Group { gap: Duration::ZERO, ..group };
            let mut ratios = [const { Vec::new() }; 4];
            for _ in 0..rounds {
                let base = alone.time(sequential);
                let (ours, theirs) = (with_poach(&group), with_rayon(&group));
                ratios[0].push(base.median / ours.median);
                ratios[1].push(base.median / theirs.median);
                ratios[2].push(base.mean / ours.mean);
                ratios[3].push(base.mean / theirs.mean);
            }
            let [a, b, c, d] = ratios.map(|mut ratios| {
                ratios.sort_by(f64::total_cmp);
                quantile(&ratios, 0.5)
            });
            print!(" {leaves:>4}: {a:.2} / {b:.2} ({c:.2} / {d:.2}) |");
        }
        println!();
    }
    println!("{}", ours.stats());
    Ok(())
}
