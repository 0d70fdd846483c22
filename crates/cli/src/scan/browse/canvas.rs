//! The cells that the terminal is to show, and the writing of the cells that it does not show yet.
//!
//! A cell holds what [`clusters`] tells as one. A cluster of two columns or three stands in the
//! first of its cells; the others are empty. Every cell that is covered or uncovered by such a
//! cluster differs from what was there before, so cells can be compared one by one. Only a line
//! with a cluster about whose columns terminals do not agree is written whole, over blanks, once
//! anything in it has changed: such a cluster may cover less than its cells, or more.

use std::io::{self, Write};

use crossterm::cursor::MoveTo;
use crossterm::queue;
use crossterm::style::{Attribute, Color, Print, SetAttribute, SetForegroundColor};
use crossterm::terminal::{Clear, ClearType};
use poach_scan::report::clusters;

/// How a cell looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    color: Option<Color>,
    bold: bool,
    faint: bool,
    reversed: bool,
}

impl Style {
    pub(super) const PLAIN: Style =
        Style { color: None, bold: false, faint: false, reversed: false };

    pub(super) const fn colored(color: Color) -> Style {
        Style { color: Some(color), ..Style::PLAIN }
    }

    pub(super) const fn bold(self) -> Style {
        Style { bold: true, ..self }
    }

    pub(super) const fn faint(self) -> Style {
        Style { faint: true, ..self }
    }

    pub(super) const fn reversed(self) -> Style {
        Style { reversed: true, ..self }
    }

    /// The color, and whether it is bold, faint and reversed.
    #[cfg(all(test, unix))]
    pub(super) fn parts(self) -> (Option<Color>, [bool; 3]) {
        (self.color, [self.bold, self.faint, self.reversed])
    }

    fn write(self, to: &mut impl Write) -> io::Result<()> {
        queue!(to, SetAttribute(Attribute::Reset))?;
        if let Some(color) = self.color {
            queue!(to, SetForegroundColor(color))?;
        }
        let attributes = [
            (self.bold, Attribute::Bold),
            (self.faint, Attribute::Dim),
            (self.reversed, Attribute::Reverse),
        ];
        for (_, attribute) in attributes.into_iter().filter(|(wanted, _)| *wanted) {
            queue!(to, SetAttribute(attribute))?;
        }
        Ok(())
    }
}

/// A text and how it looks.
pub(super) type Span = (String, Style);

/// A part of the canvas, in cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) x: u16,
    pub(super) y: u16,
    pub(super) width: u16,
    pub(super) height: u16,
}

impl Area {
    pub(super) fn right(self) -> u16 {
        self.x.saturating_add(self.width)
    }

    pub(super) fn bottom(self) -> u16 {
        self.y.saturating_add(self.height)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cell {
    /// Empty where the cluster of a cell before takes this one, too.
    text: String,
    style: Style,
}

impl Cell {
    /// Whether terminals agree on how many columns it takes: it is one character, and none that
    /// they know by different versions of Unicode.
    fn is_sure(&self) -> bool {
        let mut characters = self.text.chars();
        match (characters.next(), characters.next()) {
            (None, _) => true,
            (Some(only), None) => only.is_ascii() || ('─'..='█').contains(&only) || only == '░',
            _ => false,
        }
    }
}

/// The cells of a terminal, line by line.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    width: u16,
    height: u16,
    cells: Vec<Cell>,
}

impl Canvas {
    /// A canvas of blanks.
    pub(super) fn new(width: u16, height: u16) -> Canvas {
        let blank = Cell { text: " ".to_owned(), style: Style::PLAIN };
        Canvas { width, height, cells: vec![blank; usize::from(width) * usize::from(height)] }
    }

    /// Each line as texts and how they look.
    #[cfg(all(test, unix))]
    pub(super) fn spans(&self) -> Vec<Vec<Span>> {
        let span = |cell: &Cell| (cell.text.clone(), cell.style);
        let lines = self.cells.chunks(usize::from(self.width));
        lines.map(|line| line.iter().map(span).collect()).collect()
    }

