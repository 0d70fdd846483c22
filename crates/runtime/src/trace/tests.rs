use std::time::{Duration, Instant};

use super::*;
use crate::stats::track::Track;

/// A recording of one track, made by hand.
fn record(capacity: usize, work: impl FnOnce(&Track)) -> Timeline {
    let began = Instant::now();
    let track = Track::new();
    track.start(1, capacity).unwrap();
    work(&track);
    let events = track.stop().expect("it was started");
    Timeline::of(events, began, began.elapsed())
}

#[test]
fn spans_nest_as_they_were_opened() {
    let timeline = record(100, |track| {
        let _outer = track.open(Activity::InjectedTask);
        for victim in 0..2 {
            let _wait = track.open(Activity::Waiting);
            drop(track.open(Activity::StolenTask { victim }));
        }
    });
    let depths: Vec<_> = timeline.spans().iter().map(|span| span.depth).collect();
    assert_eq!(depths, [0, 1, 2, 1, 2]);
    assert!(timeline.spans().iter().all(|span| !span.cut && span.start <= span.end));
    assert_eq!(timeline.spans()[4].activity.victim(), Some(1));
}

#[test]
fn a_full_buffer_leaves_out_whole_spans_and_says_how_many() {
    // Room for the outer span, a mark, and one inner span; and one event that nothing fits into but
    // a mark.
    let timeline = record(6, |track| {
        let outer = track.open(Activity::InjectedTask);
        track.mark(Mark::Shared);
        drop(track.open(Activity::OwnTask));
        drop(track.open(Activity::OwnTask));
        track.mark(Mark::Called);
        track.mark(Mark::Called);
        drop(outer);
    });
    assert_eq!(timeline.missed(), 2);
    assert_eq!((timeline.spans().len(), timeline.marks().len()), (2, 2));
    assert!(timeline.spans().iter().all(|span| !span.cut), "no end was lost");
}

#[test]
fn a_span_that_is_open_at_the_end_is_cut_there() {
    let track = Track::new();
    let began = Instant::now();
    track.start(1, 10).unwrap();
    let open = track.open(Activity::Waiting);
    let events = track.stop().unwrap();
    // It ends in the middle of the next recording, which must not take that for an end of its own.
    track.start(2, 10).unwrap();
    let other = track.open(Activity::OwnTask);
    drop(open);
    let duration = began.elapsed();
    let first = Timeline::of(events, began, duration);
    assert_eq!((first.spans()[0].end, first.spans()[0].cut), (duration, true));
    drop(other);
    let second = Timeline::of(track.stop().unwrap(), began, began.elapsed());
    assert_eq!((second.spans().len(), second.spans()[0].cut), (1, false));
}

#[test]
fn nothing_is_kept_while_nothing_is_recorded() {
    let track = Track::new();
    drop(track.open(Activity::OwnTask));
    track.mark(Mark::Shared);
    assert!(track.stop().is_none());
}

/// A worker that does one of everything, and a worker that does nothing.
fn example() -> Trace {
    let at = Duration::from_micros;
    let activities = [
        Activity::StolenFork { victim: 1, leap: true },
        Activity::StolenFork { victim: 1, leap: false },
        Activity::StolenTask { victim: 1 },
        Activity::OwnTask,
        Activity::InjectedTask,
        Activity::Waiting,
        Activity::InPlace,
        Activity::Sleeping,
    ];
    let span = |(i, activity): (u64, Activity)| {
        let (start, end) = (at(i * 10), at(i * 10 + 7));
        Span { activity, start, end, depth: 0, cut: i == 7 }
    };
    let marks = [Mark::Shared, Mark::Exposed { victim: 1 }, Mark::Called];
    let busy = Timeline {
        name: "a \"<name>\" & \\\t".to_owned(),
        spans: (0..).zip(activities).map(span).collect(),
        marks: (0u64..).zip(marks).map(|(i, mark)| (at(i * 20), mark)).collect(),
        missed: 3,
    };
    let idle = Timeline { name: "worker 1".to_owned(), ..Timeline::default() };
    Trace { workers: vec![busy, idle], duration: at(80) }
}

#[test]
fn the_chrome_document_has_every_event_with_its_time() {
    let document: serde_json::Value =
        serde_json::from_str(&example().chrome_json().to_string()).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let of = |phase: &'static str| events.iter().filter(move |event| event["ph"] == phase);
    let named: Vec<_> = of("M").map(|event| &event["args"]["name"]).collect();
    assert_eq!(named, ["poach", "a \"<name>\" & \\\t", "worker 1"]);
    assert_eq!((of("M").count(), of("X").count(), of("i").count()), (3, 8, 3));
    let sleeping = of("X").find(|event| event["name"] == "sleeping").unwrap();
    assert_eq!((sleeping["ts"].as_f64(), sleeping["dur"].as_f64()), (Some(70.0), Some(7.0)));
    assert_eq!((&sleeping["tid"], &sleeping["args"]["cut"]), (&0.into(), &true.into()));
    let stolen = of("X").filter(|event| event["args"]["victim"] == 1).count();
    assert_eq!(stolen, 3);
    assert_eq!(document["otherData"]["missed"], "3");
}

#[test]
fn the_picture_has_a_shape_for_everything_and_says_what_is_missing() {
    let picture = example().svg().to_string();
    assert_eq!(picture.matches("<title>").count(), 8 + 3);
    assert!(picture.contains("worker 1</text>") && picture.contains(">a \"&lt;name>\" &amp;"));
    assert!(picture.contains("no room for 3 more"));
    assert!(picture.contains(">60 us</text>"), "the time axis is divided in tens");
}

#[test]
#[cfg(not(miri))] // Thousands of numbers become text, in safe code: minutes of its time, and nothing to find.
fn a_lane_of_tiny_spans_is_painted_once_a_point() {
    const SPANS: u64 = 100_000;
    let span = |i: u64| {
        let (start, end) = (Duration::from_nanos(i * 10), Duration::from_nanos(i * 10 + 9));
        Span { activity: Activity::OwnTask, start, end, depth: 0, cut: false }
    };
    let spans: Vec<_> = (0..SPANS).map(span).collect();
    let worker = Timeline { spans, ..Timeline::default() };
    let trace = Trace { workers: vec![worker], duration: Duration::from_nanos(10 * SPANS) };
    let shapes = trace.svg().to_string().matches("<title>").count();
    assert!((1000..=3000).contains(&shapes), "{shapes} shapes on about 1,100 points");
}
