//! The behaviour suite over every queue and policy that its contract fits.

use poach_deque::{
    AsymmetricCl, Biased, BwosFifo, BwosLifo, ChaseLev, Fifo, IdempotentDeque, IdempotentFifo,
    IdempotentLifo, Multiplicity, Mutex, PrivateDeque, Split, The, Thep,
};
use poach_memory::{Asymmetric, Full, Machine};

use crate::storage::Beside;
use crate::suite;

/// One module of tests for a queue: all of them, or those named. `$make` makes a queue of a
/// capacity and with a start index.
macro_rules! behaviour {
    ($name:ident, $make:expr) => {
        behaviour!($name, $make, [
            owner_takes_the_youngest
            thieves_take_the_oldest
            an_empty_queue_says_so
            grows_past_a_million
            indices_wrap_around
            each_task_is_dropped_once
            a_panicking_destructor_spares_the_others
            a_thief_outlives_the_owner
            a_steal_into_oneself_loses_nothing
            half_moves_to_another_owner
            tasks_of_any_size
        ]);
    };
    ($name:ident, $make:expr, [$($test:ident)*]) => {
        mod $name {
            use super::*;

            $(
                #[test]
                fn $test() {
                    behaviour!(@$test $make);
                }
            )*
        }
    };
    (@indices_wrap_around $make:expr) => {
        // 22-bit and 32-bit indices wrap there, and 64-bit ones at their own end.
        suite::indices_wrap_around($make(64, (1 << 22) - 99));
        suite::indices_wrap_around($make(128, u64::from(u32::MAX) - 99));
        suite::indices_wrap_around($make(16, u64::MAX - 99));
    };
    (@indices_of_a_fifo_wrap_around $make:expr) => {
        suite::indices_of_a_fifo_wrap_around($make(64, (1 << 22) - 99));
        suite::indices_of_a_fifo_wrap_around($make(16, u64::MAX - 99));
    };
    (@half_moves_to_another_owner $make:expr) => {
        suite::half_moves_to_another_owner($make(16, 0), $make(16, 0));
    };
    (@tasks_of_any_size $make:expr) => {
        suite::tasks_of_any_size($make(16, 0), $make(16, 0));
    };
    (@$test:ident $make:expr) => {
        suite::$test($make(16, 0));
        suite::$test($make(1, 0));
    };
}

