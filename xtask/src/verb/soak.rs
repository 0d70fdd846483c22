//! `cargo xtask soak`: the runtime for as long as it takes to make a thousand million forks, each
//! result checked, and then ten thousand pools.

use anyhow::Result;

use crate::run::Step;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Joins and tasks of scopes, over pools of changing size and ways of waiting.
    #[arg(long, default_value_t = 1_000_000_000)]
    forks: u64,
    /// The seed of the pools and trees.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Pools to make, use and drop.
    #[arg(long, default_value_t = 10_000)]
    pools: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Options { forks, seed, pools } = options;
    Step::cargo("run --release --package poach-runtime --example soak --")
        .args([forks.to_string(), seed.to_string()])
        .run("a sum came out wrong")?;
    Step::cargo("run --release --package poach-runtime --example pools --")
        .args([pools.to_string()])
        .run("not every pool did its work and left")?;
    eprintln!("soak: {forks} forks and {pools} pools, and nothing wrong");
    Ok(())
}
