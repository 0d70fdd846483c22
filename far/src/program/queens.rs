//! `poach-far n-queens`: in how many ways N queens stand on a board of N by N so that none attacks
//! another.

use poach_far::{Call, Error, World, join, sum};
use serde::{Deserialize, Serialize};

use super::{Report, counted};

/// In how many ways N queens stand on a board of N by N so that none attacks another.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many queens.
    #[arg(default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=24))]
    n: u32,
    /// By calls that wait for both halves of a row's columns.
    #[arg(long)]
    by_join: bool,
}

/// The known numbers, for boards of 1 to 18 (OEIS A000170).
const SOLUTIONS: [u64; 18] = [
    1,
    0,
    0,
    2,
    10,
    4,
    40,
    92,
    352,
    724,
    2_680,
    14_200,
    73_712,
    365_596,
    2_279_184,
    14_772_512,
    95_815_104,
    666_090_624,
];

/// Rows below which a task goes on by itself.
const LEAF: u32 = 5;

/// The columns and diagonals that the queens so far attack, as seen from the next row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Board {
    columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    fn free(self, all: u32) -> u32 {
        all & !(self.columns | self.left | self.right)
    }

    fn next(self, all: u32) -> impl Iterator<Item = Board> {
        self.with(self.free(all))
    }

    /// The boards with one more queen, in one of these columns each.
    fn with(self, mut free: u32) -> impl Iterator<Item = Board> {
        std::iter::from_fn(move || {
            let column = free & free.wrapping_neg();
            free &= !column;
            (column != 0).then_some(Board {
                columns: self.columns | column,
                left: (self.left | column) << 1,
                right: (self.right | column) >> 1,
            })
        })
    }

    fn solutions(self, all: u32) -> u64 {
        if self.columns == all { 1 } else { self.next(all).map(|board| board.solutions(all)).sum() }
    }
}

/// The solutions with a queen of the next row in one of these columns.
fn by_joins(
    (board, columns): (Board, u32),
    all: u32,
    call: &mut Call<'_, (Board, u32), u64>,
) -> u64 {
    if columns.count_ones() > 1 {
        // The lower half of the columns, and the others.
        let mut low = columns;
        for _ in 0..columns.count_ones() / 2 {
            low &= low - 1;
        }
        let (a, b) = join(call, (board, columns & !low), (board, low));
        return a + b;
    }
    let Some(next) = board.with(columns).next() else { return 0 };
    if all.count_ones() - next.columns.count_ones() <= LEAF {
        next.solutions(all)
    } else {
        by_joins((next, next.free(all)), all, call)
    }
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let n = arguments.n;
    let all = (1 << n) - 1;
    let empty = Board { columns: 0, left: 0, right: 0 };
    let expected = SOLUTIONS.get(n as usize - 1).copied();
    if arguments.by_join {
        let outcome = world.call((empty, all), move |half, call| by_joins(half, all, call))?;
        return Ok(
            outcome.map(|outcome| counted(world, &outcome, "solutions", outcome.result, expected))
        );
    }
    let seed = (world.rank() == 0).then_some(empty);
    let outcome = world.run(seed, sum::<u64>(), move |board: Board, context| {
        if n - board.columns.count_ones() <= LEAF {
            *context.result() += board.solutions(all);
        } else {
            board.next(all).for_each(|next| context.push(next));
        }
    })?;
    Ok(outcome.map(|outcome| counted(world, &outcome, "solutions", outcome.result, expected)))
}
