//! Counters and recordings of small programs of which it is known what they do.

#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use poach_memory::{Machine, Memory};
use poach_runtime::trace::{Activity, Mark, RecordError, Span, Timeline, Trace};
use poach_runtime::{ThreadPool, Worker, join, scope};

fn pool(threads: usize) -> ThreadPool {
    ThreadPool::builder().num_threads(threads).build().unwrap()
}

/// An interpreter does less.
const DEPTH: u32 = if cfg!(miri) { 4 } else { 12 };

/// A tree of joins, which counts the halves that were stolen, and gives others a chance to steal.
fn tree(mut worker: Worker<'_>, depth: u32, stolen: &AtomicU64) -> u64 {
    if depth == 0 {
        thread::yield_now();
        return 1;
    }
    let here = worker.index();
    let (a, b) = worker.join(
        |w| tree(w, depth - 1, stolen),
        |w| {
            // A half that its own worker took back from a thief's reach was not stolen; a stolen
            // half runs elsewhere.
            if w.index() != here {
                stolen.fetch_add(1, Ordering::Relaxed);
            }
            tree(w, depth - 1, stolen)
        },
    );
    a + b
}

/// Runs trees until one of them has had a half stolen, and says how many trees and halves there
/// were.
fn until_stolen(pool: &ThreadPool) -> (u64, u64) {
    let stolen = AtomicU64::new(0);
    let mut trees = 0;
    while stolen.load(Ordering::Relaxed) == 0 {
        // Installed: a caller's own thread would be one more worker.
        let sum = || poach_runtime::worker(|worker| tree(worker, DEPTH, &stolen));
        assert_eq!(pool.install(sum), 1 << DEPTH);
        trees += 1;
    }
    (trees, stolen.into_inner())
}

#[test]
fn one_worker_runs_all_and_steals_nothing() {
    let pool = pool(1);
    let before = pool.stats();
    // Installed: a caller's own thread would be one more worker.
    let sum = || poach_runtime::worker(|worker| tree(worker, DEPTH, &AtomicU64::new(0)));
    assert_eq!(pool.install(sum), 1 << DEPTH);
    pool.install(|| scope(|s| (0..100).for_each(|_| s.spawn(|_| ()))));
    let done = pool.stats().since(&before).total();
    // The two that were installed, and the spawned ones: forks are not counted.
    assert_eq!(done.tasks, 102);
    let thieving = [done.steals, done.leaps, done.exposures, done.grows, done.shrinks];
    assert_eq!((thieving, done.membarriers), ([0; 5], 0));
}

#[test]
fn every_steal_is_counted_by_its_thief() {
    let pool = pool(3);
    let before = pool.stats();
    let (trees, stolen) = until_stolen(&pool);
    let done = pool.stats().since(&before);
    let total = done.total();
    assert_eq!((total.tasks, total.steals), (trees + stolen, stolen));
    assert!(total.leaps <= total.steals);
    assert!(total.grows + total.exposures > 0, "nothing is stolen that is not made visible first");
    assert!(total.exposures <= total.membarriers || !Machine::asymmetric());
    let sum: u64 = done.workers().iter().map(|worker| worker.steals).sum();
    assert_eq!(sum, stolen);
}

#[test]
fn an_idle_pool_goes_to_sleep_and_a_busy_one_calls_it() {
    let pool = pool(2);
    // Every worker sleeps at last: else this does not end.
    while pool.stats().workers().iter().any(|worker| worker.sleeps == 0) {
        thread::yield_now();
    }
    let before = pool.stats();
    // A worker that shares while another sleeps calls it.
    loop {
        until_stolen(&pool);
        if pool.stats().since(&before).total().wakes > 0 {
            break;
        }
    }
}

#[test]
fn a_snapshot_prints_as_a_table_with_a_line_a_worker() {
    let table = pool(3).stats().to_string();
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 1);
    let columns = [
        "tasks",
        "steals",
        "leaps",
        "grows",
        "shrinks",
        "exposures",
        "sleeps",
        "wakes",
        "membarriers",
    ];
    let head: Vec<_> = lines[0].split_whitespace().collect();
    assert_eq!(head[1..], columns);
}

/// Of any two spans of a worker, one lies within the other, or one ends before the other begins;
/// and each says rightly how many it lies within.
fn nests(worker: &Timeline) {
    let mut open: Vec<&Span> = Vec::new();
    for span in worker.spans() {
        assert!(span.start <= span.end, "{span:?}");
        open.truncate(span.depth);
        assert_eq!(open.len(), span.depth, "{span:?} lies within a span that is not there");
        if let Some(outer) = open.last() {
            assert!(outer.start <= span.start && span.end <= outer.end, "{span:?} in {outer:?}");
        }
        open.push(span);
    }
}

fn activities(trace: &Trace) -> impl Iterator<Item = (usize, Activity)> + '_ {
    let workers = trace.workers().iter().enumerate();
    workers.flat_map(|(index, worker)| worker.spans().iter().map(move |s| (index, s.activity)))
}

