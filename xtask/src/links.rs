//! The links of the Markdown pages: each leads to a file of the repository, and to a heading of it
//! where it names one. Links to other sites are left alone, for a check must not need the network.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use pulldown_cmark::{BrokenLink, Event, Options, Parser, Tag, TagEnd};

use crate::absence::walk;
use crate::run::from_root;

/// What a look at the pages found.
#[derive(Debug)]
pub(crate) struct Report {
    /// How many Markdown files there were.
    pub(crate) pages: usize,
    /// How many links to files or headings they hold.
    pub(crate) links: usize,
    /// A sentence for each link that leads nowhere.
    pub(crate) broken: Vec<String>,
}

/// A page: its headings as anchors, and where it links to.
#[derive(Debug, Default)]
struct Page {
    anchors: Vec<String>,
    links: Vec<(usize, String)>,
    undefined: Vec<(usize, String)>,
}

/// Looks at every Markdown file under `root`.
pub(crate) fn check(root: &Path) -> Result<Report> {
    let mut pages = HashMap::new();
    for entry in walk(root) {
        let entry = entry.context("could not list the tree")?;
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            let path = entry.into_path();
            let text = fs::read_to_string(&path)
                .with_context(|| format!("reading {}", from_root(root, &path)))?;
            pages.insert(path, read(&text));
        }
    }
    let mut report = Report { pages: pages.len(), links: 0, broken: Vec::new() };
    for (path, page) in &pages {
        let shown = from_root(root, path);
        for (line, label) in &page.undefined {
            report.broken.push(format!("{shown}:{line}: the link [{label}] is not defined"));
        }
        for (line, link) in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            report.links += 1;
            if let Some(why) = why_broken(&pages, path, link) {
                report.broken.push(format!("{shown}:{line}: the link {link} leads nowhere: {why}"));
            }
        }
    }
    report.broken.sort();
    Ok(report)
}

fn why_broken(pages: &HashMap<PathBuf, Page>, from: &Path, link: &str) -> Option<&'static str> {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        from.to_owned()
    } else {
        match from.parent().unwrap_or(from).join(file).canonicalize() {
            Ok(target) => target,
            Err(_) => return Some("there is no such file"),
        }
    };
    if anchor.is_empty() {
        return None;
    }
    let page = pages.iter().find(|(path, _)| path.canonicalize().ok().as_ref() == Some(&target));
    match page.or_else(|| pages.get_key_value(from).filter(|_| file.is_empty())) {
        None => Some("only a page has headings"),
        Some((_, page)) if page.anchors.iter().any(|known| known == anchor) => None,
        Some(_) => Some("the page has no such heading"),
    }
}

fn read(text: &str) -> Page {
    let mut page = Page::default();
    let line_of = |range: &Range<usize>| text[..range.start].matches('\n').count() + 1;
    let mut undefined = Vec::new();
    let note = |link: BrokenLink<'_>| {
        undefined.push((line_of(&link.span), link.reference.to_string()));
        None
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    let parser = Parser::new_with_broken_link_callback(text, options, Some(note));
    let mut heading: Option<String> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let anchor = anchor(&heading.take().unwrap_or_default());
                let twins = page.anchors.iter().filter(|known| **known == anchor).count();
                page.anchors.push(if twins == 0 { anchor } else { format!("{anchor}-{twins}") });
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push((line_of(&range), dest_url.into_string()));
            }
            _ => {}
        }
    }
    // In prose, `[..]` is only a broken link where it has the two pairs of brackets of one.
    undefined.retain(|(line, label)| {
        text.lines().nth(line - 1).is_some_and(|text| text.contains(&format!("][{label}]")))
    });
    page.undefined = undefined;
    page
}

/// The anchor that a forge gives a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.chars().filter(kept).collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(readme: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join("docs/other.md"), "# The `split` deque, twice").unwrap();
        fs::write(root.path().join("README.md"), readme).unwrap();
        check(root.path()).unwrap().broken
    }

    #[test]
    fn links_that_lead_somewhere() {
        let readme = "# Top\n[a](docs/other.md) [b](#top) [c](docs/other.md#the-split-deque-twice)\n\
                      [d](https://example.org/nowhere) [e][f] array[3] `[x](y)`\n\n[f]: docs";
        assert!(broken(readme).is_empty(), "{:?}", broken(readme));
    }

    #[test]
    fn links_that_lead_nowhere() {
        for (readme, why) in [
            ("[a](docs/none.md)", "there is no such file"),
            ("![a](picture.png)", "there is no such file"),
            ("[a](#nowhere)", "the page has no such heading"),
            ("[a](docs/other.md#none)", "the page has no such heading"),
            ("[a](docs#none)", "only a page has headings"),
            ("one\n[a][none]", "README.md:2: the link [none] is not defined"),
        ] {
            let found = broken(readme);
            assert!(found.len() == 1 && found[0].contains(why), "{readme}: {found:?}");
        }
    }
}
