//! Chase-Lev and THE with full fences, THEP by its echo, and what becomes of them without.

use poach_deque::{ChaseLev, The, Thep};
use poach_memory::{Asymmetric, Full, Loom, Unbounded, Unfenced};

use crate::model::{Do, play};

/// An owner and a thief meet at the last task, then at the one after it.
const MEET: &[Do] = &[Do::Push, Do::Push, Do::Pop, Do::Pop];
/// The owner takes one task at its end while a thief comes for both.
const SHORT: &[Do] = &[Do::Push, Do::Push, Do::Pop];
/// One task, to keep the executions few where threads are many.
const LAST: &[Do] = &[Do::Push, Do::Pop];
/// A ring of one slot grows twice while a thief is at it, and its slots are used again.
const GROW: &[Do] = &[Do::Push, Do::Push, Do::Push, Do::Pop];

fn chase_lev() -> ChaseLev<u64, Full, Loom> {
    ChaseLev::starting_at(Full, 2, 0).unwrap()
}

fn the() -> The<u64, Full, Loom> {
    The::starting_at(Full, 2, 0).unwrap()
}

#[test]
fn chase_lev_at_the_last_task() {
    play(chase_lev, MEET, 1, 2, true);
}

/// Loom has no process-wide barrier: each side falls back to a full fence.
#[test]
fn chase_lev_without_a_process_wide_barrier() {
    let queue = || {
        let fences = Asymmetric::<Loom>::new();
        ChaseLev::<u64, _, Loom>::starting_at(fences, 2, 0).unwrap()
    };
    play(queue, SHORT, 1, 2, true);
}

#[test]
fn chase_lev_with_two_thieves() {
    play(chase_lev, MEET, 2, 1, true);
}

#[test]
fn chase_lev_grows_under_a_thief() {
    play(|| ChaseLev::<u64, Full, Loom>::starting_at(Full, 1, 0).unwrap(), GROW, 1, 2, true);
}

#[test]
#[should_panic(expected = "how often each came out")]
fn chase_lev_without_its_fences_is_caught() {
    play(|| ChaseLev::<u64, _, Loom>::starting_at(unfenced(), 2, 0).unwrap(), SHORT, 1, 2, true);
}

/// No fence.
fn unfenced() -> Unfenced {
    // SAFETY: not kept, on purpose: the tasks of these models are numbers.
    unsafe { Unfenced::new() }
}

#[test]
fn the_at_the_last_task() {
    play(the, SHORT, 1, 2, true);
}

#[test]
fn the_with_two_thieves() {
    play(the, LAST, 2, 1, true);
}

#[test]
#[should_panic(expected = "how often each came out")]
fn the_without_its_fences_is_caught() {
    play(|| The::<u64, _, Loom>::starting_at(unfenced(), 2, 0).unwrap(), LAST, 1, 1, true);
}

#[test]
fn thep_at_the_last_task() {
    play(|| Thep::<u64, _, Loom>::starting_at(Full, 2, 0).unwrap(), LAST, 1, 1, true);
}

/// No fence on either side, and no bound: the thief waits for the echo, which any memory model
/// gives.
#[test]
fn thep_by_its_echo_alone() {
    play(|| Thep::<u64, _, Loom>::starting_at(Unbounded, 2, 0).unwrap(), LAST, 1, 1, true);
}

fn thep() -> Thep<u64, Full, Loom> {
    Thep::starting_at(Full, 2, 0).unwrap()
}

/// The second thief may look before the second push, and come to the lock after the first thief.
#[test]
fn thep_with_two_thieves() {
    play(thep, &[Do::Push, Do::Push], 2, 1, true);
}

/// The tail by which a thief takes a task may come from a pop of the task above.
#[test]
fn thep_takes_the_task_below_one_that_was_popped() {
    play(thep, MEET, 1, 1, true);
}

#[test]
fn thep_by_its_echo_takes_the_task_below_one_that_was_popped() {
    play(|| Thep::<u64, _, Loom>::starting_at(Unbounded, 2, 0).unwrap(), MEET, 1, 1, true);
}
