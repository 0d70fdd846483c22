//! The READMEs in the API documentation. A link of a README leads to another file of the
//! repository, and an API page has no files beside it. So the API page of a crate includes
//! `src/readme.md`, a copy of the crate's README, in which
//!
//! - a link to the README of a crate that is published leads to the API page of that crate,
//! - a link to another file of the same package leads to docs.rs's page of that file,
//! - any other link is text, followed by the path of the file,
//! - and so is a picture,
//! - a snippet with `?` in it gets a hidden last line, with which it compiles.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use crate::run::from_root;
use crate::workspace::{Library, Workspace};

/// What stands in place of the README's title.
const BEGINNING: &str = "<!-- A copy of README.md for the API page, made by `cargo xtask docs --write`. -->\n\n# README\n";

/// Compares each copy with its README, and writes the copies that differ if it is to. Returns their
/// number.
///
/// # Errors
///
/// If a library does not include its copy, or if a copy differs and is not to be written.
pub(crate) fn check(root: &Path, write: bool) -> Result<usize> {
    let libraries = Workspace::load()?.published_libraries();
    let pages = libraries
        .iter()
        .map(|library| (library.directory.join("README.md"), library.name.as_str()))
        .collect::<HashMap<_, _>>();
    for library in &libraries {
        let readme = library.directory.join("README.md");
        let text = fs::read_to_string(&readme)
            .with_context(|| format!("reading {}", from_root(root, &readme)))?;
        let wanted = copy(root, library, &text, &pages);
        let source = library.directory.join("src/lib.rs");
        if !fs::read_to_string(&source)?.contains("#![doc = include_str!(\"readme.md\")]") {
            bail!("{}: it does not include readme.md", from_root(root, &source));
        }
        let path = library.directory.join("src/readme.md");
        if fs::read_to_string(&path).is_ok_and(|text| text == wanted) {
            continue;
        }
        if !write {
            let path = from_root(root, &path);
            bail!("{path} is not what the README says; run `cargo xtask docs --write`");
        }
        fs::write(&path, wanted)?;
    }
    Ok(libraries.len())
}

/// The README `text` of `library` as its API page has it. `pages` are the READMEs that have an API
/// page, with the name of the package.
fn copy(root: &Path, library: &Library, text: &str, pages: &HashMap<PathBuf, &str>) -> String {
    let mut copy = String::from(BEGINNING);
    let mut end = 0;
    let mut link = None;
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::End(TagEnd::Heading(level)) if level as usize == 1 && end == 0 => {
                end = range.end;
            }
            Event::Start(
                tag @ (Tag::Link { link_type: LinkType::Inline, .. } | Tag::Image { .. }),
            ) => link = Some(tag),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language)))
                if language.starts_with("rust") && text[range.clone()].contains('?') =>
            {
                let fence = range.start + text[range.clone()].rfind("```").unwrap_or(0);
                copy.push_str(&text[end..fence]);
                copy.push_str("# Ok::<(), Box<dyn std::error::Error>>(())\n");
                end = fence;
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let Some(tag) = link.take() else { continue };
                let (picture, to) = match &tag {
                    Tag::Image { dest_url, .. } => (true, dest_url),
                    Tag::Link { dest_url, .. } => (false, dest_url),
                    _ => continue,
                };
                if to.contains("://") || to.starts_with('#') {
                    continue;
                }
                let whole = &text[range.clone()];
                let shown = &whole[if picture { 2 } else { 1 }..whole.rfind("](").unwrap_or(1)];
                copy.push_str(&text[end..range.start]);
                copy.push_str(&link_text(root, library, shown, to, picture, pages));
                end = range.end;
            }
            _ => {}
        }
    }
    copy.push_str(&text[end..]);
    copy
}

/// What stands in the copy for the link or picture `shown`, which leads `to`.
fn link_text(
    root: &Path,
    library: &Library,
    shown: &str,
    to: &str,
    picture: bool,
    pages: &HashMap<PathBuf, &str>,
) -> String {
    let (file, anchor) =
        to.split_once('#').map_or((to, None), |(file, anchor)| (file, Some(anchor)));
    let path = without_dots(&library.directory.join(file));
    let from_root = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    if picture {
        return format!("(A picture: {shown}; `{from_root}`)");
    }
    let page = if path == root.join("README.md") { Some(&"poach") } else { pages.get(&path) };
    if let Some(name) = page {
        let anchor = anchor.map_or(String::new(), |anchor| {
            format!("/latest/{}/#{anchor}", name.replace('-', "_"))
        });
        return format!("[{shown}](https://docs.rs/{name}{anchor})");
    }
    if let Ok(file) = path.strip_prefix(&library.directory) {
        let name = &library.name;
        return format!("[{shown}](https://docs.rs/crate/{name}/latest/source/{})", file.display());
    }
    if shown.trim_matches('`') == from_root {
        return shown.to_owned();
    }
    format!("{shown} (`{from_root}`)")
}

/// The path without `..` and `.`, as it is spelled: nothing is asked of the file system.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> String {
        let root = Path::new("/repository");
        let library =
            Library { name: "poach-deque".to_owned(), directory: root.join("crates/deque") };
        let pages = HashMap::from([(root.join("crates/pool/README.md"), "poach-pool")]);
        copy(root, &library, text, &pages).strip_prefix(BEGINNING).unwrap().to_owned()
    }

    #[test]
    fn links_lead_to_pages_that_exist_or_name_their_file() {
        let cases = [
            ("[Poach](../../README.md)", "[Poach](https://docs.rs/poach)"),
            ("[pool](../pool/README.md)", "[pool](https://docs.rs/poach-pool)"),
            (
                "[cost](../pool/README.md#cost)",
                "[cost](https://docs.rs/poach-pool/latest/poach_pool/#cost)",
            ),
            ("[notes](../../docs/n.md#a)", "notes (`docs/n.md`)"),
            ("[`docs/n.md`](../../docs/n.md)", "`docs/n.md`"),
            ("[a](src/a.rs)", "[a](https://docs.rs/crate/poach-deque/latest/source/src/a.rs)"),
            ("![times](../../bench/a.svg)", "(A picture: times; `bench/a.svg`)"),
            ("| [a](#b) | [c](https://example.org) |", "| [a](#b) | [c](https://example.org) |"),
        ];
        for (link, wanted) in cases {
            assert_eq!(
                copied(&format!("# Title\n\nText {link}, more.\n")),
                format!("\nText {wanted}, more.\n")
            );
        }
    }

    #[test]
    fn a_snippet_that_may_fail_compiles() {
        let ok = "# Ok::<(), Box<dyn std::error::Error>>(())\n";
        assert_eq!(copied("```rust\nf()?;\n```\n"), format!("```rust\nf()?;\n{ok}```\n"));
    }

    #[test]
    fn code_is_left_as_it_is() {
        let text = "# Title\n\n```rust\nlet a = [b](c);\n```\n\n`[x](y)`\n";
        assert_eq!(copied(text), text.strip_prefix("# Title\n").unwrap());
    }
}
