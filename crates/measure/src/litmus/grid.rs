//! What the outcomes of the worker and the thief say about the bound.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 7.3,
//! Figure 8.
//!
//! A thief with margin `delta` goes wrong only if `delta + 1` stores of `tail` are hidden from it, and
//! with `L` stores between any two of them that is `delta (L + 1) + 1` stores at least. So a violation at
//! `(L, delta)` shows a bound of at least that, and the smallest bound consistent with what was seen is
//! the greatest such number. `L = 0` is left out of it (stores to one address in a row may leave as one
//! entry), and so are stores to one line: they ask about coalescing.

use serde::Serialize;

use super::program::{Outcome, Point, Target};

/// A point and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// Its rounds.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Observation {
    /// Whether a round went wrong.
    pub fn violated(&self) -> bool {
        self.outcome.incorrect > 0
    }

    /// Whether it bears on the bound.
    fn counts(&self) -> bool {
        self.point.stores > 0 && self.point.target == Target::Lines
    }

    /// The bound that a violation here shows.
    fn shows(&self) -> u64 {
        self.point.delta * (self.point.stores + 1) + 1
    }
}

/// What the grid says of one L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The paper's L.
    pub stores: u64,
    /// Where they went.
    pub target: Target,
    /// The delta that the supposed bound makes safe.
    pub predicted: u64,
    /// The greatest delta with a violation.
    pub highest_violation: Option<u64>,
    /// The least delta tested above all violations.
    pub lowest_clean: Option<u64>,
}

/// The smallest S of TSO\[S\] that is consistent with what was seen; `None` without a violation.
pub fn smallest_bound(seen: &[Observation]) -> Option<u64> {
    seen.iter().filter(|o| o.violated() && o.counts()).map(Observation::shows).max()
}

/// The delta that a bound of `bound` makes safe with `stores` stores between pops.
pub fn safe_delta(bound: u64, stores: u64) -> u64 {
    bound.div_ceil(stores + 1)
}

/// The violations that a bound of `supposed` rules out.
pub fn contradictions(seen: &[Observation], supposed: u64) -> Vec<Observation> {
    let ruled_out = |o: &&Observation| {
        o.violated() && o.counts() && o.point.delta >= safe_delta(supposed, o.point.stores)
    };
    seen.iter().filter(ruled_out).copied().collect()
}

/// Figure 8: for each pair of a predicted and a tested delta, whether all points there are correct.
pub fn figure(seen: &[Observation], supposed: u64) -> Vec<(u64, u64, bool)> {
    let mut points: Vec<(u64, u64, bool)> = Vec::new();
    for o in seen.iter().filter(|o| o.counts()) {
        let alpha = safe_delta(supposed, o.point.stores);
        match points.iter_mut().find(|(a, delta, _)| (*a, *delta) == (alpha, o.point.delta)) {
            Some((.., correct)) => *correct &= !o.violated(),
            None => points.push((alpha, o.point.delta, !o.violated())),
        }
    }
    points
}

/// The columns, one for each L and target, in the order in which they were seen.
pub fn columns(seen: &[Observation], supposed: u64) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for o in seen {
        let (stores, target) = (o.point.stores, o.point.target);
        if columns.iter().any(|column| (column.stores, column.target) == (stores, target)) {
            continue;
        }
        let of_column =
            || seen.iter().filter(|o| (o.point.stores, o.point.target) == (stores, target));
        let highest = of_column().filter(|o| o.violated()).map(|o| o.point.delta).max();
        let clean =
            of_column().filter(|o| Some(o.point.delta) > highest).map(|o| o.point.delta).min();
        columns.push(Column {
            stores,
            target,
            predicted: safe_delta(supposed, stores),
            highest_violation: highest,
            lowest_clean: clean,
        });
    }
    columns
}

