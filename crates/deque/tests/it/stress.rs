//! A million tasks through each queue and policy, with one to four thieves: each comes out exactly
//! once, as the ids of all that anyone took must show (at least once, from an idempotent queue).

use poach_deque::{
    AsymmetricCl, Biased, BwosFifo, BwosLifo, ChaseLev, Fifo, IdempotentDeque, IdempotentFifo,
    IdempotentLifo, Multiplicity, Mutex, Owner, PrivateDeque, Split, The, Thep,
};
#[cfg(all(target_os = "linux", not(miri)))]
use poach_memory::Displaced;
use poach_memory::{Asymmetric, Machine, Unbounded};

use crate::storage::EvenBeside;
use crate::suite;

/// Tasks for each number of thieves. Under a sanitizer or an interpreter each costs a hundred times
/// more.
fn tasks() -> u64 {
    if cfg!(miri) { 300 } else { 250_000 }
}

/// The most thieves.
const THIEVES: usize = if cfg!(miri) { 2 } else { 4 };

fn exactly_once<O: Owner<u64>>(make: impl Fn() -> O)
where
    O::Thief: 'static,
{
    for thieves in 1..=THIEVES {
        suite::every_task_comes_out_once(&make(), thieves, tasks(), thieves as u64);
    }
}

fn at_least_once<O: Owner<u64>>(make: impl Fn() -> O)
where
    O::Thief: 'static,
{
    for thieves in 1..=THIEVES {
        suite::every_task_comes_out(&make(), thieves, tasks(), thieves as u64);
    }
}

fn once_by_each<O: Owner<u64>>(make: impl Fn() -> O)
where
    O::Thief: 'static,
{
    for thieves in 1..=THIEVES {
        suite::every_task_comes_out_once_by_each(&make(), thieves, tasks(), thieves as u64);
    }
}

macro_rules! stress {
    ($($name:ident: $promise:ident($make:expr);)*) => {$(
        #[test]
        fn $name() {
            $promise(|| $make);
        }
    )*};
}

stress! {
    mutex: exactly_once(Mutex::<_, Machine>::new());
    the: exactly_once(The::new());
    the_asymmetric: exactly_once(The::with_policy(Asymmetric::new()));
    thep_full: exactly_once(Thep::new());
    thep_by_echo_alone: exactly_once(Thep::with_policy(Unbounded));
    chase_lev: exactly_once(ChaseLev::new());
    asymmetric_cl: exactly_once(AsymmetricCl::with_policy(Asymmetric::new()));
    biased: exactly_once(Biased::new());
    biased_asymmetric: exactly_once(Biased::with_policy(Asymmetric::new()));
    split: exactly_once(Split::<_, Machine>::new());
    split_even_beside: exactly_once(Split::<_, Machine, (), EvenBeside>::with_context(1, 0, ()).unwrap());
    private: exactly_once(PrivateDeque::<_, Machine>::new());
    fifo: exactly_once(Fifo::<_, Machine>::new());
    closed_fifo: exactly_once(Fifo::<_, Machine>::with_patience(64, 0, 0, 64).unwrap());
    bwos_lifo: exactly_once(BwosLifo::<_, Machine>::new());
    bwos_lifo_of_small_blocks: exactly_once(BwosLifo::<_, Machine>::with_capacity(2).unwrap());
    bwos_fifo: exactly_once(BwosFifo::<_, Machine>::new());
    bwos_fifo_of_small_blocks: exactly_once(BwosFifo::<_, Machine>::with_capacity(2).unwrap());
    idempotent_lifo: at_least_once(IdempotentLifo::<_, Machine>::new());
    idempotent_fifo: at_least_once(IdempotentFifo::<_, Machine>::new());
    idempotent_deque: at_least_once(IdempotentDeque::<_, Machine>::new());
    multiplicity: once_by_each(Multiplicity::<_, Machine>::with_capacity(1).unwrap());
}

/// Milliseconds a steal, so there are few. (Miri's threads run on no processor.)
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn displaced() {
    // SAFETY: this thread owns the queue to its end, and nobody binds it elsewhere.
    let policy = unsafe { Displaced::bind_owner() }.unwrap();
    let queue = ChaseLev::with_policy(policy);
    suite::every_task_comes_out_once(&queue, 1, 2000, 1);
}

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

    stress! {
        ff_the: exactly_once(FfThe::with_policy(bounded()));
        ff_cl: exactly_once(FfCl::with_policy(bounded()));
        thep: exactly_once(Thep::with_policy(bounded()));
        resolved: exactly_once(ResolvedCl::with_policy(Resolved::new(delta()).unwrap()));
        resolved_the: exactly_once(The::with_policy(Resolved::new(delta()).unwrap()));
    }
}
