//! `poach scan -i`: going through a scan on a terminal.
//!
//! [`state`] knows where one is and what a key does, [`view`] draws it, and this module has the terminal: it reads the keys,
//! scans on a thread of its own, and leaves the terminal as it was however it ends. [`remove`] deletes.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use poach_scan::report::{Look, Measure, Order, count, cut, escape};
use poach_scan::{Control, Error, Options, Scan};
use ratatui_core::terminal::Terminal;
use ratatui_core::text::Line;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui_crossterm::crossterm::{cursor, execute};

#[cfg(unix)]
mod remove;
#[cfg(not(unix))]
#[path = "cannot_remove.rs"]
mod remove;
mod state;
mod view;

use remove::Plan;
use state::{Browser, Key, Mode, Wish};

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// How often a running scan is drawn, and its end looked for.
const SCANNING: Duration = Duration::from_millis(20);

/// What to browse, and how it looks at first.
pub(super) struct Start<'a> {
    /// What is scanned; a document is shown as it is.
    pub(super) paths: Option<&'a [PathBuf]>,
    pub(super) options: &'a Options,
    pub(super) measure: Measure,
    pub(super) order: (Order, bool),
    pub(super) look: Look,
}

/// Whether the terminal is the browser's.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Whether a signal has asked the browser to end.
static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

/// Asks the browser to end, for a signal. Whether there is one that will.
pub(super) fn ask_to_end() -> bool {
    // Relaxed, all of these: the flags are all there is to see.
    ASKED_TO_END.store(true, Ordering::Relaxed);
    OPEN.load(Ordering::Relaxed)
}

/// Browses until the user has enough. Returns the last scan.
///
/// # Errors
///
/// If there is no terminal, or it cannot be written to, or the scan cannot begin.
pub(super) fn run(start: &Start<'_>, imported: Option<Scan>) -> Result<Option<Scan>> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        bail!("-i: it needs a terminal; without -i the report goes anywhere");
    }
    let mut screen = Screen::open()?;
    let scan = match imported {
        Some(scan) => scan,
        None => match screen.scan(start)? {
            Some(scan) => scan,
            None => return Ok(None),
        },
    };
    let mut browser = Browser::new(scan, start.measure, start.order.0, start.order.1);
    let mut plan = None;
    screen.draw(&mut browser, start.look)?;
    loop {
        let wish = match input(TICK)? {
            Input::Nothing => continue,
            Input::Resize => Wish::None,
            Input::Key(key) => browser.press(key),
        };
        let going_on = match wish {
            Wish::None => true,
            Wish::Quit => false,
            Wish::Rescan => screen.rescan(start, &mut browser)?,
            Wish::Plan => {
                plan = prepare(start, &mut browser);
                true
            }
            Wish::Delete => {
                let Some(plan) = plan.take() else { continue };
                let outcome = Plan::carry_out(plan);
                let said = format!("{} entries deleted", count(outcome.gone));
                let said = match outcome.error {
                    Some(error) => format!("{said}, then: {error}"),
                    None => said,
                };
                let going_on = screen.rescan(start, &mut browser)?;
                browser.message = said;
                going_on
            }
        };
        if !going_on {
            return Ok(Some(browser.scan));
        }
        screen.draw(&mut browser, start.look)?;
    }
}

/// Lists what a deletion of the marked row would take, and asks.
fn prepare(start: &Start<'_>, browser: &mut Browser) -> Option<Plan> {
    let names = browser.chosen();
    let outcome = match (start.paths, names.split_first()) {
        (Some(paths), Some((root, below))) => {
            let root = paths.iter().find(|path| path.as_os_str().as_encoded_bytes() == *root);
            root.map_or_else(
                || Err(io::Error::other("the path is not one of those given")),
                |root| Plan::new(root, below),
            )
        }
        _ => Err(io::Error::other("a document is looked at, and no directory")),
    };
    match outcome {
        Ok(plan) => {
            let path = names.iter().map(|name| escape(name)).collect::<Vec<_>>().join("/");
            let question = vec![
                "Delete this for good?".to_owned(),
                String::new(),
                format!("  {path}"),
                String::new(),
                format!("  {} files and links", count(plan.files)),
                format!("  {} directories", count(plan.directories)),
                format!("  {} on disk", start.look.units.show(plan.bytes)),
                String::new(),
                "Links are deleted, and not followed.".to_owned(),
            ];
            browser.mode = Mode::Confirm(question);
            Some(plan)
        }
        Err(error) => {
            browser.message = format!("cannot delete it: {error}");
            None
        }
    }
}

/// The terminal, which is what it was before once this is dropped.
struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

/// Leaves the terminal as it was. What does not work any more has nobody to tell.
fn restore() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    OPEN.store(false, Ordering::Relaxed);
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

