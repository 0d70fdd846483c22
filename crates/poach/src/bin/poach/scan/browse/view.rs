//! What the browser looks like: a path, a list, the tabs, a line of keys.

use poach_scan::Kind;
use poach_scan::report::{Look, Measure, Order, count, cut, escape};
use poach_scan::survey::Report;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::row::{Act, Row};
use super::state::{Browser, Mode};

const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const MARKED: Style = Style::new().add_modifier(Modifier::REVERSED);
const FIGURE: Style = Style::new().fg(Color::Green);
const BAR: Style = Style::new().fg(Color::Cyan);
const DIRECTORY: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
const AMISS: Style = Style::new().fg(Color::Red);
const CHOSEN: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);

/// The fewest columns that leave room for a bar.
const WITH_BAR: u16 = 60;

/// The fewest lines that leave room for the tabs.
const WITH_TABS: u16 = 6;

const HELP: [&str; 21] = [
    "up down j k   a row    PgUp PgDn Home End",
    "Enter right l into a directory",
    "left h        out of it",
    "Tab S-Tab     the reports; Enter: go there",
    "s n c t       order by size, name, count",
    "              or time; again: turned around",
    "/             search in this directory",
    "space  *  U   choose a row, all, none",
    "d             delete, after a question",
    "x             move to the trash, likewise",
    "u             undo that",
    "r             look at this directory again",
    "R             scan all of it again",
    "o  y          open it, copy its path",
    "Esc           stop what runs",
    "q Ctrl-C      the end",
    "",
    "@ link  = pipe, socket or device",
    "! not read whole   + counted elsewhere",
    "* chosen",
    "mouse: click, wheel; text: with Shift",
];

/// Draws all of it.
pub(super) fn draw(browser: &mut Browser, look: Look, area: Rect, buffer: &mut Buffer) {
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
    let mut head = vec![Span::styled(title, STRONG)];
    if browser.tab == 0 {
        head.extend([Span::raw("  "), Span::styled(sum, FIGURE)]);
    }
    buffer.set_line(area.x, area.y, &Line::from(head), area.width);

    let tabbed = area.height >= WITH_TABS;
    let below = 2 + u16::from(tabbed);
    let list = Rect { y: area.y + 1, height: area.height.saturating_sub(below), ..area };
    browser.page = usize::from(list.height);
    browser.places.first = list.y;
    browser.scroll();
    match &browser.mode {
        Mode::Help => lines(&HELP.map(str::to_owned), list, buffer),
        Mode::Confirm(question) => lines(&question.lines[question.top..], list, buffer),
        Mode::Browse | Mode::Search if browser.tab > 0 => report(browser, look, list, buffer),
        Mode::Browse | Mode::Search => rows(browser, look, whole, list, buffer),
    }
    browser.places.tabs = None;
    if tabbed {
        tabs(browser, Rect { y: area.bottom() - 2, height: 1, ..area }, buffer);
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

/// The tabs: as many as fit, with the one that is shown among them.
fn tabs(browser: &mut Browser, area: Rect, buffer: &mut Buffer) {
    const GAP: u16 = 2;
    let names: Vec<&str> = std::iter::once("tree").chain(Report::ALL.map(Report::name)).collect();
    let width = |tab: usize| names[tab].len() as u16 + GAP;
    // From the first from which on the one that is shown fits.
    let fits = |first: usize| (first..=browser.tab).map(width).sum::<u16>() <= area.width;
    let first = (0..browser.tab).find(|&first| fits(first)).unwrap_or(browser.tab);
    let (mut x, mut places) = (area.x, Vec::new());
    for (tab, name) in names.iter().enumerate().skip(first) {
        let end = x + name.len() as u16;
        if end > area.right() {
            break;
        }
        let style = if tab == browser.tab { MARKED } else { FAINT };
        buffer.set_line(x, area.y, &Line::from(*name).style(style), area.right() - x);
        places.push((x..end, tab));
        x = end + GAP;
    }
    browser.places.tabs = Some((area.y, places));
}

fn report(browser: &Browser, look: Look, area: Rect, buffer: &mut Buffer) {
    let Some(page) = &browser.report else {
        let text = Line::from("it is being made").style(FAINT);
        if area.height > 0 {
            buffer.set_line(area.x, area.y, &text, area.width);
        }
        return;
    };
    let (titles, rows, below) = page.lines(look, usize::from(area.width));
    let titles = titles.into_iter().map(|line| (line, FAINT));
    let rows = rows.into_iter().enumerate().skip(page.top).map(|(at, row)| {
        let marked = at == page.marked && page.path().is_some();
        (row, if marked { MARKED } else { Style::new() })
    });
    let below = below.into_iter().map(|line| (line, FAINT));
    for ((line, style), y) in titles.chain(rows).chain(below).zip(area.y..area.bottom()) {
        buffer.set_line(area.x, y, &Line::from(line).style(style), area.width);
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
        let text = match (browser.search.is_empty(), &browser.growing) {
            (false, _) => "nothing has that name",
            (true, Some(_)) => "nothing is known yet of what is in it",
            (true, None) => "nothing is in it",
        };
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
        Row { chosen: true, .. } => ("*", CHOSEN),
        Row { unread: true, .. } => ("!", AMISS),
        Row { elsewhere: true, .. } => ("+", FAINT),
        _ => (" ", FAINT),
    };
    spans.push(Span::styled(note, style));
    if row.together {
        let files = if row.entries == 1 { "file" } else { "files" };
        spans.push(Span::styled(format!("({} {files} so far)", count(row.entries)), FAINT));
        return Line::from(spans);
    }
    let sign = match row.kind {
        Kind::Directory => "/",
        Kind::File => "",
        Kind::Symlink => "@",
        Kind::Other => "=",
    };
    let used: usize = spans.iter().map(Span::width).sum();
    let name = cut(&escape(&row.name), usize::from(width).saturating_sub(used + sign.len()));
    let style = match row {
        Row { chosen: true, .. } => CHOSEN,
        Row { kind: Kind::Directory, .. } => DIRECTORY,
        _ => Style::new(),
    };
    spans.push(Span::styled(format!("{name}{sign}"), style));
    Line::from(spans)
}

fn foot(browser: &Browser, width: usize) -> String {
    if !browser.message.is_empty() {
        return cut(&escape(browser.message.as_bytes()), width);
    }
    let text = match &browser.mode {
        Mode::Search => format!("/{}", escape(browser.search.as_bytes())),
        Mode::Help => "any key: back".to_owned(),
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
            "Enter: go there  Left: the tree  ?: help  q: end".to_owned()
        }
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
            let chosen = match browser.chosen.len() {
                0 => String::new(),
                chosen => format!("  {} chosen", count(chosen as u64)),
            };
            let amiss = if browser.scan.errors.is_empty() {
                String::new()
            } else {
                format!("  {} errors", browser.scan.errors.len())
            };
            let partial = if browser.scan.interrupted { "  stopped early" } else { "" };
            format!("{place}  by {order}{found}{chosen}{amiss}{partial}  ?: help  q: end")
        }
    };
    cut(&text, width)
}
