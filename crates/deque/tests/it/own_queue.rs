//! A thief that steals half of a queue into that very queue: nothing is lost, and nobody waits for
//! himself.

#![forbid(unsafe_code)]

use poach_deque::{
    AsymmetricCl, BwosFifo, BwosLifo, ChaseLev, IdempotentDeque, IdempotentFifo, IdempotentLifo,
    Multiplicity, Mutex, Owner, PrivateDeque, Split, Steal, The, Thep, Thief,
};
use poach_memory::{Asymmetric, Machine, Unbounded};

/// Steals half of a queue of `tasks` into itself and pops the rest: what came out, sorted.
fn around<O: Owner<u64>>(owner: &O, tasks: u64) -> Vec<u64> {
    (0..tasks).for_each(|task| owner.push(task));
    let thief = owner.thief();
    let mut seen = Vec::new();
    for _ in 0..3 {
        match thief.steal_half(owner) {
            Steal::Success(task) => seen.push(task),
            // A split deque's thief has asked; the next push or pop shares.
            Steal::Empty => seen.extend(owner.pop()),
            Steal::Retry | Steal::Abort => {}
        }
    }
    seen.extend(std::iter::from_fn(|| owner.pop()));
    assert!(owner.is_empty());
    seen.sort_unstable();
    seen
}

fn once<O: Owner<u64>>(make: impl Fn() -> O) {
    for tasks in [0, 1, 2, 3, 10, 1000] {
        assert_eq!(around(&make(), tasks), (0..tasks).collect::<Vec<_>>());
    }
}

fn at_least_once<O: Owner<u64>>(make: impl Fn() -> O) {
    for tasks in [0, 1, 2, 3, 10, 1000] {
        let mut seen = around(&make(), tasks);
        seen.dedup();
        assert_eq!(seen, (0..tasks).collect::<Vec<_>>());
    }
}

#[test]
fn chase_lev() {
    once(ChaseLev::new);
    once(|| AsymmetricCl::with_policy(Asymmetric::new()));
    // Each steal aborts.
    once(|| ChaseLev::with_policy(Unbounded));
}

#[test]
fn the() {
    once(The::new);
    once(|| The::with_policy(Asymmetric::new()));
    once(|| The::with_policy(Unbounded));
}

#[test]
fn thep() {
    once(Thep::new);
    once(|| Thep::with_policy(Asymmetric::new()));
    // Nobody but this thread can answer the thief.
    once(|| Thep::with_policy(Unbounded));
}

#[test]
fn split_private_mutex_and_bwos() {
    once(Split::<_, Machine>::new);
    once(PrivateDeque::<_, Machine>::new);
    once(Mutex::<_, Machine>::new);
    once(BwosLifo::<_, Machine>::new);
    once(BwosFifo::<_, Machine>::new);
}

#[test]
fn idempotent() {
    at_least_once(IdempotentLifo::<_, Machine>::new);
    at_least_once(IdempotentFifo::<_, Machine>::new);
    at_least_once(IdempotentDeque::<_, Machine>::new);
    at_least_once(Multiplicity::<_, Machine>::new);
}
