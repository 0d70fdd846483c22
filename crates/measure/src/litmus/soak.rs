//! The FF-THE queue in use with a given bound, and every task counted.
//!
//! Rounds of [`program`](super::program) with no store of the worker's own: the queue makes the one
//! between its pops itself, as it does for a client that promises none. So this is the queue as a
//! program uses it, where the grid is the queue as an instrument.

use core::num::NonZeroU64;
use std::sync::atomic::AtomicBool;

use super::CannotTest;
use super::program::{Outcome, TASKS, Target, run_with};
use crate::trial::Trial;

/// Lets `tasks` tasks at least go through a queue with the bound `pops`.
///
/// # Errors
///
/// As [`run`](super::program::run).
pub fn soak(
    pops: NonZeroU64,
    tasks: u64,
    pair: Option<(usize, usize)>,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Outcome, CannotTest> {
    run_with(Trial { pops, fill: true }, 0, Target::Lines, tasks.div_ceil(TASKS), pair, seed, stop)
}
