//! Weaves the mutants: one copy of the queues' sources that holds every edit of the table, and a
//! page that names the copied files as modules.
//!
//! A function that a mutant changes has a choice around its body: the body with the edit if the
//! running thread has chosen that mutant, else the body as it is. A copy stands in this crate as
//! the file does in its own: `crate::ring` and all else that it uses are at the root here, too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

#[path = "src/table/mod.rs"]
#[allow(unreachable_pub, reason = "the crate's own page, where these are public")]
mod table;

use table::{Mutant, mutants};

/// What is copied: these files and folders, and all that is in [`FOLDERS`]. Each finds itself at
/// the root of its crate.
const SOURCES: [&str; 11] = [
    "deque/src/handles.rs",
    "deque/src/lock.rs",
    "deque/src/mutex.rs",
    "deque/src/owned.rs",
    "deque/src/ring",
    "memory/src/delta.rs",
    "memory/src/order.rs",
    "memory/src/processor.rs",
    "pool/src/registry.rs",
    "pool/src/baselines",
    "pool/src/salsa",
];

/// Folders of files and folders that are each copied.
const FOLDERS: [&str; 2] = ["deque/src/ours", "deque/src/papers"];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("woven");
    let crates = here.ancestors().nth(2).expect("a crate of the workspace");
    for sources in ["deque/src", "memory/src", "pool/src"] {
        println!("cargo::rerun-if-changed={}", crates.join(sources).display());
    }
    println!("cargo::rerun-if-changed=src/table");

    // What an earlier build has left may stand in the way of what the sources are now.
    if out.exists() {
        fs::remove_dir_all(&out).expect("the output folder can be emptied");
    }
    let mut sources: BTreeSet<String> = SOURCES.map(String::from).into();
    for folder in FOLDERS {
        for entry in fs::read_dir(crates.join(folder)).expect("a folder of sources") {
            let name = entry.expect("a source").file_name().into_string().expect("plain names");
            sources.extend((name != "mod.rs").then(|| format!("{folder}/{name}")));
        }
    }
    let all: Vec<&Mutant> = mutants().collect();
    let (mut page, mut woven) = (String::new(), 0);
    for source in sources {
        woven += copy(crates, Path::new(&source), &out, &all);
        let root = out.join(&source);
        let root = if root.is_dir() { root.join("mod.rs") } else { root };
        let name = source.rsplit('/').next().unwrap_or(&source);
        let (path, name) = (root.display().to_string(), name.trim_end_matches(".rs"));
        // `crate::delta` is what the policies know.
        let name = if name == "delta" { "reckoned" } else { name };
        let _ = writeln!(
            page,
            "#[allow(warnings, clippy::all, clippy::pedantic)]\n#[path = {path:?}]\nmod {name};"
        );
    }
    assert_eq!(woven, all.len(), "each mutant changes a file of a queue, or what queues share");
    fs::write(out.join("mod.rs"), page).expect("the output folder can be written");
}

/// Copies a file or a folder of sources, with the edits that belong there. How many those are.
fn copy(crates: &Path, source: &Path, out: &Path, all: &[&Mutant]) -> usize {
    let (from, to) = (crates.join(source), out.join(source));
    if from.is_dir() {
        fs::create_dir_all(to).expect("the output folder can be written");
        let entries = fs::read_dir(from).expect("a folder of sources");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("a source").file_name();
        return entries.map(|entry| copy(crates, &source.join(name(entry)), out, all)).sum();
    }
    let of_file = all.iter().filter(|it| Path::new(it.file) == source);
    let of_file: Vec<(String, &Mutant)> = of_file.map(|it| (numbers(it, all), *it)).collect();
    let text =
        fs::read_to_string(&from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    fs::create_dir_all(to.parent().expect("a file in a folder")).expect("the output folder");
    // The unit tests run in the queues' own crates.
    let text = weave(&unwrapped(&text), &of_file).replace("cfg(test)", "cfg(any())");
    let text = text.replace("cfg(all(test", "cfg(all(any()");
    fs::write(to, text).expect("the output folder can be written");
    of_file.len()
}

/// The numbers of the mutants that have this one's mistake, as a pattern.
fn numbers(mutant: &Mutant, all: &[&Mutant]) -> String {
    let has = |other: &Mutant| match other.besides {
        Some(name) if name == mutant.name => {
            assert_ne!(other.file, mutant.file, "two choices are never one within the other");
            true
        }
        _ => other.name == mutant.name,
    };
    let numbers = all.iter().enumerate().filter(|(_, other)| has(other));
    numbers.map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" | ")
}

