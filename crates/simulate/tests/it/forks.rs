//! Task trees on simulated workers.
#![forbid(unsafe_code)]

use poach_simulate::Description;
use poach_simulate::forks::{
    End, Error, NO_FORK, Played, Search, Setting, Stored, StoredStrand, Strand, Totals, Tree, play,
    private_fork, totals,
};

/// Strands by their work in microseconds and the fork that ends them.
fn tree<const N: usize>(strands: [(f32, u32); N]) -> Stored {
    let strand = |(weight, fork)| StoredStrand { weight, inner: 0, fork };
    Stored { strands: strands.map(strand).into(), unit: 1e6 }
}

fn lace() -> Description {
    Description::shipped("lace").unwrap()
}

fn played(tree: &Stored, workers: usize) -> Played {
    let setting = Setting { machine: &lace(), workers, search: Search::Poach, seed: 1, fork: 0 };
    play(tree, &setting).unwrap()
}

#[test]
fn an_idle_worker_sleeps_through_a_long_strand_and_takes_a_half_at_once() {
    // 20 ms in which there is nothing to steal: naps of 1, 2, 4 and 8 ms, each with a look
    // after it.
    let alone = played(&tree([(20_000.0, NO_FORK)]), 2);
    let (sleeps, accesses) = (alone.sleeps, alone.outcome.accesses);
    assert!((3..20).contains(&sleeps), "{sleeps} sleeps");
    assert!(accesses < 100_000, "{accesses} accesses");
    let halves = tree([(1.0, 0), (20_000.0, NO_FORK), (20_000.0, NO_FORK), (1.0, NO_FORK)]);
    let both = played(&halves, 2);
    assert_eq!((both.steals, both.leaps), (1, 0));
    assert!((20_000_000_000..25_000_000_000).contains(&both.took), "{} ps", both.took);
}

/// A binary tree of this height, whose leaves take a microsecond.
#[derive(Clone, Copy)]
struct Binary(u32);

impl Tree for Binary {
    /// The height below, or a strand after a join.
    type Task = Option<u32>;

    fn root(&self) -> Option<u32> {
        Some(self.0)
    }

    fn strand(&self, task: Option<u32>) -> Strand<Option<u32>> {
        match task {
            Some(height) if height > 0 => {
                let half = Some(height - 1);
                let end = End::Fork { first: half, second: half, after: None };
                Strand { work: 0, inner: 0, end }
            }
            Some(_) => Strand { work: 1_000_000, inner: 3, end: End::Done },
            None => Strand { work: 0, inner: 0, end: End::Done },
        }
    }
}

#[test]
fn every_search_runs_each_strand_once() {
    let Totals { forks, outer, work, span, depth } = totals(&Binary(8));
    assert_eq!((forks, outer, work, span, depth), (255 + 3 * 256, 255, 256_000_000, 1_000_000, 8));
    let machine = lace();
    let fork = private_fork(&machine).unwrap();
    for search in Search::ALL {
        let setting = Setting { machine: &machine, workers: 4, search, seed: 1, fork };
        let played = play(&Binary(8), &setting).unwrap();
        assert_eq!(played.forks, outer, "{}", search.name());
        assert!(played.took >= work / 4 && played.took < work, "{}", search.name());
        assert!(played.steals > 0, "{}", search.name());
    }
}

#[test]
fn more_workers_than_processors_are_refused() {
    let setting =
        Setting { machine: &lace(), workers: 49, search: Search::Random, seed: 1, fork: 0 };
    let error = play(&Binary(1), &setting).unwrap_err();
    assert!(matches!(error, Error::Simulation(_)), "{error}");
}

#[test]
fn distances_by_hand() {
    let lace = lace();
    assert_eq!(lace.distance(0, 5), 0);
    assert_eq!(lace.distance(0, 6), 1);
    assert_eq!(lace.distance(0, 47), 2);
}
