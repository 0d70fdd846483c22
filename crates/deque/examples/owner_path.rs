//! One push and one pop of each queue, each pair a function of its own, so that `cargo xtask asm`
//! can disassemble what an owner runs. Cold paths are calls out of these functions.

use std::hint::black_box;

use poach_deque::{
    AsymmetricCl, ChaseLev, FfCl, FfThe, IdempotentDeque, IdempotentFifo, IdempotentLifo,
    PrivateDeque, ResolvedCl, Split, The, Thep,
};
use poach_memory::{Asymmetric, Bounded, Delta, Full, Machine, Resolved};

macro_rules! owner_paths {
    ($($name:ident: $queue:ty;)*) => {$(
        #[inline(never)]
        fn $name(queue: &$queue) -> Option<u64> {
            queue.push(1);
            queue.pop()
        }
    )*};
}

owner_paths! {
    free_ff_the: FfThe<u64>;
    free_thep: Thep<u64, Bounded<Machine>>;
    free_ff_cl: FfCl<u64>;
    free_resolved: ResolvedCl<u64>;
    free_split: Split<u64>;
    free_private: PrivateDeque<u64>;
    free_idempotent_lifo: IdempotentLifo<u64>;
    free_idempotent_fifo: IdempotentFifo<u64>;
    free_idempotent_deque: IdempotentDeque<u64>;
    fenced_the: The<u64, Full>;
    fenced_chase_lev: ChaseLev<u64, Full>;
    free_asymmetric_cl: AsymmetricCl<u64>;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: the queues have no thieves.
    let delta = unsafe { Delta::new(128, 0) }?;
    black_box(free_ff_the(&FfThe::with_policy(Bounded::new(delta)?)));
    black_box(free_thep(&Thep::with_policy(Bounded::new(delta)?)));
    black_box(free_ff_cl(&FfCl::with_policy(Bounded::new(delta)?)));
    black_box(free_resolved(&ResolvedCl::with_policy(Resolved::new(delta)?)));
    black_box(free_split(&Split::new()));
    black_box(free_private(&PrivateDeque::new()));
    black_box(free_idempotent_lifo(&IdempotentLifo::new()));
    black_box(free_idempotent_fifo(&IdempotentFifo::new()));
    black_box(free_idempotent_deque(&IdempotentDeque::new()));
    black_box(fenced_the(&The::new()));
    black_box(fenced_chase_lev(&ChaseLev::new()));
    black_box(free_asymmetric_cl(&AsymmetricCl::with_policy(Asymmetric::new())));
    Ok(())
}
