//! The options that were typed: an option that would do nothing is refused by its name.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// The long names of the options on the command line, of the verb and of its own verb. Options from
/// a file or the environment are not among them.
#[derive(Debug, Default)]
pub(crate) struct Typed(Vec<String>);

impl Typed {
    pub(crate) fn of(mut command: &Command, mut matches: &ArgMatches) -> Typed {
        let mut typed = Vec::new();
        while let Some((verb, inner)) = matches.subcommand() {
            let Some(page) = command.find_subcommand(verb) else { break };
            (command, matches) = (page, inner);
            for option in page.get_arguments() {
                let source = matches.value_source(option.get_id().as_str());
                if let (Some(name), Some(ValueSource::CommandLine)) = (option.get_long(), source) {
                    typed.push(name.to_owned());
                }
            }
        }
        Typed(typed)
    }

    /// The first typed option that is among `names`.
    pub(crate) fn among(&self, names: &[&str]) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|name| names.contains(name))
    }

    /// The first typed option that is not among `names`.
    pub(crate) fn other_than(&self, names: &[&str]) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|name| !names.contains(name))
    }
}
