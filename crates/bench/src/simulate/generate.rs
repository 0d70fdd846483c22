//! Trees that are made while they are replayed: Fibonacci numbers, queens, and unbalanced trees.
//!
//! Each in the form that this crate's program has (children are divided by halves) or in that of
//! Lace's program: every child is spawned, then all are waited for, the last one first. In terms of forks
//! of two that is: the first child is pushed, the other half of the fork is the rest.

use std::ops::Range;

use super::tree::{End, Strand, Tree, totals};
use crate::queens::{self, Board};
use crate::uts::{Node, Shape};

/// How a task divides its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Halves,
    Lace,
}

/// Fibonacci: a strand is a third of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FibTree {
    pub(crate) n: u32,
    /// Calls with smaller numbers are one strand.
    pub(crate) grain: u32,
    /// Picoseconds a strand.
    pub(crate) unit: f64,
}

/// A call with this number, or the strand after its join.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FibTask {
    Call(u32),
    After,
}

impl FibTree {
    /// The forks of a call.
    pub(crate) fn forks(n: u32) -> u64 {
        let (mut a, mut b) = (0u64, 1);
        for _ in 0..=n {
            (a, b) = (b, a + b);
        }
        a - 1
    }

    pub(crate) fn strands(&self) -> f64 {
        3.0 * Self::forks(self.n) as f64 + 1.0
    }
}

impl Tree for FibTree {
    type Task = FibTask;

    fn root(&self) -> FibTask {
        FibTask::Call(self.n)
    }

    fn strand(&self, task: FibTask) -> Strand<FibTask> {
        let strand = |inner: u64, end| Strand {
            work: ((3.0 * inner as f64 + 1.0) * self.unit) as u64,
            inner,
            end,
        };
        match task {
            FibTask::Call(n) if n >= 2 && n >= self.grain => {
                let (first, second) = (FibTask::Call(n - 1), FibTask::Call(n - 2));
                strand(0, End::Fork { first, second, after: FibTask::After })
            }
            FibTask::Call(n) => strand(Self::forks(n), End::Done),
            FibTask::After => strand(0, End::Done),
        }
    }
}

/// An unbalanced tree: all time goes into hashing, a node's state each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UtsTree {
    pub(crate) shape: Shape,
    pub(crate) seed: u32,
    pub(crate) form: Form,
    /// Picoseconds a node.
    pub(crate) unit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum UtsTask {
    /// All that is below this node.
    Below(Node),
    /// These children of the node, and what is below them.
    Children { parent: Node, start: u16, end: u16 },
    /// The strand after a join.
    After,
}

impl UtsTree {
    fn children(&self, parent: Node) -> Range<u16> {
        0..parent.children(self.shape) as u16
    }

    fn made(&self, nodes: u32, end: End<UtsTask>) -> Strand<UtsTask> {
        Strand { work: (f64::from(nodes) * self.unit) as u64, inner: 0, end }
    }

    /// As this crate's program: the task of a child hashes it, and an only child is no fork.
    fn halves(&self, mut parent: Node, mut range: Range<u16>, mut nodes: u32) -> Strand<UtsTask> {
        while range.len() == 1 {
            parent = parent.child(range.start.into());
            nodes += 1;
            range = self.children(parent);
        }
        if range.is_empty() {
            return self.made(nodes, End::Done);
        }
        let Range { start, end } = range;
        let middle = start + (end - start) / 2;
        let part = |start, end| UtsTask::Children { parent, start, end };
        let (first, second) = (part(start, middle), part(middle, end));
        self.made(nodes, End::Fork { first, second, after: UtsTask::After })
    }

    /// As Lace's: the parent hashes each child and spawns it.
    fn spawns(&self, parent: Node, range: Range<u16>) -> Strand<UtsTask> {
        let Range { start, end } = range;
        if start == end {
            return self.made(0, End::Done);
        }
        let second = UtsTask::Below(parent.child(start.into()));
        let first = UtsTask::Children { parent, start: start + 1, end };
        self.made(1, End::Fork { first, second, after: UtsTask::After })
    }
}

impl Tree for UtsTree {
    type Task = UtsTask;

    fn root(&self) -> UtsTask {
        UtsTask::Below(Node::root(self.seed))
    }

    fn strand(&self, task: UtsTask) -> Strand<UtsTask> {
        let (parent, range) = match task {
            UtsTask::After => return self.made(0, End::Done),
            UtsTask::Below(node) => (node, self.children(node)),
            UtsTask::Children { parent, start, end } => (parent, start..end),
        };
        match self.form {
            Form::Halves => self.halves(parent, range, 0),
            Form::Lace => self.spawns(parent, range),
        }
    }
}

/// Queens on a board: all time goes into boards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueensTree {
    pub(crate) n: usize,
    pub(crate) form: Form,
    /// Picoseconds a board.
    pub(crate) unit: f64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum QueensTask {
    /// A correct board.
    Below(Board),
    /// A queen in the next row on one of these columns.
    Place { board: Board, choices: u32 },
    /// The strand after a join.
    After,
}

impl QueensTree {
    /// How many boards there are, by going through the tree.
    pub(crate) fn boards(&self) -> u64 {
        totals(&QueensTree { unit: 1.0, ..*self }).work
    }

    fn made(&self, boards: u32, end: End<QueensTask>) -> Strand<QueensTask> {
        Strand { work: (f64::from(boards) * self.unit) as u64, inner: 0, end }
    }

