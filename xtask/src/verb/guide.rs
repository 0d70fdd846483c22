//! `cargo xtask guide`: each command of the guide does what its page says, and each page is where a
//! reader and the tests look for it.
//!
//! The program is built, and a directory is made with nothing in it but a few files. There a shell
//! runs every line of a `console` block that begins with `$`, page by page. A command ends with 0,
//! or with the number in `# exits with N` behind it. A picture that a command makes under the name
//! of a picture in `pictures/` must be that picture; `--pictures` puts the new ones there. Snippets
//! of Rust are documentation tests of the package `poach-guide`, which `cargo test` runs. This verb
//! checks only that neither they nor the summary leave out a page. `--book` makes the pages with
//! mdBook.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::run::Step;
use crate::workspace::{root, target_directory};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Make the pages, too, into `target/guide/book`, with mdBook, which is built by cargo if it
    /// is not installed.
    #[arg(long)]
    book: bool,
    /// Replace the pictures of the pages by those that their commands make.
    #[arg(long)]
    pictures: bool,
}

/// A command of a page, and how it ends.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    command: String,
    exits: i32,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let guide = root().join("docs/guide");
    let pages = pages(&guide)?;
    // As `cargo test --workspace` builds it, which has been run before, most often.
    Step::cargo("test --quiet --workspace --no-run --test it").run("the program does not build")?;
    let programs = target_directory()?.join("debug");
    let mut commands = 0;
    for page in &pages {
        let text = read(&guide.join("pages").join(page))?;
        commands += run_page(page, &text, &programs)?;
        compare_pictures(
            page,
            &scratch_of(page)?,
            &guide.join("pages/pictures"),
            options.pictures,
        )?;
    }
    if options.book {
        make_book(&guide)?;
    }
    ensure!(commands > 0, "guide: no page has a command");
    eprintln!("guide: {} pages, {commands} commands", pages.len());
    Ok(())
}

/// The pages by name, as the summary lists them.
///
/// # Errors
///
/// If a page is missing in the directory, in the summary or in the tests.
fn pages(guide: &Path) -> Result<BTreeSet<String>> {
    let summary = read(&guide.join("pages/SUMMARY.md"))?;
    let listed: BTreeSet<String> = Parser::new(&summary)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.into_string()),
            _ => None,
        })
        .collect();
    let mut there = BTreeSet::new();
    for entry in fs::read_dir(guide.join("pages")).context("the guide has no pages")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|end| end == "md") && name != "SUMMARY.md" {
            there.insert(name);
        }
    }
    let tests = read(&guide.join("src/lib.rs"))?;
    for page in listed.union(&there) {
        ensure!(there.contains(page), "guide: SUMMARY.md lists {page}, which is no page");
        ensure!(listed.contains(page), "guide: {page} is not listed in SUMMARY.md");
        let tested = tests.contains(&format!("\"../pages/{page}\""));
        ensure!(
            tested,
            "guide: {page} is not listed in docs/guide/src/lib.rs, so nothing compiles its snippets"
        );
    }
    Ok(there)
}

/// Runs a page's commands in a directory of their own, and returns how many there were.
fn run_page(page: &str, text: &str, programs: &Path) -> Result<usize> {
    let lines = commands(text)?;
    if lines.is_empty() {
        return Ok(0);
    }
    let directory = scratch(page)?;
    for Line { command, exits } in &lines {
        eprintln!("{page}: $ {command}");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path)),
        )?;
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(&directory)
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("could not start `{command}`"))?;
        if output.status.code() != Some(*exits) {
            let said = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!(
                "guide: {page}: `{command}` ended with {}, not {exits}:\n{said}{errors}",
                output.status
            );
        }
    }
    Ok(lines.len())
}

/// Compares what a page's commands have drawn with the pictures of the same names, or replaces
/// these.
///
/// # Errors
///
/// If one of them has changed.
fn compare_pictures(page: &str, made: &Path, pictures: &Path, replace: bool) -> Result<()> {
    if !made.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(made)? {
        let path = entry?.path();
        let shown = pictures.join(path.file_name().unwrap_or_default());
        if path.extension().is_none_or(|end| end != "svg") || !shown.is_file() {
            continue;
        }
        if replace {
            fs::copy(&path, &shown)
                .with_context(|| format!("could not write {}", shown.display()))?;
        }
        ensure!(
            read(&path)? == read(&shown)?,
            "guide: {page} shows {}, but its command draws something else now: `cargo xtask guide --pictures` replaces it",
            shown.display()
        );
    }
    Ok(())
}

