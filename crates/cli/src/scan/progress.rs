//! The line on a terminal's stderr that says how far a scan is.
//!
//! The cursor always stands at its beginning, so the `^C` that the terminal writes stands on it,
//! too, and goes when the line is cleared.

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use poach_scan::Control;
use poach_scan::report::{self, bytes, count, cut, escape};

use super::estimate::estimate;

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(100);

/// Clears the line that the cursor is on.
const CLEAR: &str = "\r\x1b[2K";

/// Whether the line is shown. Held while the line, or other output, is written.
static SHOWN: Mutex<bool> = Mutex::new(false);

/// Does something while the line is shown, if stderr is a terminal.
///
/// # Errors
///
/// If the system refuses the thread that shows it.
pub(super) fn shown_during<T>(
    control: &Control,
    paths: &[PathBuf],
    act: impl FnOnce() -> T,
) -> Result<T> {
    if !io::stderr().is_terminal() {
        return Ok(act());
    }
    thread::scope(|scope| {
        // The line is cleared when the sender is dropped, before anything else is written.
        let (done, ended) = mpsc::channel::<()>();
        let line = thread::Builder::new()
            .name("progress".to_owned())
            .spawn_scoped(scope, move || follow(control, paths, &ended))
            .context("could not start the thread that shows progress")?;
        let outcome = act();
        drop(done);
        line.join().expect("showing progress does not panic");
        Ok(outcome)
    })
}

/// Writes other output to the terminal: the line is cleared before, and shown again after it.
pub(super) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *shown) {
        let _ = write!(io::stderr(), "{CLEAR}");
    }
    write()
}

/// Shows how far the scan is until the other end of `ended` is dropped.
fn follow(control: &Control, paths: &[PathBuf], ended: &mpsc::Receiver<()>) {
    let began = Instant::now();
    let mut terminal = anstream::stderr();
    let mut expected = None;
    // The path is asked for now, so that there is one when the line is first shown.
    let _ = control.path();
    for turn in 0.. {
        if !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
            break;
        }
        let expected = *expected.get_or_insert_with(|| estimate(paths));
        let width = terminal_size::terminal_size_of(io::stderr());
        let width = width.map_or(80, |(width, _)| usize::from(width.0));
        // One column is left free: after the last column a terminal may begin a new line.
        let line = line(control, began.elapsed(), turn, expected, width.saturating_sub(1));
        let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
        // A terminal that is gone shows nothing.
        let _ = write!(terminal, "{line}\x1b[K\r").and_then(|()| terminal.flush());
        *shown = true;
    }
    aside(|| ());
}

/// The progress line, cut to `columns`: the path takes the remaining columns.
fn line(
    control: &Control,
    elapsed: Duration,
    turn: usize,
    expected: Option<u64>,
    width: usize,
) -> String {
    const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    let progress = control.progress();
    let spinner = SPINNER[turn % SPINNER.len()];
    let stopping = if control.is_stopped() { ", stopping" } else { "" };
    if let Some(compared) = progress.compared {
        let (compared, most) = (bytes(compared), bytes(progress.to_compare));
        let line = format!("  {spinner} compared {compared} of at most {most}{stopping}");
        return cut(&line, width);
    }
    let rate = progress.entries as f64 / elapsed.as_secs_f64().max(1e-3);
    let part = expected.map_or_else(String::new, |expected| {
        // Other file systems below a path are not in the estimate.
        format!(", {}%", (progress.entries * 100 / expected.max(1)).min(99))
    });
    let line = format!(
        "  {spinner} {} entries, {}, {}/s{part}{stopping}",
        count(progress.entries),
        bytes(progress.bytes),
        count(rate as u64),
    );
    let used = report::width(&line);
    if used + 10 > width {
        return cut(&line, width);
    }
    format!("{line}  {}", cut(&escape(&control.path()), width - used - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_says_what_part_there_is() {
        let control = Control::new();
        for width in 0..=200 {
            let line = line(&control, Duration::from_secs(1), width, Some(0), width);
            assert!(report::width(&line) <= width, "{line}");
        }
        assert!(line(&control, Duration::from_secs(1), 0, Some(7), 80).contains("0/s, 0%"));
        assert!(!line(&control, Duration::from_secs(1), 0, None, 80).contains('%'));
    }
}
