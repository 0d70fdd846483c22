//! Control of a running scan from another thread: its progress, and a way to stop it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crossbeam_utils::CachePadded;

/// Asks the workers to end.
const STOP: u8 = 1;
/// Asks the next worker that looks for the path of the directory that it visits.
const PATH: u8 = 2;

/// Watches a scan, and stops it.
///
/// Share it between the thread that scans and the one that looks. It serves one scan.
#[derive(Debug, Default)]
pub struct Control {
    /// The requests to the workers, in one word, so that they look at one.
    asked: AtomicU8,
    slots: OnceLock<Box<[CachePadded<Slot>]>>,
    path: Mutex<Vec<u8>>,
    comparing: AtomicBool,
    compared: AtomicU64,
    to_compare: AtomicU64,
}

/// The counts of one worker, the only writer.
#[derive(Debug, Default)]
struct Slot {
    entries: AtomicU64,
    bytes: AtomicU64,
}

/// How far a scan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries found so far.
    pub entries: u64,
    /// Bytes on disk so far, those of files with several names excepted.
    pub bytes: u64,
    /// Once files are compared with each other: how many bytes have been read.
    pub compared: Option<u64>,
    /// How many bytes will be read for that at most.
    pub to_compare: u64,
}

// Everything is Relaxed here: the numbers are for people to watch and publish nothing, and a worker
// that sees a flag late reads one directory more.
impl Control {
    /// A control of no scan yet.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks the scan to end soon, with what it has. Wait-free, from any thread.
    pub fn stop(&self) {
        self.asked.fetch_or(STOP, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.asked.load(Ordering::Relaxed) & STOP != 0
    }

    /// How far the scan is. Wait-free, from any thread; linear in the scan's threads.
    pub fn progress(&self) -> Progress {
        let compared = self.compared.load(Ordering::Relaxed);
        let mut progress = Progress {
            compared: self.comparing.load(Ordering::Relaxed).then_some(compared),
            to_compare: self.to_compare.load(Ordering::Relaxed),
            ..Progress::default()
        };
        for slot in self.slots.get().into_iter().flatten() {
            progress.entries += slot.entries.load(Ordering::Relaxed);
            progress.bytes += slot.bytes.load(Ordering::Relaxed);
        }
        progress
    }

    /// The bytes of the path of a directory that was visited lately; empty before the first. Asks a
    /// worker for the next one, so that it costs the walk nothing where nobody looks. From any
    /// thread; a lock is held while a path is copied.
    pub fn path(&self) -> Vec<u8> {
        self.asked.fetch_or(PATH, Ordering::Relaxed);
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn begin(&self, threads: usize) {
        self.slots.get_or_init(|| (0..threads).map(|_| CachePadded::default()).collect());
    }

    /// Whether a worker is asked for anything.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// Tells a path, if one is wanted. The first worker to come tells it.
    #[cold]
    pub(crate) fn tell_path(&self, path: impl FnOnce() -> Vec<u8>) {
        if self.asked.fetch_and(!PATH, Ordering::Relaxed) & PATH != 0 {
            *self.path.lock().unwrap_or_else(PoisonError::into_inner) = path();
        }
    }

    #[inline]
    pub(crate) fn advance(&self, worker: usize, entries: u64, bytes: u64) {
        if let Some(slot) = self.slots.get().and_then(|slots| slots.get(worker)) {
            slot.entries.store(entries, Ordering::Relaxed);
            slot.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn begin_comparing(&self, bytes: u64) {
        self.to_compare.store(bytes, Ordering::Relaxed);
        self.comparing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn compared(&self, bytes: u64) {
        self.compared.fetch_add(bytes, Ordering::Relaxed);
    }
}