    pub(super) fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.width, height: self.height }
    }

    fn at(&mut self, x: u16, y: u16) -> Option<&mut Cell> {
        let inside = x < self.width && y < self.height;
        inside.then(|| &mut self.cells[usize::from(y) * usize::from(self.width) + usize::from(x)])
    }

    /// Writes a text from a cell on, up to the column `end`. Returns the column after it.
    ///
    /// Control characters are left out. A cluster for which there are not enough columns ends the
    /// text.
    pub(super) fn put(&mut self, mut x: u16, y: u16, end: u16, text: &str, style: Style) -> u16 {
        let mut last = None;
        for (cluster, columns) in clusters(text) {
            if cluster.chars().any(char::is_control) {
                continue;
            }
            let columns = columns as u16;
            if columns == 0 {
                // A mark without a letter, if this is not the beginning.
                if let Some(cell) = last.and_then(|x| self.at(x, y)) {
                    cell.text.push_str(cluster);
                }
                continue;
            }
            if x.saturating_add(columns) > end.min(self.width) {
                break;
            }
            self.split_wide(x, y);
            self.split_wide(x + columns, y);
            for column in x..x + columns {
                if let Some(cell) = self.at(column, y) {
                    let text = if column == x { cluster.to_owned() } else { String::new() };
                    *cell = Cell { text, style };
                }
            }
            last = Some(x);
            x += columns;
        }
        x
    }

    /// Puts blanks in the place of a cluster of several columns, if this is one of its cells but
    /// not the first.
    fn split_wide(&mut self, x: u16, y: u16) {
        let is_empty =
            |canvas: &mut Canvas, x| canvas.at(x, y).is_some_and(|it| it.text.is_empty());
        if !is_empty(self, x) {
            return;
        }
        let first = (0..x).rev().find(|&x| !is_empty(self, x)).unwrap_or(x);
        for column in first..self.width {
            if column > x && !is_empty(self, column) {
                break;
            }
            if let Some(cell) = self.at(column, y) {
                " ".clone_into(&mut cell.text);
            }
        }
    }

    /// Writes some texts one behind the other, as [`put`](Self::put) does.
    pub(super) fn put_all(&mut self, mut x: u16, y: u16, end: u16, spans: &[Span]) {
        for (text, style) in spans {
            x = self.put(x, y, end, text, *style);
        }
    }

    /// Reverses the colours of a line.
    pub(super) fn reverse(&mut self, y: u16) {
        for x in 0..self.width {
            if let Some(cell) = self.at(x, y) {
                cell.style = cell.style.reversed();
            }
        }
    }

    /// Writes what a terminal that shows `before` needs in order to show this. Both have the same
    /// size.
    pub(super) fn write_over(&self, before: &Canvas, to: &mut impl Write) -> io::Result<()> {
        let width = usize::from(self.width).max(1);
        let (mut place, mut style) = (None, None);
        for (y, (line, shown)) in
            self.cells.chunks(width).zip(before.cells.chunks(width)).enumerate()
        {
            let unsure = line.iter().chain(shown).any(|cell| !cell.is_sure());
            let whole = unsure && line != shown;
            if whole {
                queue!(to, MoveTo(0, y as u16), SetAttribute(Attribute::Reset))?;
                queue!(to, Clear(ClearType::UntilNewLine))?;
                (place, style) = (None, Some(Style::PLAIN));
            }
            for (x, (cell, shown)) in line.iter().zip(shown).enumerate() {
                if cell == shown && !whole || cell.text.is_empty() {
                    continue;
                }
                if place != Some((x, y)) {
                    queue!(to, MoveTo(x as u16, y as u16))?;
                }
                if style != Some(cell.style) {
                    cell.style.write(to)?;
                    style = Some(cell.style);
                }
                // What a terminal shows in fewer columns than these has blanks of its style behind
                // it.
                let cells = line[x + 1..].iter().take_while(|cell| cell.text.is_empty()).count();
                if !cell.is_sure() && cells > 0 {
                    queue!(to, Print(" ".repeat(cells + 1)), MoveTo(x as u16, y as u16))?;
                }
                queue!(to, Print(&cell.text))?;
                // Terminals do not agree on where the cursor stands after the last column, either.
                let next = x + 1 < width && cell.is_sure() && cells == 0;
                place = next.then_some((x + 1, y));
            }
        }
        if style.is_some() {
            queue!(to, SetAttribute(Attribute::Reset))?;
        }
        Ok(())
    }

    /// Its lines, as text.
    #[cfg(test)]
    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.cells.chunks(usize::from(self.width).max(1));
        lines.map(|line| line.iter().map(|cell| cell.text.as_str()).collect()).collect()
    }
}

