//! rayon-core's own tests, taken from its published package, as a package that tests whichever core
//! it is built with.
//!
//! Its unit tests and its examples stand beside the source of the original, which is not wanted
//! here. So the files of unit tests become modules of a new package that exports all of rayon-core;
//! the documentation comments become its documentation; and the integration tests are copied. Three
//! things that the unit tests take from inside the original are written here instead.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};
use walkdir::WalkDir;

use crate::published::{documentation, read, write};
use crate::workspace;

/// Tests that ask the original's own registry whether its threads have ended.
/// `handlers_of_the_threads` and `ten_thousand_pools_leave_nothing` of `compat/rayon-core/tests`
/// ask both cores.
pub(super) const LEFT_OUT: [&str; 2] = ["workers_stop", "sleeper_stop"];

const MANIFEST: &str = include_str!("../../../tables/rayon-core-tests.toml");

/// What the unit tests name of the original that is not public.
const INSIDE: &str = r"
#![allow(unused)]
pub use rayon_core::*;

#[cfg(test)]
mod unwind {
    pub fn halt_unwinding<R>(f: impl FnOnce() -> R) -> std::thread::Result<R> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
    }
}

#[cfg(test)]
mod registry {
    /// Runs `op` on a thread of the global pool.
    pub fn in_worker<R: Send>(op: impl FnOnce(&(), bool) -> R + Send) -> R {
        rayon_core::scope(|_| op(&(), true))
    }

    /// For the tests that are left out, which are compiled all the same.
    pub struct Registry;

    impl Registry {
        pub fn num_threads(&self) -> usize {
            unreachable!()
        }

        pub fn wait_until_stopped(&self) {
            unreachable!()
        }
    }
}
";

/// Writes the package to `to`, from the published one in `core`; with the drop-in below it if it is
/// to be `patched`.
pub(super) fn make(core: &Path, to: &Path, patched: bool) -> Result<()> {
    let mut manifest = MANIFEST.to_owned();
    if patched {
        let drop_in = workspace::root().join("compat/rayon-core");
        // In single quotes TOML knows no escapes.
        let path = drop_in.display();
        // Writing to a string does not fail, here and below.
        let _ = write!(manifest, "\n[patch.crates-io]\nrayon-core = {{ path = '{path}' }}\n");
    }
    write(&to.join("Cargo.toml"), &manifest)?;
    let mut root = INSIDE.to_owned();
    let mut units = 0;
    for entry in WalkDir::new(core.join("src")).sort_by_file_name() {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let within = path.strip_prefix(core.join("src"))?;
        let name = within.with_extension("").to_string_lossy().replace(['/', '\\'], "_");
        let text = read(path)?;
        if within.starts_with("compile_fail") {
            write(&to.join("src").join(within), &text)?;
        } else if within.ends_with("test.rs") {
            units += 1;
            let text = text.replace(
                "Arc::clone(&thread_pool.registry)",
                "Arc::new(crate::registry::Registry)",
            );
            let _ = write!(root, "\n#[cfg(test)]\nmod {name};\n");
            write(&to.join(format!("src/{name}.rs")), &text)?;
        } else {
            let _ = write!(
                root,
                "\n#[doc = include_str!(\"{name}.md\")]\npub mod {name}_documentation {{}}\n"
            );
            write(&to.join(format!("src/{name}.md")), documentation(&text))?;
        }
    }
    ensure!(units > 0, "there are no unit tests in {}", core.display());
    root.push_str("\nmod compile_fail;\n");
    write(&to.join("src/lib.rs"), &root)?;
    for entry in WalkDir::new(core.join("tests")) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let name = entry.path().strip_prefix(core)?;
            write(&to.join(name), read(entry.path())?)?;
        }
    }
    Ok(())
}
