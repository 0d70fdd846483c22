//! What the browser looks like: a path, a list, a line of keys.

use poach_scan::Kind;
use poach_scan::report::{Look, Measure, Order, count, cut, escape};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::state::{Browser, Mode, Row};

const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const MARKED: Style = Style::new().add_modifier(Modifier::REVERSED);
const FIGURE: Style = Style::new().fg(Color::Green);
const BAR: Style = Style::new().fg(Color::Cyan);
const DIRECTORY: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
const AMISS: Style = Style::new().fg(Color::Red);

/// The fewest columns that leave room for a bar.
const WITH_BAR: u16 = 60;

const HELP: [&str; 14] = [
    "up down j k   mark a row",
    "PgUp PgDn     a page, Home End: all the way",
    "Enter right l into a directory",
    "left h        out of it",
    "s n c t       order by size, name, count",
    "              or time; again: turned around",
    "/             search in this directory",
    "R             scan again",
    "d             delete, after a question",
    "?             this help",
    "q Ctrl-C      the end",
    "",
    "@ link  = pipe, socket or device",
    "! not read whole   + counted elsewhere",
];

/// Draws all of it.
pub(super) fn draw(browser: &mut Browser, look: Look, area: Rect, buffer: &mut Buffer) {
    if area.width == 0 || area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let here = browser.here().map_or_else(|| b"(all paths)".to_vec(), |here| here.path());
    let whole = browser.whole();
    let sum = look.amount(browser.measure, whole);
    let path = cut(&escape(&here), width.saturating_sub(sum.len() + 2));
    let head =
        Line::from(vec![Span::styled(path, STRONG), Span::raw("  "), Span::styled(sum, FIGURE)]);
    buffer.set_line(area.x, area.y, &head, area.width);

    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(2), ..area };
    browser.page = usize::from(list.height);
    browser.scroll();
    match &browser.mode {
        Mode::Help => lines(&HELP.map(str::to_owned), list, buffer),
        Mode::Confirm(question) => lines(question, list, buffer),
        Mode::Browse | Mode::Search => rows(browser, look, whole, list, buffer),
    }
    if area.height > 1 {
        let foot = Line::from(foot(browser, width)).style(FAINT);
        buffer.set_line(area.x, area.bottom() - 1, &foot, area.width);
    }
}

fn lines(lines: &[String], area: Rect, buffer: &mut Buffer) {
    for (line, y) in lines.iter().zip(area.y..area.bottom()) {
        let line = cut(line, usize::from(area.width));
        buffer.set_line(area.x, y, &Line::from(line), area.width);
    }
}

fn rows(browser: &Browser, look: Look, whole: u64, area: Rect, buffer: &mut Buffer) {
    let shown = browser.rows.iter().enumerate().skip(browser.top);
    for ((at, row), y) in shown.zip(area.y..area.bottom()) {
        buffer.set_line(area.x, y, &line(browser, row, look, whole, area.width), area.width);
        if at == browser.marked {
            buffer.set_style(Rect { y, height: 1, ..area }, MARKED);
        }
    }
    if browser.rows.is_empty() && area.height > 0 {
        let text =
            if browser.search.is_empty() { "nothing is in it" } else { "nothing has that name" };
        buffer.set_line(area.x, area.y, &Line::from(text).style(FAINT), area.width);
    }
}

fn line(browser: &Browser, row: &Row, look: Look, whole: u64, width: u16) -> Line<'static> {
    let share = if whole == 0 { 0.0 } else { row.value as f64 / whole as f64 };
    let figure = format!("{:>10} ", look.amount(browser.measure, row.value));
    let mut spans = vec![Span::styled(figure, FIGURE)];
    if width >= WITH_BAR {
        let filled = (share * 10.0).round().clamp(0.0, 10.0) as usize;
        spans.push(Span::styled("█".repeat(filled), BAR));
        spans.push(Span::styled("░".repeat(10 - filled), FAINT));
    }
    spans.push(Span::styled(format!("{:>4.0}% ", share * 100.0), FAINT));
    if browser.order == Order::Entries && browser.measure != Measure::Entries {
        spans.push(Span::raw(format!("{:>9} ", count(row.entries))));
    }
    let (note, style) = match row {
        Row { unread: true, .. } => ("!", AMISS),
        Row { elsewhere: true, .. } => ("+", FAINT),
        _ => (" ", FAINT),
    };
    spans.push(Span::styled(note, style));
    let sign = match row.kind {
        Kind::Directory => "/",
        Kind::File => "",
        Kind::Symlink => "@",
        Kind::Other => "=",
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let name = cut(&escape(&row.name), usize::from(width).saturating_sub(used + sign.len()));
    let style = if row.kind == Kind::Directory { DIRECTORY } else { Style::new() };
    spans.push(Span::styled(format!("{name}{sign}"), style));
    Line::from(spans)
}

fn foot(browser: &Browser, width: usize) -> String {
    if !browser.message.is_empty() {
        return cut(&browser.message, width);
    }
    let text = match &browser.mode {
        Mode::Search => format!("/{}", escape(browser.search.as_bytes())),
        Mode::Help => "any key: back".to_owned(),
        Mode::Confirm(_) => "y: delete   any other key: leave it".to_owned(),
        Mode::Browse => {
            let place = format!(
                "{} of {}",
                (browser.marked + 1).min(browser.rows.len()),
                count(browser.rows.len() as u64)
            );
            let order = match browser.order {
                Order::Size => "size",
                Order::Name => "name",
                Order::Entries => "count",
                Order::Time => "time",
            };
            let found = if browser.search.is_empty() {
                String::new()
            } else {
                format!("  /{}", escape(browser.search.as_bytes()))
            };
            let amiss = if browser.scan.errors.is_empty() {
                String::new()
            } else {
                format!("  {} errors", browser.scan.errors.len())
            };
            let partial = if browser.scan.interrupted { "  stopped early" } else { "" };
            format!("{place}  by {order}{found}{amiss}{partial}  ?: help  q: end")
        }
    };
    cut(&text, width)
}
