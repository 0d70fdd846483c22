//! The events of each worker while its pool is recorded: see [`trace`](crate::trace).
//!
//! # Why a lock
//!
//! A worker uses its buffer, and so does the thread that starts and stops a recording. With a lock
//! no argument about memory is needed, and a recording alone pays for it. A child process in which
//! a thread of its parent holds the lock for ever goes without the buffer.
//!
//! # Why spans nest
//!
//! One thread opens and closes a worker's spans in the order of its call stack, by values that
//! close on drop what they opened. (While a worker sleeps, another thread may be in its place: its
//! spans lie within the worker's sleep.) A buffer takes a new span only while it has room for its
//! end and for the ends of all open spans. So a full buffer misses whole spans (and marks), and
//! counts them; no span has a false end.

use std::collections::TryReserveError;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::system::process::ProcessGuard;

/// What a worker does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// Runs the second half of a join, stolen from worker `victim`.
    StolenFork {
        /// The worker it was stolen from.
        victim: usize,
        /// Whether it was stolen by leapfrogging: `victim` was running what this worker waited
        /// for.
        leap: bool,
    },
    /// Runs a spawned task, the first of those stolen at once from worker `victim`.
    StolenTask {
        /// The worker it was stolen from.
        victim: usize,
    },
    /// Runs a spawned task from its own queue.
    OwnTask,
    /// Runs a task that came from outside, or was sent to this worker, as by a
    /// [broadcast](crate::ThreadPool::broadcast).
    InjectedTask,
    /// Runs the call of a thread from outside, on that thread: see
    /// [`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers).
    InPlace,
    /// Waits for something, and takes work meanwhile.
    Waiting,
    /// Sleeps.
    Sleeping,
}

impl Activity {
    /// Its name in the exports.
    pub fn name(self) -> &'static str {
        match self {
            Activity::StolenFork { leap: false, .. } => "stolen fork",
            Activity::StolenFork { leap: true, .. } => "leaped fork",
            Activity::StolenTask { .. } => "stolen task",
            Activity::OwnTask => "own task",
            Activity::InjectedTask => "injected task",
            Activity::InPlace => "guest",
            Activity::Waiting => "waiting",
            Activity::Sleeping => "sleeping",
        }
    }

    /// The worker it was stolen from, if it was stolen.
    pub fn victim(self) -> Option<usize> {
        match self {
            Activity::StolenFork { victim, .. } | Activity::StolenTask { victim } => Some(victim),
            _ => None,
        }
    }
}

/// What a worker does at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mark {
    /// It made tasks of its own visible to thieves, because one had asked.
    Shared,
    /// It made tasks of worker `victim` visible, because their owner did not come to its deque.
    Exposed {
        /// The owner of the tasks.
        victim: usize,
    },
    /// It called a sleeper.
    Called,
}

impl Mark {
    /// Its name in the exports.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Shared => "shared",
            Mark::Exposed { .. } => "exposed",
            Mark::Called => "called",
        }
    }
}

pub(crate) enum What {
    Begin(Activity),
    End,
    Mark(Mark),
}

pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// The buffer of one worker in one recording.
pub(crate) struct Events {
    /// The number of the recording, from 1.
    recording: u64,
    capacity: usize,
    /// The number of spans that have begun and not ended.
    open: usize,
    /// The number of spans and marks without room.
    pub(crate) missed: u64,
    pub(crate) list: Vec<Event>,
}

impl Events {
    /// Whether there is room for `events` events, and for the ends of all open spans.
    fn has_room(&mut self, events: usize) -> bool {
        let room = self.list.len() + self.open + events <= self.capacity;
        self.missed += u64::from(!room);
        room
    }

    fn push(&mut self, what: What) {
        self.list.push(Event { at: Instant::now(), what });
    }
}

/// Where one worker's events go.
pub(crate) struct Track {
    /// Whether there is a recording: 1, else 0.
    on: <Machine as Memory>::Word,
    events: Mutex<Option<Events>>,
    process_guard: ProcessGuard,
}

/// A span that has begun; it ends when this is dropped.
#[must_use = "the span ends when this is dropped"]
pub(crate) struct Open<'t> {
    track: &'t Track,
    /// Zero if it was not recorded.
    recording: u64,
}

