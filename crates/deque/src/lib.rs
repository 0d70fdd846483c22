//! Work-stealing deques: an owner pushes and pops at one end, thieves steal at the other.
//!
//! # Which one do I want?
//!
//! | if | use |
//! |---|---|
//! | you write a scheduler, and can call the queue before long tasks | [`Split`]: its owner pays nothing; see [below](#writing-a-scheduler) |
//! | every task must be stealable as soon as it is pushed | [`ChaseLev`] with [`Asymmetric`]; [`Biased`] if thieves come often |
//! | tasks must come out in the order in which they were pushed | [`Fifo`] |
//! | any thread pushes | [`Injector`] |
//! | you use crossbeam-deque or st3 now | the modules [`crossbeam`] and [`st3`], which have their interfaces |
//! | running a task twice is harmless | [`IdempotentLifo`], [`IdempotentFifo`], [`IdempotentDeque`]; [`Multiplicity`], in which a thief pays no locked instruction either |
//! | you reproduce a paper | [`The`], [`Thep`], [`ChaseLev`], [`PrivateDeque`], with the paper's policy; [`BwosLifo`], [`BwosFifo`] |
//! | you need something to compare with | [`Mutex`] |
//!
//! ```
//! use poach_deque::{Asymmetric, ChaseLev, Steal};
//!
//! let owner: ChaseLev<&str, Asymmetric> = ChaseLev::with_policy(Asymmetric::new());
//! let thief = owner.thief();
//! owner.push("a task");
//! owner.push("another");
//! assert_eq!(thief.steal(), Steal::Success("a task"));
//! assert_eq!(owner.pop(), Some("another"));
//! ```
//!
//! Where the owner and a thief can compete for a task, a queue has a fence policy, [`StoreLoad`],
//! as a type parameter: [`Full`] (the default), [`Asymmetric`], [`Bounded`], [`Resolved`] or
//! [`Unbounded`]; [`poach_memory::order`] says where each is sound. Every queue is also generic
//! over a [`Memory`](poach_memory::Memory), so loom and the TSO\[S\] checker run the source that
//! ships.
//!
//! # Writing a scheduler
//!
//! `examples/scheduler.rs` is a scheduler in a hundred lines, on [`Split`]. A pushed task is
//! usually *private* there: thieves cannot take it before its owner shares it. So a scheduler on
//! `Split` has three rules more than one on [`ChaseLev`], where every task is shared:
//!
//! | when | do this | otherwise |
//! |---|---|---|
//! | a thief gets [`Steal::Empty`] | try again later: the thief has left a [request](split::Thief::request), and the owner's next push, pop or [poll](Split::poll) shares half of its tasks. [`try_steal`](split::Thief::try_steal) says whether there is private work | ten pushes may all stay private |
//! | a thief is about to sleep | leave a request at all owners, execute a process-wide barrier ([`Memory::heavy`](poach_memory::Memory::heavy)), look again whether there [is private work](split::Thief::has_private_tasks), and [expose](split::Thief::expose) it | it sleeps while an owner in a long task has tasks that no thread can take |
//! | an owner begins a long task | call [`Split::share`], or [`Split::poll`] now and then during the task | thieves must expose its tasks, with a process-wide barrier each time |
//!
//! An owner that shares because of a request does not wake anyone. A [`Context`](split::Context) is
//! told of it, and may wake a sleeper.
#![doc = include_str!("readme.md")]

// For models of what no test outside can call. Its coroutines do not know that processor, and Miri
// does not know them.
#[cfg(all(test, not(target_arch = "s390x"), not(miri)))]
#[path = "../tests/it/c11/mod.rs"]
mod c11;
#[cfg(doctest)]
mod compile_fail;
mod faces;
mod handles;
mod lock;
pub mod mutex;
mod ours;
mod owned;
mod papers;
mod ring;
mod traits;

pub use faces::{crossbeam, st3};
pub use ours::{biased, fifo, injector};
pub(crate) use ours::{owners_end, pacing};
pub use papers::{bwos, chase_lev, idempotent, mult, private, split, the, thep};
pub(crate) use papers::{lap, owner_line};

pub use biased::Biased;
pub use bwos::{BwosFifo, BwosLifo};
pub use chase_lev::ChaseLev;
pub use fifo::Fifo;
pub use idempotent::{IdempotentDeque, IdempotentFifo, IdempotentLifo};
pub use injector::Injector;
pub use mult::Multiplicity;
pub use mutex::Mutex;
pub use poach_memory::{
    Asymmetric, Bounded, Delta, Displaced, Full, Resolved, StoreLoad, Unbounded, Unfenced,
};
pub use private::PrivateDeque;
pub use ring::CapacityError;
pub use split::Split;
pub use the::The;
pub use thep::Thep;
pub use traits::{ExactlyOnce, Here, OutOfMemory, Owner, Steal, Thief};

/// Morrison and Afek's FF-THE: [`The`] without the owner's fence.
pub type FfThe<T> = The<T, Bounded>;

/// Morrison and Afek's FF-CL: [`ChaseLev`] without the owner's fence.
pub type FfCl<T> = ChaseLev<T, Bounded>;

/// [`ChaseLev`] whose thieves pay a process-wide barrier in the owner's stead.
pub type AsymmetricCl<T> = ChaseLev<T, Asymmetric>;

/// [`ChaseLev`] whose thieves pay a process-wide barrier only within delta of the owner.
pub type ResolvedCl<T> = ChaseLev<T, Resolved>;
