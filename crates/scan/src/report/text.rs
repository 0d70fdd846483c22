//! A scan as text: the largest directories as a tree with bars, then the totals.

use std::io::{self, Write};

use super::{Extent, Fit, Measure, Units, count};
use crate::Scan;
use anstyle::{AnsiColor, Style};

mod totals;
mod tree;

/// What the text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Columns. Every line is cut to fit, in its names as far as there is a choice: on less than
    /// 40 columns, at its end; [`usize::MAX`] cuts none.
    pub width: usize,
    /// Lines, if there is a limit: where [`Extent::top`] says nothing, as many entries are shown
    /// as fit.
    pub height: Option<usize>,
    /// Whether to colour it with ANSI escape codes.
    pub colour: bool,
    /// What numbers of bytes are shown in.
    pub units: Units,
    /// Whether a row of the tree has its whole path, and no lines are drawn.
    pub full_paths: bool,
    /// Whether the tree has a row for what lies in a directory itself, and not in one of its
    /// directories: `(files)`, and how many there are. For a scan that shows directories alone.
    pub own_files: bool,
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
            own_files: false,
        }
    }
}

const FIGURE: Style = AnsiColor::Green.on_default().bold();
const BAR: Style = AnsiColor::Cyan.on_default();
const FAINT: Style = Style::new().dimmed();
const DIRECTORY: Style = AnsiColor::Blue.on_default().bold();
const LABEL: Style = Style::new().bold();
const AMISS: Style = AnsiColor::Red.on_default().bold();

/// The fewest columns that lines are laid out for.
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

fn text_to(scan: &Scan, extent: &Extent, look: Look, out: &mut dyn Write) -> io::Result<()> {
    let out = &mut Fit::new(out, look.width);
    let mut summary = Vec::new();
    totals::write(scan, look, &mut summary)?;
    let below = summary.split(|&byte| byte == b'\n').count() - 1;
    tree::write(scan, extent, look, below, out)?;
    out.write_all(&summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_colour_means_no_escape_code() {
        let look = |colour| Look { width: 80, colour, ..Look::default() };
        assert_eq!(look(false).paint(AMISS, "x"), "x");
        assert!(look(true).paint(AMISS, "x").contains('\x1b'));
    }
}
