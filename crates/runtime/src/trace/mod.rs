//! A timeline of what the workers of a pool do.
//!
//! A [`Recording`] is started and stopped while the pool runs. Each worker writes what it does into a
//! buffer of its own, of bounded size; [`Trace`] is what came together, to be looked at
//! [in Perfetto](Trace::chrome_json) or [as a picture](Trace::svg).
//!
//! # What it costs
//!
//! Off: a plain load of a word on the worker's own cache line, and a comparison, where the worker
//! takes a task out of a queue, waits, sleeps, shares or calls; at a fork, nothing. That is little
//! enough to be always there, so there is no feature to build it in. On: a clock read and an
//! uncontended lock at each of these.
//!
//! # Why a lock
//!
//! A buffer is touched by its worker, and by the thread that starts and stops. A lock says what must
//! be said about that, and is paid for by a recording alone; no argument about memory is needed.
//!
//! # Why spans nest
//!
//! A worker's spans are opened and closed by one thread in the order of its call stack, by values that
//! close what they opened when they are dropped. (While a worker sleeps, another thread may be in its
//! place: what it opens and closes lies within the worker's sleep.) A buffer takes a new span only while it has room for
//! its end and for the ends of all that are open. So what is missing from a full buffer are whole
//! spans (and marks), and the number of them is told; no span has a false end.

mod chrome;
mod svg;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::pool::ThreadPool;
use crate::registry::Registry;

/// What a worker does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Activity {
    /// Runs the second half of a join, stolen from worker `victim`.
    StolenFork {
        /// Whose it was.
        victim: usize,
        /// Whether it was stolen by leapfrogging: `victim` was running what this worker waited for.
        leap: bool,
    },
    /// Runs a spawned task, the first of those stolen at once from worker `victim`.
    StolenTask {
        /// Whose it was.
        victim: usize,
    },
    /// Runs a spawned task from its own queue.
    OwnTask,
    /// Runs a task that came from outside, or was sent to this worker, as by a
    /// [broadcast](ThreadPool::broadcast).
    InjectedTask,
    /// Sleeps, while a thread outside of the pool runs what it
    /// [installs](ThreadPool::install) in its place.
    InPlace,
    /// Waits for something, and takes work meanwhile.
    Waiting,
    /// Sleeps.
    Sleeping,
}

impl Activity {
    /// What it is called in the exports.
    pub fn name(self) -> &'static str {
        match self {
            Activity::StolenFork { leap: false, .. } => "stolen fork",
            Activity::StolenFork { leap: true, .. } => "leaped fork",
            Activity::StolenTask { .. } => "stolen task",
            Activity::OwnTask => "own task",
            Activity::InjectedTask => "injected task",
            Activity::InPlace => "in place",
            Activity::Waiting => "waiting",
            Activity::Sleeping => "sleeping",
        }
    }

    /// Whose work it was, if it was stolen.
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
    /// It made tasks of worker `victim` visible, because that one did not come to it.
    Exposed {
        /// Whose they are.
        victim: usize,
    },
    /// It called a sleeper.
    Called,
}

impl Mark {
    /// What it is called in the exports.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Shared => "shared",
            Mark::Exposed { .. } => "exposed",
            Mark::Called => "called",
        }
    }
}

enum What {
    Begin(Activity),
    End,
    Mark(Mark),
}

struct Event {
    at: Instant,
    what: What,
}

/// The buffer of one worker in one recording.
struct Events {
    /// Which recording, from 1.
    recording: u64,
    capacity: usize,
    /// How many spans have begun and not ended.
    open: usize,
    missed: u64,
    list: Vec<Event>,
}

impl Events {
    /// Whether there is room for so many, and for the ends of all open spans.
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
        Track { on: Word::new(0), events: Mutex::new(None) }
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
        if let Some(events) = &mut *self.lock()
            && events.has_room(2)
        {
            events.open += 1;
            events.push(What::Begin(activity));
            return events.recording;
        }
        0
    }

    #[cold]
    fn close(&self, recording: u64) {
        if let Some(events) = &mut *self.lock()
            && events.recording == recording
        {
            events.open -= 1;
            events.push(What::End);
        }
    }

    #[cold]
    fn note(&self, mark: Mark) {
        if let Some(events) = &mut *self.lock()
            && events.has_room(1)
        {
            events.push(What::Mark(mark));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Events>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, recording: u64, capacity: usize) {
        let list = Vec::with_capacity(capacity);
        *self.lock() = Some(Events { recording, capacity, open: 0, missed: 0, list });
        // Relaxed: see `is_on`.
        self.on.store(1, Ordering::Relaxed);
    }

    fn stop(&self) -> Option<Events> {
        // Relaxed: see `is_on`.
        self.on.store(0, Ordering::Relaxed);
        self.lock().take()
    }
}

/// The pool is being recorded already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRecording;

impl fmt::Display for AlreadyRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this pool is being recorded already: stop that recording first")
    }
}

impl std::error::Error for AlreadyRecording {}

