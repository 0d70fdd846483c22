//! A scan as text: the largest directories as a tree with bars, then the totals.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Extent, Measure, Row, bytes, count, escape, rows};
use crate::{Kind, Scan};

/// What the text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns. A line is cut to fit, down to 40; [`usize::MAX`] cuts none.
    pub width: usize,
    /// Whether to colour it with ANSI escape codes.
    pub colour: bool,
}

const FIGURE: Style = AnsiColor::Green.on_default().bold();
const BAR: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
const DIRECTORY: Style = AnsiColor::Blue.on_default().bold();
const LABEL: Style = Style::new().bold();
const AMISS: Style = AnsiColor::Red.on_default().bold();

/// Columns before a name, the bar's excepted: two, the figure's ten, the share's six, and gaps.
const BEFORE: usize = 2 + 10 + 2 + 6 + 2 + 2;

impl Look {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.into()
        }
    }

    fn bar(&self) -> usize {
        (self.width.clamp(40, 120) - 40) / 3 + 4
    }

    fn names(&self) -> usize {
        self.width.max(40).saturating_sub(BEFORE + self.bar())
    }
}

/// Writes the report.
///
/// # Errors
///
/// The writer's own.
pub fn text(scan: &Scan, extent: &Extent, look: Look, out: &mut impl Write) -> io::Result<()> {
    let rows = rows(scan, extent);
    if !rows.is_empty() {
        writeln!(out)?;
        tree(&rows, extent.measure, look, out)?;
    }
    writeln!(out)?;
    totals(scan, look, out)
}

fn tree(rows: &[Row<'_>], measure: Measure, look: Look, out: &mut impl Write) -> io::Result<()> {
    // For each level above the row at hand, whether a line runs on there; and the root's value.
    let mut runs: Vec<bool> = Vec::new();
    let mut whole = 0;
    for row in rows {
        if row.depth == 0 {
            whole = row.value;
        }
        runs.truncate(row.depth.saturating_sub(1));
        let figure = match measure {
            Measure::Entries => count(row.value),
            Measure::Disk | Measure::Apparent => bytes(row.value),
        };
        let share = share(row.value, whole);
        let above = row.parent.map_or(share, |parent| self::share(rows[parent].value, whole));
        let percent = format!("{:.1}%", share * 100.0);
        write!(out, "  {}", look.paint(FIGURE, &format!("{figure:>10}")))?;
        write!(out, "  {}", look.paint(FAINT, &format!("{percent:>6}")))?;
        write!(out, "  {}  ", bar(share, above, look))?;

        let branch = branch(&runs, row);
        let name = escape(row.node.name());
        let room = look.names().saturating_sub(branch.width()).max(8);
        let name = cut(&name, room);
        let name = match row.node.kind() {
            Kind::Directory => look.paint(DIRECTORY, &name),
            _ => name,
        };
        writeln!(out, "{}{name}", look.paint(FAINT, &branch))?;
        if row.depth > 0 {
            runs.push(!row.last);
        }
    }
    Ok(())
}

/// Levels whose lines are drawn; what lies deeper says how deep it lies.
const DRAWN: usize = 12;

fn branch(runs: &[bool], row: &Row<'_>) -> String {
    if row.depth == 0 {
        return String::new();
    }
    let mut branch = String::new();
    for &runs in runs.iter().take(DRAWN) {
        branch.push_str(if runs { "│  " } else { "   " });
    }
    if runs.len() > DRAWN {
        branch.push_str(&format!("(level {}) ", row.depth));
    }
    branch.push_str(if row.last { "└─ " } else { "├─ " });
    branch
}

fn share(value: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { value as f64 / whole as f64 }
}

/// A bar to the eighth of a column, drawn on to the share of the directory that the entry is in.
fn bar(share: f64, above: f64, look: Look) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let width = look.bar();
    let eighths = ((share * width as f64 * 8.0).round() as usize).min(width * 8);
    let mut filled = "█".repeat(eighths / 8);
    filled.push_str(EIGHTHS[eighths % 8]);
    let filled_columns = eighths.div_ceil(8);
    let columns = ((above * width as f64).ceil() as usize).clamp(filled_columns, width);
    let rest = "░".repeat(columns - filled_columns);
    let blank = " ".repeat(width - columns);
    format!("{}{}{blank}", look.paint(BAR, &filled), look.paint(FAINT, &rest))
}

