//! `cargo xtask documents`: what `poach scan` writes is what the programs say that it is for.
//!
//! The tests of `crates/cli/tests` that need such a program leave themselves out where it is not
//! installed, and say so. Here it is installed, from Debian's packages, and nothing is left out.

use anyhow::{Result, ensure};

use crate::run::{Step, need_program};

pub(crate) fn run() -> Result<()> {
    need_program("ncdu", "-v", "ncdu")?;
    need_program("chromium", "--version", "chromium")?;
    let passed = Step::cargo("test --package poach-cli --test it -- documents:: page::")
        .env("POACH_NOTHING_LEFT_OUT", "1")
        .run_tests("a document is not what it should be")?;
    ensure!(passed > 0, "documents: no test ran");
    eprintln!("documents: {passed} tests passed, none was left out");
    Ok(())
}
