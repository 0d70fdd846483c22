//! This program again, in a process of its own.

use std::env;
use std::process::Command;

/// A command that runs this program: by itself, or by the emulator that `cargo xtask aarch64` and its like name.
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
