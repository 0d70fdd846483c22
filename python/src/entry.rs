//! Entries of a finished scan, and the walk over them.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::Arc;

use poach_scan::{Facts, Kind, Node, NodeId, Scan};
use pyo3::prelude::*;

use crate::options::kind_name;

/// A file, directory, link or other entry of a scan. Its sizes include everything below it.
#[pyclass(frozen, module = "poach")]
pub(crate) struct Entry {
    scan: Arc<Scan>,
    id: NodeId,
    /// The depth below the scanned paths, which have depth 0.
    #[pyo3(get)]
    depth: u32,
}

/// A name or path as Python's file functions take it: invalid UTF-8 becomes surrogates.
#[cfg(unix)]
pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    OsString::from_vec(bytes.to_vec())
}

/// A name or path as Python's file functions take it.
#[cfg(not(unix))]
pub(crate) fn os_string(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

impl Entry {
    pub(crate) fn new(scan: &Arc<Scan>, node: &Node<'_>, depth: u32) -> Entry {
        Entry { scan: Arc::clone(scan), id: node.id(), depth }
    }

    fn node(&self) -> Node<'_> {
        self.scan.tree.node(self.id).expect("an entry is of its own scan")
    }

    fn facts(&self) -> Option<Facts> {
        self.node().facts()
    }
}

#[pymethods]
impl Entry {
    /// Its name; for a scanned path, the path.
    #[getter]
    fn name(&self) -> OsString {
        os_string(self.node().name())
    }

    /// Its path, which begins with the scanned path as it was given.
    #[getter]
    fn path(&self) -> OsString {
        os_string(&self.node().path())
    }

    /// directory, file, symlink or other.
    #[getter]
    fn kind(&self) -> &'static str {
        kind_name(self.node().kind())
    }

    #[getter]
    fn is_directory(&self) -> bool {
        self.node().kind() == Kind::Directory
    }

    /// Its length in bytes, with everything below it; 0 if it counts at another name of the file.
    #[getter]
    fn apparent_bytes(&self) -> u64 {
        self.node().apparent_bytes()
    }

    /// Its bytes on disk, with everything below it; 0 if they count at another name of the file.
    #[getter]
    fn disk_bytes(&self) -> u64 {
        self.node().disk_bytes()
    }

    /// The number of entries below it.
    #[getter]
    fn entries(&self) -> u64 {
        self.node().entries()
    }

    /// True if its size counts at another name of the same file.
    #[getter]
    fn counted_elsewhere(&self) -> bool {
        self.node().counts_elsewhere()
    }

    /// True if it is a directory that could not be read completely.
    #[getter]
    fn unread(&self) -> bool {
        self.node().is_unread()
    }

    /// True if the entries below it were counted but not kept, because of the limit `memory`.
    #[getter]
    fn summed(&self) -> bool {
        self.node().is_summed()
    }

    /// The time of its last change, in seconds since 1970; None without `facts=True`.
    #[getter]
    fn modified(&self) -> Option<i64> {
        self.facts().map(|facts| facts.modified())
    }

    /// Its type and permissions (`st_mode`); None without `facts=True`.
    #[getter]
    fn mode(&self) -> Option<u16> {
        self.facts().map(|facts| facts.mode())
    }

    /// The number of its owner; None without `facts=True`.
    #[getter]
    fn owner(&self) -> Option<u32> {
        self.facts().map(|facts| facts.owner())
    }

    /// The number of its group; None without `facts=True`.
    #[getter]
    fn group(&self) -> Option<u32> {
        self.facts().map(|facts| facts.group())
    }

    /// The directories in it.
    fn directories(&self) -> Vec<Entry> {
        let entry = |node: Node<'_>| Entry::new(&self.scan, &node, self.depth + 1);
        self.node().directories().map(entry).collect()
    }

    /// The other entries in it; none if the scan was made with `files=False`.
    fn files(&self) -> Vec<Entry> {
        let entry = |node: Node<'_>| Entry::new(&self.scan, &node, self.depth + 1);
        self.node().files().map(entry).collect()
    }

    /// Iterates over it and everything below it, each directory before its entries.
    fn walk(&self) -> Entries {
        Entries { walk: Walk::below(&self.scan, vec![(self.id, self.depth)], true) }
    }

    fn __fspath__(&self) -> OsString {
        self.path()
    }

    fn __repr__(&self) -> String {
        let node = self.node();
        let mut text = String::from("<poach.Entry ");
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{} {:?}, {} bytes on disk>",
            kind_name(node.kind()),
            String::from_utf8_lossy(&node.path()),
            node.disk_bytes()
        );
        text
    }

    fn __eq__(&self, other: &Entry) -> bool {
        Arc::ptr_eq(&self.scan, &other.scan) && self.id == other.id
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        self.node().path().hash(&mut hasher);
        hasher.finish()
    }
}

/// A walk over a finished tree, each directory before its entries. It stores the siblings on the
/// path to the current entry only.
pub(crate) struct Walk {
    pub(crate) scan: Arc<Scan>,
    /// The next is the last.
    waiting: Vec<(NodeId, u32)>,
    files: bool,
}

impl Walk {
    /// A walk over a whole scan.
    pub(crate) fn of(scan: &Arc<Scan>, files: bool) -> Walk {
        let mut roots: Vec<_> = scan.tree.roots().map(|root| (root.id(), 0)).collect();
        roots.reverse();
        Walk::below(scan, roots, files)
    }

    fn below(scan: &Arc<Scan>, waiting: Vec<(NodeId, u32)>, files: bool) -> Walk {
        Walk { scan: Arc::clone(scan), waiting, files }
    }

    /// The next entry and its depth.
    pub(crate) fn step(&mut self) -> Option<(Node<'_>, u32)> {
        loop {
            let (id, depth) = self.waiting.pop()?;
            let node = self.scan.tree.node(id)?;
            let directory = node.kind() == Kind::Directory;
            if directory {
                self.waiting.extend(node.directories().map(|inside| (inside.id(), depth + 1)));
                if self.files {
                    self.waiting.extend(node.files().map(|inside| (inside.id(), depth + 1)));
                }
            }
            // A scanned path may be a file.
            if directory || self.files {
                return Some((node, depth));
            }
        }
    }
}

/// The iterator over the entries of a scan.
#[pyclass(module = "poach")]
pub(crate) struct Entries {
    pub(crate) walk: Walk,
}

#[pymethods]
impl Entries {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> Option<Entry> {
        let scan = Arc::clone(&self.walk.scan);
        let (node, depth) = self.walk.step()?;
        Some(Entry::new(&scan, &node, depth))
    }
}
