//! The queues without a fence policy: split, FIFO, private, mutex, idempotent FIFO.
//!
//! The two other idempotent queues are not here. Their owner stores the word that thieves compare
//! and swap. In loom such a store may precede, in the word's modification order, an exchange that
//! had read the replaced value, so loom loses tasks that no execution of C11 loses.

use poach_deque::{
    Fifo, IdempotentDeque, IdempotentFifo, Injector, Mutex, PrivateDeque, Split, Steal,
};
use poach_memory::Loom;

use crate::model::{Do, explore, play};
use crate::storage::EvenBeside;

const MEET: &[Do] = &[Do::Push, Do::Push, Do::Pop, Do::Pop];
/// A ring of two slots goes round.
const AROUND: &[Do] = &[Do::Push, Do::Push, Do::Pop, Do::Push, Do::Pop];

#[test]
fn split() {
    play(|| Split::<u64, Loom>::with_capacity(2).unwrap(), MEET, 1, 3, true);
}

#[test]
fn split_goes_round() {
    play(|| Split::<u64, Loom>::with_capacity(1).unwrap(), AROUND, 1, 2, true);
}

/// Half of the tasks in two pieces, in rings that go round and grow.
#[test]
fn split_in_two_arrays() {
    let queue = || Split::<u64, Loom, (), EvenBeside>::with_context(1, 0, ()).unwrap();
    play(queue, MEET, 1, 3, true);
    play(queue, AROUND, 1, 2, true);
}

#[test]
fn split_with_two_thieves() {
    play(|| Split::<u64, Loom>::with_capacity(2).unwrap(), MEET, 2, 2, true);
}

/// Two thieves, one of which takes half; the owner takes tasks back.
#[test]
fn split_in_halves() {
    explore(|| {
        let queue = Split::<u64, Loom>::with_capacity(4).unwrap();
        assert!(queue.thief().steal().is_empty());
        (0..4).for_each(|task| queue.push(task));
        let thief = queue.thief();
        let stolen = loom::thread::spawn(move || {
            let mine = Split::<u64, Loom>::with_capacity(4).unwrap();
            let first = thief.steal_half(&mine).success();
            first.into_iter().chain(std::iter::from_fn(|| mine.pop())).collect::<Vec<_>>()
        });
        let mut all: Vec<u64> = std::iter::from_fn(|| queue.pop()).collect();
        all.extend(stolen.join().unwrap());
        all.extend(std::iter::from_fn(|| queue.pop()));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    });
}

#[test]
fn fifo() {
    play(|| Fifo::<u64, Loom>::starting_at(1, 0).unwrap(), AROUND, 1, 2, true);
}

/// Two thieves finish in any order while the owner goes round and grows.
#[test]
fn fifo_with_two_thieves() {
    play(
        || Fifo::<u64, Loom>::starting_at(1, 0).unwrap(),
        &[Do::Push, Do::Push, Do::Push],
        2,
        1,
        true,
    );
}

/// Closed from the start: the owner takes without an exchange, and closes the queue again after
/// each task that it takes by one.
#[test]
fn closed_fifo() {
    let queue = || Fifo::<u64, Loom>::with_patience(1, 0, 0, 0).unwrap();
    play(queue, AROUND, 1, 2, true);
}

/// Two thieves, who may both open it.
#[test]
fn closed_fifo_with_two_thieves() {
    let queue = || Fifo::<u64, Loom>::with_patience(2, 0, 0, 0).unwrap();
    play(queue, &[Do::Push, Do::Pop], 2, 1, true);
}

#[test]
fn mutex() {
    play(Mutex::<u64, Loom>::default, MEET, 1, 2, true);
}

#[test]
fn injector() {
    explore(|| {
        let injector = std::sync::Arc::new(Injector::<u64, Loom, 1>::new().with_patience(1));
        let other = std::sync::Arc::clone(&injector);
        let pusher = loom::thread::spawn(move || other.push(1));
        injector.push(2);
        let mut all: Vec<u64> = injector.steal().success().into_iter().collect();
        pusher.join().unwrap();
        while let Steal::Success(task) = injector.steal() {
            all.push(task);
        }
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

#[test]
fn idempotent_fifo() {
    play(|| IdempotentFifo::<u64, Loom>::with_capacity(1).unwrap(), AROUND, 1, 2, false);
}

/// They do hand tasks out again: asked for exactly once, the same model fails.
#[test]
#[should_panic(expected = "how often each came out")]
fn an_idempotent_queue_is_not_exact() {
    play(|| IdempotentDeque::<u64, Loom>::with_capacity(2).unwrap(), MEET, 1, 2, true);
}

#[test]
fn private() {
    play(PrivateDeque::<u64, Loom>::default, MEET, 1, 1, true);
}

#[test]
fn private_with_two_thieves() {
    play(PrivateDeque::<u64, Loom>::default, MEET, 2, 1, true);
}
