//! The most valuable choice of items that a knapsack carries, by branch and bound.
//!
//! Source: Cilk's `knapsack` (32 items in the fence-free paper, Table 1). Tasks share the best
//! value so far and give up where even fractions of items could not beat it; so the amount of work
//! depends on the order in which values are found.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};

use crate::Size;
use crate::fork::{Fork, Program, System, Task};

#[derive(Clone, Copy, Debug)]
struct Item {
    value: u64,
    weight: u64,
}

/// The best value that the items give, those with more value for their weight first.
struct Choose<'k> {
    items: &'k [Item],
    room: u64,
    value: u64,
    best: &'k AtomicU64,
}

impl Task for Choose<'_> {
    type Output = ();

    fn run<F: Fork>(self, mut fork: F) {
        let Choose { items, room, value, best } = self;
        let Some((item, rest)) = items.split_first() else {
            // Relaxed: a number that only grows; a thread that reads an older value works more, not
            // wrongly.
            best.fetch_max(value, Ordering::Relaxed);
            return;
        };
        // No filling of the room is worth more than filling all of it with the item at hand.
        // Relaxed: as above.
        if value * item.weight + item.value * room <= best.load(Ordering::Relaxed) * item.weight {
            return;
        }
        let without = Choose { items: rest, room, value, best };
        if item.weight > room {
            without.run(fork);
        } else {
            let (room, value) = (room - item.weight, value + item.value);
            fork.join(Choose { items: rest, room, value, best }, without);
        }
    }
}

pub(crate) struct Knapsack {
    items: Vec<Item>,
    room: u64,
    best: AtomicU64,
    expected: u64,
}

impl Knapsack {
    /// `count` random items of even weights, each worth its weight and a little more, and an odd
    /// capacity: the bound promises what no choice can keep, and little is cut off.
    fn with_items(count: usize, heaviest: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(32);
        let mut items: Vec<Item> = (0..count)
            .map(|_| {
                let weight = 2 * random.u64(heaviest / 20..=heaviest / 2);
                Item { value: weight + 2, weight }
            })
            .collect();
        items.sort_by(|a, b| (b.value * a.weight).cmp(&(a.value * b.weight)));
        let room = items.iter().map(|item| item.weight).sum::<u64>() / 2;
        let room = room | 1;
        let expected = best_by_table(&items, room);
        Knapsack { items, room, best: AtomicU64::new(0), expected }
    }
}

impl Program for Knapsack {
    const NAME: &'static str = "knapsack";

    fn new(size: Size) -> Self {
        let (count, heaviest) =
            size.pick((10, 1_000), (28, 100_000), (32, 1_000_000), (32, 1_000_000));
        Knapsack::with_items(count, heaviest)
    }

    fn reset(&mut self) {
        *self.best.get_mut() = 0;
    }

    fn run(&mut self, system: &impl System) {
        let Knapsack { items, room, best, .. } = self;
        system.run(Choose { items, room: *room, value: 0, best });
    }

    fn check(&self) -> Result<()> {
        // Relaxed: the tasks have been joined.
        let best = self.best.load(Ordering::Relaxed);
        ensure!(best == self.expected, "the best value is {}, not {best}", self.expected);
        Ok(())
    }
}

/// The best value by dynamic programming over all rooms: independent of any bound.
fn best_by_table(items: &[Item], room: u64) -> u64 {
    let room = room as usize;
    let mut best = vec![0u64; room + 1];
    for item in items {
        let weight = item.weight as usize;
        for with in (weight..=room).rev() {
            best[with] = best[with].max(best[with - weight] + item.value);
        }
    }
    best[room]
}