    fn halves(&self, mut board: Board, mut choices: u32) -> Strand<QueensTask> {
        let mut boards = 1;
        while choices.is_power_of_two() {
            board = board.place(choices);
            boards += 1;
            choices = board.free();
        }
        if choices == 0 {
            return self.made(boards, End::Done);
        }
        let low = queens::lower_half(choices);
        let part = |choices| QueensTask::Place { board, choices };
        let (first, second) = (part(low), part(choices & !low));
        self.made(boards, End::Fork { first, second, after: QueensTask::After })
    }

    fn spawns(&self, boards: u32, board: Board, choices: u32) -> Strand<QueensTask> {
        if choices == 0 {
            return self.made(boards, End::Done);
        }
        let column = choices & choices.wrapping_neg();
        let second = QueensTask::Below(board.place(column));
        let first = QueensTask::Place { board, choices: choices & !column };
        self.made(boards, End::Fork { first, second, after: QueensTask::After })
    }
}

impl Tree for QueensTree {
    type Task = QueensTask;

    fn root(&self) -> QueensTask {
        QueensTask::Below(Board::empty(self.n))
    }

    fn strand(&self, task: QueensTask) -> Strand<QueensTask> {
        match (self.form, task) {
            (_, QueensTask::After) => self.made(0, End::Done),
            (Form::Halves, QueensTask::Below(board)) => self.halves(board, board.free()),
            (Form::Halves, QueensTask::Place { board, choices }) => self.halves(board, choices),
            // The loop over the columns is the board's own strand.
            (Form::Lace, QueensTask::Below(board)) => self.spawns(1, board, board.free()),
            (Form::Lace, QueensTask::Place { board, choices }) => self.spawns(0, board, choices),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::record;
    use super::*;
    use crate::Size;
    use crate::fib::Fib;
    use crate::fork::Program as _;
    use crate::queens::Queens;
    use crate::uts::{BINOMIAL_3L, GEOMETRIC_1, GEOMETRIC_2L, Uts};

    /// Both trees have the same forks in the same places.
    fn same_shape<A: Tree, B: Tree>(left: &A, right: &B) {
        let mut waiting = vec![(left.root(), right.root())];
        while let Some((one, other)) = waiting.pop() {
            match (left.strand(one).end, right.strand(other).end) {
                (End::Done, End::Done) => {}
                (
                    End::Fork { first, second, after },
                    End::Fork { first: first2, second: second2, after: after2 },
                ) => waiting.extend([(first, first2), (second, second2), (after, after2)]),
                _ => panic!("one forks, the other does not"),
            }
        }
    }

    #[test]
    fn what_is_generated_is_what_the_programs_do() {
        fn uts<const KIND: usize>() {
            let mut uts = Uts::<KIND>::new(Size::Tiny);
            let (shape, seed, _) = uts.parameters();
            let tree = UtsTree { shape, seed, form: Form::Halves, unit: 1.0 };
            same_shape(&record(&mut uts, 1.0, usize::MAX).unwrap(), &tree);
        }
        let whole = usize::MAX;
        let mut fib = Fib::new(Size::Tiny);
        let tree = FibTree { n: 16, grain: 2, unit: 1.0 };
        same_shape(&record(&mut fib, 1.0, whole).unwrap(), &tree);
        let mut queens = Queens::new(Size::Tiny);
        let tree = QueensTree { n: 6, form: Form::Halves, unit: 1.0 };
        same_shape(&record(&mut queens, 1.0, whole).unwrap(), &tree);
        uts::<GEOMETRIC_1>();
        uts::<GEOMETRIC_2L>();
        uts::<BINOMIAL_3L>();
    }

    #[test]
    #[should_panic(expected = "one forks, the other does not")]
    fn another_tree_is_not_the_same() {
        let mut fib = Fib::new(Size::Tiny);
        let tree = FibTree { n: 17, grain: 2, unit: 1.0 };
        same_shape(&record(&mut fib, 1.0, usize::MAX).unwrap(), &tree);
    }

    #[test]
    fn a_grain_hides_forks_and_loses_none() {
        let whole = totals(&FibTree { n: 20, grain: 2, unit: 100.0 });
        let coarse = totals(&FibTree { n: 20, grain: 12, unit: 100.0 });
        assert_eq!(whole.forks, FibTree::forks(20));
        assert_eq!((coarse.forks, coarse.work), (whole.forks, whole.work));
        assert!(coarse.outer < whole.outer / 50);
    }

    #[test]
    fn lace_spawns_every_node_but_the_root() {
        for kind in 0..3 {
            let (shape, seed, nodes) = match kind {
                0 => Uts::<GEOMETRIC_1>::new(Size::Tiny).parameters(),
                1 => Uts::<GEOMETRIC_2L>::new(Size::Tiny).parameters(),
                _ => Uts::<BINOMIAL_3L>::new(Size::Tiny).parameters(),
            };
            let lace = totals(&UtsTree { shape, seed, form: Form::Lace, unit: 1000.0 });
            assert_eq!((lace.outer + 1, lace.work), (nodes, (nodes - 1) * 1000));
            let ours = totals(&UtsTree { shape, seed, form: Form::Halves, unit: 1000.0 });
            assert_eq!(ours.work, lace.work);
        }
        let lace = totals(&QueensTree { n: 6, form: Form::Lace, unit: 1000.0 });
        assert_eq!((lace.outer + 1) * 1000, lace.work);
    }
}