impl Screen {
    fn open() -> io::Result<Screen> {
        OPEN.store(true, Ordering::Relaxed);
        enable_raw_mode()?;
        let screen = Screen { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? };
        // A panic is to be read on the terminal as it was.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    fn draw(&mut self, browser: &mut Browser, look: Look) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            view::draw(browser, look, area, frame.buffer_mut());
        })?;
        Ok(())
    }

    /// Scans, and shows how far it is. A key ends it with what it has; nothing, if that is the one that ends all.
    fn scan(&mut self, start: &Start<'_>) -> Result<Option<Scan>> {
        let paths = start.paths.unwrap_or_default();
        let control = Control::new();
        let mut left = false;
        let scanned = thread::scope(|scope| -> Result<Result<Scan, Error>> {
            let scan = thread::Builder::new()
                .name("scan".to_owned())
                .spawn_scoped(scope, || poach_scan::scan(paths, start.options, &control))?;
            while !scan.is_finished() {
                // A terminal that is gone ends the scan, too.
                if let Err(error) = self.progress(&control) {
                    control.stop();
                    return Err(error.into());
                }
                match input(SCANNING) {
                    Ok(Input::Key(Key::Interrupt | Key::Char('q'))) | Err(_) => left = true,
                    Ok(Input::Key(Key::Escape)) => {}
                    Ok(_) => continue,
                }
                control.stop();
            }
            Ok(scan.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })??;
        Ok(Some(scanned).filter(|_| !left))
    }

    fn progress(&mut self, control: &Control) -> io::Result<()> {
        let progress = control.progress();
        let (entries, path) = (count(progress.entries), control.path());
        self.terminal.draw(|frame| {
            let area = frame.area();
            let lines = [
                format!("{entries} entries"),
                cut(&escape(&path), usize::from(area.width)),
                "Esc: what there is   q: end".to_owned(),
            ];
            for (line, y) in lines.into_iter().zip(area.y..area.bottom()) {
                frame.buffer_mut().set_line(area.x, y, &Line::from(line), area.width);
            }
        })?;
        Ok(())
    }

    /// Scans again. Whether one goes on, and does not end it all.
    fn rescan(&mut self, start: &Start<'_>, browser: &mut Browser) -> Result<bool> {
        if start.paths.is_none() {
            "a document is looked at: there is nothing to scan".clone_into(&mut browser.message);
            return Ok(true);
        }
        Ok(match self.scan(start)? {
            Some(scan) => {
                browser.replace(scan);
                true
            }
            None => false,
        })
    }
}

/// What comes from the terminal.
enum Input {
    Key(Key),
    Resize,
    /// Nothing for a while, or nothing that matters.
    Nothing,
}

