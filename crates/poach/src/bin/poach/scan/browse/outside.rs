//! What other programs do with a path: open it, and keep it as what was copied.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crossterm::clipboard::CopyToClipboard;
use crossterm::execute;

/// What opens a path on this system as the desktop would.
const OPENER: &str = if cfg!(windows) {
    "explorer"
} else if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens a path with what the desktop has for it, and does not wait for that.
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
    // Somebody has to take its exit code.
    thread::Builder::new().name("opened".to_owned()).spawn(move || child.wait()).map(drop)
}

/// Asks the terminal to keep a path as what was copied (OSC 52), where it may even be another machine's.
///
/// # Errors
///
/// If the terminal cannot be written to, or the path holds a control character: a shell that it is pasted into would obey a
/// newline.
pub(super) fn copy(path: &[u8]) -> io::Result<()> {
    let path = std::path::absolute(path_of(path)?)?;
    let path = path.as_os_str().as_encoded_bytes();
    if path.iter().any(u8::is_ascii_control) {
        return Err(io::Error::other("it holds a control character, which a shell would obey"));
    }
    execute!(io::stdout(), CopyToClipboard::to_clipboard_from(path))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have names that are no path")]
pub(super) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

#[cfg(not(unix))]
pub(super) fn path_of(bytes: &[u8]) -> io::Result<PathBuf> {
    let path = std::str::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidFilename)?;
    Ok(PathBuf::from(path))
}
