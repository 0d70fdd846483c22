//! Times every engine on one tree, round by round, so that a noisy minute hits all of them alike.
//!
//! ```text
//! cargo run --release -p poach-scan --example engines -- DIR [ROUNDS] [THREADS] [ENGINE,..]
//! ```
//!
//! The tree is walked once before, so that it is in the kernel's caches. Beside each engine's
//! seconds stands the median, over the rounds, of its time over the last engine's in that round:
//! what differs by less than a round does from the next still shows there.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use poach_scan::{Control, Engine, Options, scan};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        bail!("say where: engines DIR [ROUNDS] [THREADS] [ENGINE,..]");
    };
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse()).context("ROUNDS")?;
    let threads = arguments.next().map(|text| text.parse::<NonZeroUsize>()).transpose()?;
    let engines: Vec<Engine> = match arguments.next() {
        Some(names) => names.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => Engine::ALL.to_vec(),
    };
    let paths = [directory];
    let timed = |engine| -> Result<_> {
        let options = Options { engine, threads, ..Options::default() };
        let scan = scan(&paths, &options, &Control::new())?;
        Ok((scan.elapsed.as_secs_f64(), scan.totals))
    };

    let (_, totals) = timed(Engine::default())?;
    println!("{} entries in {}", totals.entries(), paths[0].display());
    let mut samples = vec![Vec::new(); engines.len()];
    for round in 0..rounds {
        for turn in 0..engines.len() {
            let turn = (turn + round) % engines.len();
            let (seconds, found) = timed(engines[turn])?;
            ensure!(found == totals, "{} found {found:?}, not {totals:?}", engines[turn]);
            samples[turn].push(seconds);
        }
    }
    let last = samples.last().cloned().unwrap_or_default();
    println!("{:>16} {:>8} {:>8} {:>10}", "engine", "min s", "median s", "x the last");
    for (engine, mut seconds) in engines.into_iter().zip(samples) {
        let mut ratios: Vec<f64> = seconds.iter().zip(&last).map(|(a, b)| a / b).collect();
        let (ratio, median) = (median(&mut ratios), median(&mut seconds));
        println!("{engine:>16} {:>8.4} {median:>8.4} {ratio:>10.4}", seconds[0]);
    }
    Ok(())
}

/// The middle one; sorts what it is given.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
