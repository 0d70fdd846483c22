//! `cargo xtask ci`: the verbs that take minutes, in the order of what fails soonest.

use anyhow::Result;

use super::{cross, dependencies, docs, fmt, lint, minimal, oldest};

pub(crate) fn run() -> Result<()> {
    fmt::run()?;
    lint::run(&lint::Options::default())?;
    dependencies::run()?;
    docs::run(&docs::Options::default())?;
    cross::run()?;
    oldest::run(&oldest::Options { quick: true })?;
    minimal::run()
}
