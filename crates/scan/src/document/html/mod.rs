//! A scan as one page for a browser, which needs nothing beside itself: a treemap and a sunburst to
//! go through, a table, a search.
//!
//! **What it holds.** The 40,000 largest entries, which form a tree with the given paths at the
//! top. The others are summed up in their directories, and the page says how many they are. So a
//! page has at most some megabytes, and opens at once; an entry that is left out would be smaller
//! than a pixel.
//!
//! **How.** `page.html` is a template, into which `page.css` and `page.js` are put, and the entries
//! as columns of JSON, the members of `Data`. Names are shown as on a terminal ([`escape`]), and
//! reach the page as text alone, never as markup; in the JSON `<`, `>` and `&` are escaped, so that
//! no name can end it. The content security policy forbids the page to load or send anything. Sizes
//! above 2^53 bytes are rounded, because JavaScript's numbers are.

use std::io::{self, Write};

use serde::Serialize;

use super::entries::{Entries, Order};
use super::needs_files;
use super::safe::InPage;
use crate::report::{Extent, Measure, escape};
use crate::{Kind, Node, Scan, Shared, Totals};

/// Entries that a page holds.
const ENTRIES: usize = 40_000;
/// Failures that a page lists.
const ERRORS: usize = 1000;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The entries, a list for each of their properties; each directory before what is in it.
#[derive(Default, Serialize)]
struct Data<'a> {
    names: Vec<String>,
    /// -1 for the first.
    parents: Vec<i64>,
    /// A character each.
    kinds: String,
    disk: Vec<u64>,
    apparent: Vec<u64>,
    entries: Vec<u64>,
    /// How many entries of a directory are not in the page.
    left: Vec<u64>,
    /// The notes on entries, by index.
    marks: std::collections::BTreeMap<usize, &'a str>,
    errors: Vec<String>,
    scan: Option<Whole<'a>>,
}

#[derive(Serialize)]
struct Whole<'a> {
    by: Measure,
    taken: u64,
    interrupted: bool,
    totals: &'a Totals,
    entries: u64,
    /// How many of them are not in the page.
    left: u64,
    /// Stands only where shared blocks count once.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<Shared>,
}

/// Writes the page, which holds the largest entries by `measure`.
///
/// # Errors
///
/// The writer's own; and [`io::ErrorKind::InvalidInput`] of a scan without
/// [`Options::keep_files`](crate::Options::keep_files).
pub fn html(scan: &Scan, measure: Measure, out: &mut impl Write) -> io::Result<()> {
    html_to(scan, measure, out)
}

fn html_to(scan: &Scan, measure: Measure, mut out: &mut dyn Write) -> io::Result<()> {
    let out = &mut out;
    needs_files(scan)?;
    let data = Data::new(scan, measure);
    let mut rest = PAGE;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, it)| Some((before, it.split_once("}}")?)))
    {
        out.write_all(before.as_bytes())?;
        match name {
            "version" => out.write_all(env!("CARGO_PKG_VERSION").as_bytes())?,
            "title" => out.write_all(markup(&title(scan)).as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            "data" => {
                data.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, InPage))?;
            }
            _ => unreachable!("the template has nothing else"),
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

impl<'a> Data<'a> {
    fn new(scan: &'a Scan, measure: Measure) -> Data<'a> {
        let mut data = Data::default();
        let roots: Vec<_> = scan.tree.roots().collect();
        let alone = roots.len() == 1 && roots[0].kind() == Kind::Directory;
        if !alone {
            data.above(scan, roots.len());
        }
        let above = usize::from(!alone);
        let extent = Extent { measure, top: Some(ENTRIES), ..Extent::default() };
        for entry in Entries::new(scan, &extent, Order::Size) {
            let index = data.names.len();
            let parent = entry.parent.map(|parent| parent as usize + above);
            let parent = parent.or((!alone).then_some(0));
            data.push(&entry.node, parent);
            if let Some(parent) = parent {
                data.left[parent] -= 1;
            }
            let mark = entry.error.or(entry.node.counts_elsewhere().then_some(ELSEWHERE));
            data.marks.extend(mark.map(|mark| (index, mark)));
        }
        let failure = |it: &crate::Failure| format!("{}: {}", escape(&it.path), it.message);
        data.errors = scan.errors.iter().take(ERRORS).map(failure).collect();
        let entries = scan.totals.entries();
        data.scan = Some(Whole {
            by: measure,
            taken: scan.taken,
            interrupted: scan.interrupted,
            totals: &scan.totals,
            entries,
            left: entries.saturating_sub((data.names.len() - above) as u64),
            shared: scan.shared,
        });
        data
    }

    /// The row above several given paths, or above a given path that is a file.
    fn above(&mut self, scan: &Scan, roots: usize) {
        self.names.push(String::new());
        self.parents.push(-1);
        self.kinds.push('d');
        self.disk.push(scan.totals.disk_bytes);
        self.apparent.push(scan.totals.apparent_bytes);
        self.entries.push(scan.totals.entries());
        self.left.push(roots as u64);
    }

    fn push(&mut self, node: &Node<'_>, parent: Option<usize>) {
        self.names.push(escape(node.name()).into_owned());
        self.parents.push(parent.map_or(-1, |parent| parent as i64));
        self.kinds.push(match node.kind() {
            Kind::Directory => 'd',
            Kind::File => 'f',
            Kind::Symlink => 'l',
            Kind::Other => 'o',
        });
        self.disk.push(node.disk_bytes());
        self.apparent.push(node.apparent_bytes());
        self.entries.push(node.entries());
        self.left.push((node.directories().count() + node.files().count()) as u64);
    }
}

const ELSEWHERE: &str = "counted at another name of this file";

fn title(scan: &Scan) -> String {
    let roots: Vec<_> = scan.tree.roots().take(3).map(|root| escape(root.name())).collect();
    format!("{} - poach scan", roots.join(", "))
}

/// Text as markup that shows it.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_each_part_once_and_the_parts_do_not_end_it() {
        for name in ["version", "title", "style", "script", "data"] {
            assert_eq!(PAGE.matches(&format!("{{{{{name}}}}}")).count(), 1, "{name}");
        }
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("http://localhost"));
    }
}
