//! Tests that end their process, or never end, where the runtime is wrong: each runs in a process
//! of its own.

use std::io::{Read, Seek};
use std::time::{Duration, Instant};
use std::{env, panic, thread};

use super::own_process::this_test;

const ROLE: &str = "POACH_TEST_ALONE";

/// The time limit of such a process, after which it counts as hanging.
const LIMIT: Duration = Duration::from_secs(400);

/// Runs `body` in a process that runs the named test of the file that calls this and nothing else,
/// and fails with what that process printed if it does not pass. Miri, which starts no processes,
/// runs `body` here.
#[track_caller]
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    if cfg!(miri) {
        // The default hook prints a full backtrace for a panic within a panic, which takes Miri
        // minutes.
        panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    }
    if cfg!(miri) || env::var_os(ROLE).is_some() {
        return body();
    }
    // A file, not a pipe: nobody would read that one before the process has ended.
    let mut printed = tempfile::tempfile().unwrap();
    let mut child = this_test(test)
        .env(ROLE, "1")
        .stdout(printed.try_clone().unwrap())
        .stderr(printed.try_clone().unwrap())
        .spawn()
        .unwrap();
    let end = Instant::now() + LIMIT;
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > end {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut text = String::new();
    printed.rewind().unwrap();
    printed.read_to_string(&mut text).unwrap();
    let status = ended.map_or("it hangs".into(), |status| status.to_string());
    let passed = ended.is_some_and(|status| status.success()) && text.contains("1 passed");
    assert!(passed, "{test}: {status}\n{text}");
}
