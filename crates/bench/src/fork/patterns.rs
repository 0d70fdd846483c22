//! The few shapes that loops over data take: halves of halves, down to a grain.

use super::task::{Fork, Task};

/// Two tasks as one: a join of joins runs more than two halves.
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<A: Task, B: Task> Task for Both<A, B> {
    type Output = (A::Output, B::Output);

    fn run<F: Fork>(self, mut fork: F) -> Self::Output {
        fork.join(self.0, self.1)
    }
}

/// Calls `body` with each piece of `data`, of at most `grain` elements, and the index of its first.
pub(crate) fn for_each<F: Fork, T: Send>(
    fork: &mut F,
    data: &mut [T],
    grain: usize,
    body: &(impl Fn(usize, &mut [T]) + Sync),
) {
    Pieces { first: 0, data, grain: grain.max(1), body }.go(fork);
}

struct Pieces<'a, T, B> {
    first: usize,
    data: &'a mut [T],
    grain: usize,
    body: &'a B,
}

impl<T: Send, B: Fn(usize, &mut [T]) + Sync> Pieces<'_, T, B> {
    fn go<F: Fork>(self, fork: &mut F) {
        let Pieces { first, data, grain, body } = self;
        if data.len() <= grain {
            if !data.is_empty() {
                body(first, data);
            }
            return;
        }
        // Pieces begin at multiples of the grain, so rows are never cut.
        let middle = data.len().div_ceil(grain) / 2 * grain;
        let (left, right) = data.split_at_mut(middle);
        fork.join(
            Pieces { first, data: left, grain, body },
            Pieces { first: first + middle, data: right, grain, body },
        );
    }
}

impl<T: Send, B: Fn(usize, &mut [T]) + Sync> Task for Pieces<'_, T, B> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        self.go(&mut fork);
    }
}

#[cfg(test)]
mod tests {
    use super::super::systems::Sequential;
    use super::*;

    #[test]
    fn every_element_once_and_no_row_cut() {
        for (length, grain) in [(0, 1), (1, 1), (100, 7), (96, 32), (5, 100)] {
            let mut data = vec![0usize; length];
            for_each(&mut Sequential, &mut data, grain, &|first, piece| {
                assert_eq!(first % grain, 0);
                assert!(piece.len() <= grain);
                for (at, element) in piece.iter_mut().enumerate() {
                    *element += first + at + 1;
                }
            });
            assert!(data.iter().enumerate().all(|(at, element)| *element == at + 1));
        }
    }
}
