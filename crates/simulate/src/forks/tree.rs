//! A program's task tree: strands of work, forks between them.
//!
//! A *strand* is what one worker does without a fork or a join in between. It ends the task it is
//! part of, or forks: then its two halves follow, and, once both are done, the strand after the
//! join. A tree is anything that can say what a strand does and how it ends, so it need not be
//! stored. The trees of Fibonacci numbers, of an unbalanced tree search from a seed and of a
//! chessboard take a few bytes (they stand beside their programs), however many strands they have.
//! Other programs are run once and written down ([`Stored`]).

use std::rc::Rc;

/// What is to be played. The same task always gives the same strand.
pub trait Tree {
    /// A strand that has not begun.
    type Task: Copy;

    /// The first strand of all.
    fn root(&self) -> Self::Task;

    /// What this strand comes to.
    fn strand(&self, task: Self::Task) -> Strand<Self::Task>;
}

/// What a worker does between two forks or joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strand<T> {
    /// How long it takes, in picoseconds, without the forks that are part of it.
    pub work: u64,
    /// Forks that are part of it, for what lies below them is not looked at more closely. They are
    /// never stolen and cost a push and a pop each.
    pub inner: u64,
    /// How it ends.
    pub end: End<T>,
}

/// How a strand ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<T> {
    /// The task is done.
    Done,
    /// The second half is pushed and the first one is begun; `after` follows when both are done.
    Fork {
        /// The half that is begun.
        first: T,
        /// The half that is pushed.
        second: T,
        /// The strand after the join.
        after: T,
    },
}

/// What a tree comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Forks, with those inside of strands.
    pub forks: u64,
    /// Forks that can be stolen from.
    pub outer: u64,
    /// All strands' work, in picoseconds.
    pub work: u64,
    /// The work on the longest way from the first strand to the last, in picoseconds: no number of
    /// workers is faster.
    pub span: u64,
    /// The most forks that are under way at once.
    pub depth: u64,
}

/// Goes through the whole tree once, with a stack of its own.
pub fn totals<T: Tree>(tree: &T) -> Totals {
    enum Below<T> {
        First { second: T, after: T, begun: u64 },
        Second { after: T, first: u64 },
    }
    let mut totals = Totals::default();
    let mut below: Vec<Below<T::Task>> = Vec::new();
    let mut next = tree.root();
    // How far the longest way to where the walk stands is.
    let mut span = 0;
    loop {
        let strand = tree.strand(next);
        totals.work += strand.work;
        totals.forks += strand.inner;
        span += strand.work;
        match strand.end {
            End::Fork { first, second, after } => {
                totals.forks += 1;
                totals.outer += 1;
                below.push(Below::First { second, after, begun: span });
                totals.depth = totals.depth.max(below.len() as u64);
                next = first;
            }
            End::Done => match below.pop() {
                None => {
                    totals.span = span;
                    return totals;
                }
                Some(Below::First { second, after, begun }) => {
                    below.push(Below::Second { after, first: span });
                    span = begun;
                    next = second;
                }
                Some(Below::Second { after, first }) => {
                    span = span.max(first);
                    next = after;
                }
            },
        }
    }
}

/// A tree that is stored, strand by strand. First comes the root's first strand. Then three follow
/// for each fork, in the order of the forks: the first half's first strand, the second half's first
/// strand, and the strand after the join.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// The strands, in that order.
    pub strands: Rc<[StoredStrand]>,
    /// Picoseconds in a unit of the strands' weights.
    pub unit: f64,
}

/// Twelve bytes a strand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredStrand {
    /// Its share of the whole program's time.
    pub weight: f32,
    /// Forks that are part of it.
    pub inner: u32,
    /// The number of the fork that ends it, or [`NO_FORK`].
    pub fork: u32,
}

/// The fork of a strand that ends its task.
pub const NO_FORK: u32 = u32::MAX;

impl Tree for Stored {
    type Task = u32;

    fn root(&self) -> u32 {
        0
    }

    fn strand(&self, task: u32) -> Strand<u32> {
        let StoredStrand { weight, inner, fork } = self.strands[task as usize];
        let end = if fork == NO_FORK {
            End::Done
        } else {
            let base = 3 * fork;
            End::Fork { first: base + 1, second: base + 2, after: base + 3 }
        };
        Strand { work: (f64::from(weight) * self.unit) as u64, inner: inner.into(), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree by hand: the work of a strand in picoseconds, and the fork that ends it.
    fn by_hand(strands: &[(u32, Option<u32>)]) -> Stored {
        let strand = |(work, fork): &(u32, Option<u32>)| StoredStrand {
            weight: *work as f32,
            inner: 0,
            fork: fork.unwrap_or(NO_FORK),
        };
        Stored { strands: strands.iter().map(strand).collect(), unit: 1.0 }
    }

    #[test]
    fn the_totals_of_a_tree_by_hand() {
        // 10, then 100 (of 20, halves 30 and 40, 50) beside 60, then 5.
        let tree = by_hand(&[
            (10, Some(0)),
            (20, Some(1)),
            (60, None),
            (5, None),
            (30, None),
            (40, None),
            (50, None),
        ]);
        let totals = totals(&tree);
        assert_eq!((totals.forks, totals.outer, totals.depth), (2, 2, 2));
        assert_eq!(totals.work, 215);
        assert_eq!(totals.span, 10 + 20 + 40 + 50 + 5);
    }

    #[test]
    fn a_strand_takes_twelve_bytes() {
        assert_eq!(size_of::<StoredStrand>(), 12);
    }
}
