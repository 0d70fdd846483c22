//! Fence policies: how the owner's store of its index stays ahead of its load of the thieves'.
//!
//! A work-stealing queue is Dekker's mutual exclusion between an owner and a thief (the *flag
//! principle*). The owner stores its index (`tail`), then loads the thieves' (`head`); a thief
//! announces itself on `head`, then loads `tail`. If neither sees the other, one task is taken
//! twice. The owner's load may overtake its own store, which is still in the store buffer. A
//! [`StoreLoad`] policy says what prevents that, or accounts for it, and which thread pays.
//!
//! | policy | owner pays | thief pays | sound where |
//! |---|---|---|---|
//! | [`Full`] | full fence | full fence | everywhere |
//! | [`Asymmetric`] | compiler fence | [`membarrier`](crate::membarrier) | where the system has one; else it is [`Full`] |
//! | [`Displaced`](crate::Displaced) | compiler fence | a visit to the owner's processor | Linux, owners bound to a processor |
//! | [`Bounded`] | compiler fence, and a store if the client makes none | nothing; aborts within delta of the owner | total store order, see [`delta`](crate::delta) |
//! | [`Resolved`] | as `Bounded` | nothing beyond delta; within it one `membarrier` | total store order with a process-wide barrier |
//! | [`Unbounded`] | compiler fence | nothing; never certain by itself | everywhere, under THEP |
//! | [`Unfenced`] | nothing | nothing | nowhere: a lower limit for measurements, unsafe to make |
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, sections 3.2
//! and 4.

use core::fmt;

use crate::delta::Delta;
use crate::{CachePadded, Machine, Memory, Ordering, Word};

/// A fence policy: how an owner's store stays ahead of its next load, and what a thief pays for it.
///
/// An implementation guarantees, for an owner that runs `store tail; owner(); load head` and a
/// thief that runs `announce on head; thief(); load tail`, one of:
///
/// - the owner's load sees the announcement;
/// - the thief's load sees the store, or a later one;
/// - the thief's load misses at most [`delta`](StoreLoad::delta) of the owner's stores of `tail`.
///
/// The announcement is a read-modify-write, or a load of `head` followed by a compare-and-swap of
/// the same value. It is no plain store: a policy with a delta has no fence to drain it.
///
/// A thief closer to the owner than delta may call [`resolve`](StoreLoad::resolve).
///
/// # Safety
///
/// Queues rely on this guarantee to hand out each task once. For every owner and every thief of the
/// queues with this policy:
///
/// - The guarantee above holds.
/// - Delta is the same in every call.
/// - After [`resolve`](StoreLoad::resolve) has returned `true`, the calling thief's loads see every
///   store of `tail` that the owner issued before the call, and the owner's later loads of `head`
///   see the thief's announcement.
/// - No method unwinds: the task that a thief is about to take would be lost.
pub unsafe trait StoreLoad<M: Memory>: Send + Sync {
    /// Called by the owner between its store of `tail` and its load of `head`.
    fn owner(&self);

    /// Returns `true` if [`owner`](StoreLoad::owner) calls no function. If it does call one, a
    /// queue may pop out of line, so that the usual path saves no registers for that call.
    #[inline(always)]
    fn is_inline(&self) -> bool {
        true
    }

    /// As [`owner`](StoreLoad::owner), after [`is_inline`](StoreLoad::is_inline) returned `true`.
    #[inline(always)]
    fn owner_inline(&self) {
        self.owner();
    }

    /// Called by a thief between its announcement on `head` (or its load of `head`, where a
    /// compare-and-swap of `head` follows) and its load of `tail`.
    fn thief(&self);

    /// As [`thief`](StoreLoad::thief), but returns `false` if the system refuses the thief's fence.
    /// Then the thief's next load of `tail` may miss any number of stores.
    #[inline(always)]
    #[must_use = "if it is false there was no fence"]
    fn try_thief(&self) -> bool {
        self.thief();
        true
    }

