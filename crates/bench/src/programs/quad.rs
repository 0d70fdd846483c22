//! Square matrices as quad-trees: the four quarters of a matrix lie one after the other, each a
//! matrix in the same way, down to tiles that lie row by row. So a program that divides a matrix
//! divides a slice, and no two tasks share an element.

use anyhow::{Result, ensure};

/// The side of a tile.
pub(crate) const TILE: usize = 16;
/// The elements of a tile.
pub(crate) const TILE_AREA: usize = TILE * TILE;

/// A square matrix whose side is a power of two, of at least [`TILE`].
#[derive(Clone)]
pub(crate) struct Quad {
    side: usize,
    /// The elements, in the order of the quad-tree.
    pub(crate) data: Vec<f64>,
}

impl Quad {
    /// The matrix whose element in row i and column j is `element(i, j)`.
    pub(crate) fn new(side: usize, element: impl Fn(usize, usize) -> f64) -> Quad {
        assert!(side.is_power_of_two() && side >= TILE, "no quad-tree has a side of {side}");
        let mut data = vec![0.0; side * side];
        for i in 0..side {
            for j in 0..side {
                data[place(side, i, j)] = element(i, j);
            }
        }
        Quad { side, data }
    }

    /// A matrix of reproducible numbers between -1 and 1.
    pub(crate) fn random(side: usize, seed: u64) -> Quad {
        Quad::new(side, |i, j| noise(seed, i * side + j))
    }

    /// The element in row `i` and column `j`.
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.data[place(self.side, i, j)]
    }

    /// The product with a column.
    pub(crate) fn times(&self, column: &[f64]) -> Vec<f64> {
        let row = |i| (0..self.side).map(|j| self.at(i, j) * column[j]).sum();
        (0..self.side).map(row).collect()
    }

    /// The side.
    pub(crate) fn side(&self) -> usize {
        self.side
    }
}

/// A reproducible number between -1 and 1.
pub(crate) fn noise(seed: u64, index: usize) -> f64 {
    // The finaliser of splitmix64 spreads neighbouring indices over all words.
    let mut word = (seed << 40).wrapping_add(index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn place(side: usize, i: usize, j: usize) -> usize {
    let (mut start, mut side, mut i, mut j) = (0, side, i, j);
    while side > TILE {
        side /= 2;
        start += (i / side * 2 + j / side) * side * side;
        i %= side;
        j %= side;
    }
    start + i * side + j
}

/// The four quarters: upper left, upper right, lower left, lower right.
pub(crate) fn quarters(data: &[f64]) -> [&[f64]; 4] {
    let (upper, lower) = data.split_at(data.len() / 2);
    let (a, b) = upper.split_at(upper.len() / 2);
    let (c, d) = lower.split_at(lower.len() / 2);
    [a, b, c, d]
}

/// The four quarters, each to be changed by itself.
pub(crate) fn quarters_mut(data: &mut [f64]) -> [&mut [f64]; 4] {
    let (upper, lower) = data.split_at_mut(data.len() / 2);
    let (a, b) = upper.split_at_mut(upper.len() / 2);
    let (c, d) = lower.split_at_mut(lower.len() / 2);
    [a, b, c, d]
}

/// c += sign * a * b, for tiles.
#[inline]
pub(crate) fn multiply_tile(c: &mut [f64], a: &[f64], b: &[f64], sign: f64) {
    for (c, a) in c.chunks_exact_mut(TILE).zip(a.chunks_exact(TILE)) {
        for (a, b) in a.iter().zip(b.chunks_exact(TILE)) {
            let factor = sign * a;
            for (c, b) in c.iter_mut().zip(b) {
                *c += factor * b;
            }
        }
    }
}

/// That two columns are equal, up to rounding over sums of `terms` products.
///
/// # Errors
///
/// The first element in which they differ.
pub(crate) fn same_column(what: &str, found: &[f64], expected: &[f64], terms: usize) -> Result<()> {
    let largest = expected.iter().fold(1.0f64, |most, element| most.max(element.abs()));
    let bound = 1e-13 * terms as f64 * largest;
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let near = (found - expected).abs() <= bound;
        ensure!(near, "{what} is wrong: element {at} is {found}, and should be {expected}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_a_place_of_its_own() {
        let matrix = Quad::new(4 * TILE, |i, j| (i * 1000 + j) as f64);
        for (i, j) in [(0, 0), (1, 2), (TILE, 0), (0, TILE), (4 * TILE - 1, 4 * TILE - 1)] {
            assert!((matrix.at(i, j) - (i * 1000 + j) as f64).abs() < f64::EPSILON);
        }
        let mut sorted: Vec<usize> = matrix.data.iter().map(|x| *x as usize).collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 16 * TILE * TILE);
    }

    #[test]
    fn quarters_are_where_they_should_be() {
        let matrix = Quad::new(2 * TILE, |i, j| (i / TILE * 2 + j / TILE) as f64);
        for (at, quarter) in quarters(&matrix.data).into_iter().enumerate() {
            assert!(quarter.iter().all(|x| (x - at as f64).abs() < f64::EPSILON));
        }
    }

    #[test]
    fn noise_is_between_and_differs() {
        let values: Vec<f64> = (0..1000).map(|index| noise(1, index)).collect();
        assert!(values.iter().all(|x| (-1.0..1.0).contains(x)));
        assert!((values.iter().sum::<f64>() / 1000.0).abs() < 0.1);
        assert!((noise(1, 5) - noise(2, 5)).abs() > 1e-9);
    }

    #[test]
    fn columns_that_differ_are_told() {
        assert!(same_column("a", &[1.0, 2.0], &[1.0, 2.0 + 1e-15], 1).is_ok());
        let error = same_column("a", &[1.0, 2.0], &[1.0, 2.1], 1).unwrap_err().to_string();
        assert!(error.contains("element 1 is 2, and should be 2.1"), "{error}");
        assert!(same_column("a", &[f64::NAN], &[1.0], 1).is_err());
    }
}
