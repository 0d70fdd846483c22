//! Conway's game of life on a torus, generation by generation, rows divided by halves.
//!
//! The board holds gliders far from each other. After four generations a glider is where it was,
//! one cell further down and to the right: so every cell of the last board is known.

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task, for_each};

/// The rows that are not divided further.
const GRAIN: usize = 8;
/// The cells from one glider to the next, along rows and columns.
const APART: usize = 16;
const GLIDER: [(usize, usize); 5] = [(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)];

/// Plays a number of generations.
struct Play<'b> {
    side: usize,
    generations: usize,
    board: &'b mut Vec<u8>,
    next: &'b mut Vec<u8>,
}

impl Task for Play<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Play { side, generations, board, next } = self;
        for _ in 0..generations {
            let old = &board[..];
            for_each(&mut fork, next, GRAIN * side, &|first, piece| {
                for (at, row) in piece.chunks_exact_mut(side).enumerate() {
                    play_row(old, row, side, first / side + at);
                }
            });
            std::mem::swap(board, next);
        }
    }
}

fn play_row(old: &[u8], row: &mut [u8], side: usize, i: usize) {
    let line = |i: usize| &old[i % side * side..][..side];
    let (above, here, below) = (line(i + side - 1), line(i), line(i + 1));
    for (j, cell) in row.iter_mut().enumerate() {
        let (left, right) =
            (if j == 0 { side - 1 } else { j - 1 }, if j + 1 == side { 0 } else { j + 1 });
        let column = |j: usize| above[j] + here[j] + below[j];
        let neighbours = column(left) + column(j) + column(right) - here[j];
        *cell = u8::from(neighbours == 3 || (neighbours == 2 && here[j] == 1));
    }
}

pub(crate) struct Life {
    side: usize,
    generations: usize,
    board: Vec<u8>,
    next: Vec<u8>,
}

impl Life {
    /// The board whose gliders have gone `gone` cells.
    fn board(side: usize, gone: usize) -> Vec<u8> {
        let mut board = vec![0; side * side];
        for i in (0..side).step_by(APART) {
            for j in (0..side).step_by(APART) {
                for (down, right) in GLIDER {
                    board[(i + down + gone) % side * side + (j + right + gone) % side] = 1;
                }
            }
        }
        board
    }
}

impl Program for Life {
    const NAME: &'static str = "life";

    fn memory(size: Size) -> u64 {
        // The board, the next one, and the one that it is compared with.
        3 * (extent(size).0 as u64).pow(2)
    }

    fn new(size: Size) -> Self {
        let (side, generations) = extent(size);
        Life { side, generations, board: Vec::new(), next: vec![0; side * side] }
    }

    fn reset(&mut self) {
        self.board = Life::board(self.side, 0);
    }

    fn run(&mut self, system: &impl System) {
        let Life { side, generations, board, next } = self;
        system.run(Play { side: *side, generations: *generations, board, next });
    }

    fn check(&self) -> Result<()> {
        let expected = Life::board(self.side, self.generations / 4);
        let wrong = self.board.iter().zip(&expected).position(|(a, b)| a != b);
        ensure!(wrong.is_none(), "after {} generations cell {wrong:?} is wrong", self.generations);
        Ok(())
    }
}

/// The side, and the generations.
fn extent(size: Size) -> (usize, usize) {
    size.pick((48, 12), (512, 40), (2048, 100), (8192, 400))
}
