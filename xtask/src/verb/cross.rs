//! `cargo xtask cross`: the workspace compiles for the platforms that this machine is not.
//!
//! A check, not a build: no cross linker is needed. The portable path of every crate that has one is
//! also checked here, and its tests run on this machine in `cargo test` as far as they can.

use anyhow::Result;

use crate::run::{Step, need_target};
use crate::workspace::Workspace;

/// A processor that is not TSO, and a system that is not Unix.
const TARGETS: [&str; 2] = ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

pub(crate) fn run() -> Result<()> {
    let portable = Workspace::load()?.features("portable").join(",");
    for target in TARGETS {
        need_target(target)?;
        let check =
            || Step::cargo("check --workspace --all-targets --quiet --target").args([target]);
        check().run("the workspace does not compile for another platform")?;
        check()
            .args(["--features", &portable])
            .run("the portable path does not compile for another platform")?;
    }
    Step::cargo("check --workspace --all-targets --quiet --features")
        .args([&portable])
        .run("the portable path does not compile on this platform")?;
    eprintln!("cross: compiles for {}, with and without {portable}", TARGETS.join(" and "));
    Ok(())
}
