//! A trace as a picture.
//!
//! A band for each worker. In it a lane for each depth of nesting, so a task that was run while
//! another waited stands below the other; marks stand on the band's upper edge. Spans and marks
//! tell more when they are pointed at (`<title>`).
//!
//! A trace can hold more spans than a picture has points. What would be narrower than [`NARROWEST`]
//! and begins where the lane has been painted to already is left out: the picture stays as small as
//! its surface, and a lane full of tiny tasks looks full.

use std::fmt::{self, Write};
use std::time::Duration;

use super::{Activity, Mark, Timeline, Trace};

pub(super) struct Picture<'t>(pub(super) &'t Trace);

const WIDTH: f64 = 1200.0;
/// Left of the bands, for the workers' names; and right of them.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
/// Above the bands, for the legend and the times.
const TOP: f64 = 78.0;
const BOTTOM: f64 = 16.0;
const LANE: f64 = 16.0;
/// Above the lanes of a band, for its marks.
const MARKS: f64 = 9.0;
const BETWEEN: f64 = 10.0;
/// Spans deeper than this stand in the lowest lane.
const LANES: usize = 12;
const NARROWEST: f64 = 0.5;
/// As many divisions of the time axis as may be.
const DIVISIONS: f64 = 10.0;

/// One of each kind, for the legend.
const ACTIVITIES: [Activity; 8] = [
    Activity::InPlace,
    Activity::InjectedTask,
    Activity::OwnTask,
    Activity::StolenTask { victim: 0 },
    Activity::StolenFork { victim: 0, leap: false },
    Activity::StolenFork { victim: 0, leap: true },
    Activity::Waiting,
    Activity::Sleeping,
];
const MARKINGS: [Mark; 3] = [Mark::Shared, Mark::Exposed { victim: 0 }, Mark::Called];

/// Okabe and Ito's colours, which most eyes can tell apart; pale where no task runs.
fn paint(activity: Activity) -> &'static str {
    match activity {
        Activity::InPlace => "#882255",
        Activity::InjectedTask => "#56b4e9",
        Activity::OwnTask => "#0072b2",
        Activity::StolenTask { .. } => "#009e73",
        Activity::StolenFork { leap: false, .. } => "#e69f00",
        Activity::StolenFork { leap: true, .. } => "#d55e00",
        Activity::Waiting => "#f0e9b8",
        Activity::Sleeping => "#d4d4d4",
    }
}

/// A mark's colour, half its width, and its place in [`MARKINGS`]. A worker that shares calls a
/// sleeper right afterwards: the narrower mark stands before the wider.
fn ink(mark: Mark) -> (&'static str, f64, usize) {
    match mark {
        Mark::Shared => ("#000000", 4.0, 0),
        Mark::Exposed { .. } => ("#d00000", 4.0, 1),
        Mark::Called => ("#cc79a7", 2.0, 2),
    }
}

impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers = &self.0.workers;
        let bands: f64 = workers.iter().map(|worker| height(worker) + BETWEEN).sum();
        let total = TOP + bands + BOTTOM;
        writeln!(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {total}\" \
             width=\"{WIDTH}\" height=\"{total}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"{WIDTH}\" height=\"{total}\" fill=\"#ffffff\"/>"
        )?;
        legend(f, workers.iter().map(Timeline::missed).sum())?;
        axis(f, self.0.duration, TOP + bands - BETWEEN)?;
        let mut top = TOP;
        for worker in workers {
            band(f, worker, top, self.0.duration)?;
            top += height(worker) + BETWEEN;
        }
        f.write_str("</svg>\n")
    }
}

fn lanes(worker: &Timeline) -> usize {
    worker.spans().iter().map(|span| span.depth + 1).max().unwrap_or(1).min(LANES)
}

fn height(worker: &Timeline) -> f64 {
    MARKS + LANE * lanes(worker) as f64
}

/// Where a time stands.
fn across(at: Duration, duration: Duration) -> f64 {
    let share = at.as_secs_f64() / duration.as_secs_f64().max(f64::MIN_POSITIVE);
    LEFT + share.min(1.0) * (WIDTH - LEFT - RIGHT)
}

