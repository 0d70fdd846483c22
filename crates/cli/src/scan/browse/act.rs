//! What can be done to the entries that the user marked or chose.

/// The actions on marked entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    Trash,
}
