//! Options from a file and from the environment, before those of the command line.
//!
//! The file has options as they are typed, one or more per line. A line that begins with `#` is a
//! comment. `POACH_SCAN_OPTIONS` has one line of options. The order is file, variable, command
//! line: the last option wins, and an option that contradicts a later option is ignored. Each line
//! must be valid by itself, so that an error names it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::error::{ContextKind, ErrorKind};
use clap::parser::ValueSource;
use clap::{Command, Error};

use super::choice;
use crate::output::shown;

/// The variable that holds options.
const VARIABLE: &str = "POACH_SCAN_OPTIONS";

/// The flags of the configuration file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Defaults")]
pub(crate) struct Config {
    /// Read options from FILE [default: poach/scan.conf in `$XDG_CONFIG_HOME`, ~/.config or
    /// %APPDATA%].
    ///
    /// The file has one or more options per line; `#` begins a comment.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ignore the configuration file and `POACH_SCAN_OPTIONS`.
    #[arg(long, conflicts_with = "config")]
    no_config: bool,
}

/// Options from one place: a line of a file, or the variable.
struct Given {
    /// The place, for errors.
    place: String,
    words: Vec<OsString>,
}

impl Config {
    /// The command line with the options of file and variable put before its own, which begin at
    /// `own`. `command` is the whole program's.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or an option is none. The error names its place.
    pub(crate) fn apply(
        &self,
        command: &Command,
        line: &[OsString],
        own: usize,
    ) -> Result<Vec<OsString>> {
        let given = self.given()?;
        for given in &given {
            check(command, &line[..own], given)?;
        }
        let mut chosen: Vec<OsString> = line[own..].to_vec();
        // From the last word to the first, so that later options are known when an earlier one is
        // read.
        for Given { words, .. } in given.into_iter().rev() {
            let with: Vec<OsString> = words.into_iter().chain(chosen.iter().cloned()).collect();
            let whole = line[..own].iter().chain(&with);
            if command.clone().try_get_matches_from(whole).is_ok() {
                chosen = with;
            }
        }
        Ok(line[..own].iter().cloned().chain(chosen).collect())
    }

    /// What file and variable hold, in their order.
    fn given(&self) -> Result<Vec<Given>> {
        if self.no_config {
            return Ok(Vec::new());
        }
        let mut given = match &self.config {
            Some(file) => read(file)?,
            None => {
                default().filter(|file| file.exists()).map_or(Ok(Vec::new()), |it| read(&it))?
            }
        };
        if let Some(value) = env::var_os(VARIABLE) {
            let words = split(value.as_encoded_bytes()).with_context(|| VARIABLE.to_owned())?;
            given.push(Given { place: VARIABLE.to_owned(), words });
        }
        Ok(given)
    }
}

/// Where the file is if no flag says so.
fn default() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = if cfg!(windows) {
        set("APPDATA")
    } else {
        set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))
    };
    Some(directory?.join("poach/scan.conf"))
}

fn read(file: &Path) -> Result<Vec<Given>> {
    let text = choice::read(file).context("options")?;
    let mut given = Vec::new();
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.starts_with(b"#") || line.is_empty() {
            continue;
        }
        let place = format!("{}:{}", shown(file), number + 1);
        given.push(Given { words: split(line).with_context(|| place.clone())?, place });
    }
    Ok(given)
}

fn split(text: &[u8]) -> Result<Vec<OsString>> {
    let words = shlex::bytes::split(text).context("a quote is not closed")?;
    Ok(words.iter().map(|word| choice::os_string(word)).collect())
}

/// Whether options make sense by themselves, and are options.
fn check(command: &Command, verb: &[OsString], given: &Given) -> Result<()> {
    let whole = verb.iter().chain(&given.words);
    let matches = command
        .clone()
        .try_get_matches_from(whole)
        .map_err(|error| anyhow::anyhow!("{}: {}", given.place, reason(&error)))?;
    let Some((_, matches)) = matches.subcommand() else { return Ok(()) };
    let own = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    ensure!(!own("paths"), "{}: a path can be given on the command line only", given.place);
    let nested = own("config") || own("no_config");
    ensure!(
        !nested,
        "{}: --config and --no-config can be given on the command line only",
        given.place
    );
    Ok(())
}

/// The error, in a sentence.
fn reason(error: &Error) -> String {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return "help can be requested on the command line only".to_owned();
    }
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    match error.get(ContextKind::SuggestedArg) {
        Some(known) => format!("{first}; there is {known}"),
        None => first.to_owned(),
    }
}
