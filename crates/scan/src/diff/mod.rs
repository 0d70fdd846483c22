//! Two scans compared: entries that have grown, shrunk, come and gone.
//!
//! Entries are matched by name, directory by directory, from the given paths down. If each scan has
//! one given path these match whatever they are called. An entry that has become something else (a
//! file that is a directory now) is gone, and a new one has come. A symbolic link, a pipe and a
//! device are not told apart, because ncdu's exports do not. What is in a directory that is new or
//! gone is not listed by itself: the directory has its size and the number of its entries.
//!
//! A file with several names counts at one of them, as in a scan: if that name changes, its bytes
//! move from one path to another.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::vec;

use crate::report::Measure;
use crate::{Kind, Node, Scan};

mod json;
mod text;

pub use json::json;
pub use text::text;

/// What has become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is larger, by the measure.
    Grown,
    /// It is smaller, by the measure.
    Shrunk,
    /// It was not there before.
    New,
    /// It is not there any more.
    Gone,
    /// It is as large as it was, by the measure, and differs in another, or in what is in it.
    Changed,
}

/// An entry of which something has changed.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'s> {
    /// What it was, unless it is new.
    pub old: Option<Node<'s>>,
    /// What it is, unless it is gone.
    pub new: Option<Node<'s>>,
    /// What has become of it.
    pub change: Change,
    /// By how much, in the measure.
    pub delta: i128,
    /// The deltas of all that is in it and of itself, each without its sign.
    pub turnover: u64,
    /// The given paths are at 0.
    pub depth: usize,
    /// The index of the difference of the directory that it is in.
    pub parent: Option<usize>,
}

impl<'s> Difference<'s> {
    /// The entry as it is, or as it was if it is gone.
    ///
    /// # Panics
    ///
    /// If it is in neither, as no difference is that [`diff`](diff()) has found.
    pub fn node(&self) -> Node<'s> {
        self.new.or(self.old).expect("it is in one of the two")
    }
}

/// How many entries have changed in one way, and by how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sum {
    /// Entries.
    pub entries: u64,
    /// Their sizes, or by how much they have grown or shrunk; 0 if the measure is their number.
    pub amount: u64,
}

/// What two scans differ in.
#[derive(Debug)]
pub struct Diff<'s> {
    /// The scan before.
    pub old: &'s Scan,
    /// The scan after.
    pub new: &'s Scan,
    /// What entries are compared by.
    pub measure: Measure,
    /// Each directory before what is in it, siblings by name.
    pub differences: Vec<Difference<'s>>,
    /// Entries that have come, with all that is in them.
    pub come: Sum,
    /// Entries that have gone, with all that was in them.
    pub gone: Sum,
    /// What is no directory and has grown.
    pub grown: Sum,
    /// What is no directory and has shrunk.
    pub shrunk: Sum,
}

/// Compares two scans. Both are best made with [`Options::keep_files`](crate::Options::keep_files).
///
/// Time: n log n in the entries of a directory. Memory: what differs, and what is beside the way
/// down to one entry. Nothing recurses.
pub fn diff<'s>(old: &'s Scan, new: &'s Scan, measure: Measure) -> Diff<'s> {
    let (differences, sum) = (Vec::new(), Sum::default());
    let mut diff =
        Diff { old, new, measure, differences, come: sum, gone: sum, grown: sum, shrunk: sum };
    let mut levels = vec![Level { pairs: roots(old, new), at: None, delta: 0, turnover: 0 }];
    while let Some(depth) = levels.len().checked_sub(1) {
        let level = &mut levels[depth];
        let Some((old, new)) = level.pairs.next() else {
            if let Some(ended) = levels.pop() {
                diff.end(&ended, levels.last_mut());
            }
            continue;
        };
        let at = diff.differences.len();
        let (before, after) = (value(measure, old), value(measure, new));
        let delta = i128::from(after) - i128::from(before);
        let change = match (&old, &new) {
            (None, _) => Change::New,
            (_, None) => Change::Gone,
            _ if delta > 0 => Change::Grown,
            _ if delta < 0 => Change::Shrunk,
            _ => Change::Changed,
        };
        let turnover = before.abs_diff(after);
        let difference = Difference { old, new, change, delta, turnover, depth, parent: None };
        match (old, new) {
            (Some(old), Some(new)) if new.kind() == Kind::Directory => {
                diff.differences.push(difference);
                let pairs = Pairs::new(inside(&old), inside(&new));
                levels.push(Level { pairs, at: Some(at), delta: 0, turnover: 0 });
            }
            (Some(old), Some(new)) if !differ(&old, &new) => {}
            _ => {
                level.delta += delta;
                level.turnover = level.turnover.saturating_add(turnover);
                diff.differences.push(Difference { parent: level.at, ..difference });
                diff.count(&difference);
            }
        }
    }
    diff
}

