//! The program `poach`: one file a subcommand.
//!
//! | exit code | means |
//! |---|---|
//! | 0 | all well |
//! | 1 | ran, but something is amiss: an unreadable entry, a violation found, an interruption |
//! | 2 | the arguments make no sense; a sentence on stderr names the one |
//!
//! A verb is a module with `Arguments` and `run`, and one line in [`Verb`] and in `main`. What they
//! all do with the terminal is in `output`.

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

/// Work stealing without fences.
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
    // While the process has one thread the kernel does this at once; with two it waits some
    // milliseconds for every processor to pass by, in the midst of whatever the verb does. Where it
    // is refused the queues fall back to full fences, as they do without this.
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

/// The command line, and what stands in a file and in the environment for it.
///
/// # Errors
///
/// If the latter make no sense. If the command line does not, the program ends here.
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
