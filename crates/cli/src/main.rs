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
mod typed;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use typed::Typed;

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
    let (arguments, typed) = match with_defaults() {
        Ok(arguments) => arguments,
        Err(error) => {
            output::complain("scan", &format!("{error:#}"));
            return ExitCode::from(output::USAGE);
        }
    };
    match arguments.verb {
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments, &typed),
        Verb::Completions(arguments) => shell::completions(&arguments, Arguments::command()),
        Verb::Doctor(arguments) => doctor::run(&arguments),
        Verb::Man(arguments) => shell::man(&arguments, Arguments::command()),
        Verb::Measure(arguments) => measure::run(&arguments, &typed),
        Verb::Scan(arguments) => scan::run(&arguments),
    }
}

/// The command line, with options from the configuration file and the environment; and which of
/// its options were typed.
///
/// # Errors
///
/// If an option of the file or the environment is wrong. A wrong command line ends the program
/// here.
fn with_defaults() -> anyhow::Result<(Arguments, Typed)> {
    let line: Vec<OsString> = std::env::args_os().collect();
    let command = Arguments::command();
    let parse = |words: &[OsString]| {
        let matches = command.clone().try_get_matches_from(words);
        let parsed = matches.and_then(|matches| {
            let typed = Typed::of(&command, &matches);
            Ok((Arguments::from_arg_matches(&matches)?, typed))
        });
        parsed.unwrap_or_else(|error| output::refuse(&error, words))
    };
    let (arguments, typed) = parse(&line);
    let Verb::Scan(scan) = &arguments.verb else { return Ok((arguments, typed)) };
    // The program's name and the verb's come before the verb's own words.
    let (mut all, _) = parse(&scan.config.apply(&command, &line, 2)?);
    if let Verb::Scan(all) = &mut all.verb {
        all.tell_defaults(scan);
        // An option may have its use with a default, or be at odds with one.
        scan.heeded(&typed).or_else(|error| all.heeded(&typed).map_err(|_| error))?;
    }
    Ok((all, typed))
}
