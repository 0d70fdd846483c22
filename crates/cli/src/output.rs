//! What every verb does with the terminal: print, complain, end.

use std::io::{self, Write};

use anyhow::{Context as _, Result};

/// Ran, but something is amiss.
pub(crate) const AMISS: u8 = 1;
/// The arguments make no sense.
pub(crate) const USAGE: u8 = 2;
/// Ended by Ctrl-C at once: 128 and the signal's number, as shells say it.
pub(crate) const INTERRUPTED: i32 = 130;

/// Writes to stdout; a pipe that nobody reads any more is no error.
///
/// # Errors
///
/// If stdout cannot be written to for another reason: a full disk, say.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("could not write to stdout"),
    }
}

/// Says on stderr what is amiss. Where stderr is closed there is nobody to tell.
pub(crate) fn complain(verb: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "poach {verb}: {text}");
}
