//! A trace in the Trace Event Format of Chrome, which Perfetto reads too.
//!
//! A span is a "complete" event (`X`), a mark an "instant" one (`i`, of its thread); process and
//! thread names are metadata (`M`). Times are in microseconds, as the format wants them, with three
//! decimals. All names but those of threads are this crate's own, and need no escaping.
//!
//! Source: *Trace Event Format*, the document of the Catapult project.

use std::fmt;
use std::time::Duration;

use super::{Mark, Span, Trace};

pub(super) struct Document<'t>(pub(super) &'t Trace);

/// The process of all tracks.
const PROCESS: u32 = 1;

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = |name, thread, value| {
            format!(
                r#"{{"ph":"M","pid":{PROCESS},"tid":{thread},"name":"{name}","args":{{"name":"{value}"}}}}"#
            )
        };
        writeln!(f, r#"{{"displayTimeUnit":"ns","traceEvents":["#)?;
        write!(f, "{}", metadata("process_name", 0, Escaped("poach")))?;
        for (index, worker) in self.0.workers.iter().enumerate() {
            write!(f, ",\n{}", metadata("thread_name", index, Escaped(worker.name())))?;
            for span in worker.spans() {
                write_span(f, index, span)?;
            }
            for &(at, mark) in worker.marks() {
                write_mark(f, index, at, mark)?;
            }
        }
        let missed: u64 = self.0.workers.iter().map(super::Timeline::missed).sum();
        write!(f, "\n],\"otherData\":{{\"missed\":\"{missed}\"}}}}")
    }
}

fn write_span(f: &mut fmt::Formatter<'_>, thread: usize, span: &Span) -> fmt::Result {
    let start = Micros(span.start);
    let length = Micros(span.end.saturating_sub(span.start));
    let name = span.activity.name();
    write!(
        f,
        ",\n{{\"ph\":\"X\",\"pid\":{PROCESS},\"tid\":{thread},\"ts\":{start},\"dur\":{length},\
         \"name\":\"{name}\",\"args\":{{\"cut\":{}",
        span.cut
    )?;
    if let Some(victim) = span.activity.victim() {
        write!(f, ",\"victim\":{victim}")?;
    }
    f.write_str("}}")
}

fn write_mark(f: &mut fmt::Formatter<'_>, thread: usize, at: Duration, mark: Mark) -> fmt::Result {
    let (at, name) = (Micros(at), mark.name());
    write!(
        f,
        ",\n{{\"ph\":\"i\",\"s\":\"t\",\"pid\":{PROCESS},\"tid\":{thread},\"ts\":{at},\
         \"name\":\"{name}\",\"args\":{{"
    )?;
    if let Mark::Exposed { victim } = mark {
        write!(f, "\"victim\":{victim}")?;
    }
    f.write_str("}}")
}

/// As part of a JSON string.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            '\0'..' ' => write!(f, "\\u{:04x}", u32::from(c)),
            _ => write!(f, "{c}"),
        })
    }
}

/// In microseconds with three decimals, exactly.
struct Micros(Duration);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1000, nanos % 1000)
    }
}
