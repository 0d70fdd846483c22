//! The classic litmus tests on this processor.
//!
//! | test | threads | asks whether |
//! |---|---|---|
//! | SB | `x = 1; r = y` beside `y = 1; s = x` | both loads may miss both stores (`r = s = 0`) |
//! | MP | `x = 1; y = 1` beside `r = y; s = x` | the second store may be seen without the first |
//! | LB | `r = x; y = 1` beside `s = y; x = 1` | both loads may see stores that come after them |
//! | IRIW | two writers, two readers | the readers may see the two stores in different orders |
//!
//! On total store order only SB's outcome is allowed. The shared words are accessed relaxed, so
//! what the compiler makes of them is plain loads and stores; it is kept from reordering by its own
//! fence.

use std::sync::{Barrier, PoisonError, RwLock};
use std::thread;

use poach_memory::{CachePadded, Machine, Memory, Ordering};
use serde::Serialize;

use super::CannotTest;
use crate::place;

/// A test's counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The test's name.
    pub test: &'static str,
    /// Times that it was run.
    pub runs: u64,
    /// Times that the outcome in question came about.
    pub seen: u64,
    /// Whether total store order allows it.
    pub allowed: bool,
}

type Word64 = <Machine as Memory>::Word;

/// The words of one run, each on its own line.
#[derive(Default)]
struct Cell {
    x: CachePadded<Word64>,
    y: CachePadded<Word64>,
    /// How many threads have come to this run.
    come: CachePadded<Word64>,
}

impl Cell {
    /// Waits until `threads` threads have come, so that they set out together.
    fn gather(&self, threads: u64) {
        // SeqCst: no store of an earlier run is left in the buffer when this one begins.
        self.come.fetch_add(1, Ordering::SeqCst);
        let mut spins = 0_u32;
        // Relaxed: nothing is handed over; the processor's own order is what is asked about.
        while self.come.load(Ordering::Relaxed) < threads {
            spins += 1;
            if spins < 1 << 10 {
                Machine::pause();
            } else {
                // The one that is missing may need this processor.
                thread::yield_now();
            }
        }
    }
}

type Role = fn(&Cell) -> (u64, u64);

struct Test {
    name: &'static str,
    roles: &'static [Role],
    allowed: bool,
    /// From what the roles read to whether the outcome in question came about.
    outcome: fn(&[(u64, u64)]) -> bool,
}

// Relaxed throughout: what these orders let the processor do is what is asked.
fn set(word: &Word64) {
    word.store(1, Ordering::Relaxed);
    Machine::light();
}

fn get(word: &Word64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    Machine::light();
    value
}

fn store_x(cell: &Cell) -> (u64, u64) {
    set(&cell.x);
    (0, 0)
}

fn store_y(cell: &Cell) -> (u64, u64) {
    set(&cell.y);
    (0, 0)
}

const TESTS: [Test; 4] = [
    Test {
        name: "SB",
        roles: &[
            |cell| {
                set(&cell.x);
                (get(&cell.y), 0)
            },
            |cell| {
                set(&cell.y);
                (get(&cell.x), 0)
            },
        ],
        allowed: true,
        outcome: |read| read[0].0 == 0 && read[1].0 == 0,
    },
    Test {
        name: "MP",
        roles: &[
            |cell| {
                set(&cell.x);
                set(&cell.y);
                (0, 0)
            },
            |cell| (get(&cell.y), get(&cell.x)),
        ],
        allowed: false,
        outcome: |read| read[1] == (1, 0),
    },
    Test {
        name: "LB",
        roles: &[
            |cell| {
                let read = get(&cell.x);
                set(&cell.y);
                (read, 0)
            },
            |cell| {
                let read = get(&cell.y);
                set(&cell.x);
                (read, 0)
            },
        ],
        allowed: false,
        outcome: |read| read[0].0 == 1 && read[1].0 == 1,
    },
    Test {
        name: "IRIW",
        roles: &[
            store_x,
            store_y,
            |cell| (get(&cell.x), get(&cell.y)),
            |cell| (get(&cell.y), get(&cell.x)),
        ],
        allowed: false,
        outcome: |read| read[2] == (1, 0) && read[3] == (1, 0),
    },
];

