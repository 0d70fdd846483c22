//! A hand on a running scan, from another thread: how far it is, and a way to stop it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// Watches a scan, and stops it.
///
/// Share it between the thread that scans and the one that looks. It serves one scan.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    slots: OnceLock<Box<[CachePadded<Slot>]>>,
}

/// What one worker tells; nobody else writes to it.
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
}

// Everything is Relaxed here: the numbers are for people to watch and publish nothing, and a worker
// that sees the flag late reads one directory more.
impl Control {
    /// A hand that has hold of no scan yet.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks the scan to end soon, with what it has. Wait-free, from any thread.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// How far the scan is. Wait-free, from any thread; linear in the scan's threads.
    pub fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        for slot in self.slots.get().into_iter().flatten() {
            progress.entries += slot.entries.load(Ordering::Relaxed);
            progress.bytes += slot.bytes.load(Ordering::Relaxed);
        }
        progress
    }

    pub(crate) fn begin(&self, threads: usize) {
        self.slots.get_or_init(|| (0..threads).map(|_| CachePadded::default()).collect());
    }

    #[inline]
    pub(crate) fn advance(&self, worker: usize, entries: u64, bytes: u64) {
        if let Some(slot) = self.slots.get().and_then(|slots| slots.get(worker)) {
            slot.entries.store(entries, Ordering::Relaxed);
            slot.bytes.store(bytes, Ordering::Relaxed);
        }
    }
}
