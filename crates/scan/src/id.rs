//! Where an entry of a tree is kept.

/// Where an entry or a listing lies: the arena in the upper 16 bits, the index in the lower 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id(u64);

impl Id {
    /// No entry: the parent of a root.
    pub(crate) const NONE: Id = Id(u64::MAX);

    #[inline]
    pub(crate) fn new(arena: u16, index: usize) -> Id {
        Id(u64::from(arena) << 48 | index as u64)
    }

    #[inline]
    pub(crate) fn arena(self) -> usize {
        (self.0 >> 48) as usize
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        (self.0 & ((1 << 48) - 1)) as usize
    }
}