#[test]
fn a_recording_has_every_steal_with_its_victim() {
    let pool = pool(3);
    let before = pool.stats();
    let recording = pool.record(100_000).unwrap();
    let (trees, stolen) = until_stolen(&pool);
    let trace = recording.stop();
    let done = pool.stats().since(&before).total();
    assert!(trace.workers().iter().all(|worker| worker.missed() == 0));
    trace.workers().iter().for_each(nests);

    let is_steal = |(_, activity): &(usize, Activity)| activity.victim().is_some();
    let steals: Vec<_> = activities(&trace).filter(is_steal).collect();
    assert_eq!(steals.len() as u64, stolen);
    for (thief, activity) in &steals {
        let victim = activity.victim().unwrap();
        assert!(victim < 3 && victim != *thief, "worker {thief}: {activity:?}");
    }
    let leaps = steals.iter().filter(|(_, a)| matches!(a, Activity::StolenFork { leap: true, .. }));
    assert_eq!(leaps.count() as u64, done.leaps);
    let from_outside =
        |(_, a): &(_, Activity)| matches!(a, Activity::InPlace | Activity::InjectedTask);
    assert_eq!(activities(&trace).filter(from_outside).count() as u64, trees);
    let marks = trace.workers().iter().flat_map(Timeline::marks);
    let made_visible = |mark: Mark| matches!(mark, Mark::Shared | Mark::Exposed { .. });
    assert!(marks.filter(|(_, mark)| made_visible(*mark)).count() > 0);
}

#[test]
fn a_wait_for_what_was_stolen_is_recorded() {
    let pool = pool(2);
    let recording = pool.record(1000).unwrap();
    let stolen = AtomicU64::new(0);
    let first = || {
        while stolen.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        poach_runtime::current_thread_index().unwrap()
    };
    let (waits, ()) = pool.install(|| join(first, || stolen.store(1, Ordering::Relaxed)));
    let trace = recording.stop();
    assert!(activities(&trace).any(|it| it == (waits, Activity::Waiting)));
}

#[test]
fn both_exports_tell_of_all_workers_and_what_they_stole() {
    let pool = pool(2);
    let recording = pool.record(100_000).unwrap();
    let (_, stolen) = until_stolen(&pool);
    let trace = recording.stop();

    let document: serde_json::Value =
        serde_json::from_str(&trace.chrome_json().to_string()).expect("valid JSON");
    let events = document["traceEvents"].as_array().unwrap();
    let name = |event: &serde_json::Value| event["args"]["name"].as_str().map(str::to_owned);
    let named: HashSet<_> = events.iter().filter(|e| e["ph"] == "M").filter_map(name).collect();
    assert!(named.contains("poach-0") && named.contains("poach-1"), "{named:?}");
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let victims: Vec<_> =
        spans.filter_map(|e| Some((e["tid"].as_u64()?, e["args"]["victim"].as_u64()?))).collect();
    assert_eq!(victims.len() as u64, stolen);
    assert!(victims.iter().all(|(thief, victim)| thief + victim == 1), "{victims:?}");

    let picture = trace.svg().to_string();
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains(">poach-1</text>") && picture.contains("of worker "));
}

#[test]
fn spawned_tasks_are_recorded_where_they_run() {
    let pool = pool(2);
    let recording = pool.record(10_000).unwrap();
    pool.install(|| scope(|s| (0..100).for_each(|_| s.spawn(|_| thread::yield_now()))));
    let trace = recording.stop();
    trace.workers().iter().for_each(nests);
    let is_task =
        |(_, a): &(_, Activity)| matches!(a, Activity::OwnTask | Activity::StolenTask { .. });
    assert_eq!(activities(&trace).filter(is_task).count(), 100);
}

#[test]
fn a_small_buffer_keeps_the_first_and_counts_the_rest() {
    let pool = pool(1);
    let recording = pool.record(20).unwrap();
    pool.install(|| scope(|s| (0..100).for_each(|_| s.spawn(|_| ()))));
    let trace = recording.stop();
    let worker = &trace.workers()[0];
    let recorded = worker.spans().len() + worker.marks().len();
    assert!(recorded <= 20, "{recorded}");
    assert!(worker.missed() >= 80, "{}", worker.missed());
    nests(worker);
    let nothing = pool.record(0).unwrap();
    pool.install(|| ());
    let nothing = nothing.stop();
    assert!(nothing.workers()[0].spans().is_empty());
    assert!(nothing.workers()[0].missed() > 0);
}

#[test]
fn there_is_one_recording_at_a_time_and_then_another() {
    let pool = pool(2);
    let first = pool.record(100).unwrap();
    assert_eq!(pool.record(100).unwrap_err(), RecordError::AlreadyRecording);
    assert_eq!(first.stop().workers().len(), 2);
    drop(pool.record(100).unwrap());
    let third = pool.record(100).unwrap();
    // It may outlive its pool.
    drop(pool);
    assert_eq!(third.stop().workers().len(), 2);
}

#[test]
fn more_events_than_there_is_memory_for_are_refused_and_others_recorded_afterwards() {
    let pool = pool(2);
    for events in [1 << 60, usize::MAX] {
        let error = pool.record(events).unwrap_err();
        assert_eq!(error, RecordError::OutOfMemory { events });
        assert!(error.to_string().contains(&events.to_string()), "{error}");
    }
    let recording = pool.record(100).unwrap();
    pool.install(|| ());
    assert_eq!(recording.stop().workers().len(), pool.stats().workers().len());
}

/// A spare has a row of its own; threads from outside share one.
#[test]
fn what_a_spare_has_done_is_counted_as_a_workers() {
    let pool = ThreadPool::builder().num_threads(1).spares(1).build().unwrap();
    let before = pool.stats();
    pool.install(|| {
        let (send, receive) = std::sync::mpsc::channel();
        poach_runtime::spawn(move || send.send(poach_runtime::current_thread_index()).unwrap());
        assert_eq!(poach_runtime::blocking(|| receive.recv()), Ok(Some(1)));
    });
    let done = pool.stats().since(&before);
    assert_eq!(done.workers().iter().map(|worker| worker.tasks).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(done.guests().tasks, 0);
}
