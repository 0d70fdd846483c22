//! `cargo xtask cross`: the workspace compiles for the platforms that this machine is not.
//!
//! A check, not a build: no cross linker is needed. A warning is an error there as it is here: what
//! one platform does not use stands behind the `cfg` of the platforms that use it. The portable
//! path of every crate that has such a path is also checked; its tests run on this machine in
//! `cargo test` as far as they can. A target of 32 bits is refused, with a sentence that says why.
//! `WebAssembly` is checked: its words have 64 bits though its addresses have 32.

use anyhow::{Result, ensure};

use crate::run::{Step, need_component, need_target};
use crate::workspace::Workspace;

/// A processor that is not TSO, and a system that is not Unix.
const TARGETS: [&str; 2] = ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

/// Systems that are checked as users build for them: the library and the program, without the
/// suites and the tests.
const SYSTEMS: [&str; 3] =
    ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-unknown-freebsd"];

/// Where the library alone is checked.
const LIBRARY: &str = "wasm32-wasip1-threads";

/// Where nothing compiles, and what is said then.
const REFUSED: (&str, &str) = ("i686-unknown-linux-gnu", "it needs a 64-bit target");

pub(crate) fn run() -> Result<()> {
    let portable = Workspace::load()?.features("portable").join(",");
    need_component("clippy", "clippy")?;
    for target in TARGETS {
        need_target(target)?;
        let check = |targets: &str| {
            // Dependencies are not held to it: cargo caps what they may say.
            Step::cargo("check --workspace --quiet --target")
                .args([target, targets])
                .env("RUSTFLAGS", "-D warnings")
        };
        // With the suites here, and without them below, as the program is built by default.
        check("--all-targets")
            .args(["--features", "bench"])
            .run("the workspace does not compile, or not silently, for another platform")?;
        // Tests on that path are checked below, on this platform.
        check("--lib")
            .args(["--features", &portable])
            .run("the portable path does not compile, or not silently, for another platform")?;
    }
    for target in SYSTEMS {
        need_target(target)?;
        Step::cargo("check --package poach-cli --quiet --target")
            .args([target])
            .env("RUSTFLAGS", "-D warnings")
            .run("the program does not compile, or not silently, for another system")?;
    }
    need_target(LIBRARY)?;
    Step::cargo("check --package poach --quiet --target")
        .args([LIBRARY])
        .env("RUSTFLAGS", "-D warnings")
        .run("the library does not compile, or not silently, for WebAssembly")?;
    let (target, sentence) = REFUSED;
    need_target(target)?;
    let said = Step::cargo("check --package poach-memory --quiet --target").args([target]).errors();
    ensure!(said.contains(sentence), "{target} is not refused by \"{sentence}\", but: {said}");
    // The suites use what the libraries have on either path.
    Step::cargo("clippy --workspace --exclude poach-bench --all-targets --quiet --features")
        .args([portable.as_str(), "--", "-D", "warnings"])
        .run("the portable path does not compile, or not silently, on this platform")?;
    eprintln!(
        "cross: compiles without a warning for {}, with and without {portable}; for {}; the library for {LIBRARY}; \
         {target} is refused",
        TARGETS.join(" and "),
        SYSTEMS.join(", ")
    );
    Ok(())
}
