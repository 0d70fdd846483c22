//! What a walk tells its listener of each entry: so one walk feeds several reports and documents.

use crate::id::Id;
use crate::sys::Meta;

/// Is told of each entry that counts, once.
///
/// Each worker tells a part of its own, so nothing is shared while the walk runs. Names of files
/// that have several (hard links) are told last, by the calling thread, because only then is it
/// known which of them bears the size.
pub trait Visitor: Sync {
    /// What one worker has collected.
    type Part: Send;

    /// A part without anything in it.
    fn part(&self) -> Self::Part;

    /// Takes an entry. It is called in the midst of the walk.
    fn entry(&self, part: &mut Self::Part, seen: &Seen<'_>);
}

/// An entry, as it is told to a [`Visitor`].
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its name; of a given path, the path.
    pub name: &'a [u8],
    /// What the system knows of it.
    pub meta: &'a Meta,
    /// The directory that it is in.
    pub within: Within,
    /// How deep it lies; the given paths are level 0.
    pub depth: u32,
    /// Whether its size counts: not if another name of the same file bears it.
    pub bears: bool,
    /// Of a directory, what its entries have as [`within`](Self::within); of others, nothing.
    pub own: Option<Within>,
}

impl Seen<'_> {
    /// Its length, or 0 if another name bears it.
    pub fn apparent(&self) -> u64 {
        if self.bears { self.meta.apparent } else { 0 }
    }

    /// What it takes on disk, or 0 if another name bears it.
    pub fn disk(&self) -> u64 {
        if self.bears { self.meta.disk } else { 0 }
    }
}

/// A directory of the walk, or nothing above a given path.
/// [`Tree::path_within`](crate::Tree::path_within) says where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Within(pub(crate) Id);

/// A visitor that listens to nothing.
impl Visitor for () {
    type Part = ();

    #[inline]
    fn part(&self) {}

    #[inline]
    fn entry(&self, (): &mut (), _: &Seen<'_>) {}
}