impl<'s> Diff<'s> {
    /// Ends a directory: it stays if it, or anything in it, has changed.
    fn end(&mut self, ended: &Level<'s>, above: Option<&mut Level<'s>>) {
        let (Some(at), Some(above)) = (ended.at, above) else { return };
        let is_last = at + 1 == self.differences.len();
        let directory = &mut self.differences[at];
        let same = |old: &Node<'_>, new: &Node<'_>| !differ(old, new);
        if is_last && directory.old.zip(directory.new).is_some_and(|(old, new)| same(&old, &new)) {
            self.differences.pop();
            return;
        }
        directory.parent = above.at;
        let own = u64::try_from((directory.delta - ended.delta).unsigned_abs()).unwrap_or(u64::MAX);
        directory.turnover = ended.turnover.saturating_add(own);
        above.delta += directory.delta;
        above.turnover = above.turnover.saturating_add(directory.turnover);
    }

    fn count(&mut self, difference: &Difference<'_>) {
        let sum = match difference.change {
            Change::New => &mut self.come,
            Change::Gone => &mut self.gone,
            Change::Grown => &mut self.grown,
            Change::Shrunk => &mut self.shrunk,
            Change::Changed => return,
        };
        sum.entries += match difference.change {
            Change::New | Change::Gone => difference.node().entries() + 1,
            _ => 1,
        };
        if self.measure != Measure::Entries {
            sum.amount = sum.amount.saturating_add(difference.turnover);
        }
    }

    /// The largest differences and the directories that they are in, in the order of the whole;
    /// all, if no limit is said. Something that is in another never stands without it.
    fn largest(&self, depth: Option<usize>, top: Option<usize>) -> Vec<&Difference<'s>> {
        let shown = |it: &Difference<'_>| depth.is_none_or(|depth| it.depth <= depth);
        let mut chosen: Vec<usize> =
            (0..self.differences.len()).filter(|&at| shown(&self.differences[at])).collect();
        // A directory's turnover is at least that of what is in it, and it stands before that.
        chosen.sort_by_key(|&at| std::cmp::Reverse(self.differences[at].turnover));
        chosen.truncate(top.unwrap_or(usize::MAX));
        chosen.sort_unstable();
        chosen.into_iter().map(|at| &self.differences[at]).collect()
    }
}

/// A directory that is in both scans, and what is left to compare in it.
struct Level<'s> {
    pairs: Pairs<'s>,
    /// The index of its difference; none for what holds the given paths.
    at: Option<usize>,
    /// Sums of what differs in it.
    delta: i128,
    turnover: u64,
}

/// Two sorted lists of entries, merged.
struct Pairs<'s> {
    old: Peekable<vec::IntoIter<Node<'s>>>,
    new: Peekable<vec::IntoIter<Node<'s>>>,
    /// Whether the names are not looked at.
    any: bool,
}

impl<'s> Pairs<'s> {
    fn new(mut old: Vec<Node<'s>>, mut new: Vec<Node<'s>>) -> Pairs<'s> {
        old.sort_unstable_by_key(key);
        new.sort_unstable_by_key(key);
        let (old, new) = (old.into_iter().peekable(), new.into_iter().peekable());
        Pairs { old, new, any: false }
    }

    fn next(&mut self) -> Option<(Option<Node<'s>>, Option<Node<'s>>)> {
        let order = match (self.old.peek(), self.new.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) if self.any => kind(old).cmp(&kind(new)),
            (Some(old), Some(new)) => key(old).cmp(&key(new)),
        };
        let old = order.is_le().then(|| self.old.next()).flatten();
        let new = order.is_ge().then(|| self.new.next()).flatten();
        Some((old, new))
    }
}

fn key<'s>(node: &Node<'s>) -> (&'s [u8], Kind) {
    (node.name(), kind(node))
}

/// Its kind, as far as each format tells it: ncdu's knows no symbolic links.
fn kind(node: &Node<'_>) -> Kind {
    match node.kind() {
        Kind::Symlink => Kind::Other,
        kind => kind,
    }
}

fn roots<'s>(old: &'s Scan, new: &'s Scan) -> Pairs<'s> {
    let [old, new] = [old, new].map(|scan| scan.tree.roots().collect::<Vec<_>>());
    let any = old.len() == 1 && new.len() == 1;
    Pairs { any, ..Pairs::new(old, new) }
}

fn inside<'s>(directory: &Node<'s>) -> Vec<Node<'s>> {
    directory.directories().chain(directory.files()).collect()
}

fn value(measure: Measure, node: Option<Node<'_>>) -> u64 {
    // The entry itself is one, as well: so a file that is new counts for something.
    let itself = u64::from(measure == Measure::Entries);
    node.map_or(0, |node| measure.of(&node) + itself)
}

fn differ(old: &Node<'_>, new: &Node<'_>) -> bool {
    (old.apparent_bytes(), old.disk_bytes(), old.entries())
        != (new.apparent_bytes(), new.disk_bytes(), new.entries())
}
