//! The rows that a browser shows of one directory: of a finished scan, of a walk that still runs,
//! or of an export that is not read whole.

use std::cmp::{Ordering, Reverse};

use crate::report::{Measure, Order};
use crate::{Kind, Node, NodeId, Scan};

mod find;
mod live;
mod stored;

pub use find::find;
pub use live::{Growing, Live, Part, Sums};
pub use stored::Stored;

/// A row.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own")]
pub struct Row {
    /// The bytes of its name; of a given path, the path; nothing, if it stands for several files.
    pub name: Vec<u8>,
    /// The entry of a finished scan's tree that the row shows.
    pub id: Option<NodeId>,
    /// What it is.
    pub kind: Kind,
    /// By the measure.
    pub value: u64,
    /// How many entries are in it.
    pub entries: u64,
    /// When it was last changed, in seconds since 1970, if that is known.
    pub modified: Option<i64>,
    /// Whether something in it could not be read.
    pub unread: bool,
    /// Whether another name of the same file bears its size.
    pub elsewhere: bool,
    /// Whether it stands for all the files of a directory, as long as the walk runs.
    pub together: bool,
    /// Whether the user chose it. Nothing here sets it.
    pub chosen: bool,
}

impl Default for Row {
    fn default() -> Row {
        Row {
            name: Vec::new(),
            id: None,
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

/// The row of an entry of a finished scan.
pub fn row(node: Node<'_>, measure: Measure) -> Row {
    Row {
        name: node.name().to_vec(),
        id: Some(node.id()),
        kind: node.kind(),
        value: measure.of(&node),
        entries: node.entries(),
        modified: node.facts().map(|facts| facts.modified()),
        unread: node.is_unread(),
        elsewhere: node.counts_elsewhere(),
        ..Row::default()
    }
}

/// The rows of a directory of a finished scan, in no order; without one, those of the given paths.
/// Linear in them.
pub fn rows(scan: &Scan, directory: Option<Node<'_>>, measure: Measure) -> Vec<Row> {
    let row = |node| row(node, measure);
    match directory {
        Some(directory) => directory.directories().chain(directory.files()).map(row).collect(),
        None => scan.tree.roots().map(row).collect(),
    }
}

/// Keeps the rows whose names contain a text, in whatever case.
pub fn search(rows: &mut Vec<Row>, text: &str) {
    let text = text.to_lowercase();
    if !text.is_empty() {
        rows.retain(|row| String::from_utf8_lossy(&row.name).to_lowercase().contains(&text));
    }
}

/// Puts rows in order: the largest, the one with the most entries or the newest first, and by name
/// where they are equal. Of equal names the order stays.
pub fn sort(rows: &mut [Row], order: Order, reverse: bool) {
    rows.sort_by(|a, b| {
        let by = match order {
            Order::Name => Ordering::Equal,
            Order::Entries => b.entries.cmp(&a.entries),
            Order::Time => Reverse(a.modified).cmp(&Reverse(b.modified)),
            Order::Size => b.value.cmp(&a.value),
        };
        by.then_with(|| a.name.cmp(&b.name))
    });
    if reverse {
        rows.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: u64, entries: u64, modified: Option<i64>) -> Row {
        Row { name: name.into(), value, entries, modified, ..Row::default() }
    }

    fn names(rows: &[Row]) -> Vec<&str> {
        rows.iter().map(|row| std::str::from_utf8(&row.name).expect("text")).collect()
    }

    #[test]
    fn rows_are_in_the_order_that_is_asked_for_and_by_name_where_that_is_equal() {
        let mut rows = [row("b", 3, 1, None), row("c", 5, 1, Some(-1)), row("a", 3, 2, Some(7))];
        for (order, expected) in [
            (Order::Name, ["a", "b", "c"]),
            (Order::Size, ["c", "a", "b"]),
            (Order::Entries, ["a", "b", "c"]),
            (Order::Time, ["a", "c", "b"]),
        ] {
            sort(&mut rows, order, false);
            assert_eq!(names(&rows), expected, "{order:?}");
            sort(&mut rows, order, true);
            assert_eq!(names(&rows), expected.into_iter().rev().collect::<Vec<_>>(), "{order:?}");
        }
    }

    #[test]
    fn a_search_keeps_what_contains_its_text_in_whatever_case() {
        let all = [row("Notes", 1, 0, None), row("ÉTÉ", 1, 0, None), row("x", 1, 0, None)];
        for (text, expected) in
            [("", &["Notes", "ÉTÉ", "x"][..]), ("NOTE", &["Notes"]), ("té", &["ÉTÉ"]), ("y", &[])]
        {
            let mut rows = all.to_vec();
            search(&mut rows, text);
            assert_eq!(names(&rows), expected, "{text:?}");
        }
    }
}
