//! The program `poach`: one file a subcommand.
//!
//! | exit code | means |
//! |---|---|
//! | 0 | success |
//! | 1 | ran with a problem: an unreadable entry, a violation, an interruption |
//! | 2 | usage error; a sentence on stderr names the argument |
//!
//! A subcommand is a module with `Arguments` and `run`, and one line in [`Verb`] and in `main`.
//! `output` has what they all do with the terminal.

#[cfg(feature = "bench")]
mod bench;
#[cfg(not(feature = "bench"))]
#[path = "without_bench.rs"]
mod bench;
mod check;
mod doctor;
mod measure;
mod output;
#[cfg(feature = "bench")]
mod promise;
mod scan;
mod shell;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Scan directories, check work-stealing queues and measure store buffers.
#[derive(Debug, Parser)]
#[command(name = "poach", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Bench(bench::Arguments),
    Check(check::Arguments),
    Completions(shell::Completions),
    Doctor(doctor::Arguments),
    Man(shell::Man),
    Measure(measure::Arguments),
    Scan(Box<scan::Arguments>),
}

fn main() -> ExitCode {
    // With one thread the kernel registers the process at once; with two it takes milliseconds, in
    // the middle of the subcommand. If it refuses, the queues fall back to full fences.
    let _ = poach_memory::membarrier::register();
    let arguments = match with_defaults() {
        Ok(arguments) => arguments,
        Err(error) => {
            output::complain("scan", &format!("{error:#}"));
            return ExitCode::from(output::USAGE);
        }
    };
    match arguments.verb {
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Completions(arguments) => shell::completions(&arguments, Arguments::command()),
        Verb::Doctor(arguments) => doctor::run(&arguments),
        Verb::Man(arguments) => shell::man(&arguments, Arguments::command()),
        Verb::Measure(arguments) => measure::run(&arguments),
        Verb::Scan(arguments) => scan::run(&arguments),
    }
}

/// The command line, with options from the configuration file and the environment.
///
/// # Errors
///
/// If an option of the file or the environment is wrong. A wrong command line ends the program
/// here.
fn with_defaults() -> anyhow::Result<Arguments> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let parse = |words: &[OsString]| {
        Arguments::try_parse_from(words).unwrap_or_else(|error| output::refuse(&error, words))
    };
    let arguments = parse(&line);
    match &arguments.verb {
        // The program's name and the verb's come before the verb's own words.
        Verb::Scan(scan) => {
            scan.heeded()?;
            let mut all = parse(&scan.config.apply(&Arguments::command(), &line, 2)?);
            if let Verb::Scan(all) = &mut all.verb {
                all.tell_defaults(scan);
            }
            Ok(all)
        }
        _ => Ok(arguments),
    }
}
