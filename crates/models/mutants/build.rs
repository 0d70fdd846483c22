//! Makes the mutants' sources: a copy of each mutant's file with its one edit, and a page that names
//! all copies as modules.
//!
//! A copy stands in this crate as the file does in its own: `crate::ring` and all else that it uses are
//! at the root here, too. Where the edit is in such a shared module, the copy of the queue is told to use
//! the copy of that module.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/table/mod.rs"]
#[allow(unreachable_pub, reason = "the crate's own page, where these are public")]
mod table;

use table::{Mutant, mutants};

/// What several queues use, and finds itself at the root of their crate.
const SHARED: [&str; 9] = [
    "deque/src/handles.rs",
    "deque/src/papers/lap.rs",
    "deque/src/lock.rs",
    "deque/src/owned.rs",
    "deque/src/papers/owner_line.rs",
    "deque/src/ring",
    "memory/src/processor.rs",
    "pool/src/extent.rs",
    "pool/src/registry.rs",
];

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let crates = here.ancestors().nth(2).expect("a crate of the workspace");
    for sources in ["deque/src", "memory/src", "pool/src"] {
        println!("cargo::rerun-if-changed={}", crates.join(sources).display());
    }
    println!("cargo::rerun-if-changed=src/table");

    let mut page = String::new();
    for source in SHARED {
        let place = crates.join(source);
        let root = if place.is_dir() { place.join("mod.rs") } else { place };
        module_line(&mut page, module(source), &root);
    }
    let mut runs = String::from("const RUNS: &[(&str, Run)] = &[\n");
    for mutant in mutants() {
        let root = plant(mutant, crates, &out.join(mutant.module()));
        module_line(&mut page, &mutant.module(), &root);
        let Mutant { name, queue, .. } = mutant;
        let _ = writeln!(
            runs,
            "    ({name:?}, subject!({}, {}, {queue:?})),",
            mutant.module(),
            queue.module()
        );
    }
    runs.push_str("];\n");
    page.push_str(&runs);
    write(&out.join("mutants.rs"), &page);
}

fn module_line(page: &mut String, name: &str, path: &Path) {
    let path = path.display().to_string();
    let _ = writeln!(
        page,
        "#[allow(warnings, clippy::all, clippy::pedantic)]\n#[path = {path:?}]\nmod {name};"
    );
}

/// The name of the module that a file or a folder is.
fn module(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".rs").unwrap_or(name)
}

/// Writes the mutant's module into `folder`, and returns its first file.
fn plant(mutant: &Mutant, crates: &Path, folder: &Path) -> PathBuf {
    let file = crates.join(mutant.file);
    let queue = crates.join(mutant.queue.source());
    // What an earlier build has left may stand in the way of what the sources are now.
    if folder.exists() {
        fs::remove_dir_all(folder).expect("the output folder can be emptied");
    }
    let mut page = String::new();
    let mut shared = Vec::new();
    if !file.starts_with(&queue) {
        let sources = with_users(mutant.file, crates);
        shared.extend(sources.iter().map(|source| module(source)));
        for source in sources {
            copy(mutant, &crates.join(source), &file, folder, &shared, &mut page);
        }
    }
    copy(mutant, &queue, &file, folder, &shared, &mut page);
    let root = folder.join("mod.rs");
    write(&root, &page);
    root
}

/// The shared source that `file` is in, and each that uses it or another of them.
fn with_users(file: &str, crates: &Path) -> Vec<&'static str> {
    let within = |source: &&str| Path::new(file).starts_with(source);
    let mut found =
        vec![SHARED.into_iter().find(within).expect("a mutant is in a queue or shared")];
    let mut next = 0;
    while let Some(used) = found.get(next) {
        next += 1;
        let by_name = format!("crate::{}", module(used));
        let others = SHARED.into_iter().filter(|source| !found.contains(source));
        let users: Vec<_> =
            others.filter(|source| mentions(&crates.join(source), &by_name)).collect();
        found.extend(users);
    }
    found
}

/// Whether a source has these words.
fn mentions(source: &Path, words: &str) -> bool {
    if source.is_dir() {
        let mut entries = fs::read_dir(source).expect("a folder of sources");
        return entries.any(|entry| mentions(&entry.expect("a source").path(), words));
    }
    fs::read_to_string(source).expect("a source can be read").contains(words)
}

/// Copies a file or a folder of sources, with the edit where it belongs and the mutant's own copies of what is `shared`.
fn copy(
    mutant: &Mutant,
    from: &Path,
    edited: &Path,
    folder: &Path,
    shared: &[&str],
    page: &mut String,
) {
    let name = from.file_name().expect("a source has a name").to_string_lossy();
    copy_tree(mutant, from, edited, &folder.join(&*name), shared);
    let _ = writeln!(page, "pub(crate) mod {};", module(&name));
}

fn copy_tree(mutant: &Mutant, from: &Path, edited: &Path, to: &Path, shared: &[&str]) {
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a folder of sources") {
            let path = entry.expect("a source").path();
            let name = path.file_name().expect("a source has a name").to_owned();
            copy_tree(mutant, &path, edited, &to.join(name), shared);
        }
        return;
    }
    let mut text = fs::read_to_string(from)
        .unwrap_or_else(|error| panic!("{}: {}: {error}", mutant.name, from.display()));
    if from == edited {
        text = mutate(mutant, &text);
    }
    for source in shared {
        let own = format!("crate::{}::{source}", mutant.module());
        text = text.replace(&format!("crate::{source}"), &own);
    }
    write(to, &text);
}

/// The text with the mutant's edit.
fn mutate(mutant: &Mutant, text: &str) -> String {
    let Mutant { name, file, was, is, .. } = mutant;
    match text.matches(was).count() {
        1 => text.replacen(was, is, 1),
        found => panic!(
            "the mutant {name} is to change one place of crates/{file}, and its text is there \
             {found} times: the source has changed, so say anew what the mutant changes\n{was}"
        ),
    }
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().expect("a file in a folder");
    fs::create_dir_all(folder).expect("the output folder can be written");
    fs::write(path, text).expect("the output folder can be written");
}
