//! The programs of the model's pool, and their questions.

use std::sync::Arc;

use poach_memory::{Memory, Ordering};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner, thread};

use super::memory::Shuttled;
use super::{Left, Pool, What, Worker};

/// `workers` workers, `tasks` that are injected, and `calls` from another thread, each of a tree of
/// two; and an end.
fn program(workers: usize, tasks: &[What], expected: &[u64], calls: usize, left: Left) {
    let pool = Pool::new(workers, usize::from(calls > 0), left);
    let threads: Vec<_> = (0..workers)
        .map(|me| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                Worker::new(&pool, me).main_loop();
            })
        })
        .collect();
    let caller = Arc::clone(&pool);
    let caller = (calls > 0).then(|| {
        thread::spawn(move || {
            for _ in 0..calls {
                while caller.call(What::Tree(1)).is_none_or(|result| result != 2) {
                    Shuttled::pause();
                }
            }
        })
    });
    for &task in tasks {
        (0..10 * calls).for_each(|_| Shuttled::pause());
        pool.inject(task);
    }
    assert_eq!(pool.results(tasks.len()), expected);
    if let Some(caller) = caller {
        caller.join().unwrap();
    }
    // More tasks, when some workers are about to sleep, and when all may be asleep, which takes
    // some steps.
    for gap in [0, 5, 10, 20, 100] {
        (0..gap).for_each(|_| Shuttled::pause());
        pool.inject(What::Tree(1));
        assert_eq!(pool.results(1), [2]);
    }
    pool.closing.store(1, Ordering::Relaxed);
    pool.sleep.wake_all();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two trees of joins.
fn trees(left: Left) {
    program(3, &[What::Tree(2), What::Tree(2)], &[4, 4], 0, left);
}

/// A join that needs two workers; the second sleeps, or is about to, or looks for work.
fn handed_over(left: Left) {
    program(2, &[What::HandedOver], &[1], 0, left);
}

/// A future that needs the worker that has not woken it.
fn woken(left: Left) {
    program(2, &[What::Wake], &[0], 0, left);
}

fn one_worker_and_a_guest(left: Left) {
    program(1, &[What::Tree(1)], &[2], 8, left);
}

fn two_workers_and_a_guest(left: Left) {
    program(2, &[What::Tree(2), What::Tree(2)], &[4, 4], 3, left);
}

/// A join that needs two workers, one of which may just stand aside for a guest.
fn handed_over_beside_a_guest(left: Left) {
    program(2, &[What::HandedOver], &[1], 3, left);
}

/// A join whose first half forks nothing, while a worker may stand aside for a guest.
fn handed_over_behind_a_leaf(left: Left) {
    program(2, &[What::HandedOverBehindALeaf], &[1], 3, left);
}

/// The number of schedules for each of the two ways to choose.
const ITERATIONS: usize = 300;
/// More than any of these programs takes.
const STEPS: usize = 50_000;

fn config() -> Config {
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS);
    config.failure_persistence = FailurePersistence::None;
    config
}

fn check(program: fn(Left), left: Left) {
    let random = RandomScheduler::new_from_seed(1, ITERATIONS);
    Runner::new(random, config()).run(move || program(left));
    let changes = PctScheduler::new_from_seed(1, 3, ITERATIONS);
    Runner::new(changes, config()).run(move || program(left));
}

#[test]
fn every_task_is_run_once_and_everybody_ends() {
    check(trees, Left::Nothing);
}

#[test]
fn a_half_that_waits_for_the_other_meets_a_thief() {
    check(handed_over, Left::Nothing);
}

#[test]
fn a_future_is_polled_by_the_worker_that_sleeps() {
    check(woken, Left::Nothing);
}

#[test]
#[should_panic(expected = "max_steps")]
fn a_waker_that_calls_nobody_leaves_its_future_to_a_worker_that_is_busy() {
    check(woken, Left::CallForTheWoken);
}

#[test]
#[should_panic(expected = "max_steps")]
fn a_sleeper_that_does_not_look_again_leaves_a_future_alone() {
    check(woken, Left::SecondLook);
}

#[test]
fn guests_come_and_go_and_nothing_is_lost() {
    check(one_worker_and_a_guest, Left::Nothing);
    check(two_workers_and_a_guest, Left::Nothing);
    check(handed_over_beside_a_guest, Left::Nothing);
    check(handed_over_behind_a_leaf, Left::Nothing);
}

#[test]
#[should_panic(expected = "max_steps")]
fn a_guest_that_leaves_without_looking_at_private_tasks_leaves_one_behind_a_leaf() {
    check(handed_over_behind_a_leaf, Left::LookAtPrivateTasks);
}

#[test]
fn an_owner_that_puts_requests_off_meets_one_that_naps() {
    check(trees, Left::Answers);
    check(handed_over, Left::Answers);
}

#[test]
#[should_panic(expected = "max_steps")]
fn an_owner_that_puts_requests_off_waits_for_ever_if_nobody_naps() {
    check(handed_over, Left::AnswersAndNaps);
}

#[test]
#[should_panic(expected = "max_steps")]
fn a_guest_that_leaves_without_looking_leaves_a_half_alone() {
    check(handed_over_beside_a_guest, Left::LookOfTheGuest);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_task_from_outside_that_calls_nobody_is_left_alone() {
    check(trees, Left::CallForTheInjected);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_victim_that_is_not_called_sleeps_for_ever() {
    check(handed_over, Left::CallForTheVictim);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_does_not_look_again_loses_a_call() {
    check(trees, Left::SecondLook);
}

#[test]
#[should_panic(expected = "max_steps")]
fn an_owner_that_answers_a_request_and_calls_nobody_waits_for_ever() {
    check(handed_over, Left::CallForTheShared);
}