/// A name in at most so many columns: what is cut is cut from the middle, as both ends tell more.
fn cut(name: &str, columns: usize) -> String {
    if name.width() <= columns {
        return name.to_owned();
    }
    let (head, tail) = ((columns - 1) / 2, (columns - 1) - (columns - 1) / 2);
    let fitting = |characters: &mut dyn Iterator<Item = char>, columns: usize| {
        let mut used = 0;
        let mut kept = Vec::new();
        for character in characters {
            used += character.width().unwrap_or(0);
            if used > columns {
                break;
            }
            kept.push(character);
        }
        kept
    };
    let start = fitting(&mut name.chars(), head);
    let end = fitting(&mut name.chars().rev(), tail);
    start.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

fn totals(scan: &Scan, look: Look, out: &mut impl Write) -> io::Result<()> {
    let totals = &scan.totals;
    let label = |text: &str| look.paint(FAINT, &format!("{text:>12}"));
    let strong = |text: String| look.paint(LABEL, &text);
    let named = |number: u64, one: &str, many: &str| {
        format!("{} {}", strong(count(number)), if number == 1 { one } else { many })
    };
    let faint_comma = look.paint(FAINT, ", ");
    let kinds = [
        named(totals.directories, "directory", "directories"),
        named(totals.files, "file", "files"),
        named(totals.symlinks, "symlink", "symlinks"),
        named(totals.other, "other", "other"),
    ];
    writeln!(out, "{}  {}", label("entries"), kinds.join(&faint_comma))?;
    writeln!(
        out,
        "{}  {} {}",
        label("on disk"),
        strong(bytes(totals.disk_bytes)),
        look.paint(FAINT, &format!("({} bytes)", count(totals.disk_bytes))),
    )?;
    writeln!(
        out,
        "{}  {} {}",
        label("apparent"),
        strong(bytes(totals.apparent_bytes)),
        look.paint(FAINT, &format!("({} bytes)", count(totals.apparent_bytes))),
    )?;
    let threads = if scan.threads == 1 { "thread" } else { "threads" };
    writeln!(
        out,
        "{}  {} {}",
        label("time"),
        strong(format!("{:.3} s", scan.elapsed.as_secs_f64())),
        look.paint(
            FAINT,
            &format!(
                "({} entries/s; {}, {} {threads})",
                count(scan.entries_per_second() as u64),
                scan.engine,
                scan.threads
            )
        ),
    )?;
    for path in &scan.repeated {
        let path = escape(path.as_os_str().as_encoded_bytes());
        writeln!(out, "{}  {path} is another of the paths, or in one", label("counted once"))?;
    }
    if totals.errors > 0 {
        let what = if totals.errors == 1 { "error" } else { "errors" };
        let text = format!("{} {what}: the totals are of what could be read", count(totals.errors));
        writeln!(out, "{}  {}", label("amiss"), look.paint(AMISS, &text))?;
    }
    if scan.interrupted {
        let text = look.paint(AMISS, "interrupted: the totals are of what was read until then");
        writeln!(out, "{}  {text}", label("amiss"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends_and_fits() {
        assert_eq!(cut("short", 8), "short");
        assert_eq!(cut("a-very-long-name.tar.gz", 11), "a-ver…ar.gz");
        assert!(cut("日本語日本語日本語", 8).width() <= 8);
    }

    #[test]
    fn a_bar_fills_its_columns_whatever_the_share() {
        let look = Look { width: 80, colour: false };
        for (share, above) in [(0.0, 0.0), (0.001, 1.0), (0.5, 0.7), (1.0, 1.0), (0.33, 0.33)] {
            assert_eq!(bar(share, above, look).width(), look.bar(), "{share} of {above}");
        }
    }

    #[test]
    fn no_colour_means_no_escape_code() {
        assert_eq!(Look { width: 80, colour: false }.paint(AMISS, "x"), "x");
        assert!(Look { width: 80, colour: true }.paint(AMISS, "x").contains('\x1b'));
    }
}