/// Runs of a batch: each has its own words.
const BATCH: usize = 1 << 12;

/// Runs each test at least `runs` times, its threads bound in turn to `processors` (or not at all,
/// if there are none).
///
/// # Errors
///
/// [`CannotTest`] if a thread cannot be bound or started.
pub fn run(runs: u64, processors: &[usize]) -> Result<Vec<Counts>, CannotTest> {
    TESTS.iter().map(|test| one(test, runs, processors)).collect()
}

fn one(test: &Test, runs: u64, processors: &[usize]) -> Result<Counts, CannotTest> {
    let fresh = || (0..BATCH).map(|_| Cell::default()).collect::<Vec<_>>();
    let batches = runs.div_ceil(BATCH as u64).max(1);
    let (cells, meet) = (RwLock::new(fresh()), Barrier::new(test.roles.len() + 1));
    let (cells, meet) = (&cells, &meet);
    // More threads than processors would wait for each other's time slices at every run.
    let fits = thread::available_parallelism().is_ok_and(|here| here.get() >= test.roles.len());
    let together = if fits { test.roles.len() as u64 } else { 0 };
    thread::scope(|scope| {
        let threads: Vec<_> = test
            .roles
            .iter()
            .enumerate()
            .map(|(at, role)| {
                let processor = (!processors.is_empty()).then(|| processors[at % processors.len()]);
                scope.spawn(move || {
                    // A thread that cannot be bound takes part all the same, or the others would
                    // wait for ever.
                    let bound = processor.map_or(Ok(()), place::bind);
                    let mut read = Vec::with_capacity(BATCH * batches as usize);
                    for _ in 0..batches {
                        meet.wait();
                        let batch = cells.read().unwrap_or_else(PoisonError::into_inner);
                        read.extend(batch.iter().map(|cell| {
                            cell.gather(together);
                            role(cell)
                        }));
                        drop(batch);
                        meet.wait();
                    }
                    bound.map(|()| read)
                })
            })
            .collect();
        for _ in 0..batches {
            *cells.write().unwrap_or_else(PoisonError::into_inner) = fresh();
            meet.wait();
            meet.wait();
        }
        let mut read = Vec::new();
        for thread in threads {
            read.push(thread.join().map_err(|_| CannotTest::Panicked)??);
        }
        let all = BATCH * batches as usize;
        let came = |run: &usize| {
            let values: Vec<(u64, u64)> = read.iter().map(|of_role| of_role[*run]).collect();
            (test.outcome)(&values)
        };
        let seen = (0..all).filter(came).count() as u64;
        Ok(Counts { test: test.name, runs: all as u64, seen, allowed: test.allowed })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcomes_in_question_are_those() {
        let outcome = |name| TESTS.iter().find(|test| test.name == name).unwrap().outcome;
        assert!(outcome("SB")(&[(0, 0), (0, 0)]) && !outcome("SB")(&[(1, 0), (0, 0)]));
        assert!(outcome("MP")(&[(0, 0), (1, 0)]) && !outcome("MP")(&[(0, 0), (1, 1)]));
        assert!(outcome("LB")(&[(1, 0), (1, 0)]) && !outcome("LB")(&[(0, 0), (1, 0)]));
        assert!(outcome("IRIW")(&[(0, 0), (0, 0), (1, 0), (1, 0)]));
        assert!(!outcome("IRIW")(&[(0, 0), (0, 0), (1, 0), (1, 1)]));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn total_store_order_forbids_what_it_forbids() {
        for counts in run(2 * BATCH as u64, &[]).unwrap() {
            assert_eq!(counts.runs, 2 * BATCH as u64);
            assert!(counts.allowed || counts.seen == 0, "{counts:?}");
        }
    }
}
