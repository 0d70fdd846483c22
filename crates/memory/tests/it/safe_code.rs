//! What safe code can use. The crate's module `compile_fail` has what it cannot write.

#![forbid(unsafe_code)]

use core::num::NonZeroU64;
use std::thread;

use poach_memory::delta::{
    Bound, DOCUMENTED, DeltaError, Documented, Maker, Processor, hidden_pops, largest_known,
};
use poach_memory::displace::CannotDisplace;
use poach_memory::membarrier::Unavailable;
use poach_memory::order::{InForce, Refused};
use poach_memory::profile::{Profile, ProfileError};
use poach_memory::{
    Asymmetric, Bounded, Cell, Delta, Full, Machine, Memory, Ordering, Resolved, StoreLoad,
    Unbounded, membarrier,
};

/// Safe code gets only the bound for which the crate vouches, and the queue makes its store itself.
#[test]
fn a_bound_is_the_crates_own_or_none() {
    match Delta::for_this_processor() {
        Ok(delta) => {
            let here = Processor::here().and_then(Processor::documented).unwrap();
            let Bound::Seen(bound) = here.bound else { panic!("a bound that was not seen") };
            let egress = bound - here.capacity;
            assert_eq!(delta.pops(), hidden_pops(here.capacity, egress, 0).unwrap().get());
            assert!(delta.fills() && !Processor::is_virtual());
            assert_eq!(Bounded::<Machine>::new(delta).unwrap().delta(), delta);
        }
        Err(DeltaError::Virtual(shown)) => {
            assert!(Processor::is_virtual() && Processor::here() == Some(shown));
        }
        Err(DeltaError::NoBound(row)) => assert!(!matches!(row.bound, Bound::Seen(_))),
        Err(error) => assert_eq!(error, DeltaError::Undocumented(Processor::here())),
    }
}

/// Safe code may compute numbers of pops: they are not promises.
#[test]
fn arithmetic_makes_no_policy() {
    assert_eq!(hidden_pops(32, 1, 1).map(NonZeroU64::get), Ok(17));
    assert!(DOCUMENTED.iter().all(|row| row.capacity < largest_known().get()));
    let processor = Processor { maker: Maker::Intel, family: 6, model: 47 };
    let forged = Profile::new(processor, 1, 2).unwrap();
    assert_eq!(forged.to_string().parse(), Ok(forged));
    assert_eq!(forged.pops(0).get(), 1);
    if Processor::here() != Some(processor) {
        assert!(matches!(forged.check_here(), Err(ProfileError::Foreign { .. })));
    }
}

fn delta_of(policy: &impl StoreLoad<Machine>) -> u64 {
    policy.owner();
    if policy.is_inline() {
        policy.owner_inline();
    }
    policy.thief();
    assert!(policy.try_thief());
    policy.delta()
}

#[test]
fn policies_that_need_no_promise() {
    assert_eq!(delta_of(&Full), 0);
    assert_eq!(delta_of(&Asymmetric::<Machine>::new()), 0);
    assert_eq!(delta_of(&Asymmetric::<Machine>::default()), 0);
    let expected =
        if membarrier::register().is_ok() { InForce::ProcessWide } else { InForce::Full };
    let asymmetric = Asymmetric::<Machine>::new();
    assert_eq!(asymmetric.in_force(), expected);
    assert_eq!(asymmetric.is_inline(), expected == InForce::ProcessWide);
    // The owner is asked, and fences from its next call on.
    asymmetric.ask_owner();
    asymmetric.owner();
    assert_eq!(asymmetric.in_force(), InForce::Full);
    assert!(!asymmetric.is_inline() && asymmetric.try_thief());
    assert!(StoreLoad::<Machine>::is_inline(&Full));
    StoreLoad::<Machine>::ask_owner(&Full);
    // A thief with this policy never decides alone, and takes nothing.
    assert_eq!(delta_of(&Unbounded), u64::MAX);
    assert!(!StoreLoad::<Machine>::resolve(&Unbounded));
    if let Ok(delta) = Delta::for_this_processor() {
        assert_eq!(delta_of(&Bounded::new(delta).unwrap()), delta.pops());
        match Resolved::<Machine>::new(delta) {
            Ok(policy) => assert!(delta_of(&policy) == delta.pops() && policy.resolve()),
            Err(refused) => assert_eq!(refused, Refused::NoProcessWideBarrier),
        }
    }
}

/// Words, pointers and cells can be made and used; a cell gives out raw pointers.
#[test]
fn the_machines_memory() {
    let word = <Machine as Memory>::Word::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| _ = word.fetch_add(1, Ordering::Relaxed)));
        }
    });
    assert_eq!(word.compare_exchange(4000, 1, Ordering::AcqRel, Ordering::Relaxed), Ok(4000));
    assert_eq!(word.compare_exchange(4000, 2, Ordering::AcqRel, Ordering::Relaxed), Err(1));
    let mut target = 7;
    let pointer = <Machine as Memory>::Pointer::new(&raw mut target);
    assert_eq!(pointer.load(Ordering::Relaxed), &raw mut target);
    let cell = <Machine as Memory>::Cell::new(7);
    assert_eq!(cell.with(<*const i32>::cast_mut), cell.with_mut(|place| place));
    Machine::full();
    Machine::heavy();
    Machine::pause();
    Machine::give_way();
    assert_eq!(Machine::patience(1000), 1000);
    for length in [0, 1, 1000] {
        let words = Machine::zeros(length).unwrap();
        assert!(
            words.len() == length && words.iter().all(|word| word.load(Ordering::Relaxed) == 0)
        );
    }
    assert!(Machine::zeros(usize::MAX).is_none() && Machine::zeros(usize::MAX / 8).is_none());
    assert_eq!(Machine::cells::<u8>(3).map(|cells| cells.len()), Some(3));
    assert!(Machine::cells::<u64>(usize::MAX / 8).is_none());
    Machine::evict(&[1, 2, 3]);
    Machine::will_write(&word);
    membarrier::barrier();
}

/// Safe code may call the fences and hints of any memory.
#[test]
fn any_memory() {
    fn all<M: Memory>() {
        M::full();
        M::light();
        M::heavy();
        M::pause();
        M::give_way();
        _ = M::patience(0);
        M::evict::<u8>(&[]);
        M::evict(&[usize::MAX]);
        M::will_write(&0_u8);
        M::will_write::<[u64; 0]>(&[]);
        // Without a process-wide barrier owners keep their fences.
        let soon = M::asymmetric_by_now();
        assert_eq!(M::asymmetric(), membarrier::register().is_ok());
        assert!(!soon || M::asymmetric());
        assert_eq!(M::asymmetric_by_now(), membarrier::is_registered());
        assert_eq!(M::heavy_may_succeed(), membarrier::may_succeed());
        _ = M::total_store_order();
        assert!(M::can_lose());
    }
    all::<Machine>();
}

/// Safe code can write rows of the table, but make no bound of them.
#[test]
fn a_table_of_ones_own() {
    let bound = Bound::Seen(1);
    let row = Documented { bound, ..DOCUMENTED[0] };
    assert_ne!(row.bound, Bound::Seen(2));
    let errors: [&dyn std::error::Error; 2] = [&Unavailable::Refused, &CannotDisplace::Refused(7)];
    assert!(errors.iter().all(|error| !error.to_string().is_empty()));
    if let Ok(delta) = Delta::for_this_processor() {
        let forged =
            Profile::new(Processor { maker: Maker::Intel, family: 0, model: 0 }, 1, 2).unwrap();
        assert!(matches!(delta.check(&forged), Err(ProfileError::Foreign { .. })));
    }
}
