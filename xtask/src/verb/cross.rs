//! `cargo xtask cross`: the workspace compiles for the platforms that this machine is not.
//!
//! A check, not a build: no cross linker is needed. A warning is an error there as it is here: what one
//! platform does not use stands behind the `cfg` of those that do. The portable path of every crate that
//! has one is also checked, and its tests run on this machine in `cargo test` as far as they can.

use anyhow::Result;

use crate::run::{Step, need_component, need_target};
use crate::workspace::Workspace;

/// A processor that is not TSO, and a system that is not Unix.
const TARGETS: [&str; 2] = ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

pub(crate) fn run() -> Result<()> {
    let portable = Workspace::load()?.features("portable").join(",");
    need_component("clippy", "clippy")?;
    for target in TARGETS {
        need_target(target)?;
        let check = || {
            // Dependencies are not held to it: cargo caps what they may say.
            Step::cargo("check --workspace --all-targets --quiet --target")
                .args([target])
                .env("RUSTFLAGS", "-D warnings")
        };
        // With the suites here, and without them below, as the program is built by default.
        check()
            .args(["--features", "bench"])
            .run("the workspace does not compile, or not silently, for another platform")?;
        check()
            .args(["--features", &portable])
            .run("the portable path does not compile, or not silently, for another platform")?;
    }
    Step::cargo("clippy --workspace --all-targets --quiet --features")
        .args([portable.as_str(), "--", "-D", "warnings"])
        .run("the portable path does not compile, or not silently, on this platform")?;
    eprintln!(
        "cross: compiles without a warning for {}, with and without {portable}",
        TARGETS.join(" and ")
    );
    Ok(())
}
