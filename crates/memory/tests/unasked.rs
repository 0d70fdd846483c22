//! A barrier in a process that never asked for it is a full fence of the thread that makes it.
//!
//! This is a program of its own, so that no other test asks.

#![forbid(unsafe_code)]

use std::hint;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;

use poach_memory::{Machine, Memory};

const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };

#[derive(Default)]
struct Side {
    flag: AtomicU64,
    saw: AtomicU64,
    done: AtomicU64,
    checked: AtomicU64,
}

/// Waits until the other thread has come to this round.
fn wait(round: u64, other: &AtomicU64) {
    let mut looks = 0;
    while other.load(Acquire) < round {
        looks += 1;
        if looks < 1_000 { hint::spin_loop() } else { thread::yield_now() }
    }
}

/// Store buffering, again and again: how often neither thread saw the other's store.
fn play(mine: &Side, other: &Side) -> u64 {
    let mut missed = 0;
    for round in 1..=ROUNDS {
        mine.flag.store(round, Relaxed);
        Machine::heavy();
        mine.saw.store(other.flag.load(Relaxed), Relaxed);
        mine.done.store(round, Release);
        wait(round, &other.done);
        let saw = |side: &Side| side.saw.load(Relaxed) >= round;
        missed += u64::from(!saw(mine) && !saw(other));
        mine.checked.store(round, Release);
        wait(round, &other.checked);
    }
    missed
}

#[test]
fn two_threads_do_not_miss_each_other() {
    let (one, two) = (Side::default(), Side::default());
    let missed = thread::scope(|scope| {
        let other = scope.spawn(|| play(&two, &one));
        play(&one, &two) + other.join().unwrap()
    });
    assert_eq!(missed, 0, "of {ROUNDS} rounds");
}
