//! The signals that ask a program to end: Ctrl-C, and on Unix SIGTERM and SIGHUP.
//!
//! A signal that was ignored when the program began stays ignored, so that `nohup poach ..`
//! outlives its terminal, and a shell's background job the Ctrl-C that is meant for another one.

use anyhow::{Context as _, Result};

/// Calls `act` for each of these signals that arrives from now on, on a thread of its own, with
/// whether it is Ctrl-C. Once a process.
///
/// # Errors
///
/// If the system refuses the thread or the handler.
#[cfg(unix)]
pub(crate) fn on_interrupt(mut act: impl FnMut(bool) + Send + 'static) -> Result<()> {
    let signals = wanted();
    let mut signals = signal_hook::iterator::Signals::new(signals).context(CONTEXT)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.forever().for_each(|it| act(it == signal_hook::consts::SIGINT)))
        .map(drop)
        .context(CONTEXT)
}

/// As on Unix, for Ctrl-C and what else the console has.
///
/// # Errors
///
/// If the system refuses the handler.
#[cfg(not(unix))]
pub(crate) fn on_interrupt(mut act: impl FnMut(bool) + Send + 'static) -> Result<()> {
    ctrlc::set_handler(move || act(true)).context(CONTEXT)
}

const CONTEXT: &str = "could not listen for Ctrl-C";

/// The signals that are not ignored.
#[cfg(target_os = "linux")]
fn wanted() -> Vec<i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    [SIGHUP, SIGTERM, SIGINT]
        .into_iter()
        .filter(|signal| ignored & 1 << (signal - 1) == 0)
        .collect()
}

/// Without `/proc` nothing tells whether a signal is ignored: the one that `nohup` ignores is left
/// alone.
#[cfg(all(unix, not(target_os = "linux")))]
fn wanted() -> Vec<i32> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    vec![SIGINT, SIGTERM]
}

/// The mask of ignored signals in `/proc/<pid>/status`; bit 0 is signal 1.
#[cfg(target_os = "linux")]
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_read_from_its_line() {
        assert_eq!(ignored("Name:\tpoach\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), 0x1001);
        assert_eq!(ignored("no such line"), 0);
    }
}