/// A terminal, and what it shows.
pub(super) struct Terminal<W> {
    to: W,
    shown: Option<Canvas>,
}

impl<W: Write> Terminal<W> {
    pub(super) fn new(to: W) -> Terminal<W> {
        Terminal { to, shown: None }
    }

    /// Draws all of it the next time: the terminal shows something else by then.
    pub(super) fn forget(&mut self) {
        self.shown = None;
    }

    /// Shows what `draw` puts on a canvas of blanks.
    ///
    /// # Errors
    ///
    /// If the terminal has no size any more, or cannot be written to.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Canvas)) -> io::Result<()> {
        let (width, height) = crossterm::terminal::size()?;
        self.draw_sized(width, height, draw)
    }

    fn draw_sized(
        &mut self,
        width: u16,
        height: u16,
        draw: impl FnOnce(&mut Canvas),
    ) -> io::Result<()> {
        let mut canvas = Canvas::new(width, height);
        draw(&mut canvas);
        let same_size = |shown: &Canvas| (shown.width, shown.height) == (width, height);
        let before = if let Some(shown) = self.shown.take().filter(same_size) {
            shown
        } else {
            queue!(self.to, SetAttribute(Attribute::Reset), Clear(ClearType::All))?;
            Canvas::new(width, height)
        };
        canvas.write_over(&before, &mut self.to)?;
        self.to.flush()?;
        self.shown = Some(canvas);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(width: u16, text: &str) -> String {
        let mut canvas = Canvas::new(width, 1);
        canvas.put(0, 0, width, text, Style::PLAIN);
        canvas.lines().pop().unwrap_or_default()
    }

    #[test]
    fn a_text_ends_at_its_last_column() {
        assert_eq!(line(4, "abcdef"), "abcd");
        assert_eq!(line(6, "abc"), "abc   ");
        // Two columns each, and no half of one.
        assert_eq!(line(5, "世界人"), "世界 ");
        assert_eq!(line(0, "a"), "");
        let mut canvas = Canvas::new(6, 2);
        assert_eq!(canvas.put(2, 1, 4, "abc", Style::PLAIN), 4);
        // What covers half of a character of two columns leaves nothing of it.
        let mut half = Canvas::new(5, 1);
        half.put(0, 0, 5, "世界", Style::PLAIN);
        half.put(1, 0, 5, "ab", Style::PLAIN);
        assert_eq!(half.lines(), [" ab  "]);
        // What is outside is not there.
        canvas.put(0, 2, 6, "abc", Style::PLAIN);
        assert_eq!(canvas.lines(), ["      ", "  ab  "]);
    }

    #[test]
    fn marks_and_sequences_share_a_cell_and_control_characters_have_none() {
        assert_eq!(line(3, "e\u{301}x"), "e\u{301}x ");
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(line(4, &format!("{family}x")), format!("{family}x "));
        assert_eq!(line(3, "a\x1b\nb"), "ab ");
        // A mark with nothing before it.
        assert_eq!(line(2, "\u{301}a"), "a ");
    }

    #[test]
    fn spans_follow_each_other_and_a_line_can_be_reversed() {
        let mut canvas = Canvas::new(6, 1);
        let red = Style::colored(Color::DarkRed);
        canvas.put_all(1, 0, 5, &[("ab".to_owned(), red), ("cdef".to_owned(), Style::PLAIN)]);
        assert_eq!(canvas.lines(), [" abcd "]);
        canvas.reverse(0);
        assert_eq!(canvas.cells[1].style, red.reversed());
        assert_eq!(canvas.cells[5].style, Style::PLAIN.reversed());
    }

    #[test]
    fn nothing_is_written_where_nothing_changes() {
        let mut canvas = Canvas::new(8, 2);
        canvas.put(0, 1, 8, "same 世", Style::PLAIN.bold());
        let mut written = Vec::new();
        canvas.write_over(&canvas.clone(), &mut written).unwrap();
        assert_eq!(written, b"");
    }

    /// A cell of a terminal: a cell that was never written is blank.
    #[cfg(target_os = "linux")]
    fn seen(screen: &vt100::Parser, y: u16, x: u16) -> (String, vt100::Color, [bool; 4]) {
        let cell = screen.screen().cell(y, x).expect("it is on the screen");
        let blank = !cell.has_contents() && !cell.is_wide_continuation();
        let text = if blank { " " } else { cell.contents() };
        let looks = [cell.bold(), cell.dim(), cell.inverse(), cell.is_wide_continuation()];
        (text.to_owned(), cell.fgcolor(), looks)
    }

    /// What a terminal shows after one drawing and another is what it shows after the other alone.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_terminal_shows_the_last_drawing_whatever_was_before() {
        const SIZE: (u16, u16) = (12, 4);
        let texts = [
            "",
            "abc",
            "世",
            "a世b界c",
            "e\u{301}",
            "───███░░",
            "xxxxxxxxxxxxxxxx",
            "世世世世世世世",
            // Two columns of the canvas, which this terminal shows in one and in four.
            "⚠\u{fe0f}x",
            "x👍🏽y",
            "🇩🇪",
            "क्ष्म",
            "ᄀᄀᄀ",
        ];
        let styles = [
            Style::PLAIN,
            Style::PLAIN.faint(),
            Style::colored(Color::DarkBlue).bold(),
            Style::PLAIN.reversed(),
        ];
        let mut next = 1_u64;
        let mut random = |below: usize| {
            // The constants of Knuth's MMIX.
            next = next
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (next >> 33) as usize % below
        };
        let mut terminal = Terminal::new(Vec::new());
        let mut screen = vt100::Parser::new(SIZE.1, SIZE.0, 0);
        for round in 0..500 {
            let puts: Vec<_> = (0..random(8))
                .map(|_| {
                    let text = texts[random(texts.len())];
                    // This terminal goes on in the next line with what it takes for wider than is
                    // left of a line.
                    let places = if text.contains('🏽') { 8 } else { 14 };
                    let (x, y) = (random(places) as u16, random(5) as u16);
                    (x, y, text, styles[random(styles.len())])
                })
                .collect();
            let draw = |canvas: &mut Canvas| {
                for &(x, y, text, style) in &puts {
                    canvas.put(x, y, SIZE.0, text, style);
                }
            };
            terminal.draw_sized(SIZE.0, SIZE.1, draw).unwrap();
            screen.process(&std::mem::take(&mut terminal.to));
            let mut fresh = Terminal::new(Vec::new());
            fresh.draw_sized(SIZE.0, SIZE.1, draw).unwrap();
            let mut alone = vt100::Parser::new(SIZE.1, SIZE.0, 0);
            alone.process(&fresh.to);
            for (y, x) in (0..SIZE.1).flat_map(|y| (0..SIZE.0).map(move |x| (y, x))) {
                let (there, wanted) = (seen(&screen, y, x), seen(&alone, y, x));
                assert_eq!(there, wanted, "round {round}, line {y}, column {x}: {puts:?}");
            }
        }
    }
}