/// Waits for the next input, for a while.
fn input(wait: Duration) -> io::Result<Input> {
    if ASKED_TO_END.load(Ordering::Relaxed) {
        return Ok(Input::Key(Key::Interrupt));
    }
    if !event::poll(wait)? {
        return Ok(Input::Nothing);
    }
    let KeyEvent { code, modifiers, kind, .. } = match event::read()? {
        Event::Key(key) => key,
        Event::Resize(..) => return Ok(Input::Resize),
        _ => return Ok(Input::Nothing),
    };
    if kind == KeyEventKind::Release {
        return Ok(Input::Nothing);
    }
    Ok(Input::Key(match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(character) => Key::Char(character),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        _ => return Ok(Input::Nothing),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use ratatui_core::backend::TestBackend;

    use super::*;

    fn grown() -> tempfile::TempDir {
        let tree = tempfile::tempdir().expect("a directory for the test");
        fs::create_dir_all(tree.path().join("large/inner")).expect("directories");
        fs::create_dir(tree.path().join("b\x1b[31m")).expect("a directory");
        for (name, size) in [("large/inner/x", 300_000), ("large/y", 9000), ("z", 50_000)] {
            fs::write(tree.path().join(name), vec![1; size]).expect("a file");
        }
        tree
    }

    fn scanned(paths: &[&Path]) -> Scan {
        let paths: Vec<PathBuf> = paths.iter().map(Into::into).collect();
        let options = Options { keep_files: true, keep_facts: true, ..Options::default() };
        poach_scan::scan(&paths, &options, &Control::new()).expect("a scan")
    }

    fn browser(root: &Path) -> Browser {
        Browser::new(scanned(&[root]), Measure::Apparent, Order::Size, false)
    }

    /// The screen's lines.
    fn shown(browser: &mut Browser, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let draw = |frame: &mut ratatui_core::terminal::Frame<'_>| {
            let area = frame.area();
            view::draw(browser, Look::default(), area, frame.buffer_mut());
        };
        terminal.draw(draw).expect("it is drawn");
        let buffer = terminal.backend().buffer();
        let cells = |y| (0..width).map(move |x| buffer[(x, y)].symbol());
        (0..height).map(|y| cells(y).collect::<String>().trim_end().to_owned()).collect()
    }

    fn press(browser: &mut Browser, keys: &str) -> Wish {
        keys.chars().map(|key| browser.press(Key::Char(key))).last().expect("a key")
    }

    fn names(browser: &Browser) -> Vec<&str> {
        browser.rows.iter().map(|row| std::str::from_utf8(&row.name).expect("UTF-8")).collect()
    }

    #[test]
    fn one_goes_in_and_out_and_stands_where_one_stood() {
        let tree = grown();
        let mut browser = browser(tree.path());
        assert_eq!(names(&browser), ["large", "z", "b\x1b[31m"]);
        press(&mut browser, "l");
        assert_eq!(names(&browser), ["inner", "y"]);
        press(&mut browser, "l");
        assert_eq!(names(&browser), ["x"]);
        // Not into a file, and not out of the given path.
        press(&mut browser, "l");
        press(&mut browser, "hhhh");
        assert_eq!((names(&browser)[0], browser.marked), ("large", 0));
        press(&mut browser, "jjjjjj");
        assert_eq!(browser.marked, 2);
        press(&mut browser, "lh");
        assert_eq!(browser.marked, 2, "an empty directory is entered and left");
        assert_eq!(press(&mut browser, "q"), Wish::Quit);
        assert_eq!(browser.press(Key::Interrupt), Wish::Quit);
    }

    #[test]
    fn the_order_changes_and_turns_and_a_search_keeps_what_matches() {
        let tree = grown();
        let mut browser = browser(tree.path());
        press(&mut browser, "n");
        assert_eq!(names(&browser), ["b\x1b[31m", "large", "z"]);
        assert_eq!(browser.rows[browser.marked].name, b"large", "the mark stays at its row");
        press(&mut browser, "n");
        assert_eq!(names(&browser)[0], "z");
        press(&mut browser, "c");
        assert_eq!(names(&browser)[0], "large");
        press(&mut browser, "t");
        assert!(shown(&mut browser, 80, 10)[9].contains("by time"));
        press(&mut browser, "s/LAR");
        assert_eq!(names(&browser), ["large"]);
        assert_eq!(shown(&mut browser, 80, 10)[9], "/LAR");
        browser.press(Key::Backspace);
        browser.press(Key::Enter);
        assert_eq!((browser.rows.len(), &browser.mode), (1, &Mode::Browse));
        browser.press(Key::Escape);
        assert_eq!(browser.rows.len(), 3);
    }

    #[test]
    fn it_fits_any_terminal_and_shows_no_control_character() {
        let tree = grown();
        let mut browser = browser(tree.path());
        let lines = shown(&mut browser, 40, 8);
        assert!(lines[0].ends_with("KiB") && lines[1].contains("large/"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains(r"b\e[31m/")), "{lines:#?}");
        for (width, height) in [(0, 0), (1, 1), (1, 9), (20, 2), (40, 3), (200, 60)] {
            for keys in ["s", "?", " ", "/z", "\u{1b}"] {
                press(&mut browser, keys);
                let lines = shown(&mut browser, width, height);
                assert!(lines.iter().flat_map(|line| line.chars()).all(|it| !it.is_control()));
            }
            browser.press(Key::Escape);
            browser.mode = Mode::Browse;
        }
        // A list longer than the screen follows the mark.
        browser.press(Key::End);
        let lines = shown(&mut browser, 80, 3);
        assert!(!lines[1].contains("large"), "{lines:#?}");
    }

    #[test]
    fn several_paths_are_a_list_and_another_scan_keeps_the_place() {
        let tree = grown();
        let (a, b) = (tree.path().join("large"), tree.path().join("z"));
        let mut browser = Browser::new(scanned(&[&a, &b]), Measure::Apparent, Order::Size, false);
        assert_eq!(browser.rows.len(), 2);
        press(&mut browser, "ll");
        assert_eq!(names(&browser), ["x"]);
        press(&mut browser, "h");
        fs::remove_dir_all(a.join("inner")).expect("ours");
        browser.replace(scanned(&[&a, &b]));
        assert_eq!(names(&browser), ["y"]);
        fs::remove_dir_all(&a).expect("ours");
        browser.replace(scanned(&[&a, &b]));
        assert!(browser.rows.iter().any(|row| row.name.ends_with(b"/z")), "{:?}", browser.rows);
    }

    #[cfg(unix)]
    #[test]
    fn a_deletion_says_what_goes_and_wants_a_yes() {
        let tree = grown();
        let paths = [tree.path().to_owned()];
        let (options, look) = (Options::default(), Look::default());
        let order = (Order::Size, false);
        let start =
            Start { paths: Some(&paths), options: &options, measure: Measure::Disk, order, look };
        let mut browser = browser(tree.path());
        assert_eq!(press(&mut browser, "d"), Wish::Plan);
        let plan = prepare(&start, &mut browser).expect("a plan");
        let lines = shown(&mut browser, 80, 14).join("\n");
        assert!(
            lines.contains("/large")
                && lines.contains("2 files")
                && lines.contains("2 directories")
        );
        assert_eq!(press(&mut browser, "n"), Wish::None);
        drop(plan);
        press(&mut browser, "d");
        let plan = prepare(&start, &mut browser).expect("a plan");
        assert_eq!(press(&mut browser, "y"), Wish::Delete);
        assert_eq!(plan.carry_out().gone, 4);
        assert!(!tree.path().join("large").exists() && tree.path().join("z").exists());
        // What is gone already is no plan.
        press(&mut browser, "d");
        assert!(
            prepare(&start, &mut browser).is_none() && browser.message.contains("cannot delete")
        );
        let document = Start { paths: None, ..start };
        assert!(prepare(&document, &mut browser).is_none());
    }
}
