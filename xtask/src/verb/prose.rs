//! `cargo xtask prose`: pages and comments against the rules of prose, a file each in
//! `docs/style/Poach`, which vale reads.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use crate::run::{Step, has_program};
use crate::workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where vale is not installed, say so, and do not fail.
    #[arg(long)]
    if_possible: bool,
    /// Only what lies below these paths.
    paths: Vec<String>,
}

/// Diaries, other people's words, and tables that quote the sources.
const LEFT_OUT: [&str; 4] = ["CHANGELOG.md", "docs/notebook/", "docs/promises/", "verify/"];

/// Paths that are yet to be edited: their findings are counted, and no failure.
const UNREAD: &str = include_str!("../../../docs/style/unread");

/// A number of files that fits a command line on any system.
const BATCH: usize = 200;

/// The version that the count of findings was taken with.
const VALE: &str = "github.com/vale-cli/vale/v3/cmd/vale@v3.21.0";

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(vale) = vale()? else {
        let how = format!("`go install {VALE}`, or a package of https://vale.sh/docs/install");
        if options.if_possible {
            eprintln!("prose: LEFT OUT: vale is not here, nor Go to build it: {how}");
            return Ok(());
        }
        bail!("vale is not here, nor Go to build it: {how}");
    };
    // Were the rules not found, vale would have nothing to say of any page.
    let must_fail = "Whoever comes takes one that is there.";
    let said = Step::program(&vale).args(["--no-exit", "--output=line", "--ext=.md", must_fail]);
    ensure!(said.output().lines().count() == 3, "vale does not find the rules of docs/style/Poach");

    let files = Step::program("git").args(["ls-files", "*.md", "*.rs"]).output();
    let below = |file: &str| options.paths.iter().any(|path| file.starts_with(path));
    let files: Vec<&str> = files
        .lines()
        .filter(|file| !LEFT_OUT.iter().any(|path| file.starts_with(path)))
        .filter(|file| options.paths.is_empty() || below(file))
        .collect();
    let unread: Vec<String> =
        UNREAD.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();

    let (mut findings, mut waiting) = (0, BTreeMap::<&str, usize>::new());
    for batch in files.chunks(BATCH) {
        let said = Step::program(&vale).args(["--no-exit", "--output=line"]).args(batch).output();
        for line in said.lines() {
            let path = unread.iter().find(|path| line.starts_with(path.as_str()));
            if let Some(path) = path.filter(|_| options.paths.is_empty()) {
                *waiting.entry(path).or_default() += 1;
            } else {
                println!("{line}");
                findings += 1;
            }
        }
    }
    for (path, number) in &waiting {
        eprintln!("prose: {number} findings wait in {path}");
    }
    if findings > 0 {
        bail!("{findings} findings against the rules of docs/style/Poach");
    }
    eprintln!("prose: {} files, no findings where docs/style/unread does not say so", files.len());
    Ok(())
}

/// The installed vale, or else a vale that Go builds once in the target directory.
fn vale() -> Result<Option<String>> {
    if has_program("vale") {
        return Ok(Some("vale".to_owned()));
    }
    let tools = workspace::target_directory()?.join("tools");
    let built = tools.join("vale").display().to_string();
    if !has_program(&built) {
        if Step::program("go").args(["version"]).output().is_empty() {
            return Ok(None);
        }
        let tools = tools.display().to_string();
        Step::program("go")
            .args(["install", VALE])
            .env("GOBIN", &tools)
            .env("GOFLAGS", "-mod=mod")
            .run("vale could not be built")?;
    }
    Ok(Some(built))
}
