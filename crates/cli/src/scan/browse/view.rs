//! What the browser looks like: a path, a list, the tabs, a line of keys.

use std::path::MAIN_SEPARATOR_STR;

use crossterm::style::Color;
use poach_scan::listing::Row;
use poach_scan::report::{self, Look, Measure, Order, bytes, count, cut, escape};
use poach_scan::survey::{Report, time};
use poach_scan::{Kind, Shared};

use super::act::Act;
use super::canvas::{Area, Canvas, Span, Style};
use super::state::{Browser, Mode};
use crate::output::plain;

const FAINT: Style = Style::PLAIN.faint();
const STRONG: Style = Style::PLAIN.bold();
const MARKED: Style = Style::PLAIN.reversed();
const FIGURE: Style = Style::colored(Color::DarkGreen);
const BAR: Style = Style::colored(Color::DarkCyan);
const DIRECTORY: Style = Style::colored(Color::DarkBlue).bold();
const AMISS: Style = Style::colored(Color::DarkRed);
const CHOSEN: Style = Style::colored(Color::DarkYellow).bold();

/// The fewest columns that leave room for a bar.
const WITH_BAR: u16 = 60;

/// The fewest lines that leave room for the tabs.
const WITH_TABS: u16 = 6;

/// What the keys do, in lines of 40 columns.
pub(super) const HELP: [&str; 27] = [
    "up down j k   a row; PgUp PgDn Home End",
    "Enter right l into a directory",
    "left h        out of it",
    "Tab S-Tab     a report; Enter: go there",
    "s n c t       order by size, name, count",
    "              or time; again: reversed",
    "a             size on disk, or apparent",
    "T             when it was changed (UTC)",
    "/             search in this directory",
    "f             find in all: a text, or a",
    "              glob such as *.o",
    "space  *  U   choose a row, all, none",
    "d             delete, after a question",
    "x             to the trash, likewise",
    "u             undo that",
    "r             read this directory again",
    "R             scan all of it again",
    "v  o  y       view, open, copy its path",
    "b             a shell in this directory",
    "Esc           stop what runs",
    "Ctrl-Z Ctrl-L suspend, draw again",
    "q Ctrl-C      the end",
    "",
    "@ link  = pipe, socket or device",
    "! not read whole   + counted elsewhere",
    "* chosen",
    "mouse: click, wheel; text: with Shift",
];

/// Draws all of it.
pub(super) fn draw(browser: &mut Browser, look: Look, canvas: &mut Canvas) {
    let area = canvas.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let width = usize::from(area.width);
    let whole = browser.whole();
    let sum = look.amount(browser.measure, whole);
    let title = match browser.tab.checked_sub(1).and_then(|number| Report::ALL.get(number)) {
        Some(report) => report.name().to_owned(),
        None => cut(&escape(&browser.path()), width.saturating_sub(sum.len() + 2)),
    };
    let mut head = vec![(title, STRONG)];
    if browser.tab == 0 {
        head.extend([("  ".to_owned(), Style::PLAIN), (sum, FIGURE)]);
    }
    canvas.put_all(area.x, area.y, area.right(), &head);

    let tabbed = area.height >= WITH_TABS;
    let below = 2 + u16::from(tabbed);
    let list = Area { y: area.y + 1, height: area.height.saturating_sub(below), ..area };
    browser.page = usize::from(list.height);
    browser.places.first = list.y;
    browser.scroll();
    match &browser.mode {
        Mode::Help(top) => lines(HELP.iter().skip(*top), list, canvas),
        Mode::Confirm(question) => {
            lines(question.lines.from(question.top), list, canvas);
        }
        _ if browser.tab > 0 => report(browser, look, list, canvas),
        _ => rows(browser, look, whole, list, canvas),
    }
    browser.places.tabs = None;
    if tabbed {
        tabs(browser, Area { y: area.bottom() - 2, height: 1, ..area }, canvas);
    }
    if area.height > 1 {
        canvas.put(area.x, area.bottom() - 1, area.right(), &foot(browser, width), FAINT);
    }
}

