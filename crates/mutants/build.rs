//! Makes the mutants' sources: a copy of each mutant's file with its one edit, and a page that names
//! all copies as modules.
//!
//! A copy stands in this crate as the file does in its own: `crate::ring` and all else that it uses are
//! at the root here, too. Where the edit is in such a shared room, the copy of the queue is told to use
//! the copy of the room.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/table/mod.rs"]
#[allow(unreachable_pub, reason = "the crate's own page, where these are public")]
mod table;

use table::{Mutant, mutants};

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let crates = here.parent().expect("a crate of the workspace");
    for sources in ["deque/src", "pool/src"] {
        println!("cargo::rerun-if-changed={}", crates.join(sources).display());
    }
    println!("cargo::rerun-if-changed=src/table");

    let mut page = String::new();
    for room in ["deque/src/ring.rs", "deque/src/lock.rs", "pool/src/registry.rs"] {
        let (name, file) = (module(room), crates.join(room));
        let whole = with_folder(&file, &out.join("rooms").join(name));
        module_line(&mut page, name, whole.as_deref().unwrap_or(&file));
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

/// A file that has a folder of the same name beside it is copied with it: read by its path, it would
/// look for its modules elsewhere. Returns the copy.
fn with_folder(file: &Path, to: &Path) -> Option<PathBuf> {
    let folder = file.with_extension("");
    if !folder.is_dir() {
        return None;
    }
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("a source").path();
        let text = fs::read_to_string(&path).expect("a source can be read");
        write(&to.join(path.file_name().expect("a source has a name")), &text);
    }
    let root = to.join("mod.rs");
    write(&root, &fs::read_to_string(file).expect("a source can be read"));
    Some(root)
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
    let mut page = String::new();
    let mut rooms = Vec::new();
    if !file.starts_with(&queue) {
        rooms.push(module(mutant.file));
        copy(mutant, &file, &file, folder, &[], &mut page);
    }
    copy(mutant, &queue, &file, folder, &rooms, &mut page);
    let root = folder.join("mod.rs");
    write(&root, &page);
    root
}

/// Copies a file or a folder of sources, with the edit where it belongs and the mutant's own `rooms`.
fn copy(
    mutant: &Mutant,
    from: &Path,
    edited: &Path,
    folder: &Path,
    rooms: &[&str],
    page: &mut String,
) {
    let name = from.file_name().expect("a source has a name").to_string_lossy();
    copy_tree(mutant, from, edited, &folder.join(&*name), rooms);
    let beside = from.with_extension("");
    if from.is_file() && beside.is_dir() {
        copy_tree(mutant, &beside, edited, &folder.join(module(&name)), rooms);
    }
    let _ = writeln!(page, "pub(crate) mod {};", module(&name));
}

fn copy_tree(mutant: &Mutant, from: &Path, edited: &Path, to: &Path, rooms: &[&str]) {
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a folder of sources") {
            let path = entry.expect("a source").path();
            let name = path.file_name().expect("a source has a name").to_owned();
            copy_tree(mutant, &path, edited, &to.join(name), rooms);
        }
        return;
    }
    let mut text = fs::read_to_string(from)
        .unwrap_or_else(|error| panic!("{}: {}: {error}", mutant.name, from.display()));
    if from == edited {
        text = mutate(mutant, &text);
    }
    for room in rooms {
        let own = format!("crate::{}::{room}", mutant.module());
        text = text.replace(&format!("crate::{room}"), &own);
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
