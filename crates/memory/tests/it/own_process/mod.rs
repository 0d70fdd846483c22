//! Runs a test in a process of its own: starts this program again for that test.

use std::env;
use std::panic::Location;
use std::path::Path;
use std::process::Command;

/// A command that runs this program, under the emulator of `cargo xtask aarch64` and its like if
/// there is one.
pub(crate) fn this_program() -> Command {
    let program = env::current_exe().expect("a test knows its program");
    let Ok(emulator) = env::var("POACH_TEST_EMULATOR") else {
        return Command::new(program);
    };
    let mut words = emulator.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg(program);
    command
}

/// The name by which this program knows the test `name` of the file that calls this.
#[track_caller]
fn full_name(name: &str) -> String {
    let file = Path::new(Location::caller().file());
    let module = file.file_stem().expect("a file").to_string_lossy();
    format!("{module}::{name}")
}

/// A command that runs the test `name` of the file that calls this, and no other.
#[track_caller]
pub(crate) fn this_test(name: &str) -> Command {
    let mut command = this_program();
    command.args(["--exact", &full_name(name), "--nocapture", "--test-threads=1"]);
    command.env("RUST_BACKTRACE", "0");
    command
}

/// Runs `body` in a process that runs the test `name` of the file that calls this, and no other.
/// Miri starts no process: it runs `body` here.
#[track_caller]
#[allow(dead_code, reason = "not every program uses it")]
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const ROLE: &str = "POACH_TEST_ALONE";
    if cfg!(miri) || env::var_os(ROLE).is_some() {
        return body();
    }
    let output = this_test(name).env(ROLE, "1").output().expect("this program starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = output.status.success() && said.contains("1 passed");
    assert!(passed, "{name}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
}
