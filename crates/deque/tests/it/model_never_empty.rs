//! A thief that has seen a task pushed does not find the queue empty while another is pushed and
//! then the first is taken.

#![forbid(unsafe_code)]

use loom::thread;
use poach_deque::{ChaseLev, IdempotentDeque, IdempotentFifo, Mutex, Owner, The, Thep, Thief};
use poach_memory::{Full, Loom};

use crate::model::explore;

/// `take`: how the owner's thread takes the older task.
fn never_empty<O: Owner<u64> + Send + 'static>(
    make: impl Fn() -> O + Copy + Sync + Send + 'static,
    take: fn(&O, &O::Thief),
) where
    O::Thief: Send + 'static,
{
    let looks: [fn(&O::Thief) -> bool; 2] =
        [|thief| thief.len() == 0, |thief| thief.steal().is_empty()];
    for finds_nothing in looks {
        explore(move || {
            let owner = make();
            owner.push(0);
            let [own, other] = [owner.thief(), owner.thief()];
            let owning = thread::spawn(move || {
                owner.push(1);
                take(&owner, &own);
            });
            assert!(!finds_nothing(&other), "a queue that is never empty");
            owning.join().unwrap();
        });
    }
}

#[test]
fn queues_with_two_ends() {
    fn steals<O: Owner<u64>>(_: &O, thief: &O::Thief) {
        let _ = thief.steal();
    }
    never_empty(|| ChaseLev::<u64, Full, Loom>::starting_at(Full, 2, 0).unwrap(), steals);
    never_empty(|| The::<u64, Full, Loom>::starting_at(Full, 2, 0).unwrap(), steals);
    never_empty(|| Thep::<u64, Full, Loom>::starting_at(Full, 2, 0).unwrap(), steals);
    never_empty(|| IdempotentDeque::<u64, Loom>::with_capacity(2).unwrap(), steals);
    never_empty(Mutex::<u64, Loom>::default, steals);
}

#[test]
fn a_first_in_first_out_queue() {
    let queue = || IdempotentFifo::<u64, Loom>::with_capacity(2).unwrap();
    never_empty(queue, |_, thief| _ = thief.steal());
    never_empty(queue, |owner, _| _ = owner.pop());
}
