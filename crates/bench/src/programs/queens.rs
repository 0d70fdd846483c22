//! The number of ways to place n queens on a board of n by n so that none attacks another.
//!
//! Source: Lace, section 4.1 (queens 15 there): a task for every correct board, no cut-off. The
//! boards after one row are divided by halves, so n children take n - 1 forks.

use anyhow::{Result, ensure};
use poach_simulate::forks::{End, Strand, Tree, totals};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};
use crate::programs::Form;
use crate::suites::simulate::Play;

/// The known numbers of solutions, for boards of 0 to 16 (OEIS A000170).
const SOLUTIONS: [u64; 17] =
    [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2_680, 14_200, 73_712, 365_596, 2_279_184, 14_772_512];

/// A board: which columns and diagonals the queens so far attack, as seen from the next row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Board {
    columns: u32,
    left: u32,
    right: u32,
    /// As many ones as there are columns.
    all: u32,
}

impl Board {
    /// The board of n by n before its first row.
    pub(crate) fn empty(n: usize) -> Board {
        Board { columns: 0, left: 0, right: 0, all: (1 << n) - 1 }
    }

    pub(crate) fn place(self, column: u32) -> Board {
        Board {
            columns: self.columns | column,
            left: (self.left | column) << 1,
            right: (self.right | column) >> 1,
            all: self.all,
        }
    }

    pub(crate) fn free(self) -> u32 {
        self.all & !(self.columns | self.left | self.right)
    }
}

/// The solutions that have a queen on one of `choices` in the next row.
struct Place {
    board: Board,
    choices: u32,
}

impl Task for Place {
    type Output = u64;

    fn run<F: Fork>(self, mut fork: F) -> u64 {
        let Place { mut board, mut choices } = self;
        // A single choice is a row further down, not a fork.
        while choices.is_power_of_two() {
            board = board.place(choices);
            if board.columns == board.all {
                return 1;
            }
            choices = board.free();
        }
        if choices == 0 {
            return 0;
        }
        let low = lower_half(choices);
        let (a, b) =
            fork.join(Place { board, choices: low }, Place { board, choices: choices & !low });
        a + b
    }
}

/// The lower half of the ones of a word with at least two.
pub(crate) fn lower_half(ones: u32) -> u32 {
    let mut rest = ones;
    for _ in 0..ones.count_ones() / 2 {
        rest &= rest - 1;
    }
    ones & !rest
}

pub(crate) struct Queens {
    pub(crate) n: usize,
    result: Option<u64>,
}

impl Program for Queens {
    const NAME: &'static str = "queens";

    fn new(size: Size) -> Self {
        Queens { n: size.pick(6, 12, 14, 15), result: None }
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn run(&mut self, system: &impl System) {
        let board = Board::empty(self.n);
        self.result = Some(system.run(Place { board, choices: board.free() }));
    }

    fn tree(&self, seconds: f64) -> Option<Box<dyn Play>> {
        let tree = |unit| QueensTree { n: self.n, form: Form::Halves, unit };
        Some(Box::new(tree(seconds * 1e12 / tree(0.0).boards() as f64)))
    }

    fn check(&self) -> Result<()> {
        let expected = SOLUTIONS[self.n];
        ensure!(
            self.result == Some(expected),
            "{} queens have {expected} solutions, not {:?}",
            self.n,
            self.result
        );
        Ok(())
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
        let low = lower_half(choices);
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
    use super::*;
    use crate::fork::Sequential;

    #[test]
    fn the_known_numbers() {
        for (n, expected) in SOLUTIONS.iter().enumerate().take(10).skip(1) {
            let mut queens = Queens { n, result: None };
            queens.run(&Sequential);
            assert_eq!(queens.result, Some(*expected), "{n} queens");
        }
    }

    #[test]
    fn halves_of_choices() {
        assert_eq!(lower_half(0b1011), 0b0001);
        assert_eq!(lower_half(0b1111_0000), 0b0011_0000);
    }
}