impl Drop for Open<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.recording != 0 {
            self.track.close(self.recording);
        }
    }
}

impl Track {
    pub(crate) fn new() -> Track {
        Track { on: Word::new(0), events: Mutex::new(None), process_guard: ProcessGuard::here() }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: the events are behind the lock; a recording seen late begins, or ends, late.
        self.on.load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    pub(crate) fn open(&self, activity: Activity) -> Open<'_> {
        let recording = if self.is_on() { self.begin(activity) } else { 0 };
        Open { track: self, recording }
    }

    #[inline(always)]
    pub(crate) fn mark(&self, mark: Mark) {
        if self.is_on() {
            self.note(mark);
        }
    }

    #[cold]
    fn begin(&self, activity: Activity) -> u64 {
        let Some(mut events) = self.lock() else { return 0 };
        let Some(events) = events.as_mut() else { return 0 };
        if !events.has_room(2) {
            return 0;
        }
        events.open += 1;
        events.push(What::Begin(activity));
        events.recording
    }

    #[cold]
    fn close(&self, recording: u64) {
        let Some(mut events) = self.lock() else { return };
        if let Some(events) = events.as_mut().filter(|events| events.recording == recording) {
            events.open -= 1;
            events.push(What::End);
        }
    }

    #[cold]
    fn note(&self, mark: Mark) {
        let Some(mut events) = self.lock() else { return };
        let Some(events) = events.as_mut() else { return };
        if events.has_room(1) {
            events.push(What::Mark(mark));
        }
    }

    /// The buffer; `None` if a thread of the parent process holds it.
    fn lock(&self) -> Option<MutexGuard<'_, Option<Events>>> {
        self.process_guard.try_lock(&self.events)
    }

    /// Starts recording; refused if there is no memory for `capacity` events.
    pub(crate) fn start(&self, recording: u64, capacity: usize) -> Result<(), TryReserveError> {
        let mut list = Vec::new();
        list.try_reserve_exact(capacity)?;
        if let Some(mut events) = self.lock() {
            *events = Some(Events { recording, capacity, open: 0, missed: 0, list });
            // Relaxed: see `is_on`.
            self.on.store(1, Ordering::Relaxed);
        }
        Ok(())
    }

    pub(crate) fn stop(&self) -> Option<Events> {
        // Relaxed: see `is_on`.
        self.on.store(0, Ordering::Relaxed);
        self.lock()?.take()
    }
}

/// The number of a pool's recordings, and whether one is on.
pub(crate) struct Recordings {
    number: <Machine as Memory>::Word,
    /// 1 while one is on.
    on: <Machine as Memory>::Word,
}

impl Recordings {
    pub(crate) fn new() -> Recordings {
        Recordings { number: Word::new(0), on: Word::new(0) }
    }

    /// The number of the recording that begins, unless one is on.
    pub(crate) fn begin(&self) -> Option<u64> {
        // Acquire: pairs with the release in `end`, so that the tracks of the last recording are
        // empty.
        self.on.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // Relaxed: the thread that has set `on` is alone.
        Some(self.number.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn end(&self) {
        // Release: pairs with the acquire in `begin`.
        self.on.store(0, Ordering::Release);
    }
}

// Miri does not fork.
#[cfg(all(test, unix, not(miri)))]
mod tests {
    use super::*;
    use crate::system::process::tests::children::{alone_in, fork};

    #[test]
    fn a_child_waits_for_no_buffer_of_its_parent() {
        if !alone_in(module_path!(), "a_child_waits_for_no_buffer_of_its_parent") {
            return;
        }
        let track = Track::new();
        track.start(1, 10).unwrap();
        let span = track.open(Activity::OwnTask);
        // As it is held by another thread at the moment of the fork.
        let held = track.lock();
        let status = fork(|| {
            track.mark(Mark::Called);
            drop(track.open(Activity::Sleeping));
            track.close(1);
            assert!(track.stop().is_none());
            track.start(2, 10).unwrap();
            7
        });
        drop(held);
        assert_eq!(status, 7 << 8, "{status:#x}");
        drop(span);
        assert_eq!(track.stop().unwrap().list.len(), 2);
    }
}
