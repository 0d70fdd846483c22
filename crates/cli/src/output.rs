//! What every verb does with the terminal and its files: print, write, complain, end.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use poach_scan::report::escape;

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
    Target::Stdout.write(|out| out.write_all(text))
}

/// A path on one line of a terminal.
pub(crate) fn shown(path: &Path) -> Cow<'_, str> {
    escape(path.as_os_str().as_encoded_bytes())
}

/// Reports a problem on stderr. If stderr is closed, nothing is reported.
pub(crate) fn complain(verb: &str, text: &str) {
    let _ = writeln!(io::stderr().lock(), "poach {verb}: {}", plain(text));
}

/// A text as a terminal may show it: characters that move the cursor or turn writing around are
/// escaped, except the end of a line.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\\' => shown.push(character),
            _ => shown.push_str(&escape(character.encode_utf8(&mut [0; 4]).as_bytes())),
        }
    }
    shown
}

/// Ends the program for arguments that make no sense, or after the help that was asked for.
/// Arguments that a terminal must not get as they are are shown without colour, and escaped.
pub(crate) fn refuse(error: &clap::Error, arguments: &[OsString]) -> ! {
    let odd = |argument: &OsString| {
        let text = argument.to_string_lossy();
        plain(&text) != text || text.contains('\n')
    };
    if !error.use_stderr() || !arguments.iter().any(odd) {
        error.exit();
    }
    let _ = write!(io::stderr().lock(), "{}", plain(&error.to_string()));
    std::process::exit(USAGE.into())
}

/// Where a document goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    Stdout,
    File(&'a Path),
}

impl<'a> Target<'a> {
    /// The file of a path; `-` is stdout.
    pub(crate) fn of(path: &'a Path) -> Target<'a> {
        if path == Path::new("-") { Target::Stdout } else { Target::File(path) }
    }

    pub(crate) fn is_terminal(self) -> bool {
        self == Target::Stdout && io::stdout().is_terminal()
    }

    /// Writes a document. Stdout gets it piece by piece, and a closed pipe is no error. A file is
    /// written under another name beside it, and renamed when it is complete.
    ///
    /// # Errors
    ///
    /// If the target cannot be written to. An existing file keeps its content then.
    pub(crate) fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        match self {
            Target::Stdout => {
                let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
                match write(&mut stdout).and_then(|()| stdout.flush()) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        // The rest of the buffer has no reader, either.
                        let _ = stdout.into_parts();
                        Ok(())
                    }
                    other => other.context("could not write to stdout"),
                }
            }
            Target::File(path) => {
                replace(path, write).with_context(|| format!("could not write {}", shown(path)))
            }
        }
    }

    /// Whether it is a file that is there, and would be replaced.
    pub(crate) fn replaces(self) -> bool {
        matches!(self, Target::File(path) if fs::metadata(path).is_ok_and(|it| it.is_file()))
    }
}

/// The file that is being written, to be removed if the program ends before it is complete. The
/// lock is held from before such a file is made until its name is here, so that no file is missed.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

fn unfinished() -> MutexGuard<'static, Option<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the program at once, as Ctrl-C does.
pub(crate) fn interrupted() -> ! {
    // Locked to the end: no other file is begun.
    let mut unfinished = unfinished();
    if let Some(path) = unfinished.take() {
        let _ = fs::remove_file(path);
    }
    std::process::exit(INTERRUPTED)
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // The file behind a link is replaced, and not the link.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    // A device or a pipe cannot be replaced: it is written to.
    if fs::metadata(&target).is_ok_and(|existing| !existing.is_file()) {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(&target)?);
        return write(&mut out).and_then(|()| out.flush());
    }
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // A file that was not there gets the permissions of a new one, which are the user's to restrict
    // (umask).
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    let file = {
        let mut unfinished = unfinished();
        // Opened here, as an error of `tempfile_in` names the file beside the one that is written.
        let file = tempfile::Builder::new()
            .prefix(".poach-")
            .make_in(directory, |path| options.open(path))?;
        *unfinished = Some(file.path().to_owned());
        file
    };
    let written = (|| {
        if let Ok(existing) = fs::metadata(&target) {
            file.as_file().set_permissions(existing.permissions())?;
        }
        let mut out = BufWriter::with_capacity(1 << 16, file.as_file());
        write(&mut out)?;
        out.flush()?;
        drop(out);
        file.persist(&target).map(drop).map_err(|error| error.error)
    })();
    *unfinished() = None;
    written
}
