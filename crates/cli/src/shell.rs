//! `poach completions` and `poach man`: what shells and `man` know of the flags, from where they
//! are defined.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Command;
use clap_complete::Shell;

use crate::output::{AMISS, USAGE, complain, print};

/// Print what a shell completes poach's verbs and flags from.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach completions bash > ~/.local/share/bash-completion/completions/poach
  poach completions zsh > \"${fpath[1]}/_poach\"
  poach completions fish > ~/.config/fish/completions/poach.fish
  poach completions powershell >> $PROFILE")]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a page for man: of poach, of a verb, or of a verb of that.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  poach man scan | man -l -
  poach man measure capacity | man -l -
  poach man --into ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write the pages of poach and of all its verbs into a directory.
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    into: Option<PathBuf>,
    /// Of which verb, and of which of that one's verbs.
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
        complain("man", "there is no such verb; `poach --help` lists them");
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
