//! Times every engine on one tree, round by round, so that a noisy minute hits all of them alike.
//!
//! ```text
//! cargo run --release -p poach-scan --example engines -- DIR [ROUNDS] [THREADS] [ENGINE,..]
//! cargo run --release -p poach-scan --example engines -- --no-disk [ROUNDS] [THREADS] [ENGINE,..]
//! ```
//!
//! A tree is walked once before, so that it is in the kernel's caches. Beside each engine's seconds
//! stands the median, over the rounds, of its time over the last engine's in that round. Two ratios
//! follow, between which the true median lies, 19 times of 20. So a difference shows that is
//! smaller than the difference of two rounds.
//!
//! With `--no-disk` the tree is made up as it is walked, and no call reaches the kernel. The time
//! is then the walk's own work and the engine's. On a real tree the kernel's work, ten times as
//! much, hides it.

use std::ffi::CStr;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use poach_scan::sys::{Found, Kind, Meta, Sys};
use poach_scan::{Control, Engine, Options, Scan, scan, scan_on};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        bail!("say where: engines DIR|--no-disk [ROUNDS] [THREADS] [ENGINE,..]");
    };
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse()).context("ROUNDS")?;
    let threads = arguments.next().map(|text| text.parse::<NonZeroUsize>()).transpose()?;
    let engines: Vec<Engine> = match arguments.next() {
        Some(names) => names.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => Engine::ALL.to_vec(),
    };
    let no_disk = directory.as_os_str() == "--no-disk";
    let paths = [directory];
    let timed = |engine| -> Result<Scan> {
        let options = Options { engine, threads, ..Options::default() };
        let control = Control::new();
        Ok(if no_disk {
            scan_on(&MadeUp, &paths, &options, &control)?
        } else {
            scan(&paths, &options, &control)?
        })
    };

    let totals = timed(Engine::default())?.totals;
    let (entries, directories) = (totals.entries(), totals.directories);
    println!("{entries} entries in {}, {directories} of them directories", paths[0].display());
    let mut samples = vec![Vec::new(); engines.len()];
    for round in 0..rounds {
        for turn in 0..engines.len() {
            let turn = (turn + round) % engines.len();
            let scan = timed(engines[turn])?;
            let found = scan.totals;
            ensure!(found == totals, "{} found {found:?}, not {totals:?}", engines[turn]);
            samples[turn].push(scan.elapsed.as_secs_f64());
        }
    }
    let last = samples.last().cloned().unwrap_or_default();
    println!(
        "{:>16} {:>8} {:>8} {:>10} {:>13} {:>15}",
        "engine", "min s", "median s", "x the last", "between", "ns a directory"
    );
    for (engine, mut seconds) in engines.into_iter().zip(samples) {
        let mut ratios: Vec<f64> = seconds.iter().zip(&last).map(|(a, b)| a / b).collect();
        let (ratio, median) = (median(&mut ratios), median(&mut seconds));
        let (low, high) = interval(&ratios);
        let each = median * 1e9 / directories as f64;
        println!(
            "{engine:>16} {:>8.4} {median:>8.4} {ratio:>10.4} {low:>6.3}-{high:<6.3} {each:>15.1}",
            seconds[0]
        );
    }
    Ok(())
}

/// The median; sorts the samples.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// The two sorted samples between which the true median lies with a chance of 95 in 100. Each
/// sample is as likely above the true median as below it, and 1.96 standard deviations of that
/// count are left out.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let count = sorted.len() as f64;
    let away = (count / 2.0 - 0.98 * count.sqrt()).floor().max(0.0) as usize;
    (sorted[away], sorted[sorted.len() - 1 - away])
}

/// A tree of 603,637 directories that lies nowhere, 9 levels deep.
struct MadeUp;

/// How many directories a directory has, by its level.
const WIDTH: [usize; 9] = [6, 1, 14, 3, 6, 2, 11, 17, 0];

/// The names; which one it is tells nothing.
const NAMES: [&CStr; 4] = [c"alpha", c"beta", c"gamma-delta", c"a-name-of-twenty-bytes"];

struct MadeUpEntry(&'static CStr);

impl Found for MadeUpEntry {
    fn name(&self) -> &CStr {
        self.0
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Directory)
    }

    fn meta(&self) -> io::Result<Meta> {
        Ok(META)
    }
}

const META: Meta = Meta {
    kind: Kind::Directory,
    device: 1,
    inode: 1,
    links: 2,
    apparent: 1,
    disk: 1,
    modified: 0,
    accessed: 0,
    changed: 0,
    mode: 0,
    owner: 0,
    group: 0,
};

impl Sys for MadeUp {
    /// The level.
    type Directory = usize;
    type Buffer = ();
    type Found<'a> = MadeUpEntry;

    fn buffer(&self) {}

    fn handles(&self) -> usize {
        usize::MAX / 2
    }

    fn meta(&self, _path: &Path, _follow: bool) -> io::Result<Meta> {
        Ok(META)
    }

    fn open_path(&self, _path: &Path) -> io::Result<usize> {
        Ok(0)
    }

    fn open(&self, parent: &usize, _name: &CStr) -> io::Result<usize> {
        Ok(parent + 1)
    }

    fn duplicate(&self, directory: &usize) -> io::Result<usize> {
        Ok(*directory)
    }

    fn meta_of(&self, _directory: &usize) -> io::Result<Meta> {
        Ok(META)
    }

    fn meta_in(&self, _parent: &usize, _name: &CStr) -> io::Result<Meta> {
        Ok(META)
    }

    fn read(
        &self,
        directory: &usize,
        _buffer: &mut (),
        each: &mut impl FnMut(&MadeUpEntry) -> ControlFlow<()>,
    ) -> io::Result<()> {
        for number in 0..WIDTH[*directory] {
            if each(&MadeUpEntry(NAMES[number % NAMES.len()])).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn exhausted(&self, _error: &io::Error) -> bool {
        false
    }
}