    /// Asks the owner to execute full fences; for a thief to which
    /// [`try_thief`](StoreLoad::try_thief) returned `false`. From the owner's next call of
    /// [`owner`](StoreLoad::owner) on, a thief's own fence is enough. Only for a policy of **one**
    /// queue with one owner.
    #[cold]
    fn ask_owner(&self) {}

    /// How many of the owner's stores of `tail` a thief may fail to see: the paper's delta.
    #[inline(always)]
    fn delta(&self) -> u64 {
        0
    }

    /// Makes every store that the owner has issued visible to this thief, and returns `true`. If it
    /// returns `false`, the thief must abort its steal.
    #[inline(always)]
    fn resolve(&self) -> bool {
        false
    }
}

/// A full fence on both sides. Sound on every processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

// SAFETY: of two sequentially consistent fences one comes first, and loads after the other see the
// stores before it: the owner's load sees the announcement, or the thief's load sees the store.
unsafe impl<M: Memory> StoreLoad<M> for Full {
    #[inline(always)]
    fn owner(&self) {
        M::full();
    }

    #[inline(always)]
    fn thief(&self) {
        M::full();
    }
}

/// The owner pays nothing; each thief pays a process-wide barrier.
///
/// If the memory has no such barrier, both sides execute a full fence.
/// [`in_force`](Asymmetric::in_force) tells which of the two is in force. The constructor makes
/// this choice and stores it in the policy, so the owner tests a word on its own cache line.
///
/// If the barrier [fails later](crate::membarrier#a-barrier-that-fails-later),
/// [`thief`](StoreLoad::thief) aborts the program, and [`try_thief`](StoreLoad::try_thief) returns
/// `false`. Then owner and thief change to full fences:
///
/// 1. A thief [asks](StoreLoad::ask_owner): it sets the word.
/// 2. The owner's next call executes a full fence, and stores that in the word (release).
/// 3. A thief that has seen this store (acquire) sees the stores of `tail` of all calls up to that
///    call. For each later call the owner's full fence or the thief's comes first, as in [`Full`].
#[derive(Debug)]
pub struct Asymmetric<M: Memory = Machine> {
    expedited: bool,
    /// [`LIGHT`], [`ASKED`] or [`FENCES`]. Unused if the memory [cannot lose](Memory::can_lose) its
    /// barrier.
    state: M::Word,
}

const LIGHT: u64 = 0;
const ASKED: u64 = 1;
const FENCES: u64 = 2;

/// The fences that an [`Asymmetric`] policy uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InForce {
    /// The owner's fence is free and the thief's is process-wide.
    ProcessWide,
    /// Both fences are full: this memory has no process-wide barrier.
    Full,
}

impl<M: Memory> Asymmetric<M> {
    /// Registers the process for the barrier if it is not registered. Falls back to full fences if
    /// there is no barrier.
    pub fn new() -> Self {
        let expedited = M::asymmetric();
        Asymmetric { expedited, state: M::Word::new(if expedited { LIGHT } else { FENCES }) }
    }

    /// Returns the fences that this policy uses.
    pub fn in_force(&self) -> InForce {
        // Relaxed: a hint.
        if self.is_light(Ordering::Relaxed) { InForce::ProcessWide } else { InForce::Full }
    }

    #[inline(always)]
    fn is_light(&self, order: Ordering) -> bool {
        if M::can_lose() { self.state.load(order) == LIGHT } else { self.expedited }
    }

    /// Returns `true` if a thief may rely on the owner's full fences.
    #[inline(always)]
    fn owner_fences(&self) -> bool {
        // Acquire: pairs with the release in `fence_instead`.
        if M::can_lose() { self.state.load(Ordering::Acquire) == FENCES } else { !self.expedited }
    }

    /// The owner's full fence. Out of line, so that the usual path contains no fence.
    #[cold]
    #[inline(never)]
    fn fence_instead(&self) {
        M::full();
        // Relaxed: thieves write it once, and no other read depends on it.
        if M::can_lose() && self.state.load(Ordering::Relaxed) == ASKED {
            // Release: pairs with `owner_fences`, for the stores of `tail` that came before.
            self.state.store(FENCES, Ordering::Release);
        }
    }
}

