//! The suite `walk`: a directory tree through the engines of `poach-scan`.
//!
//! The engines are the stages of the articles on Phanes: one thread, a pool with one locked queue,
//! stealing from locked deques, stealing from lock-free deques, and Poach's own.
//!
//! The tree is made below the system's directory for temporary files: empty files, some three in a
//! directory, as the articles' home directory has them. `walk-warm` finds it in the caches; before
//! each sample of `walk-cold` the suite asks Linux to drop them. Linux does so for root alone: for
//! other users that workload fails, and says so. A file system in memory has nothing to drop.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use poach_scan::{Control, Engine, Options, scan};

use crate::{Case, Request, Sample, Size, Suite, Unit};

/// The suite `walk`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk;

/// Files in a directory, and directories in a directory.
const FILES: u64 = 3;
const BRANCHES: u64 = 8;

impl Suite for Walk {
    fn name(&self) -> &'static str {
        "walk"
    }

    fn about(&self) -> &'static str {
        "a directory tree, cold and warm, through each engine of `poach scan`: the tables of Phanes"
    }

    fn cases(&self, request: &Request) -> Vec<Case> {
        let mut cases = Vec::new();
        let tree: Tree = Rc::default();
        for (workload, cold) in [("walk-warm", false), ("walk-cold", true)] {
            for engine in Engine::ALL {
                // One thread is all that the sequential engine has.
                let alone = [1];
                let counts =
                    if engine == Engine::Sequential { &alone[..] } else { &request.workers };
                for workers in counts {
                    cases.push(case((workload, cold), engine, *workers, request.size, &tree));
                }
            }
        }
        cases
    }
}

/// A tree that all engines walk, made when the first needs it, and how many directories and files
/// it has.
type Tree = Rc<OnceCell<Result<(tempfile::TempDir, u64, u64), String>>>;

fn case(
    (workload, cold): (&'static str, bool),
    engine: Engine,
    workers: usize,
    size: Size,
    tree: &Tree,
) -> Case {
    let tree = Rc::clone(tree);
    let directories = size.pick(40, 2_000, 30_000, 600_000);
    Case::new(workload, engine.name(), workers, Unit::SECONDS, move || {
        if cold {
            drop_caches()?;
        }
        let made = move || {
            let made = tree.get_or_init(|| make(directories).map_err(|error| format!("{error:#}")));
            // The handle of a directory that goes with the last case.
            made.as_ref()
                .map_err(|why| anyhow!("{why}"))
                .map(|made| (made.0.path().to_owned(), made.1, made.2))
        };
        made()?;
        let threads = NonZeroUsize::new(workers);
        let options = Options { engine, threads, ..Options::default() };
        Ok(move || {
            let (path, directories, files) = made()?;
            if cold {
                drop_caches()?;
            }
            let start = Instant::now();
            let scan = scan(&[path], &options, &Control::new())?;
            let seconds = start.elapsed().as_secs_f64();
            let totals = scan.totals;
            ensure!(
                (totals.directories, totals.files, totals.errors) == (directories, files, 0),
                "{} directories, {} files and {} errors were found, of {directories} and {files}",
                totals.directories,
                totals.files,
                totals.errors
            );
            let entries = totals.entries() as f64;
            Ok(Sample::from(seconds)
                .count("entries", entries)
                .count("entries_per_s", entries / seconds))
        })
    })
}

/// Makes a tree of `directories` directories, its root among them, each with some files.
fn make(directories: u64) -> Result<(tempfile::TempDir, u64, u64)> {
    let root = tempfile::Builder::new().prefix("poach-walk-").tempdir()?;
    let mut waiting = std::collections::VecDeque::from([root.path().to_owned()]);
    let (mut made, mut files) = (1, 0);
    while let Some(directory) = waiting.pop_front() {
        for number in 0..FILES {
            File::create(directory.join(format!("file-{number}")))?;
            files += 1;
        }
        for number in 0..BRANCHES.min(directories - made) {
            let inner = directory.join(format!("directory-{number}"));
            fs::create_dir(&inner).with_context(|| inner.display().to_string())?;
            waiting.push_back(inner);
            made += 1;
        }
    }
    Ok((root, made, files))
}

/// Has Linux forget what it knows of files and directories; what is not written yet is written
/// first.
fn drop_caches() -> Result<()> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    sync();
    fs::write(path, "3").with_context(|| {
        format!(
            "a cold walk needs a system that drops its caches ({}), for which this program has to run as root",
            path.display()
        )
    })
}

#[cfg(target_os = "linux")]
fn sync() {
    rustix::fs::sync();
}

#[cfg(not(target_os = "linux"))]
fn sync() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Session};

    #[test]
    fn each_engine_finds_the_whole_tree() {
        let workloads = vec!["walk-warm".to_owned()];
        let plan =
            Plan { rounds: 2, size: Size::Tiny, workers: vec![1, 2], workloads, ..Plan::quick() };
        let session = Session::new(Plan { budget: None, ..plan });
        session.run(&Walk, &|_event| {}).expect("a suite that can be run");
        let document = session.document();
        assert_eq!(document.failures, []);
        assert_eq!(document.rows.len(), 1 + 2 * 4);
        // 40 directories, of which the root is one, with three files each.
        assert!(
            document.rows.iter().all(|row| row.counters["entries"] >= 159.0),
            "{:?}",
            document.rows[0].counters
        );
    }

    #[test]
    fn a_tree_of_as_many_directories_as_are_asked_for() {
        for asked in [1, 2, 9, 100] {
            let (root, directories, files) = make(asked).unwrap();
            assert_eq!((directories, files), (asked, 3 * asked));
            assert!(root.path().join("file-2").exists());
        }
    }
}