/// A pool's workers are being recorded: [`ThreadPool::record`]. Dropped, it ends without a trace.
#[must_use = "a recording ends when it is dropped; `stop` gives its trace"]
pub struct Recording {
    registry: Arc<Registry>,
    began: Instant,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("began", &self.began).finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// Starts to record what the workers do, up to `events` of them a worker: the beginning or the end
    /// of a span, or a mark. Each takes about 40 bytes, all reserved here.
    ///
    /// What does not fit any more is left out, and [counted](Timeline::missed).
    ///
    /// ```
    /// let pool = poach_runtime::ThreadPool::builder().threads(2).build()?;
    /// let recording = pool.record(1000).unwrap();
    /// pool.install(|| poach_runtime::join(|| 1, || 2));
    /// let trace = recording.stop();
    /// let spans = trace.workers().iter().map(|worker| worker.spans().len());
    /// assert!(spans.sum::<usize>() >= 1, "somebody ran the join");
    /// let picture = trace.svg();
    /// let for_perfetto = trace.chrome_json();
    /// # assert!(picture.to_string().contains("worker 1"));
    /// # assert!(for_perfetto.to_string().contains("worker 1"));
    /// # Ok::<(), poach_runtime::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AlreadyRecording`], if there is a recording that has not been stopped.
    pub fn record(&self, events: usize) -> Result<Recording, AlreadyRecording> {
        let number = self.registry.recordings.begin().ok_or(AlreadyRecording)?;
        let recording = Recording { registry: Arc::clone(&self.registry), began: Instant::now() };
        for worker in &self.registry.workers {
            worker.watch.track.start(number, events);
        }
        Ok(recording)
    }
}

/// How many recordings of a pool there have been, and whether one is on.
pub(crate) struct Recordings(Mutex<(u64, bool)>);

impl Recordings {
    pub(crate) fn new() -> Recordings {
        Recordings(Mutex::new((0, false)))
    }

    /// The number of the recording that begins, unless one is on.
    fn begin(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1 {
            return None;
        }
        *state = (state.0 + 1, true);
        Some(state.0)
    }

    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = false;
    }
}

impl Recording {
    /// Stops recording. Spans that have not ended are [cut](Span::cut) here.
    pub fn stop(self) -> Trace {
        let tracks = self.registry.workers.iter().map(|worker| worker.watch.track.stop());
        let tracks: Vec<_> = tracks.collect();
        let duration = self.began.elapsed();
        let timeline = |events: Option<Events>| {
            events
                .map_or_else(Timeline::default, |events| Timeline::of(events, self.began, duration))
        };
        Trace { workers: tracks.into_iter().map(timeline).collect(), duration }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for worker in &self.registry.workers {
            drop(worker.watch.track.stop());
        }
        self.registry.recordings.end();
    }
}

/// What a worker did from one moment to another. Times count from the start of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// What it did.
    pub activity: Activity,
    /// When it began.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
    /// How many spans of the same worker it lies within.
    pub depth: usize,
    /// Whether it had not ended when the recording did.
    pub cut: bool,
}

/// What one worker did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    spans: Vec<Span>,
    marks: Vec<(Duration, Mark)>,
    missed: u64,
}

impl Timeline {
    fn of(events: Events, began: Instant, duration: Duration) -> Timeline {
        let mut timeline = Timeline { missed: events.missed, ..Timeline::default() };
        let mut open: Vec<usize> = Vec::new();
        for Event { at, what } in events.list {
            let at = at.saturating_duration_since(began);
            match what {
                What::Begin(activity) => {
                    let depth = open.len();
                    open.push(timeline.spans.len());
                    // The end is not known yet: until it is, it is that of the recording.
                    let span = Span { activity, start: at, end: duration, depth, cut: true };
                    timeline.spans.push(span);
                }
                What::End => {
                    if let Some(span) = open.pop() {
                        timeline.spans[span].end = at;
                        timeline.spans[span].cut = false;
                    }
                }
                What::Mark(mark) => timeline.marks.push((at, mark)),
            }
        }
        timeline
    }

    /// Its spans, in the order in which they began. Of any two, one lies within the other, or one ends
    /// before the other begins.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Its marks, each with its time, in their order.
    pub fn marks(&self) -> &[(Duration, Mark)] {
        &self.marks
    }

    /// How many spans and marks the buffer had no room for.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// What the workers of a pool did while they were recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    workers: Vec<Timeline>,
    duration: Duration,
}

impl Trace {
    /// Each worker's, by its index; spare workers come last.
    pub fn workers(&self) -> &[Timeline] {
        &self.workers
    }

    /// From the start of the recording to its stop.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// The trace in the Trace Event Format, one JSON document: for <https://ui.perfetto.dev> or
    /// `chrome://tracing`.
    pub fn chrome_json(&self) -> impl fmt::Display + '_ {
        chrome::Document(self)
    }

    /// The trace as a picture: a band for each worker, time from left to right, what lies within
    /// another span below it.
    pub fn svg(&self) -> impl fmt::Display + '_ {
        svg::Picture(self)
    }
}

#[cfg(test)]
mod tests;
