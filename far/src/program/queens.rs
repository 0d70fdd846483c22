//! `poach-far n-queens`: in how many ways N queens stand on a board of N by N so that none attacks another.

use poach_far::{Error, World, sum};
use serde::{Deserialize, Serialize};

use super::{Report, counted};

/// In how many ways N queens stand on a board of N by N so that none attacks another.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many queens.
    #[arg(default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=24))]
    n: u32,
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

/// Which columns and diagonals the queens so far attack, as seen from the next row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Board {
    columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    fn next(self, all: u32) -> impl Iterator<Item = Board> {
        let mut free = all & !(self.columns | self.left | self.right);
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

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let n = arguments.n;
    let all = (1 << n) - 1;
    let seed = (world.rank() == 0).then_some(Board { columns: 0, left: 0, right: 0 });
    let outcome = world.run(seed, sum::<u64>(), move |board: Board, context| {
        if n - board.columns.count_ones() <= LEAF {
            *context.result() += board.solutions(all);
        } else {
            board.next(all).for_each(|next| context.push(next));
        }
    })?;
    let expected = SOLUTIONS.get(n as usize - 1).copied();
    Ok(outcome.map(|outcome| counted(world, &outcome, "solutions", outcome.result, expected)))
}
