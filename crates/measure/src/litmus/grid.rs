//! What the outcomes of the worker and the thief say about the bound.
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, section 7.3,
//! Figure 8.
//!
//! A thief with margin `delta` takes a task that the worker takes too only if `delta + 1` stores of
//! `tail` are hidden from it: those of the task and of `delta` above it. If `d` tasks are taken
//! twice in a round, `delta + d` are hidden when the thief takes the last of them, for the store of
//! the first, lowest one is hidden still. With `L` stores between any two of them that is
//! `(delta + d - 1) (L + 1) + 1` stores. So a violation shows a bound of at least that, and the
//! smallest consistent bound is the greatest such number. A small delta, whose violations are
//! frequent, shows as much as a delta at the boundary, whose violations are rare.
//!
//! `L = 0` is left out, because consecutive stores to one address may leave as one entry. Stores to
//! one line do so, too, on their way from the store buffer to the cache, where `L` stores then take
//! one entry. They show the number of such entries, if the buffer's capacity is known
//! ([`hidden_pops`]).

use poach_memory::delta::{EGRESS, hidden_pops};
use serde::{Deserialize, Serialize};

use super::program::{Outcome, Point, Target};

/// A point and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Pops that were hidden from the thief, in the round with the most tasks taken twice; 0
    /// without a violation.
    pub fn hidden(&self) -> u64 {
        if self.violated() { self.point.delta + self.outcome.largest_duplicate.max(1) } else { 0 }
    }

    /// Whether each store of it takes an entry wherever it is.
    fn counts(&self) -> bool {
        self.point.stores > 0 && self.point.target == Target::Lines
    }

    /// The bound that a violation here shows, on a processor with `capacity` store buffer entries.
    fn shows(&self, capacity: Option<u64>) -> Option<u64> {
        let hidden = self.hidden();
        if hidden == 0 || self.point.stores == 0 {
            return None;
        }
        if self.counts() {
            return Some((hidden - 1) * (self.point.stores + 1) + 1);
        }
        let capacity = capacity?;
        let hides = |egress: &u64| {
            hidden_pops(capacity, *egress, self.point.stores).is_ok_and(|pops| pops.get() >= hidden)
        };
        // What one entry explains is what distinct lines show better.
        let egress = (EGRESS..=2 * hidden).find(hides).filter(|egress| *egress > EGRESS);
        egress.map(|egress| capacity + egress)
    }
}

/// What the grid says of one L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// The paper's L.
    pub stores: u64,
    /// Where they went.
    pub target: Target,
    /// The delta that the bound makes safe: the one that is known of the processor or was seen,
    /// whichever is greater.
    pub predicted: u64,
    /// The delta that the paper's bound makes safe, one more store than the buffer has entries.
    pub by_capacity: u64,
    /// The greatest delta with a violation.
    pub highest_violation: Option<u64>,
    /// The least delta tested above all violations.
    pub lowest_clean: Option<u64>,
    /// The most pops that were hidden from a thief.
    pub hidden: u64,
}

/// The smallest S of TSO\[S\] that is consistent with what was seen; `None` without a violation.
///
/// Stores to one line bear on it only where the `capacity` of the store buffer is known.
pub fn smallest_bound(seen: &[Observation], capacity: Option<u64>) -> Option<u64> {
    seen.iter().filter_map(|o| o.shows(capacity)).max()
}

/// The delta that a bound of `bound` makes safe with `stores` stores to distinct lines between
/// pops.
pub fn safe_delta(bound: u64, stores: u64) -> u64 {
    bound.div_ceil(stores + 1)
}

/// The violations with stores to distinct lines that a bound of `supposed` rules out.
pub fn contradictions(seen: &[Observation], supposed: u64) -> Vec<Observation> {
    let ruled_out =
        |o: &&Observation| o.counts() && o.shows(None).is_some_and(|shown| shown > supposed);
    seen.iter().filter(ruled_out).copied().collect()
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
            by_capacity: safe_delta(supposed, stores),
            highest_violation: highest,
            lowest_clean: clean,
            hidden: of_column().map(Observation::hidden).max().unwrap_or(0),
        });
    }
    columns
}

