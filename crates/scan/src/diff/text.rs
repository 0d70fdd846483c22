//! A comparison as text: the largest differences as a tree, then the sums.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{Change, Diff, Difference, Sum};
use crate::Kind;
use crate::report::{Extent, Fit, Look, Measure, count, cut, escape, width};

const MORE: Style = AnsiColor::Red.on_default();
const LESS: Style = AnsiColor::Green.on_default();
const FAINT: Style = Style::new().dimmed();
const LABEL: Style = Style::new().bold();

/// Levels that are indented; what lies deeper says how deep it lies.
const INDENTED: usize = 12;

/// The columns before a name, and the fewest of a terminal that leave room for the present size,
/// too.
const BEFORE: usize = 33;
const WITH_SIZE: usize = 60;

/// Writes the report. What is shown of the differences is the extent's to say; the sums are of all.
///
/// # Errors
///
/// The writer's own.
pub fn text(diff: &Diff<'_>, extent: &Extent, look: Look, out: &mut impl Write) -> io::Result<()> {
    text_to(diff, extent, look, out)
}

fn text_to(diff: &Diff<'_>, extent: &Extent, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Fit::new(out, look.width);
    let paint = Paint(look);
    let shown = diff.largest(extent.depth, extent.top);
    if !diff.differences.is_empty() {
        writeln!(out)?;
    }
    for difference in &shown {
        row(diff.measure, difference, paint, out)?;
    }
    let left_out = diff.differences.len() - shown.len();
    if left_out > 0 {
        let text = format!("{} more, smaller or deeper", count(left_out as u64));
        writeln!(out, "{:>12}  {}", "", paint.with(FAINT, &text))?;
    }
    writeln!(out)?;
    sums(diff, paint, out)
}

#[derive(Clone, Copy)]
struct Paint(Look);

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.0.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn delta(self, delta: i128, text: &str) -> String {
        match delta {
            0 => text.to_owned(),
            1.. => self.with(MORE, text),
            _ => self.with(LESS, text),
        }
    }
}

impl Paint {
    fn signed(self, measure: Measure, delta: i128) -> String {
        let size = u64::try_from(delta.unsigned_abs()).unwrap_or(u64::MAX);
        let sign = if delta < 0 { "-" } else { "+" };
        format!("{sign}{}", self.0.amount(measure, size))
    }
}

fn row(
    measure: Measure,
    it: &Difference<'_>,
    paint: Paint,
    out: &mut impl Write,
) -> io::Result<()> {
    let node = it.node();
    let look = paint.0;
    let delta = paint.delta(it.delta, &format!("{:>12}", paint.signed(measure, it.delta)));
    let now = it.new.map_or_else(String::new, |node| look.amount(measure, measure.of(&node)));
    let with_size = look.columns() >= WITH_SIZE;
    let now = if with_size { format!("{now:>10}  ") } else { String::new() };
    let change = match it.change {
        Change::Grown => "grown",
        Change::Shrunk => "shrunk",
        Change::New => "new",
        Change::Gone => "gone",
        Change::Changed => "changed",
    };
    let room = look.columns().saturating_sub(if with_size { BEFORE } else { BEFORE - 12 });
    let indented = INDENTED.min(room / 4);
    let indent = if look.full_paths {
        String::new()
    } else if it.depth > indented {
        format!("{}(level {}) ", "  ".repeat(indented), it.depth)
    } else {
        "  ".repeat(it.depth)
    };
    let path = if look.full_paths { node.path() } else { node.name().to_vec() };
    let slash =
        if node.kind() == Kind::Directory && !node.name().ends_with(b"/") { "/" } else { "" };
    let label = paint.with(FAINT, &format!("{change:<7}"));
    let name = cut(&escape(&path), room.saturating_sub(width(&indent) + slash.len()).max(1));
    writeln!(out, "{delta}  {now}{label}  {indent}{name}{slash}")
}

fn sums(diff: &Diff<'_>, paint: Paint, out: &mut impl Write) -> io::Result<()> {
    let measure = diff.measure;
    let sums = [
        ("new", diff.come, 1),
        ("gone", diff.gone, -1),
        ("grown", diff.grown, 1),
        ("shrunk", diff.shrunk, -1),
    ];
    for (name, Sum { entries, amount }, sign) in sums {
        let of = match name {
            "new" | "gone" if entries == 1 => "entry",
            "new" | "gone" => "entries",
            _ if entries == 1 => "file",
            _ => "files",
        };
        let number = paint.with(LABEL, &count(entries));
        let delta = i128::from(amount) * sign;
        write!(out, "{}  {number} {of}", paint.with(FAINT, &format!("{name:>12}")))?;
        if measure != Measure::Entries && amount > 0 {
            write!(out, ", {}", paint.delta(delta, &paint.signed(measure, delta)))?;
        }
        writeln!(out)?;
    }
    for (name, scan, what) in [("old", diff.old, "new"), ("new", diff.new, "gone")] {
        if scan.interrupted {
            let text = format!("was interrupted: what it had not read yet counts as {what}");
            writeln!(
                out,
                "{}  {}",
                paint.with(FAINT, &format!("{name:>12}")),
                paint.with(MORE, &text)
            )?;
        }
    }
    let total = |scan: &crate::Scan| match measure {
        Measure::Disk => scan.totals.disk_bytes,
        Measure::Apparent => scan.totals.apparent_bytes,
        Measure::Entries => scan.totals.entries(),
    };
    let (old, new) = (total(diff.old), total(diff.new));
    let delta = i128::from(new) - i128::from(old);
    writeln!(
        out,
        "{}  {} -> {} ({})",
        paint.with(FAINT, &format!("{:>12}", "in all")),
        paint.0.amount(measure, old),
        paint.with(LABEL, &paint.0.amount(measure, new)),
        paint.delta(delta, &paint.signed(measure, delta)),
    )
}
