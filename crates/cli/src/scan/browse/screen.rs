//! The terminal, which is the browser's for a while, and is restored however the browser ends.

use std::collections::VecDeque;
use std::io::{self, BufWriter};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::terminal::{
    DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{cursor, execute};
use poach_scan::Control;
use poach_scan::report::{Look, cut};

use super::canvas::{Style, Terminal};
use super::keys::{self, Input};
use super::out::Out;
use super::state::{Browser, Key};
use super::{RUNNING, SOON, view};

/// How long a browser whose terminal is gone has to end by itself.
const MOST_WITHOUT_TERMINAL: Duration = Duration::from_secs(10);

/// Whether the terminal is the browser's.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Whether another program has the terminal, which the browser waits for.
static ASIDE: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C is meant for another program.
pub(in crate::scan) fn is_aside() -> bool {
    // Relaxed: the flag is all there is to see.
    ASIDE.load(Ordering::Relaxed)
}

/// Whether a signal has asked the browser to end.
static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

/// Asks the browser to end, for a signal. Returns `true` if a browser will.
pub(in crate::scan) fn ask_to_end() -> bool {
    // Relaxed, all of these: the flags carry no other data.
    let before = ASKED_TO_END.swap(true, Ordering::Relaxed);
    let open = OPEN.load(Ordering::Relaxed);
    if open && !before {
        // Without the thread it ends as well, but for what `end_without_terminal` is for.
        let _ = thread::Builder::new().name("end".to_owned()).spawn(end_without_terminal);
    }
    open
}

/// Ends the process if it was asked to end, its terminal is gone, and it does not end by itself. A
/// terminal may be hung up while crossterm reads it (see `keys`), and then the read never returns.
fn end_without_terminal() {
    thread::sleep(MOST_WITHOUT_TERMINAL);
    if OPEN.load(Ordering::Relaxed) && keys::is_gone() {
        std::process::exit(1);
    }
}

/// Waits for the next input, for a while. A signal that asks for the end counts as input.
fn input(wait: Duration) -> io::Result<Input> {
    if ASKED_TO_END.load(Ordering::Relaxed) {
        return Ok(Input::Key(Key::Interrupt));
    }
    keys::input(wait)
}

/// The terminal, which is restored when this is dropped.
pub(super) struct Screen {
    terminal: Terminal<BufWriter<Out>>,
    /// Keys that were typed while something else was waited for.
    pending: VecDeque<Key>,
}

/// Restores the terminal. Errors are ignored, because there is no user to tell.
fn restore() {
    // Relaxed: as above. Once, as a panic does it before the unwinding does.
    if OPEN.swap(false, Ordering::Relaxed) {
        let _ =
            execute!(Out, DisableMouseCapture, EnableLineWrap, LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// Takes the terminal.
fn take() -> io::Result<()> {
    OPEN.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    // A cluster that the terminal takes for wider than the canvas does must not go on in the next
    // line.
    execute!(Out, EnterAlternateScreen, DisableLineWrap, EnableMouseCapture, cursor::Hide)
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        let terminal = Terminal::new(BufWriter::new(Out));
        let screen = Screen { terminal, pending: VecDeque::new() };
        // A panic is to be read on the terminal as it was.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        take()?;
        Ok(screen)
    }

    /// Draws all of it the next time.
    pub(super) fn forget(&mut self) {
        self.terminal.forget();
    }

    /// Leaves the terminal to something else, for as long as that takes.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be had again.
    pub(super) fn aside<T>(&mut self, act: impl FnOnce() -> T) -> io::Result<T> {
        ASIDE.store(true, Ordering::Relaxed);
        restore();
        let done = act();
        let taken = take();
        ASIDE.store(false, Ordering::Relaxed);
        self.forget();
        taken.map(|()| done)
    }

    pub(super) fn draw(&mut self, browser: &mut Browser, look: Look) -> io::Result<()> {
        // After a panic of another thread the terminal is not the browser's any more.
        if !OPEN.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.terminal.draw(|canvas| view::draw(browser, look, canvas))
    }

    /// The next key, for a while.
    pub(super) fn input(&mut self, wait: Duration) -> io::Result<Input> {
        if let Some(key) = self.pending.pop_front() {
            return Ok(Input::Key(key));
        }
        Ok(match input(wait)? {
            Input::Escaped(key) => {
                self.pending.push_back(key);
                Input::Key(Key::Escape)
            }
            other => other,
        })
    }

    /// How many keys have been typed and not been read.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be read, or is gone.
    pub(super) fn typed_ahead(&mut self) -> io::Result<usize> {
        loop {
            match input(Duration::ZERO)? {
                Input::Key(key) => self.pending.push_back(key),
                Input::Escaped(key) => self.pending.extend([Key::Escape, key]),
                Input::Other => {}
                Input::Nothing => return Ok(self.pending.len()),
            }
            // It is asked for again, and nothing comes behind it.
            if self.pending.back() == Some(&Key::Interrupt) {
                return Ok(self.pending.len());
            }
        }
    }

    /// Runs a task that takes a while, and shows its progress. Escape stops it; other keys are kept
    /// for later.
    pub(super) fn busy<T: Send>(
        &mut self,
        control: &Control,
        say: impl Fn() -> String,
        work: impl FnOnce() -> T + Send,
    ) -> io::Result<T> {
        thread::scope(|scope| {
            let work = thread::Builder::new().name("work".to_owned()).spawn_scoped(scope, work)?;
            let mut said = Instant::now();
            while !work.is_finished() {
                match input(SOON) {
                    Ok(Input::Key(Key::Escape)) => control.stop(),
                    Ok(Input::Escaped(key)) => {
                        control.stop();
                        self.pending.push_back(key);
                    }
                    Ok(Input::Key(Key::Interrupt)) | Err(_) => {
                        control.stop();
                        self.pending.push_back(Key::Interrupt);
                        thread::sleep(RUNNING);
                    }
                    Ok(Input::Key(key)) => self.pending.push_back(key),
                    Ok(Input::Nothing | Input::Other) if said.elapsed() >= RUNNING => {
                        said = Instant::now();
                        // If the terminal is gone, the next drawing finds out.
                        let _ = self.say(&say());
                    }
                    Ok(Input::Nothing | Input::Other) => {}
                }
            }
            Ok(work.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        if !OPEN.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.terminal.draw(|canvas| {
            let area = canvas.area();
            for (line, y) in [text, "Esc: stop"].into_iter().zip(area.y..area.bottom()) {
                let line = cut(line, usize::from(area.width));
                canvas.put(area.x, y, area.right(), &line, Style::PLAIN);
            }
        })
    }
}