fn scratch_of(page: &str) -> Result<PathBuf> {
    Ok(target_directory()?.join("guide/run").join(page))
}

/// An empty directory with a few files.
fn scratch(page: &str) -> Result<PathBuf> {
    let directory = scratch_of(page)?;
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("could not empty {}", directory.display()))?;
    }
    for (file, bytes) in [
        ("notes.txt", 3_000),
        ("music/song.flac", 70_000),
        ("music/cover.png", 9_000),
        ("old/empty", 0),
    ] {
        crate::published::write(&directory.join(file), vec![b'a'; bytes])?;
    }
    Ok(directory)
}

/// The commands of a page's `console` blocks.
fn commands(text: &str) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut inside = false;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                inside = &*kind == "console";
            }
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(block) if inside => {
                for line in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
                    lines.push(read_command(line)?);
                }
            }
            _ => {}
        }
    }
    Ok(lines)
}

fn read_command(line: &str) -> Result<Line> {
    let (command, exits) = match line.split_once("# exits with ") {
        None => (line, 0),
        Some((command, number)) => {
            (command, number.trim().parse().with_context(|| format!("no number: `{line}`"))?)
        }
    };
    Ok(Line { command: command.trim().to_owned(), exits })
}

fn make_book(guide: &Path) -> Result<()> {
    let tools = target_directory()?.join("tools");
    let mdbook = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if !mdbook.is_file() {
        Step::cargo("install mdbook --version 0.4.52 --locked --no-default-features --features search --root")
            .args([tools.to_string_lossy()])
            .run("mdBook could not be built")?;
    }
    Step::program(&mdbook.to_string_lossy())
        .args(["build", &guide.to_string_lossy()])
        .run("the pages could not be made")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_what_console_blocks_have_after_a_dollar() {
        let page = "```console\n$ poach a\nits output\n$ poach b    # exits with 1\n```\n```text\n$ no\n```\n";
        let line = |command: &str, exits| Line { command: command.to_owned(), exits };
        assert_eq!(commands(page).unwrap(), [line("poach a", 0), line("poach b", 1)]);
        assert!(commands("```console\n$ poach # exits with one\n```\n").is_err());
    }

    #[test]
    fn a_command_that_ends_otherwise_is_an_error_that_names_page_and_command() {
        let programs = Path::new("nowhere");
        let page = "```console\n$ true\n$ exit 3    # exits with 3\n```\n";
        assert_eq!(run_page("a test's.md", page, programs).unwrap(), 2);
        let error = run_page("a test's.md", "```console\n$ exit 3\n```\n", programs).unwrap_err();
        assert!(error.to_string().contains("a test's.md: `exit 3`"), "{error}");
    }

    #[test]
    fn a_picture_that_is_not_what_its_command_draws_is_an_error() {
        let (made, shown) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let compare = |replace| compare_pictures("a.md", made.path(), shown.path(), replace);
        // Nothing is shown under that name.
        fs::write(made.path().join("a.svg"), "<svg>new</svg>").unwrap();
        compare(false).unwrap();
        fs::write(shown.path().join("a.svg"), "<svg>old</svg>").unwrap();
        let error = compare(false).unwrap_err().to_string();
        assert!(error.contains("a.md") && error.contains("--pictures"), "{error}");
        compare(true).unwrap();
        assert_eq!(fs::read_to_string(shown.path().join("a.svg")).unwrap(), "<svg>new</svg>");
        compare(false).unwrap();
    }

    #[test]
    fn a_page_that_nobody_lists_is_an_error() {
        let guide = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            crate::published::write(&guide.path().join(file), text).unwrap();
        };
        write("pages/SUMMARY.md", "- [One](one.md)\n");
        write("pages/one.md", "# One\n");
        write("src/lib.rs", "one in \"../pages/one.md\"");
        assert_eq!(pages(guide.path()).unwrap().len(), 1);
        write("pages/two.md", "# Two\n");
        assert!(pages(guide.path()).unwrap_err().to_string().contains("not listed in SUMMARY.md"));
        write("pages/SUMMARY.md", "- [One](one.md)\n- [Two](two.md)\n- [Three](three.md)\n");
        let error = pages(guide.path()).unwrap_err().to_string();
        assert!(error.contains("no page") || error.contains("src/lib.rs"), "{error}");
    }
}