impl<M: Memory> Default for Asymmetric<M> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: there are three cases.
// - The memory had the asymmetric fence when the policy was made: its ends keep their promise for
//   ever. Every owner executes the light end or more, every thief the heavy end, and one of the two
//   comes first, as in `Full`.
// - It had none: both fences are full.
// - The thief has seen that the owner fences: both fences are full, as the type's documentation
//   says.
// `try_thief` returns `false` to a thief whose fence failed.
unsafe impl<M: Memory> StoreLoad<M> for Asymmetric<M> {
    #[inline(always)]
    fn owner(&self) {
        // Relaxed: a thief relies on the full fence only after the release in `fence_instead`.
        if self.is_light(Ordering::Relaxed) { M::light() } else { self.fence_instead() }
    }

    #[inline(always)]
    fn is_inline(&self) -> bool {
        // Relaxed: as in `owner`.
        self.is_light(Ordering::Relaxed)
    }

    #[inline(always)]
    fn owner_inline(&self) {
        M::light();
    }

    #[inline(always)]
    fn thief(&self) {
        if self.owner_fences() { M::full() } else { M::heavy() }
    }

    #[inline(always)]
    fn try_thief(&self) -> bool {
        if self.owner_fences() {
            M::full();
            return true;
        }
        M::heavy_may_succeed() && M::try_heavy()
    }

    #[cold]
    fn ask_owner(&self) {
        if M::can_lose() {
            // Relaxed, both: the owner reads this word alone. On failure it was asked before.
            let _ = self.state.compare_exchange(LIGHT, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// The owner pays no fence, a thief pays none; a thief within delta of the owner aborts.
///
/// The thief's `tail` misses at most delta of the owner's pops (see [`delta`](crate::delta)). So it
/// may take a task that is more than delta away from the owner.
///
/// Consecutive stores of `tail` may leave the store buffer as one store, and then no delta is large
/// enough. Unless the client has promised stores between pops ([`Delta::fills`]), the policy makes
/// one at each pop, between the owner's store of `tail` and its load of `head`, to a cache line of
/// its own.
pub struct Bounded<M: Memory = Machine> {
    delta: Delta,
    elsewhere: CachePadded<M::Word>,
}

/// Why a queue cannot run without its fence here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The memory is not total store order: nothing bounds what a thief may fail to see.
    NotTotalStoreOrder,
    /// There is no process-wide barrier for [`resolve`](StoreLoad::resolve).
    NoProcessWideBarrier,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NotTotalStoreOrder => {
                "a bounded policy needs a processor with total store order (x86-64), which this is \
                 not: use `Asymmetric` or `Full`"
            }
            Refused::NoProcessWideBarrier => {
                "there is no process-wide barrier to resolve with here: use `Bounded` or `Full`"
            }
        })
    }
}

impl std::error::Error for Refused {}

impl<M: Memory> Bounded<M> {
    /// The policy with this bound.
    ///
    /// # Errors
    ///
    /// [`Refused::NotTotalStoreOrder`] on any other memory.
    pub fn new(delta: Delta) -> Result<Self, Refused> {
        if M::total_store_order() {
            Ok(Bounded { delta, elsewhere: CachePadded::new(M::Word::new(0)) })
        } else {
            Err(Refused::NotTotalStoreOrder)
        }
    }

    /// The bound it was made with.
    pub fn delta(&self) -> Delta {
        self.delta
    }
}

impl<M: Memory> fmt::Debug for Bounded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bounded").field("delta", &self.delta).finish_non_exhaustive()
    }
}

