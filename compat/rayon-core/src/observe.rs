//! Reports of what a program's pools do, if environment variables ask for them.
//!
//! | variable | what it does |
//! |---|---|
//! | `POACH_STATS=1` | prints each pool's counters to standard error when the pool is dropped, the global one's when the program ends |
//! | `POACH_TRACE=FILE` | writes a timeline of the global pool to the file, for <https://ui.perfetto.dev>; those of the program's other pools to `FILE` with a number before its extension |
//!
//! The global pool is reported when the program ends: on Unix only, and not if the program is
//! killed or aborts. If standard error is closed, nothing is printed, and the program ends as it
//! would have without the variables.

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

/// How many beginnings and ends of spans are recorded for each worker, in 10 MiB. Later ones are
/// only counted.
const EVENTS: usize = 1 << 18;

/// A pool that is to be reported.
pub(crate) struct Observed {
    name: String,
    /// The process that made the pool. A forked child does not report its parent's pools.
    process: u32,
    stats: bool,
    trace: Option<(PathBuf, Recording)>,
}

/// The global pool's. There is no lock, because a lock that another thread holds at a fork would
/// stay held in the child, which reads this when it ends.
static GLOBAL: AtomicPtr<Observed> = AtomicPtr::new(ptr::null_mut());

/// Prints to standard error. `eprintln` would panic if that is closed, which must not happen while
/// a program ends.
macro_rules! say {
    ($($what:tt)*) => {
        drop(writeln!(io::stderr(), $($what)*))
    };
}

impl Observed {
    /// Begins to observe a pool that the program has built, if the environment asks for it.
    pub(crate) fn begin(pool: &ThreadPool) -> Option<Observed> {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        // Relaxed: only the number has to be unique.
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

    /// Reports what the pool has done so far.
    pub(crate) fn report(self, pool: &ThreadPool) {
        if self.process != process::id() {
            // The workers, which a recording needs to stop, exist in the parent only.
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

/// Observes the global pool, which has just been made, until the program ends, if the environment
/// asks for it.
pub(crate) fn global() {
    let Some(observed) = Observed::of(poach_runtime::global(), 0) else {
        return;
    };
    // A forked child finds its parent's here and leaks it: its recording cannot be stopped in this
    // process. Release, for the Acquire in `report`: the thread that takes the pointer sees
    // what it points to.
    GLOBAL.store(Box::into_raw(Box::new(observed)), Ordering::Release);
    at_exit();
}

#[cfg(unix)]
fn at_exit() {
    extern "C" fn report() {
        let observed = GLOBAL.swap(ptr::null_mut(), Ordering::Acquire);
        // A forked child that has not used rayon has no global pool, and must not make one here.
        if let Some(pool) = poach_runtime::ThreadPool::global_if_made() {
            if !observed.is_null() {
                // SAFETY: `global` made the pointer from a box, and the swap has left null in its
                // place, so no other thread has it.
                let observed = unsafe { Box::from_raw(observed) };
                observed.report(pool);
            }
        }
    }
    // SAFETY: `report` may be called at any time, and does not unwind into its caller: a panic in
    // an `extern "C"` function ends the process.
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