/// The points to test for a store buffer of `capacity` entries, or of a bound that is one more than
/// this.
///
/// A few below the boundary, and each one near it; they go beyond the boundary of `capacity + 1` by
/// a few, to see a bound that is greater. `every` asks for each delta up to it; the deltas that add
/// little come last then, so that a run may be cut short.
pub fn points(capacity: u64, every: bool) -> Vec<Point> {
    let mut points = Vec::new();
    let mut rest = Vec::new();
    for stores in [1, 2, 3, 5, 7, 11, 15] {
        let edge = safe_delta(capacity + 1, stores);
        let beyond = edge + edge.div_ceil(6).max(3);
        let near = edge.saturating_sub(3);
        let far = edge.div_ceil(5).max(1);
        for delta in 1..=beyond {
            let telling = delta >= near || delta % far == 0;
            let these = if telling { &mut points } else { &mut rest };
            these.push(Point { stores, delta, target: Target::Lines });
        }
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
        let near = edge.saturating_sub(2)..edge + 6;
        let far = [edge / 2, edge * 2, edge * 3].into_iter().filter(|delta| !near.contains(delta));
        for delta in far.chain(near.clone()) {
            points.push(Point { stores: 7, delta: delta.max(1), target });
        }
    }
    if every {
        points.append(&mut rest);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that holds back at most `bound` stores, seen through every point.
    fn machine(bound: u64, capacity: u64) -> Vec<Observation> {
        let hidden = |point: Point| match point.target {
            Target::Lines => safe_delta(bound, point.stores),
            Target::Words | Target::One => {
                hidden_pops(capacity, bound - capacity, point.stores).unwrap().get()
            }
        };
        let see = |point: Point| {
            let hidden = if point.stores == 0 { u64::MAX } else { hidden(point) };
            Observation {
                point,
                outcome: Outcome {
                    rounds: 10,
                    incorrect: u64::from(point.delta < hidden),
                    // Rare violations are of one task.
                    largest_duplicate: u64::from(point.delta < hidden),
                    ..Outcome::default()
                },
            }
        };
        points(capacity, true).into_iter().map(see).collect()
    }

    #[test]
    fn the_papers_machine_is_read_as_the_paper_reads_it() {
        let seen = machine(33, 32);
        assert_eq!(smallest_bound(&seen, None), Some(33));
        assert_eq!(smallest_bound(&seen, Some(32)), Some(33));
        assert_eq!(contradictions(&seen, 33), []);
        // Figure 8a: a supposed S of 32 is contradicted just where L + 1 divides 32.
        let against: Vec<(u64, u64)> =
            contradictions(&seen, 32).iter().map(|o| (o.point.stores, o.point.delta)).collect();
        assert_eq!(against, [(1, 16), (3, 8), (7, 4), (15, 2)]);
    }

    #[test]
    fn a_machine_that_holds_back_more_is_found_out() {
        let seen = machine(38, 32);
        let smallest = smallest_bound(&seen, Some(32)).unwrap();
        assert!(smallest > 33 && smallest <= 38, "{smallest}");
        assert!(!contradictions(&seen, 33).is_empty());
        assert_eq!(contradictions(&seen, smallest), []);
    }

    fn violation(stores: u64, delta: u64, target: Target, largest_duplicate: u64) -> Observation {
        let outcome = Outcome { rounds: 9, incorrect: 1, largest_duplicate, ..Outcome::default() };
        Observation { point: Point { stores, delta, target }, outcome }
    }

    #[test]
    fn many_tasks_taken_twice_show_as_much_as_a_great_delta() {
        // Seen on a Zen 4, 64 entries: largest runs of a million rounds each.
        for (delta, largest) in [(31, 6), (32, 5), (33, 4), (34, 3), (35, 2), (36, 1)] {
            let seen = [violation(1, delta, Target::Lines, largest)];
            assert_eq!(smallest_bound(&seen, None), Some(73), "delta {delta}");
        }
    }

    #[test]
    fn stores_to_one_line_show_the_entries_behind_the_buffer() {
        // From the same Zen 4: 64 entries and 9, each of the 9 a line.
        let seen = [violation(7, 12, Target::One, 1)];
        assert_eq!(smallest_bound(&seen, Some(64)), Some(73));
        assert_eq!(smallest_bound(&seen, None), None, "without a capacity they show nothing");
        let explained = [violation(7, 8, Target::Words, 1)];
        assert_eq!(smallest_bound(&explained, Some(64)), None);
    }

    #[test]
    fn without_a_store_between_nothing_is_shown() {
        let mut seen = machine(33, 32);
        seen.retain(|o| o.point.stores == 0 || o.point.target != Target::Lines);
        assert_eq!(smallest_bound(&seen, Some(32)), None);
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
    fn the_long_grid_begins_with_the_quick_one_and_has_every_delta() {
        for capacity in [32, 64, 104] {
            let (quick, long) = (points(capacity, false), points(capacity, true));
            assert_eq!(long[..quick.len()], quick);
            for stores in [1, 3, 7, 15] {
                let has = |delta| long.contains(&Point { stores, delta, target: Target::Lines });
                assert!((1..=safe_delta(capacity + 1, stores) + 3).all(has), "L = {stores}");
            }
            let twice = |at: usize| long[..at].contains(&long[at]);
            assert!(!(0..long.len()).any(twice), "a point twice, capacity {capacity}");
        }
    }
}
