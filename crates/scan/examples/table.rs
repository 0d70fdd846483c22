//! The table of Phanes, part 4, for any directory: what is in it, and how long each engine takes to
//! find out, cold and warm.
//!
//! ```text
//! cargo run --release -p poach-scan --example table -- DIR [ROUNDS] [--cold]
//! ```
//!
//! Warm is the median of the rounds, which go through the engines in turn, after one walk that is
//! not counted. With `--cold` each engine walks once more after the kernel's caches were dropped,
//! which wants root, and slows the whole machine; without it that column is empty. GB are
//! 1,000,000,000 bytes on disk.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use poach_scan::report::count;
use poach_scan::{Control, Engine, Options, Scan, scan};

fn main() -> Result<()> {
    let (flags, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let directory = words.first().context("say where: table DIR [ROUNDS] [--cold]")?;
    let rounds: usize = words.get(1).map_or(Ok(5), |text| text.parse()).context("ROUNDS")?;
    ensure!(rounds > 0, "ROUNDS: one at least");
    ensure!(flags.iter().all(|flag| flag == "--cold"), "the only flag is --cold");
    let paths = [PathBuf::from(directory)];
    let walk = |engine| -> Result<Scan> {
        let options = Options { engine, ..Options::default() };
        Ok(scan(&paths, &options, &Control::new())?)
    };

    let cold = Engine::ALL.map(|engine| {
        if flags.is_empty() {
            return Ok(None);
        }
        drop_caches()?;
        walk(engine).map(|found| Some(found.elapsed.as_secs_f64()))
    });
    let found = walk(Engine::default())?.totals;
    let mut warm = Engine::ALL.map(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (engine, seconds) in Engine::ALL.into_iter().zip(&mut warm) {
            seconds.push(walk(engine)?.elapsed.as_secs_f64());
        }
    }

    println!("| engine | files | directories | symlinks | GB | cold, s | warm, s | entries/s |");
    println!("|---|---|---|---|---|---|---|---|");
    let [files, directories, links] = [found.files, found.directories, found.symlinks].map(count);
    let size = found.disk_bytes as f64 / 1e9;
    for ((engine, cold), mut seconds) in Engine::ALL.into_iter().zip(cold).zip(warm) {
        seconds.sort_by(f64::total_cmp);
        let warm = seconds[rounds / 2];
        let cold = cold?.map_or_else(String::new, |seconds| format!("{seconds:.3}"));
        let rate = count((found.entries() as f64 / warm) as u64);
        println!(
            "| {engine} | {files} | {directories} | {links} | {size:.2} | {cold} | {warm:.3} | {rate} |"
        );
    }
    Ok(())
}

/// Makes the kernel forget what it has read.
fn drop_caches() -> Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3")
        .context("--cold: the caches are not dropped; it wants root")
}
