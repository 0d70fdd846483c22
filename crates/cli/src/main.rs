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
mod measure;
mod output;
mod scan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Work stealing without fences.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Bench(bench::Arguments),
    Check(check::Arguments),
    Measure(measure::Arguments),
    Scan(scan::Arguments),
}

fn main() -> ExitCode {
    // While the process has one thread the kernel does this at once; with two it waits some
    // milliseconds for every processor to pass by, in the midst of whatever the verb does. Where it
    // is refused the queues fall back to full fences, as they do without this.
    let _ = poach_memory::membarrier::register();
    match Arguments::parse().verb {
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Measure(arguments) => measure::run(&arguments),
        Verb::Scan(arguments) => scan::run(&arguments),
    }
}
