//! A row of the list, and what can be done to it.

use poach_scan::Kind;

/// What is done to what is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    Trash,
}

/// A row of the list.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub(super) struct Row {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// By the measure.
    pub(super) value: u64,
    pub(super) entries: u64,
    pub(super) modified: Option<i64>,
    pub(super) unread: bool,
    pub(super) elsewhere: bool,
    /// Whether it stands for all the files of a directory, as long as the walk runs.
    pub(super) together: bool,
    /// Whether it was chosen to be deleted or moved.
    pub(super) chosen: bool,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            name: Vec::new(),
            kind: Kind::File,
            value: 0,
            entries: 0,
            modified: None,
            unread: false,
            elsewhere: false,
            together: false,
            chosen: false,
        }
    }
}
