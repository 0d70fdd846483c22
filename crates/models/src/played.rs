//! How each queue is made: the one list of them, from which the scenes, the matrix and the mutants
//! have their queues.

use poach_check::{Report, Simulated};
use poach_deque::Owner;
use poach_pool::baselines::{ConcBag, Retention, WsLifo, WsMsq};
use poach_pool::mechanism::Mechanism;
use poach_pool::salsa::{Salsa, SalsaCas};

use crate::any_policy::AnyPolicy;
use crate::{Algorithm, Policy};

/// Plays the owner and the thieves of a queue, whichever it is.
pub trait Plays {
    /// Plays the queue that `make` makes.
    fn play<O: Owner<u64, Thief: 'static> + 'static>(self, make: impl Fn() -> O) -> Report;
}

/// Has `$player`, which [`Plays`](crate::played::Plays), play the deque `$algorithm` with room for
/// `$capacity` tasks, and with `$policy` where it has one. `$from` has the modules of
/// `poach_deque`: that crate, or one with a copy of them.
#[macro_export]
#[doc(hidden)]
macro_rules! play_deque {
    ($from:ident, $algorithm:expr, $policy:expr, $capacity:expr, $player:expr) => {{
        use $crate::Algorithm;
        use $crate::played::Plays as _;
        type Simulated = $crate::poach_check::Simulated;
        const POWER: &str = "a scenario's capacity is a small power of two";
        let (n, player) = ($capacity, $player);
        match $algorithm {
            Algorithm::ChaseLev => player.play(|| {
                $from::chase_lev::ChaseLev::<u64, _, Simulated>::starting_at($policy, n, 0)
                    .expect(POWER)
            }),
            Algorithm::Biased => player.play(|| {
                $from::biased::Biased::<u64, _, Simulated>::starting_at($policy, n, 0, 0)
                    .expect(POWER)
            }),
            Algorithm::The => player.play(|| {
                $from::the::The::<u64, _, Simulated>::starting_at($policy, n, 0).expect(POWER)
            }),
            Algorithm::Thep => player.play(|| {
                $from::thep::Thep::<u64, _, Simulated>::starting_at($policy, n, 0).expect(POWER)
            }),
            Algorithm::Split => player
                .play(|| $from::split::Split::<u64, Simulated>::with_capacity(n).expect(POWER)),
            Algorithm::Private => {
                player.play($from::private::PrivateDeque::<u64, Simulated>::default)
            }
            Algorithm::Fifo => player.play(|| {
                $from::fifo::Fifo::<u64, Simulated>::with_patience(n, 0, u32::MAX, 0).expect(POWER)
            }),
            Algorithm::ClosedFifo => player.play(|| {
                $from::fifo::Fifo::<u64, Simulated>::with_patience(n, 0, 0, 0).expect(POWER)
            }),
            Algorithm::IdempotentLifo => player.play(|| {
                $from::idempotent::IdempotentLifo::<u64, Simulated>::with_capacity(n).expect(POWER)
            }),
            Algorithm::IdempotentFifo => player.play(|| {
                $from::idempotent::IdempotentFifo::<u64, Simulated>::with_capacity(n).expect(POWER)
            }),
            Algorithm::IdempotentDeque => player.play(|| {
                $from::idempotent::IdempotentDeque::<u64, Simulated>::with_capacity(n).expect(POWER)
            }),
            Algorithm::Multiplicity => player.play(|| {
                $from::mult::Multiplicity::<u64, Simulated>::with_capacity(n).expect(POWER)
            }),
            Algorithm::BwosLifo => player.play(|| {
                $from::bwos::BwosLifo::<u64, Simulated>::with_capacity(n.div_ceil(2)).expect(POWER)
            }),
            Algorithm::BwosFifo => player.play(|| {
                $from::bwos::BwosFifo::<u64, Simulated>::with_capacity(n.div_ceil(2)).expect(POWER)
            }),
            Algorithm::Mutex => player.play($from::mutex::Mutex::<u64, Simulated>::default),
            other => panic!("{other:?} is no deque"),
        }
    }};
}

/// Plays the producers and the consumers of a pool, whichever it is.
pub(crate) trait PlaysPool {
    /// Plays the pool that `make` makes, whose chunks have as many places as it is told.
    fn play_pool<P>(self, make: impl Fn(usize) -> Option<P>) -> Report
    where
        P: Mechanism<u32, Producer: 'static, Consumer: 'static> + 'static;
}

/// Has `player` play a pool, with `policy` if it has one.
pub(crate) fn play_pool(algorithm: Algorithm, policy: Policy, player: impl PlaysPool) -> Report {
    let retention = Retention::NONE;
    match algorithm {
        Algorithm::Salsa => player.play_pool(|n| {
            let fences = move |owner| AnyPolicy::new(policy, owner);
            Salsa::<u32, Simulated, _>::with_fences(n, fences)
        }),
        Algorithm::SalsaCas => player.play_pool(SalsaCas::<u32, Simulated>::new),
        Algorithm::ConcBag => {
            player.play_pool(|n| ConcBag::<u32, Simulated>::with_retention(n, retention))
        }
        Algorithm::WsMsq => {
            player.play_pool(|_| WsMsq::<u32, Simulated>::with_retention(retention))
        }
        Algorithm::WsLifo => {
            player.play_pool(|_| WsLifo::<u32, Simulated>::with_retention(retention))
        }
        other => panic!("{other:?} is no pool"),
    }
}
