//! The pictures of crates/scan/README.md, drawn from what the program shows and compared with those
//! that are there. `POACH_DRAW=1` draws them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crossterm::style::Color;
use poach_scan::report::Extent;
use poach_scan::{document, report};

use super::*;

const DRAW: &str = "POACH_DRAW";

/// Made up, so that the pictures are the same everywhere.
const EXPORT: &[u8] = br#"[1,2,{"progname":"ncdu","progver":"1.18","timestamp":1700000000},
    [{"name":"/home/ada"},
        [{"name":"music","asize":4096,"dsize":4096},{"name":"suite.flac","asize":734003200,"dsize":734003200},
            {"name":"song.mp3","asize":9437184,"dsize":9437184}],
        [{"name":"engine","asize":4096,"dsize":4096},
            [{"name":"target","asize":4096,"dsize":4096},{"name":"engine.o","asize":398458880,"dsize":398458880}],
            {"name":"notes.txt","asize":18432,"dsize":20480},
            {"name":"current","notreg":true,"mode":41471,"asize":6}],
        [{"name":"letters","read_error":true,"asize":4096,"dsize":4096}],
        {"name":"disk.img","asize":157286400,"dsize":157286400},
        {"name":"mail","asize":52428800,"dsize":52428800}]]"#;

/// A part of a line in one style.
#[derive(Clone, PartialEq)]
struct Run {
    text: String,
    colour: &'static str,
    bold: bool,
    reversed: bool,
}

const PLAIN: &str = "#d0d0d0";
const FAINT: &str = "#808080";
const COLUMN: f64 = 8.4;
const LINE: usize = 18;

/// The name of a colour as SVG has it.
fn colour(colour: Color) -> &'static str {
    match colour {
        Color::DarkRed => "#f07070",
        Color::DarkGreen => "#80d080",
        Color::DarkYellow => "#e0c060",
        Color::DarkBlue => "#70a8f0",
        Color::DarkMagenta => "#d090e0",
        Color::DarkCyan => "#60c8d0",
        Color::Black => FAINT,
        _ => PLAIN,
    }
}

/// A line of text with the escapes of a terminal, in runs.
fn runs(line: &str) -> Vec<Run> {
    let plain = Run { text: String::new(), colour: PLAIN, bold: false, reversed: false };
    let (mut found, mut now) = (Vec::new(), plain.clone());
    let mut parts = line.split("\x1b[");
    now.text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (codes, text) = part.split_once('m').expect("only colours are written");
        let mut next = Run { text: String::new(), ..now.clone() };
        for code in codes.split(';') {
            match code.parse().unwrap_or(0) {
                0 => next = plain.clone(),
                1 => next.bold = true,
                2 => next.colour = FAINT,
                7 => next.reversed = true,
                code @ 30..=37 => {
                    let all = [
                        Color::Black,
                        Color::DarkRed,
                        Color::DarkGreen,
                        Color::DarkYellow,
                        Color::DarkBlue,
                        Color::DarkMagenta,
                        Color::DarkCyan,
                        Color::Grey,
                    ];
                    next.colour = colour(all[code - 30]);
                }
                code => panic!("there is no colour for {code}"),
            }
        }
        next.text.push_str(text);
        found.push(std::mem::replace(&mut now, next));
    }
    found.push(now);
    found.retain(|run| !run.text.is_empty());
    found
}

/// The lines of the browser's screen, in runs.
fn screen(browser: &mut Browser, width: u16, height: u16) -> Vec<Vec<Run>> {
    let mut canvas = canvas::Canvas::new(width, height);
    view::draw(browser, Look { colour: true, ..Look::default() }, &mut canvas);
    let line = |spans: Vec<canvas::Span>| {
        let mut runs: Vec<Run> = Vec::new();
        for (text, style) in spans {
            let (color, [bold, faint, reversed]) = style.parts();
            let colour = if faint { FAINT } else { color.map_or(PLAIN, colour) };
            match runs.last_mut() {
                Some(last)
                    if (last.colour, last.bold, last.reversed) == (colour, bold, reversed) =>
                {
                    last.text.push_str(&text);
                }
                _ => runs.push(Run { text, colour, bold, reversed }),
            }
        }
        runs
    };
    canvas.spans().into_iter().map(line).collect()
}

/// Lines as a picture. Each run has its place and its width, so any font will do.
fn svg(lines: &[Vec<Run>], columns: usize) -> String {
    let (width, height) = (columns as f64 * COLUMN + 24.0, lines.len() * LINE + 24);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height}\" \
         font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1c1c1c\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let (mut column, y) = (0, 12 + number * LINE);
        for run in line {
            let length = run.text.chars().count();
            let (x, wide) = (12.0 + column as f64 * COLUMN, length as f64 * COLUMN);
            column += length;
            if run.reversed {
                let fill = run.colour;
                let _ = writeln!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{wide:.1}\" height=\"{LINE}\" fill=\"{fill}\"/>"
                );
            }
            if run.text.trim().is_empty() {
                continue;
            }
            let fill = if run.reversed { "#1c1c1c" } else { run.colour };
            let weight = if run.bold { " font-weight=\"bold\"" } else { "" };
            let text = run.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{}\" textLength=\"{wide:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 fill=\"{fill}\"{weight} xml:space=\"preserve\">{text}</text>",
                y + 14
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Compares a picture with the one of a name.
fn is_shown(name: &str, picture: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scan/screenshots");
    let file = directory.join(name);
    if std::env::var_os(DRAW).is_some() {
        fs::write(&file, picture).expect("it can be drawn");
    }
    let there = fs::read_to_string(&file).unwrap_or_default();
    assert!(there == picture, "{} is not what is shown: {DRAW}=1 draws it", file.display());
    let readme = fs::read_to_string(directory.join("../README.md")).expect("a page");
    assert!(readme.contains(&format!("screenshots/{name}")), "the page does not show {name}");
}

#[test]
fn the_pages_picture_of_the_text_is_the_text() {
    let scan = document::read(EXPORT).expect("an export");
    let look = Look { width: 84, colour: true, ..Look::default() };
    let mut out = Vec::new();
    report::text(&scan, &Extent::default(), look, &mut out).expect("a vector takes it");
    let out = String::from_utf8(out).expect("UTF-8");
    let lines: Vec<_> = out.lines().skip(1).map(runs).collect();
    is_shown("text.svg", &svg(&lines, 84));
}

#[test]
fn the_pages_pictures_of_the_browser_are_the_browser() {
    let scan = document::read(EXPORT).expect("an export");
    let mut browser = Browser::new(scan, Measure::Disk, Order::Size, false);
    press(&mut browser, "j ");
    is_shown("browser.svg", &svg(&screen(&mut browser, 84, 10), 84));
    browser.press(Key::Tab);
    browser.press(Key::Tab);
    with_report(&mut browser, Report::LargestFiles);
    is_shown("tab.svg", &svg(&screen(&mut browser, 84, 10), 84));
}

#[test]
fn what_is_drawn_is_what_a_terminal_would_show() {
    let found = runs("a\x1b[1m\x1b[34mb\x1b[0m c\x1b[2m<d\x1b[0m");
    let texts: Vec<_> = found.iter().map(|run| (&*run.text, run.colour, run.bold)).collect();
    let blue = colour(Color::DarkBlue);
    assert_eq!(
        texts,
        [("a", PLAIN, false), ("b", blue, true), (" c", PLAIN, false), ("<d", FAINT, false)]
    );
    let picture = svg(&[found], 10);
    assert!(picture.contains(">&lt;d</text>") && picture.contains("x=\"28.8\""), "{picture}");
}