// SAFETY: the delta's maker has promised that a thief's load misses at most delta of the owner's
// pops, if a store to another line separates any two pops. `owner` makes that store, or the client
// has promised it. The memory has total store order, or `new` returned an error.
unsafe impl<M: Memory> StoreLoad<M> for Bounded<M> {
    #[inline(always)]
    fn owner(&self) {
        if self.delta.fills() {
            // Release: no compiler moves it before the store of `tail`. No thread reads the value.
            self.elsewhere.store(0, Ordering::Release);
        }
        M::light();
    }

    #[inline(always)]
    fn thief(&self) {
        // Under total store order loads stay in order, and the announcement is a read-modify-write.
        M::light();
    }

    #[inline(always)]
    fn delta(&self) -> u64 {
        self.delta.pops()
    }
}

/// [`Bounded`] and [`Asymmetric`] together. Beyond delta a thief takes the task at once; within
/// delta it executes one process-wide barrier. It neither aborts nor waits.
///
/// After the barrier every pop that the owner has begun is visible, and every later pop sees the
/// thief's announcement. So the thief decides by the exact `tail`.
pub struct Resolved<M: Memory = Machine> {
    bounded: Bounded<M>,
}

impl<M: Memory> Resolved<M> {
    /// The policy with this bound.
    ///
    /// # Errors
    ///
    /// [`Refused`] without total store order or without a process-wide barrier.
    pub fn new(delta: Delta) -> Result<Self, Refused> {
        let bounded = Bounded::new(delta)?;
        if M::asymmetric() { Ok(Resolved { bounded }) } else { Err(Refused::NoProcessWideBarrier) }
    }

    /// The bound it was made with.
    pub fn delta(&self) -> Delta {
        self.bounded.delta
    }
}

impl<M: Memory> fmt::Debug for Resolved<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolved").field("delta", &self.bounded.delta).finish_non_exhaustive()
    }
}

// SAFETY: as `Bounded`. `resolve` is the heavy end of an asymmetric fence, and `owner` its light
// end; without such a fence `new` returned an error.
unsafe impl<M: Memory> StoreLoad<M> for Resolved<M> {
    #[inline(always)]
    fn owner(&self) {
        self.bounded.owner();
    }

    #[inline(always)]
    fn thief(&self) {
        self.bounded.thief();
    }

    #[inline(always)]
    fn delta(&self) -> u64 {
        self.bounded.delta.pops()
    }

    #[inline]
    fn resolve(&self) -> bool {
        M::heavy_may_succeed() && M::try_heavy()
    }
}

/// No fence on either side and no bound: a thief alone can never decide.
///
/// For queues whose owner answers a waiting thief: THEP with the paper's delta = infinity, which is
/// sound on every processor. In any other queue every steal aborts until the owner is dropped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unbounded;

// SAFETY: a load misses at most `u64::MAX` stores.
unsafe impl<M: Memory> StoreLoad<M> for Unbounded {
    #[inline(always)]
    fn owner(&self) {
        M::light();
    }

    #[inline(always)]
    fn thief(&self) {
        M::light();
    }

    #[inline(always)]
    fn delta(&self) -> u64 {
        u64::MAX
    }
}

/// No fence at all. **Wrong on every processor with a store buffer**: tasks are lost and taken
/// twice. It is a lower limit for benchmarks, and an error that checkers must find.
#[derive(Clone, Copy, Debug)]
pub struct Unfenced(());

impl Unfenced {
    /// The policy.
    ///
    /// # Safety
    ///
    /// No operation of a thief is concurrent with an operation of the owner: of any two, one
    /// happens before the other.
    ///
    /// A checker on a simulated memory may break this, with tasks that may be copied. So may a
    /// program that shows what happens without a fence. Its queue must not grow, because a thief
    /// might still read a ring that is freed, and it must rely on none of the tasks that it gets.
    #[inline(always)]
    pub const unsafe fn new() -> Self {
        Unfenced(())
    }
}

// SAFETY: the caller of `new` has promised that no thief's operation is concurrent with an owner's.
unsafe impl<M: Memory> StoreLoad<M> for Unfenced {
    #[inline(always)]
    fn owner(&self) {}

    #[inline(always)]
    fn thief(&self) {}
}
