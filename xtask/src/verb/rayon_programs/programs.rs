//! The programs: what is asked for, with what input, and what two runs must agree in.

use serde::Deserialize;

use crate::workspace::table;

/// A program that its authors published, and a task for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) package: String,
    pub(super) version: String,
    /// The name of its executable.
    pub(super) executable: String,
    /// More arguments of `cargo build`.
    pub(super) build: String,
    /// What it does here.
    pub(super) task: String,
    /// Its arguments, separated by blanks. `{threads}`, `{input}` and `{output}` are filled in; of
    /// an argument that ends with `/*`, one is made for each file below that directory.
    pub(super) arguments: String,
    pub(super) answer: Answer,
}

/// What a program answers with, which both cores must agree in.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Answer {
    /// What it prints.
    Text,
    /// The lines that it prints, whose order the program leaves open, but those that begin with
    /// this.
    Lines { except: String },
    /// The files that it writes to the output directory.
    Files,
    /// What it makes of the files in the output directory, into which this directory of the input
    /// is copied before.
    Changes { of: String },
}

pub(super) fn programs() -> Vec<Program> {
    table(include_str!("../../../tables/rayon-programs.json"))
}
