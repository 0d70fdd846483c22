//! Where the browser draws: standard output, or the terminal itself where that is a pipe or a file.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

static TERMINAL: OnceLock<File> = OnceLock::new();

/// What the browser draws on.
#[derive(Debug)]
pub(super) struct Out;

/// Whether there is a terminal to draw on. `redirected`: standard output may be something else.
pub(super) fn is_there(redirected: bool) -> bool {
    if io::stdout().is_terminal() {
        return true;
    }
    let file = || File::options().write(true).open("/dev/tty").ok();
    let terminal = if cfg!(unix) && redirected { file() } else { None };
    terminal.is_some_and(|file| TERMINAL.set(file).is_ok())
}

/// Whether standard output is something else.
pub(super) fn is_redirected() -> bool {
    TERMINAL.get().is_some()
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match TERMINAL.get() {
            Some(mut file) => file.write(bytes),
            None => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match TERMINAL.get() {
            Some(mut file) => file.flush(),
            None => io::stdout().flush(),
        }
    }
}
