//! What can be done to the entries that the user marked or chose.

/// What is done to what is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    Trash,
}
