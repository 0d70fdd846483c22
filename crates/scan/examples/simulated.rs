//! A scan of a tree that is made up as it is walked: how time and memory grow with the entries,
//! with and without a limit.
//!
//! ```text
//! cargo run --release -p poach-scan --example simulated -- [ENTRIES] [MEMORY-IN-MIB]
//! ```
//!
//! Each directory has nine files and up to ten directories, so one entry in ten is a directory.
//! Files are kept, as `--all` does. A line for a fiftieth of the entries, a tenth and all of them
//! shows whether time and memory are linear. The memory is Linux's `VmHWM`, the most that the
//! process ever held. It only grows, so the smallest tree comes first.

use std::ffi::{CStr, CString};
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use poach_scan::report::{bytes, count};
use poach_scan::sys::{Found, Kind, Meta, Sys};
use poach_scan::{Control, Options, scan_on};

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let entries: u64 = words.next().map_or(Ok(50_000_000), |it| it.parse()).context("ENTRIES")?;
    let limit = words.next().map(|it| it.parse::<u64>()).transpose().context("MEMORY-IN-MIB")?;
    let memory = limit.map(|mebibytes| mebibytes << 20);
    println!("| entries | s | ns an entry | most memory | bytes an entry | summed up |");
    println!("|---|---|---|---|---|---|");
    for part in [50, 10, 1] {
        let sys = MadeUp { directories: entries / part / 10 };
        let threads = NonZeroUsize::new(2);
        let options = Options { keep_files: true, threads, memory, ..Options::default() };
        let scan = scan_on(&sys, &[PathBuf::from("made-up")], &options, &Control::new())?;
        let found = scan.totals.entries();
        ensure!(found == sys.directories * 10, "{found} entries were found");
        let (seconds, most) = (scan.elapsed.as_secs_f64(), most_memory().unwrap_or(0));
        println!(
            "| {} | {seconds:.2} | {:.0} | {} | {:.1} | {} |",
            count(found),
            seconds * 1e9 / found as f64,
            bytes(most),
            most as f64 / found as f64,
            count(scan.summed)
        );
    }
    Ok(())
}

/// The most that this process has held, in bytes.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

/// A tree of `directories` directories: those below number `n` are `10 n + 1` to `10 n + 10`, as
/// far as there are any.
struct MadeUp {
    directories: u64,
}

/// An entry with a name of its own.
struct Made {
    kind: Kind,
    name: CString,
}

impl Found for Made {
    fn name(&self) -> &CStr {
        &self.name
    }
    fn kind(&self) -> Option<Kind> {
        Some(self.kind)
    }
    fn meta(&self) -> io::Result<Meta> {
        Ok(Meta { apparent: 10, disk: 4096, ..Meta::of(self.kind) })
    }
}

impl Sys for MadeUp {
    type Directory = u64;
    type Buffer = ();
    type Found<'a> = Made;

    fn buffer(&self) {}
    fn handles(&self) -> usize {
        1 << 16
    }
    fn meta(&self, _: &Path, _: bool) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn open_path(&self, _: &Path) -> io::Result<u64> {
        Ok(0)
    }
    fn open(&self, _: &u64, name: &CStr) -> io::Result<u64> {
        let number = name.to_str().ok().and_then(|name| name.strip_prefix("directory-"));
        number.and_then(|number| number.parse().ok()).ok_or(io::ErrorKind::NotFound.into())
    }
    fn duplicate(&self, directory: &u64) -> io::Result<u64> {
        Ok(*directory)
    }
    fn meta_of(&self, _: &u64) -> io::Result<Meta> {
        Ok(Meta { apparent: 1, disk: 4096, ..Meta::of(Kind::Directory) })
    }
    fn meta_in(&self, _: &u64, _: &CStr) -> io::Result<Meta> {
        Ok(Meta::of(Kind::Directory))
    }
    fn read(
        &self,
        directory: &u64,
        (): &mut (),
        each: &mut impl FnMut(&Made) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let below = directory * 10 + 1..(directory * 10 + 11).min(self.directories);
        let directories = below.map(|number| (Kind::Directory, format!("directory-{number}")));
        let files = (0..9).map(|number| (Kind::File, format!("file-{number}.txt")));
        for (kind, name) in directories.chain(files) {
            if each(&Made { kind, name: CString::new(name)? }).is_break() {
                break;
            }
        }
        Ok(())
    }
    fn exhausted(&self, _: &io::Error) -> bool {
        false
    }
}