/// The text with each comment on one line: how comments are wrapped changes no mutant.
fn unwrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut marker = "";
    for line in text.split('\n') {
        let comment = line.trim_start();
        let next =
            ["///", "//!", "//"].into_iter().find(|it| comment.starts_with(it)).unwrap_or("");
        match lines.last_mut() {
            Some(last) if !next.is_empty() && next == marker => {
                last.push_str(&comment[next.len()..]);
            }
            _ => lines.push(line.to_owned()),
        }
        marker = next;
    }
    lines.join("\n")
}

/// The text in which each function that is changed chooses among its bodies.
fn weave(text: &str, of_file: &[(String, &Mutant)]) -> String {
    if of_file.is_empty() {
        return text.to_owned();
    }
    let mut bodies = Vec::new();
    find_bodies(TokenStream::from_str(text).expect("the source is Rust"), &mut bodies);
    let mut arms: Vec<(Range<usize>, String)> = Vec::new();
    for (numbers, mutant) in of_file {
        let Mutant { name, file, .. } = mutant;
        let (was, is) = (&unwrapped(mutant.was)[..], &unwrapped(mutant.is)[..]);
        let found: Vec<usize> = text.match_indices(was).map(|(at, _)| at).collect();
        let &[at] = &found[..] else {
            panic!(
                "the mutant {name} is to change one place of crates/{file}, and its text is there {} times: \
                 the source has changed, so say anew what the mutant changes\n{was}",
                found.len()
            )
        };
        // What stands in both may reach out of the body.
        let same = was.bytes().zip(is.bytes()).take_while(|(old, new)| old == new).count();
        let edit = at + same..at + was.len();
        let is = &is[same..];
        let within = bodies.iter().filter(|it| it.start < edit.start && edit.end <= it.end);
        // The outermost, so that two choices are never one within the other.
        let body = within.max_by_key(|it| it.len());
        let body = body.unwrap_or_else(|| panic!("the mutant {name} changes no function's body"));
        let before = &text[body.start..edit.start];
        let arm = format!("{numbers} => {before}{is}{}\n", &text[edit.end..body.end]);
        match arms.iter_mut().find(|(range, _)| range == body) {
            Some((_, there)) => there.push_str(&arm),
            None => arms.push((body.clone(), arm)),
        }
    }
    arms.sort_by_key(|(body, _)| body.start);
    let (mut woven, mut from) = (String::new(), 0);
    for (body, arms) in arms {
        let (before, as_it_is) = (&text[from..body.start], &text[body.clone()]);
        let choice = "match crate::chosen()";
        let _ = write!(woven, "{before}{{ {choice} {{\n{arms}_ => {as_it_is}\n}} }}");
        from = body.end;
    }
    woven + &text[from..]
}

/// Where the bodies of functions stand, with their braces.
fn find_bodies(stream: TokenStream, bodies: &mut Vec<Range<usize>>) {
    let mut awaits_body = false;
    for token in stream {
        match token {
            TokenTree::Ident(word) if word == "fn" => awaits_body = true,
            TokenTree::Punct(mark) if mark.as_char() == ';' => awaits_body = false,
            TokenTree::Group(group) => {
                if awaits_body && group.delimiter() == Delimiter::Brace {
                    bodies.push(group.span().byte_range());
                    awaits_body = false;
                }
                find_bodies(group.stream(), bodies);
            }
            _ => {}
        }
    }
}
