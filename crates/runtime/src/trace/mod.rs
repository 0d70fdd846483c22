//! A timeline of what the workers of a pool do.
//!
//! A [`Recording`] is started and stopped while the pool runs. Each worker writes what it does into
//! a buffer of its own, of bounded size; [`Trace`] is what came together, to be looked at
//! [in Perfetto](Trace::chrome_json) or [as a picture](Trace::svg).
//!
//! # What it costs
//!
//! Off: a plain load of a word on the worker's own cache line, and a comparison, where the worker
//! takes a task out of a queue, waits, sleeps, shares or calls; at a fork, nothing. That is little
//! enough to be always there, so there is no feature to build it in. On: a clock read and an
//! uncontended lock at each of these.

mod chrome;
mod svg;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pool::ThreadPool;
use crate::shared::PoolShared;
pub use crate::stats::track::{Activity, Mark};
use crate::stats::track::{Event, Events, What};

/// Why a pool cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordError {
    /// Another recording is running.
    AlreadyRecording,
    /// The pool belongs to the process from which this one was forked.
    Forked,
    /// There is no memory for `events` events a worker.
    OutOfMemory {
        /// How many were asked for.
        events: usize,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::AlreadyRecording => {
                f.write_str("this pool is being recorded already: stop that recording first")
            }
            RecordError::Forked => f.write_str(
                "this process was forked from the one that made the pool, whose workers are not here",
            ),
            RecordError::OutOfMemory { events } => {
                write!(f, "there is no memory for {events} events of each worker: record fewer")
            }
        }
    }
}

impl std::error::Error for RecordError {}

/// A recording that is running: [`ThreadPool::record`]. If it is dropped, the recording ends
/// without a trace.
#[must_use = "a recording ends when it is dropped; `stop` gives its trace"]
pub struct Recording {
    shared: Arc<PoolShared>,
    began: Instant,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("began", &self.began).finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// Starts to record what the workers do, up to `events` events for each worker. An event is the
    /// beginning or the end of a span, or a mark; each takes about 40 bytes, which are
    /// allocated here.
    ///
    /// Events beyond that number are left out and [counted](Timeline::missed).
    ///
    /// ```
    /// # use poach_runtime as poach;
    /// let pool = poach::ThreadPool::builder().num_threads(2).build()?;
    /// let recording = pool.record(1000).unwrap();
    /// pool.install(|| poach::join(|| 1, || 2));
    /// let trace = recording.stop();
    /// let spans = trace.workers().iter().map(|worker| worker.spans().len());
    /// assert!(spans.sum::<usize>() >= 1, "somebody ran the join");
    /// let picture = trace.svg();
    /// let for_perfetto = trace.chrome_json();
    /// # assert!(picture.to_string().contains("poach-1"));
    /// # assert!(for_perfetto.to_string().contains("poach-1"));
    /// # Ok::<(), poach::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RecordError`], if there is a recording that has not been stopped, or no memory for the
    /// events, or in a process forked since the pool was made.
    pub fn record(&self, events: usize) -> Result<Recording, RecordError> {
        if self.shared.process_guard.is_elsewhere() {
            return Err(RecordError::Forked);
        }
        let number = self.shared.recordings.begin().ok_or(RecordError::AlreadyRecording)?;
        // Dropped, it stops what has been started.
        let recording = Recording { shared: Arc::clone(&self.shared), began: Instant::now() };
        for worker in &self.shared.workers {
            let started = worker.watch.track.start(number, events);
            started.map_err(|_| RecordError::OutOfMemory { events })?;
        }
        Ok(recording)
    }
}

impl Recording {
    /// Stops recording. Spans that have not ended are [cut](Span::cut) here.
    ///
    /// In a process forked since, the trace has what it had at the fork, but for workers that were
    /// just noting something.
    pub fn stop(self) -> Trace {
        let tracks = self.shared.workers.iter().map(|worker| worker.watch.track.stop());
        let tracks: Vec<_> = tracks.collect();
        let duration = self.began.elapsed();
        let timeline = |events: Option<Events>| {
            events
                .map_or_else(Timeline::default, |events| Timeline::of(events, self.began, duration))
        };
        let named = |(index, events)| Timeline { name: self.name(index), ..timeline(events) };
        let mut workers: Vec<Timeline> = tracks.into_iter().enumerate().map(named).collect();
        // The places of guests come last, and are shown as far as there were some.
        while workers.len() > self.shared.first_guest()
            && workers
                .last()
                .is_some_and(|place| place.spans().is_empty() && place.marks().is_empty())
        {
            workers.pop();
        }
        Trace { workers, duration }
    }

    /// The name of the worker's thread, if it has one.
    fn name(&self, index: usize) -> String {
        let names = self.shared.names.get();
        let name = names.and_then(|names| names.get(index)?.clone());
        name.unwrap_or_else(|| match self.shared.guest(index) {
            Some(guest) => format!("guest {guest}"),
            None => format!("worker {index}"),
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for worker in &self.shared.workers {
            drop(worker.watch.track.stop());
        }
        self.shared.recordings.end();
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
    name: String,
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

    /// The name of the worker's thread, or else what the worker is: `worker 3`, or `guest 0`, a
    /// thread from outside.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its spans, in the order in which they began. Of any two, one lies within the other, or one
    /// ends before the other begins.
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