/// The points to test for a store buffer of `capacity` entries.
///
/// `every` asks for each delta up to the boundary; else a few below it, and each one near it. Both go
/// beyond the boundary of `capacity + 1` by a few, to see a bound that is greater.
pub fn points(capacity: u64, every: bool) -> Vec<Point> {
    let mut points = Vec::new();
    for stores in [1, 2, 3, 5, 7, 11, 15] {
        let edge = safe_delta(capacity + 1, stores);
        let beyond = edge + edge.div_ceil(6).max(3);
        let near = edge.saturating_sub(3);
        let far = edge.div_ceil(5).max(1);
        points.extend(
            (1..=beyond)
                .filter(|delta| every || *delta >= near || delta % far == 0)
                .map(|delta| Point { stores, delta, target: Target::Lines }),
        );
    }
    let edge = capacity + 1;
    for delta in [edge / 4, edge / 2, edge - 1, edge, edge + 1, edge + edge / 4, edge * 2, edge * 4]
    {
        // Figure 9's queue has 512 tasks: a thief that keeps away from all of them steals nothing.
        if (1..super::program::TASKS).contains(&delta) {
            points.push(Point { stores: 0, delta, target: Target::Lines });
        }
    }
    for target in [Target::Words, Target::One] {
        let edge = safe_delta(capacity + 1, 7);
        for delta in [edge / 2, edge - 1, edge, edge + 1, edge + edge / 4, edge * 2, edge * 3] {
            points.push(Point { stores: 7, delta: delta.max(1), target });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that holds back at most `bound` stores, seen through every point.
    fn machine(bound: u64, capacity: u64) -> Vec<Observation> {
        let violated = |point: Point| point.stores == 0 || point.delta * (point.stores + 1) < bound;
        let see = |point| Observation {
            point,
            outcome: Outcome {
                rounds: 10,
                incorrect: u64::from(violated(point)),
                ..Outcome::default()
            },
        };
        points(capacity, true).into_iter().map(see).collect()
    }

    #[test]
    fn the_papers_machine_is_read_as_the_paper_reads_it() {
        let seen = machine(33, 32);
        assert_eq!(smallest_bound(&seen), Some(33));
        assert_eq!(contradictions(&seen, 33), []);
        // Figure 8a: a supposed S of 32 is contradicted just where L + 1 divides 32.
        let against: Vec<(u64, u64)> =
            contradictions(&seen, 32).iter().map(|o| (o.point.stores, o.point.delta)).collect();
        assert_eq!(against, [(1, 16), (3, 8), (7, 4), (15, 2)]);
    }

    #[test]
    fn a_machine_that_holds_back_more_is_found_out() {
        let seen = machine(38, 32);
        let smallest = smallest_bound(&seen).unwrap();
        assert!(smallest > 33 && smallest <= 38, "{smallest}");
        assert!(!contradictions(&seen, 33).is_empty());
        assert_eq!(contradictions(&seen, smallest), []);
    }

    #[test]
    fn coalescing_says_nothing_about_the_bound() {
        let mut seen = machine(33, 32);
        seen.retain(|o| o.point.stores == 0 || o.point.target != Target::Lines);
        assert_eq!(smallest_bound(&seen), None);
        assert_eq!(figure(&seen, 33), []);
    }

    #[test]
    fn columns_end_where_the_bound_says() {
        let columns = columns(&machine(105, 104), 105);
        let of = |stores| {
            *columns.iter().find(|c| c.stores == stores && c.target == Target::Lines).unwrap()
        };
        for stores in [1, 3, 7, 15] {
            assert_eq!(of(stores).lowest_clean, Some(of(stores).predicted), "L = {stores}");
        }
        assert_eq!(of(0).lowest_clean, None);
    }

    #[test]
    fn figure_8_joins_points_of_one_alpha() {
        let points = figure(&machine(33, 32), 33);
        assert!(points.iter().all(|(alpha, delta, correct)| *correct == (delta >= alpha)));
    }
}
