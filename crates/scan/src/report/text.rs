//! A scan as text: the largest directories as a tree with bars, then the totals.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Extent, Measure, Units, count};
use crate::Scan;

mod totals;
mod tree;

/// What the text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns. A line is cut to fit, down to 40; [`usize::MAX`] cuts none.
    pub width: usize,
    /// Lines, if there is a limit: where [`Extent::top`] says nothing, as many entries are shown as fit.
    pub height: Option<usize>,
    /// Whether to colour it with ANSI escape codes.
    pub colour: bool,
    /// What numbers of bytes are shown in.
    pub units: Units,
    /// Whether a row of the tree has its whole path, and no lines are drawn.
    pub full_paths: bool,
}

impl Default for Look {
    /// Whole lines, plain.
    fn default() -> Look {
        Look {
            width: usize::MAX,
            height: None,
            colour: false,
            units: Units::default(),
            full_paths: false,
        }
    }
}

const FIGURE: Style = AnsiColor::Green.on_default().bold();
const BAR: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
const DIRECTORY: Style = AnsiColor::Blue.on_default().bold();
const LABEL: Style = Style::new().bold();
const AMISS: Style = AnsiColor::Red.on_default().bold();

/// The fewest columns that a line is cut to.
const NARROWEST: usize = 40;

impl Look {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.into()
        }
    }

    pub(crate) fn strong(&self, text: &str) -> String {
        self.paint(LABEL, text)
    }

    pub(crate) fn faint(&self, text: &str) -> String {
        self.paint(FAINT, text)
    }

    pub(crate) fn bytes(&self, number: u64) -> String {
        self.units.show(number)
    }

    /// A number of what is measured.
    pub fn amount(&self, measure: Measure, number: u64) -> String {
        match measure {
            Measure::Entries => count(number),
            Measure::Disk | Measure::Apparent => self.bytes(number),
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.width.max(NARROWEST)
    }
}

/// Writes the report.
///
/// # Errors
///
/// The writer's own.
pub fn text(scan: &Scan, extent: &Extent, look: Look, out: &mut impl Write) -> io::Result<()> {
    text_to(scan, extent, look, out)
}

fn text_to(scan: &Scan, extent: &Extent, look: Look, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    let mut summary = Vec::new();
    totals::write(scan, look, &mut summary)?;
    let below = summary.split(|&byte| byte == b'\n').count() - 1;
    tree::write(scan, extent, look, below, out)?;
    out.write_all(&summary)
}

/// A text in at most so many columns: what is cut is cut from the middle, as both ends tell more.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    if columns == 0 {
        return String::new();
    }
    let (head, tail) = ((columns - 1) / 2, (columns - 1) - (columns - 1) / 2);
    let start = fitting(&mut text.chars(), head);
    let end = fitting(&mut text.chars().rev(), tail);
    start.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

fn fitting(characters: &mut dyn Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= columns
    };
    characters.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends_and_fits() {
        assert_eq!(cut("short", 8), "short");
        assert_eq!(cut("a-very-long-name.tar.gz", 11), "a-ver…ar.gz");
        assert!(cut("日本語日本語日本語", 8).width() <= 8);
        assert_eq!(cut("name", 0), "");
        assert_eq!(cut("name", 1), "…");
    }

    #[test]
    fn no_colour_means_no_escape_code() {
        let look = |colour| Look { width: 80, colour, ..Look::default() };
        assert_eq!(look(false).paint(AMISS, "x"), "x");
        assert!(look(true).paint(AMISS, "x").contains('\x1b'));
    }
}
