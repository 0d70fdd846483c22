//! Other programs for a path: to open it, to copy it, to show its content; and a shell.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;
use poach_scan::report::escape;

use super::out::Out;

/// The program that opens a path on this system as the desktop would.
const OPENER: &str = if cfg!(windows) {
    "explorer"
} else if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a path with the desktop's program for it, and does not wait for the program.
///
/// # Errors
///
/// If there is no program for it.
pub(super) fn open(path: &[u8]) -> io::Result<()> {
    // A path that begins with a hyphen would be an option.
    let path = std::path::absolute(path_of(path)?)?;
    let nothing = Stdio::null;
    let mut command = Command::new(OPENER);
    command.arg(path).stdin(nothing()).stdout(nothing()).stderr(nothing());
    let mut child = command
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("{OPENER}: {error}")))?;
    // A thread has to take its exit code.
    thread::Builder::new().name("opened".to_owned()).spawn(move || child.wait()).map(drop)
}

/// Asks the terminal to copy a path to its clipboard (OSC 52), which may be another machine's.
///
/// # Errors
///
/// If the terminal cannot be written to, or the path holds a control character: a shell that it is
/// pasted into would obey a newline.
pub(super) fn copy(path: &[u8]) -> io::Result<()> {
    let path = std::path::absolute(path_of(path)?)?;
    let path = path.as_os_str().as_encoded_bytes();
    if path.iter().any(u8::is_ascii_control) {
        return Err(io::Error::other(
            "its name has a control character, which a shell would interpret",
        ));
    }
    execute!(Out, CopyToClipboard::to_clipboard_from(path))
}

/// Runs the user's shell in a directory, on the terminal.
///
/// # Errors
///
/// If it cannot be started; the error names it.
pub(super) fn shell(directory: &Path) -> io::Result<()> {
    let (variable, other) = if cfg!(windows) { ("COMSPEC", "cmd") } else { ("SHELL", "/bin/sh") };
    let set = env::var_os(variable).filter(|shell| !shell.is_empty());
    let shell = set.unwrap_or_else(|| other.into());
    let path = escape(directory.as_os_str().as_encoded_bytes()).into_owned();
    // Without the line it is a shell all the same.
    let _ = writeln!(Out, "A shell in {path}; `exit` returns to poach.");
    let run = on_terminal(Command::new(&shell).current_dir(directory));
    run.map_err(|error| named(&shell, &error))
}

/// Shows a file in the user's pager, or else in `less` or `more`. Returns a message, if there is
/// one. `read_only`: `less` runs nothing then and writes nothing.
///
/// # Errors
///
/// If none of them can be started.
pub(super) fn view(path: &[u8], read_only: bool) -> io::Result<Option<String>> {
    // A path that begins with a hyphen would be an option.
    let path = std::path::absolute(path_of(path)?)?;
    let own = env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let mut refused = None;
    for pager in own.as_deref().into_iter().chain(["less", "more"]) {
        let words = shlex::split(pager).unwrap_or_default();
        let Some((program, words)) = words.split_first() else {
            refused = Some(format!("PAGER={pager}: a quote is not closed"));
            continue;
        };
        let mut command = Command::new(program);
        command.args(words).arg(&path);
        if read_only {
            command.env("LESSSECURE", "1");
        }
        match on_terminal(&mut command) {
            Ok(()) => return Ok(refused.map(|refused| format!("{refused}; shown by {pager}"))),
            Err(error) => {
                let error = named(&program.into(), &error).to_string();
                refused.get_or_insert(error);
            }
        }
    }
    let refused = refused.unwrap_or_default();
    Err(io::Error::other(format!("no pager found (PAGER, less, more): {refused}")))
}

/// Runs a program on the terminal, and waits for its end.
fn on_terminal(command: &mut Command) -> io::Result<()> {
    if super::out::is_redirected() {
        // The user is to see its output, which is no part of what the browser writes.
        command.stdout(File::options().write(true).open("/dev/tty")?);
    }
    command.status().map(drop)
}

fn named(program: &OsString, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", program.to_string_lossy()))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have names that are no path")]
pub(super) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
pub(super) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    let path = std::str::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(PathBuf::from(path))
}