fn legend(f: &mut fmt::Formatter<'_>, missed: u64) -> fmt::Result {
    let mut left = LEFT;
    let mut entry = |f: &mut fmt::Formatter<'_>, sign: &str, name: &str| {
        writeln!(
            f,
            "<g transform=\"translate({left:.1} 12)\">{sign}<text x=\"16\" y=\"10\">{name}</text></g>"
        )?;
        // A letter is about six and a half units wide.
        left += 32.0 + 6.5 * name.len() as f64;
        Ok(())
    };
    for activity in ACTIVITIES {
        let sign = format!("<rect width=\"12\" height=\"12\" fill=\"{}\"/>", paint(activity));
        entry(f, &sign, activity.name())?;
    }
    for mark in MARKINGS {
        let sign = format!("<path d=\"M1 3h10l-5 8z\" fill=\"{}\"/>", ink(mark).0);
        entry(f, &sign, mark.name())?;
    }
    if missed != 0 {
        writeln!(
            f,
            "<text x=\"{LEFT}\" y=\"40\" fill=\"#d00000\">the buffers had no room for {missed} more \
             spans and marks</text>"
        )?;
    }
    Ok(())
}

/// Lines at round times, down to `bottom`.
fn axis(f: &mut fmt::Formatter<'_>, duration: Duration, bottom: f64) -> fmt::Result {
    let nanos = duration.as_nanos().max(1) as f64;
    let decade = 10f64.powf((nanos / DIVISIONS).log10().ceil());
    // The smallest of 0.2, 0.5 and 1 decades that makes no more divisions than may be.
    let fits = |step: &f64| nanos / step <= DIVISIONS;
    let step = [decade / 5.0, decade / 2.0].into_iter().find(fits).unwrap_or(decade);
    let (unit, name) = match nanos {
        nanos if nanos >= 1e9 => (1e9, "s"),
        nanos if nanos >= 1e6 => (1e6, "ms"),
        nanos if nanos >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    for division in 0..=(nanos / step) as u64 {
        let at = division as f64 * step;
        let x = across(Duration::from_nanos(at as u64), duration);
        // Four digits, less the noughts at their end.
        let text = (at / unit * 1e4).round() / 1e4;
        writeln!(
            f,
            "<path d=\"M{x:.1} {:.1}V{bottom:.1}\" stroke=\"#d8d8d8\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555555\">{text} {name}</text>",
            TOP - 10.0,
            TOP - 14.0,
        )?;
    }
    Ok(())
}

fn band(
    f: &mut fmt::Formatter<'_>,
    worker: &Timeline,
    top: f64,
    duration: Duration,
) -> fmt::Result {
    let (width, height) = (WIDTH - LEFT - RIGHT, height(worker) - MARKS);
    let upper = top + MARKS;
    writeln!(
        f,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LEFT}\" y=\"{upper:.1}\" width=\"{width}\" height=\"{height}\" fill=\"#f6f6f6\"/>",
        LEFT - 8.0,
        upper + 12.0,
        worker.name().replace('&', "&amp;").replace('<', "&lt;")
    )?;
    let mut painted = [0.0; LANES];
    for span in worker.spans() {
        let lane = span.depth.min(LANES - 1);
        let (left, right) = (across(span.start, duration), across(span.end, duration));
        if right - left < NARROWEST && right <= painted[lane] {
            continue;
        }
        let width = (right - left).max(NARROWEST);
        painted[lane] = left + width;
        let mut told = span.activity.name().to_owned();
        if let Some(victim) = span.activity.victim() {
            write!(told, " of worker {victim}")?;
        }
        if span.cut {
            told.push_str(", not ended");
        }
        writeln!(
            f,
            "<rect x=\"{left:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{:.1}\" fill=\"{}\">\
             <title>{told}, {:?} from {:?}</title></rect>",
            upper + LANE * lane as f64,
            LANE - 1.0,
            paint(span.activity),
            span.end.saturating_sub(span.start),
            span.start,
        )?;
    }
    let mut marked = [0.0; MARKINGS.len()];
    for (at, mark) in worker.marks() {
        let x = across(*at, duration);
        let (colour, half, place) = ink(*mark);
        if x < marked[place] {
            continue;
        }
        marked[place] = x + NARROWEST;
        let mut told = mark.name().to_owned();
        if let Mark::Exposed { victim } = mark {
            write!(told, " tasks of worker {victim}")?;
        }
        writeln!(
            f,
            "<path d=\"M{:.2} {top:.1}h{}l-{half} 8z\" fill=\"{colour}\">\
             <title>{told} at {at:?}</title></path>",
            x - half,
            2.0 * half,
        )?;
    }
    Ok(())
}
