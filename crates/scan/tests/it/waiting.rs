//! A walk that waits for its disk has more workers for a time, and finds what any other finds.

#![forbid(unsafe_code)]
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use poach_scan::sys::Spent;
use poach_scan::{Control, Engine, Options, Scan, scan_on};

use crate::rig::{self, Rigged};

/// A tree of enough directories to be measured in several times.
fn grown() -> tempfile::TempDir {
    let tree = tempfile::tempdir().expect("a directory for the test");
    rig::grow(tree.path()).expect("a tree for the test");
    for number in 0..400 {
        let inner = tree.path().join(format!("wide/{}/{number}/inner", number % 20));
        fs::create_dir_all(&inner).expect("directories");
        fs::write(inner.join("file"), vec![1; number]).expect("a file");
    }
    tree
}

/// A scan in which each thread waits in every visit until `waiting` visits have been measured.
fn scanned(tree: &tempfile::TempDir, waiting: u64, options: &Options) -> Scan {
    let asked = AtomicU64::new(0);
    let spent = || {
        let asked = asked.fetch_add(1, Ordering::Relaxed);
        Spent { computed: Duration::ZERO, waits: asked.min(2 * waiting) }
    };
    let rigged = Rigged { spent: Some(&spent), ..Rigged::new(&|_, _| None) };
    scan_on(&rigged, &[tree.path().into()], options, &Control::new()).expect("threads can be had")
}

#[test]
fn more_workers_come_while_it_waits_and_go_when_it_does_not() {
    let tree = grown();
    let expected = rig::second_opinion(tree.path());
    let processors = available_parallelism().map_or(1, NonZeroUsize::get);
    let options = Options { keep_files: true, ..Options::default() };
    for waiting in [0, 30, u64::MAX / 4] {
        // With few handles, too: those of workers that rest are in use still.
        for handles in [None, Some(0), Some(processors)] {
            let scan = scanned(&tree, waiting, &Options { handles, ..options.clone() });
            assert_eq!(rig::told(scan.totals), expected, "{waiting}, {handles:?}");
            assert!(scan.errors.is_empty() && !scan.interrupted);
            assert_eq!(scan.threads > processors, waiting > 0, "{waiting}: {}", scan.threads);
            let stats = scan.stats.expect("the engine counts");
            assert_eq!(stats.workers().len(), scan.threads, "{waiting}");
        }
    }
}

#[test]
fn a_number_that_was_asked_for_is_kept() {
    let tree = grown();
    let waiting = u64::MAX / 4;
    let threads = NonZeroUsize::new(3);
    let scan = scanned(&tree, waiting, &Options { threads, ..Options::default() });
    assert_eq!(scan.threads, 3);
    let processors = available_parallelism().map_or(1, NonZeroUsize::get);
    let memory = Some(1 << 30);
    let scan = scanned(&tree, waiting, &Options { memory, ..Options::default() });
    assert_eq!(scan.threads, processors);
    let engine = Engine::LockFree;
    let scan = scanned(&tree, waiting, &Options { engine, ..Options::default() });
    assert_eq!(scan.threads, processors);
}

#[test]
fn it_stops_when_asked_while_more_workers_come() {
    let tree = grown();
    let control = Control::new();
    let asked = AtomicU64::new(0);
    let spent = || {
        let waits = asked.fetch_add(1, Ordering::Relaxed);
        if waits == 50 {
            control.stop();
        }
        Spent { computed: Duration::ZERO, waits }
    };
    let rigged = Rigged { spent: Some(&spent), ..Rigged::new(&|_, _| None) };
    let scan = scan_on(&rigged, &[tree.path().into()], &Options::default(), &control);
    let scan = scan.expect("threads can be had");
    assert!(scan.interrupted);
    assert!(scan.totals.entries() < rig::second_opinion(tree.path()).entries());
}
