//! What a program's pools do, for whoever asks by the environment.
//!
//! | variable | what it does |
//! |---|---|
//! | `POACH_STATS=1` | prints each pool's counters to standard error when the pool is dropped, the global one's when the program ends |
//! | `POACH_TRACE=FILE` | writes a timeline of the global pool to the file, for <https://ui.perfetto.dev>; those of the program's other pools to `FILE` with a number before its extension |
//!
//! A program that is killed, or aborts, reports nothing of its global pool; nor does one on a system other than Unix. If standard
//! error is closed, nothing is said, and the program ends as it would have.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use poach_runtime::ThreadPool;
use poach_runtime::trace::Recording;

/// The beginnings and ends of spans that a worker remembers: 10 MiB each. What comes after them is counted.
const EVENTS: usize = 1 << 18;

/// A pool that somebody asks about.
pub(crate) struct Observed {
    name: String,
    /// The process that the pool works in. A child that was forked since has nothing to report of it.
    process: u32,
    stats: bool,
    trace: Option<(PathBuf, Recording)>,
}

/// Of the global pool. No lock: one that a thread holds at a fork stays held in the child, which looks here when it ends.
static GLOBAL: AtomicPtr<Observed> = AtomicPtr::new(ptr::null_mut());

/// Says something on standard error, if anybody reads it: `eprintln` panics if not, and the end of a program may not.
macro_rules! say {
    ($($what:tt)*) => {
        drop(writeln!(io::stderr(), $($what)*))
    };
}

impl Observed {
    /// Begins to observe a pool that the program has made, if the environment asks for it.
    pub(crate) fn begin(pool: &ThreadPool) -> Option<Observed> {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        Asked::by(|variable| env::var_os(variable))?;
        // Relaxed: a number that nobody else has.
        Observed::of(pool, NUMBER.fetch_add(1, Ordering::Relaxed))
    }

    /// Pool `number` of the program; the global one is 0.
    fn of(pool: &ThreadPool, number: usize) -> Option<Observed> {
        let Asked { stats, trace } = Asked::by(|variable| env::var_os(variable))?;
        let trace =
            trace.and_then(|file| Some((numbered(&file, number), pool.record(EVENTS).ok()?)));
        let name = if number == 0 { "the global pool".into() } else { format!("pool {number}") };
        Some(Observed { name, process: process::id(), stats, trace })
    }

    /// Says what the pool has done so far.
    pub(crate) fn report(self, pool: &ThreadPool) {
        if self.process != process::id() {
            // A recording cannot be stopped without the workers.
            return mem::forget(self);
        }
        if self.stats {
            say!("{} of {} threads:\n{}", self.name, pool.threads(), pool.stats());
        }
        if let Some((file, recording)) = self.trace {
            let trace = recording.stop();
            let missed: u64 = trace.workers().iter().map(|worker| worker.missed()).sum();
            let write = || -> io::Result<()> {
                let mut out = BufWriter::new(File::create(&file)?);
                write!(out, "{}", trace.chrome_json())?;
                out.flush()
            };
            match write() {
                Ok(()) if missed == 0 => {}
                Ok(()) => {
                    say!("{}: {missed} events came after the last that fits", file.display())
                }
                Err(error) => say!("POACH_TRACE={}: {error}", file.display()),
            }
        }
    }
}

/// The global pool has been made: observes it to the end of the program, if the environment asks for it.
pub(crate) fn global() {
    let Some(observed) = Observed::of(poach_runtime::global(), 0) else {
        return;
    };
    // There is an old one in a forked child: its parent's, whose recording cannot be stopped here. It is left as it is. AcqRel, here
    // and below: what is taken out was made before it was put in.
    GLOBAL.swap(Box::into_raw(Box::new(observed)), Ordering::AcqRel);
    at_exit();
}

#[cfg(unix)]
fn at_exit() {
    extern "C" fn report() {
        let observed = GLOBAL.swap(ptr::null_mut(), Ordering::AcqRel);
        // A forked child without a global pool of its own has nothing to report, and makes none for it.
        if let Some(pool) = poach_runtime::global_if_made()
            && !observed.is_null()
        {
            // SAFETY: `global` had it from a box, and who takes it out is the only one that has it.
            let observed = unsafe { Box::from_raw(observed) };
            observed.report(pool);
        }
    }
    // SAFETY: `report` is a function that may be called at any time, and cannot unwind into its caller: a panic in an
    // `extern "C"` function ends the process.
    let refused = unsafe { libc::atexit(report) };
    if refused != 0 {
        say!("POACH_STATS, POACH_TRACE: the system refuses a function to call at the end");
    }
}

#[cfg(not(unix))]
fn at_exit() {}

/// What the environment asks for.
struct Asked {
    stats: bool,
    trace: Option<PathBuf>,
}

impl Asked {
    fn by(variable: impl Fn(&str) -> Option<OsString>) -> Option<Asked> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let stats = set("POACH_STATS").is_some_and(|value| value != "0");
        let trace = set("POACH_TRACE").map(PathBuf::from);
        (stats || trace.is_some()).then_some(Asked { stats, trace })
    }
}

/// The file for pool `number`.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return file.to_owned();
    }
    match file.extension() {
        Some(extension) => file.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => file.with_extension(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pool_has_a_file() {
        assert_eq!(numbered(Path::new("a/t.json"), 0), Path::new("a/t.json"));
        assert_eq!(numbered(Path::new("a/t.json"), 2), Path::new("a/t.2.json"));
        assert_eq!(numbered(Path::new("a/t"), 2), Path::new("a/t.2"));
    }

    #[test]
    fn the_environment_asks_or_does_not() {
        let asked = |stats: &'static str, trace: &'static str| {
            Asked::by(move |name| Some(if name == "POACH_STATS" { stats } else { trace }.into()))
        };
        assert!(asked("", "").is_none());
        assert!(asked("0", "").is_none());
        assert!(asked("1", "").is_some_and(|asked| asked.stats && asked.trace.is_none()));
        let file = asked("", "t.json").and_then(|asked| asked.trace);
        assert_eq!(file.as_deref(), Some(Path::new("t.json")));
    }
}
