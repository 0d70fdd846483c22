//! `poach completions` and `poach man`: completion scripts and manual pages, generated from the
//! definition of the flags.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use crate::output::{AMISS, USAGE, complain, print};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach completions bash > ~/.local/share/bash-completion/completions/poach
  poach completions zsh > \"${fpath[1]}/_poach\"
  poach completions fish > ~/.config/fish/completions/poach.fish
  poach completions powershell >> $PROFILE")]
pub(crate) struct Completions {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a manual page.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach man scan | man -l -
  poach man measure capacity | man -l -
  poach man --into ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write the pages of all commands to DIR.
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    into: Option<PathBuf>,
    /// Command and subcommand, such as `measure capacity` [default: poach itself].
    verb: Vec<String>,
}

/// Prints the completions of a program.
pub(crate) fn completions(arguments: &Completions, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "poach", &mut text);
    end("completions", print(&text))
}

/// Prints a page of the manual.
pub(crate) fn man(arguments: &Man, mut command: Command) -> ExitCode {
    if let Some(directory) = &arguments.into {
        let written = fs::create_dir_all(directory)
            .and_then(|()| clap_mangen::generate_to(command, directory))
            .with_context(|| format!("could not write into {}", directory.display()));
        return end("man", written);
    }
    command.build();
    let within = |page: Command, verb: &String| page.find_subcommand(verb).cloned();
    let page = arguments.verb.iter().try_fold(command, within);
    let Some(page) = page else {
        complain("man", "there is no such command; `poach --help` lists the commands");
        return ExitCode::from(USAGE);
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).render(&mut text);
    end("man", rendered.map_err(Into::into).and_then(|()| print(&text)))
}

fn end(verb: &str, outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(verb, &format!("{error:#}"));
            ExitCode::from(AMISS)
        }
    }
}