fn lines(lines: impl Iterator<Item = impl AsRef<str>>, area: Area, canvas: &mut Canvas) {
    for (line, y) in lines.zip(area.y..area.bottom()) {
        let line = cut(line.as_ref(), usize::from(area.width));
        canvas.put(area.x, y, area.right(), &line, Style::PLAIN);
    }
}

/// The tabs: as many as fit, with the one that is shown among them.
fn tabs(browser: &mut Browser, area: Area, canvas: &mut Canvas) {
    const GAP: u16 = 2;
    let names: Vec<&str> = std::iter::once("tree").chain(Report::ALL.map(Report::name)).collect();
    let width = |tab: usize| names[tab].len() as u16 + GAP;
    // From the first tab from which the shown tab fits.
    let fits = |first: usize| (first..=browser.tab).map(width).sum::<u16>() <= area.width;
    let first = (0..browser.tab).find(|&first| fits(first)).unwrap_or(browser.tab);
    let (mut x, mut places) = (area.x, Vec::new());
    for (tab, name) in names.iter().enumerate().skip(first) {
        let end = x + name.len() as u16;
        if end > area.right() {
            break;
        }
        let style = if tab == browser.tab { MARKED } else { FAINT };
        canvas.put(x, area.y, area.right(), name, style);
        places.push((x..end, tab));
        x = end + GAP;
    }
    browser.places.tabs = Some((area.y, places));
}

fn report(browser: &Browser, look: Look, area: Area, canvas: &mut Canvas) {
    let Some(page) = &browser.report else {
        if area.height > 0 {
            canvas.put(area.x, area.y, area.right(), "it is being made", FAINT);
        }
        return;
    };
    let (titles, rows, below) = page.lines(look, usize::from(area.width));
    let titles = titles.into_iter().map(|line| (line, FAINT));
    let rows = rows.into_iter().enumerate().skip(page.top).map(|(at, row)| {
        let marked = at == page.marked && page.path().is_some();
        (row, if marked { MARKED } else { Style::PLAIN })
    });
    let below = below.into_iter().map(|line| (line, FAINT));
    for ((line, style), y) in titles.chain(rows).chain(below).zip(area.y..area.bottom()) {
        canvas.put(area.x, y, area.right(), &line, style);
    }
}

fn rows(browser: &Browser, look: Look, whole: u64, area: Area, canvas: &mut Canvas) {
    let shown = browser.rows.iter().enumerate().skip(browser.top);
    for ((at, row), y) in shown.zip(area.y..area.bottom()) {
        canvas.put_all(area.x, y, area.right(), &line(browser, row, look, whole, area.width));
        if at == browser.marked {
            canvas.reverse(y);
        }
    }
    if browser.rows.is_empty() && area.height > 0 {
        let text = match (browser.search.is_empty(), &browser.growing) {
            (false, _) => "nothing has that name",
            (true, Some(_)) => "nothing is known yet of what is in it",
            (true, None) => "nothing is in it",
        };
        canvas.put(area.x, area.y, area.right(), text, FAINT);
    }
}

