//! The program `poach`: one file a subcommand.

mod bench;

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
}

fn main() -> ExitCode {
    match Arguments::parse().verb {
        Verb::Bench(arguments) => bench::run(&arguments),
    }
}
