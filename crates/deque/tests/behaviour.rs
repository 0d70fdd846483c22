//! The behaviour suite over every queue and policy that its contract fits.

#[allow(clippy::needless_pass_by_value, reason = "a test uses a queue up")]
mod suite;

use poach_deque::{AsymmetricCl, ChaseLev, The, Thep};
#[cfg(all(target_os = "linux", not(miri)))]
use poach_memory::Displaced;
use poach_memory::{Asymmetric, Full, Machine, Unbounded};

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

behaviour!(the, |capacity, index| The::<_, Machine, Full>::starting_at(Full, capacity, index)
    .unwrap());
behaviour!(the_asymmetric, |capacity, index| {
    The::<_, Machine, _>::starting_at(Asymmetric::new(), capacity, index).unwrap()
});
behaviour!(chase_lev, |capacity, index| {
    ChaseLev::<_, Machine, Full>::starting_at(Full, capacity, index).unwrap()
});
behaviour!(asymmetric_cl, |capacity, index| {
    AsymmetricCl::starting_at(Asymmetric::new(), capacity, index).unwrap()
});
behaviour!(thep_full, |capacity, index| {
    Thep::<_, Machine, _>::starting_at(Full, capacity, index).unwrap()
});

/// A thief that waits for the echo at each steal cannot be driven by the owner's own thread.
#[test]
fn thep_by_echo_alone_hands_out_each_task_once() {
    let tasks = if cfg!(miri) { 300 } else { 250_000 };
    for thieves in 1..=4 {
        let queue = Thep::<_, Machine, _>::new(Unbounded);
        suite::every_task_comes_out_once(&queue, thieves, tasks, thieves as u64);
    }
}

/// Milliseconds a steal, so there are few.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_displaced_thief_takes_each_task_once() {
    let queue = ChaseLev::<_, Machine, _>::new(Displaced::bind_owner().unwrap());
    suite::every_task_comes_out_once(&queue, 1, 2000, 1);
}

/// The policies that rest on total store order, where there is one.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod bounded {
    use super::*;
    use poach_deque::{FfCl, FfThe, ResolvedCl};
    use poach_memory::{Bounded, Delta, Resolved};

    /// What this processor's maker documents, or more than any documents.
    fn delta() -> Delta {
        Delta::documented(0).unwrap_or(Delta::new(128, 0).unwrap())
    }

    fn bounded() -> Bounded<Machine> {
        Bounded::new(delta()).unwrap()
    }

    behaviour!(ff_the, |capacity, index| FfThe::starting_at(bounded(), capacity, index).unwrap());
    behaviour!(ff_cl, |capacity, index| FfCl::starting_at(bounded(), capacity, index).unwrap());
    behaviour!(thep, |capacity, index| {
        Thep::<_, Machine, _>::starting_at(bounded(), capacity, index).unwrap()
    });
    behaviour!(resolved, |capacity, index| {
        ResolvedCl::starting_at(Resolved::new(delta()).unwrap(), capacity, index).unwrap()
    });
    behaviour!(resolved_the, |capacity, index| {
        The::<_, Machine, _>::starting_at(Resolved::new(delta()).unwrap(), capacity, index).unwrap()
    });
}