fn line(browser: &Browser, row: &Row, look: Look, whole: u64, width: u16) -> Vec<Span> {
    let share = if whole == 0 { 0.0 } else { row.value as f64 / whole as f64 };
    let figure = format!("{:>10} ", look.amount(browser.measure, row.value));
    let mut spans = vec![(figure, FIGURE)];
    if width >= WITH_BAR {
        let filled = (share * 10.0).round().clamp(0.0, 10.0) as usize;
        spans.push(("█".repeat(filled), BAR));
        spans.push(("░".repeat(10 - filled), FAINT));
    }
    spans.push((format!("{:>4.0}% ", share * 100.0), FAINT));
    if browser.times {
        let columns = if width >= WITH_BAR { 16 } else { 10 };
        let time = row.modified.map(time).unwrap_or_default();
        spans.push((format!("{time:<columns$.columns$} "), Style::PLAIN));
    }
    if browser.order == Order::Entries && browser.measure != Measure::Entries {
        spans.push((format!("{:>9} ", count(row.entries)), Style::PLAIN));
    }
    let (note, style) = match row {
        Row { chosen: true, .. } => ("*", CHOSEN),
        Row { unread: true, .. } => ("!", AMISS),
        Row { elsewhere: true, .. } => ("+", FAINT),
        _ => (" ", FAINT),
    };
    spans.push((note.to_owned(), style));
    if row.together {
        let files = if row.entries == 1 { "file" } else { "files" };
        spans.push((format!("({} {files} so far)", count(row.entries)), FAINT));
        return spans;
    }
    let sign = match row.kind {
        Kind::Directory => MAIN_SEPARATOR_STR,
        Kind::File => "",
        Kind::Symlink => "@",
        Kind::Other => "=",
    };
    let used: usize = spans.iter().map(|(text, _)| report::width(text)).sum();
    let name = cut(
        &escape(&browser.shown_name(row)),
        usize::from(width).saturating_sub(used + sign.len()),
    );
    let style = match row {
        Row { chosen: true, .. } => CHOSEN,
        Row { kind: Kind::Directory, .. } => DIRECTORY,
        _ => Style::PLAIN,
    };
    spans.push((format!("{name}{sign}"), style));
    spans
}

fn foot(browser: &Browser, width: usize) -> String {
    if !browser.message.is_empty() {
        return cut(&plain(&browser.message).replace('\n', " "), width);
    }
    let text = match &browser.mode {
        Mode::Search => format!("/{}", escape(browser.search.as_bytes())),
        Mode::Find => format!("find in all: {}", escape(browser.sought.as_bytes())),
        Mode::Leave => "y: end, the scan is gone   any other key: go on".to_owned(),
        Mode::Help(top) => {
            let more = if HELP.len() > top + browser.page { "   down: more" } else { "" };
            format!("any other key: back{more}")
        }
        Mode::Confirm(question) => {
            let act = match question.act {
                Act::Delete => "delete",
                Act::Trash => "move to the trash",
            };
            let more = question.lines.len() > question.top + browser.page;
            let more = if more { "   down: more" } else { "" };
            format!("y: {act}   any other key: leave it{more}")
        }
        Mode::Browse if !browser.progress.is_empty() => {
            format!("{}  ?: help  q: end", browser.progress)
        }
        Mode::Browse if browser.tab > 0 => {
            let rows = browser.report.as_ref().map_or(0, |page| page.section.rows.len());
            let marked = browser.report.as_ref().map_or(0, |page| page.marked + 1).min(rows);
            let rows = count(rows as u64);
            format!("{marked} of {rows}  Enter: go there  Left: the tree  ?: help  q: end")
        }
        Mode::Browse => {
            let place = format!(
                "{} of {}",
                (browser.marked + 1).min(browser.rows.len()),
                count(browser.rows.len() as u64)
            );
            let order = match browser.order {
                Order::Size if browser.measure == Measure::Apparent => "apparent",
                Order::Size => "size",
                Order::Name => "name",
                Order::Entries => "count",
                Order::Time => "time",
            };
            let back = if browser.found.is_some() { "  Left: the tree" } else { "" };
            let found = if browser.search.is_empty() {
                String::new()
            } else {
                format!("  /{}", escape(browser.search.as_bytes()))
            };
            let chosen = match browser.chosen.len() {
                0 => String::new(),
                chosen => format!("  {} chosen", count(chosen as u64)),
            };
            let amiss = if browser.scan.errors.is_empty() {
                String::new()
            } else {
                format!("  {}", super::number(browser.scan.totals.errors, ["error", "errors"]))
            };
            let shared =
                browser.scan.shared.map_or_else(String::new, |Shared { bytes: once, .. }| {
                    format!("  {} shared", bytes(once))
                });
            let partial = if browser.scan.interrupted { "  stopped early" } else { "" };
            format!(
                "{place}  by {order}{back}{found}{chosen}{shared}{amiss}{partial}  ?: help  q: end"
            )
        }
    };
    cut(&text, width)
}
