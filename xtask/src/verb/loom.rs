//! `cargo xtask loom`: the models of `tests/it/model_*.rs`, optimised and with a wider search.

use anyhow::{Result, ensure};

use crate::run::Step;
use crate::workspace::{Test, Workspace};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many times one execution may preempt a thread, where a model leaves it open.
    #[arg(long, default_value_t = 3)]
    preemptions: u32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut models = Workspace::load()?.tests()?;
    models.retain(Test::is_model);
    ensure!(!models.is_empty(), "no crate has a tests/it/model_*.rs: there is no model to explore");
    for model in &models {
        Step::cargo("test --release --package")
            .args([&model.package])
            .args(model.arguments())
            .env("LOOM_MAX_PREEMPTIONS", &options.preemptions.to_string())
            .run("a model failed")?;
    }
    eprintln!("loom: {} models hold, with {} preemptions", models.len(), options.preemptions);
    Ok(())
}
