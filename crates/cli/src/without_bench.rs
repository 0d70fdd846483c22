//! `poach bench` in a program that was built without the suites: says how to build it with them.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::output::{self, USAGE};

/// Run the benchmark suites (not in this build).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Any arguments of the suites, `--help` included.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(_: &Arguments) -> ExitCode {
    output::complain(
        "bench",
        "this program was built without the suites; build it with them: \
         `cargo run --release --features bench -- bench`",
    );
    ExitCode::from(USAGE)
}