behaviour!(biased, |capacity, index| {
    Biased::<_, Full>::starting_at(Full, capacity, index, 0).unwrap()
});
behaviour!(biased_asymmetric, |capacity, index| {
    Biased::<_, _>::starting_at(Asymmetric::new(), capacity, index, 64).unwrap()
});
behaviour!(mutex, |_, _| Mutex::<_, Machine>::new());
behaviour!(split, |capacity, index| Split::<_, Machine>::starting_at(capacity, index).unwrap(), [
    owner_takes_the_youngest
    an_empty_queue_says_so
    grows_past_a_million
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    a_thief_outlives_the_owner
    tasks_of_any_size
]);
behaviour!(split_beside, |capacity, index| {
    Split::<_, Machine, (), Beside>::with_context(capacity, index, ()).unwrap()
}, [
    owner_takes_the_youngest
    an_empty_queue_says_so
    grows_past_a_million
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    a_thief_outlives_the_owner
    tasks_of_any_size
]);
behaviour!(private, |_, _| PrivateDeque::<_, Machine>::new(), [
    owner_takes_the_youngest
    an_empty_queue_says_so
    grows_past_a_million
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    tasks_of_any_size
]);
behaviour!(idempotent_lifo, |capacity, _| {
    IdempotentLifo::<_, Machine>::with_capacity(capacity).unwrap()
}, [
    owner_takes_the_youngest
    an_empty_queue_says_so
    grows_and_is_stolen_from_at_one_end
    a_steal_into_oneself_loses_nothing
]);
behaviour!(idempotent_fifo, |capacity, index| {
    IdempotentFifo::<_, Machine>::starting_at(capacity, index).unwrap()
}, [
    thieves_take_the_oldest_of_a_fifo
    an_empty_queue_says_so
    a_fifo_grows_past_a_million
    indices_of_a_fifo_wrap_around
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
]);
behaviour!(idempotent_deque, |capacity, index| {
    IdempotentDeque::<_, Machine>::starting_at(capacity, index).unwrap()
}, [
    owner_takes_the_youngest
    thieves_take_the_oldest
    an_empty_queue_says_so
    grows_past_a_million
    indices_wrap_around
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
    half_moves_to_another_owner
]);
behaviour!(bwos_lifo, |capacity, index| {
    BwosLifo::<_, Machine>::starting_at(capacity, index).unwrap()
});
behaviour!(bwos_fifo, |capacity, index| {
    BwosFifo::<_, Machine>::starting_at(capacity, index).unwrap()
}, [
    an_empty_queue_says_so
    a_fifo_grows_past_a_million
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
    half_moves_to_another_owner
]);
behaviour!(multiplicity, |capacity, index| {
    Multiplicity::<_, Machine>::starting_at(capacity, index).unwrap()
}, [
    thieves_take_the_oldest_of_a_fifo
    an_empty_queue_says_so
    a_fifo_grows_past_a_million
    indices_of_a_fifo_wrap_around
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
    half_moves_to_another_owner
]);
behaviour!(fifo, |capacity, index| Fifo::<_, Machine>::starting_at(capacity, index).unwrap(), [
    thieves_take_the_oldest_of_a_fifo
    an_empty_queue_says_so
    a_fifo_grows_past_a_million
    indices_of_a_fifo_wrap_around
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
    half_moves_to_another_owner
]);
behaviour!(closed_fifo, |capacity, index| {
    Fifo::<_, Machine>::with_patience(capacity, index, 0, 0).unwrap()
}, [
    thieves_take_the_oldest_of_a_fifo
    an_empty_queue_says_so
    a_fifo_grows_past_a_million
    indices_of_a_fifo_wrap_around
    each_task_is_dropped_once
    a_panicking_destructor_spares_the_others
    a_thief_outlives_the_owner
    a_steal_into_oneself_loses_nothing
    half_moves_to_another_owner
]);

behaviour!(the, |capacity, index| The::<_, Full>::starting_at(Full, capacity, index).unwrap());
behaviour!(the_asymmetric, |capacity, index| {
    The::<_, _>::starting_at(Asymmetric::new(), capacity, index).unwrap()
});
behaviour!(chase_lev, |capacity, index| {
    ChaseLev::<_, Full>::starting_at(Full, capacity, index).unwrap()
});
behaviour!(asymmetric_cl, |capacity, index| {
    AsymmetricCl::starting_at(Asymmetric::new(), capacity, index).unwrap()
});
behaviour!(thep_full, |capacity, index| {
    Thep::<_, _>::starting_at(Full, capacity, index).unwrap()
});

/// The policies that rest on total store order, where there is one; Miri has C11's memory.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod bounded {
    use super::*;
    use poach_deque::{FfCl, FfThe, ResolvedCl};
    use poach_memory::{Bounded, Delta, Resolved};

    /// What this processor's maker documents, or more than any documents.
    fn delta() -> Delta {
        // SAFETY: where `cpuid` shows a processor of the table these tests run on one, or on none
        // that holds back more.
        let documented = unsafe { Delta::documented(0) };
        // SAFETY: more than any processor of the table is known to hold back.
        documented.unwrap_or_else(|_| unsafe { Delta::ample(0) })
    }

    fn bounded() -> Bounded<Machine> {
        Bounded::new(delta()).unwrap()
    }

    behaviour!(ff_the, |capacity, index| FfThe::starting_at(bounded(), capacity, index).unwrap());
    behaviour!(ff_cl, |capacity, index| FfCl::starting_at(bounded(), capacity, index).unwrap());
    behaviour!(thep, |capacity, index| {
        Thep::<_, _>::starting_at(bounded(), capacity, index).unwrap()
    });
    behaviour!(resolved, |capacity, index| {
        ResolvedCl::starting_at(Resolved::new(delta()).unwrap(), capacity, index).unwrap()
    });
    behaviour!(resolved_the, |capacity, index| {
        The::<_, _>::starting_at(Resolved::new(delta()).unwrap(), capacity, index).unwrap()
    });
}
