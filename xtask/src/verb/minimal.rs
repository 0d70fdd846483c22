//! `cargo xtask minimal`: the library and the program compile with the oldest version of each
//! dependency that the manifests allow.
//!
//! A user with an old lock file gets such versions, and only a build can tell whether a version is
//! too old. Dependencies of dependencies are resolved as always: their minimums are not ours.

use anyhow::Result;

use crate::run::Step;
use crate::workspace;

pub(crate) fn run() -> Result<()> {
    let target = workspace::target_directory()?.join("minimal");
    // In a copy, since the lock file of the workspace is to stay as it is.
    let copy = target.join("workspace");
    workspace::copy(&workspace::root(), &copy)?;
    Step::cargo("update --quiet -Z direct-minimal-versions")
        .within(&copy)
        // The flag is not stable, and changes nothing but which versions are chosen.
        .env("RUSTC_BOOTSTRAP", "1")
        .run("a dependency asks for a newer version of another than `Cargo.toml` states")?;
    Step::cargo("check --quiet --package poach --package poach-cli --package poach-simulate --features poach/async")
        .within(&copy)
        .env("CARGO_TARGET_DIR", &target.to_string_lossy())
        .run("`Cargo.toml` states a version of a dependency that is too old")?;
    eprintln!(
        "minimal: the library and the program compile with the oldest dependencies that `Cargo.toml` allows"
    );
    Ok(())
}
