//! The behaviour suite over every queue and policy that its contract fits.

#[allow(clippy::needless_pass_by_value, reason = "a test uses a queue up")]
mod suite;

use poach_deque::ChaseLev;
use poach_memory::{Asymmetric, Full, Machine};

/// One module of tests for a queue. `$make` makes one of a capacity and a start index.
macro_rules! behaviour {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn owner_takes_the_youngest() {
                suite::owner_takes_the_youngest($make(64, 0));
                suite::owner_takes_the_youngest($make(1, 0));
            }

            #[test]
            fn thieves_take_the_oldest() {
                suite::thieves_take_the_oldest($make(64, 0));
                suite::thieves_take_the_oldest($make(1, 0));
            }

            #[test]
            fn an_empty_queue_says_so() {
                suite::an_empty_queue_says_so($make(2, 0));
            }

            #[test]
            fn grows_past_a_million() {
                suite::grows_past_a_million($make(1, 0));
            }

            #[test]
            fn indices_wrap_around() {
                // 32-bit indices wrap there, and 64-bit ones at their own end.
                suite::indices_wrap_around($make(128, u64::from(u32::MAX) - 99));
                suite::indices_wrap_around($make(16, u64::MAX - 99));
            }

            #[test]
            fn each_task_is_dropped_once() {
                suite::each_task_is_dropped_once($make(16, 0));
            }

            #[test]
            fn a_panicking_destructor_spares_the_others() {
                suite::a_panicking_destructor_spares_the_others($make(16, 0));
            }

            #[test]
            fn a_thief_outlives_the_owner() {
                suite::a_thief_outlives_the_owner($make(16, 0));
            }

            #[test]
            fn a_steal_into_oneself_loses_nothing() {
                suite::a_steal_into_oneself_loses_nothing($make(16, 0));
            }

            #[test]
            fn half_moves_to_another_owner() {
                suite::half_moves_to_another_owner($make(16, 0), $make(16, 0));
            }

            #[test]
            fn tasks_of_any_size() {
                suite::tasks_of_any_size($make(16, 0), $make(16, 0));
            }

            #[test]
            fn a_million_tasks_come_out_once_each() {
                let tasks = if cfg!(miri) { 300 } else { 250_000 };
                for thieves in 1..=4 {
                    suite::every_task_comes_out_once(&$make(64, 0), thieves, tasks, thieves as u64);
                }
            }
        }
    };
}

behaviour!(chase_lev_full, |capacity, index| {
    ChaseLev::<_, Machine, Full>::starting_at(Full, capacity, index).unwrap()
});
behaviour!(chase_lev_asymmetric, |capacity, index| {
    ChaseLev::<_, Machine, Asymmetric<Machine>>::starting_at(Asymmetric::new(), capacity, index)
        .unwrap()
});
