//! Fence policies: how the owner's store of its index stays ahead of its load of the thieves'
//! index.
//!
//! A work-stealing queue is Dekker's mutual exclusion between an owner and a thief (the *flag
//! principle*). The owner stores its index (`tail`), then loads the thieves' (`head`); a thief
//! announces itself on `head`, then loads `tail`. If neither sees the other, one task is taken
//! twice. On every processor in use the owner's load may overtake its own store, still in the store
//! buffer; something must stop that, or account for it. A [`StoreLoad`] policy says what, and who
//! pays.
//!
//! | policy | owner pays | thief pays | sound where |
//! |---|---|---|---|
//! | [`Full`] | full fence | full fence | everywhere |
//! | [`Asymmetric`] | compiler fence | [`membarrier`](crate::membarrier) | where the system has one; else it is [`Full`] |
//! | [`Displaced`](crate::Displaced) | compiler fence | a visit to the owner's processor | Linux, owners bound to a processor |
//! | [`Bounded`] | compiler fence, and a store if the client makes none | nothing; aborts within delta of the owner | total store order, see [`delta`](crate::delta) |
//! | [`Resolved`] | as `Bounded` | nothing beyond delta; within it one `membarrier` | total store order with a process-wide barrier |
//! | [`Unbounded`] | compiler fence | nothing; never certain by itself | everywhere, under THEP |
//! | [`Unfenced`] | nothing | nothing | nowhere: it is the limit that the others are measured by, and unsafe to make |
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, sections 3.2
//! and 4.

use core::fmt;

use crate::delta::Delta;
use crate::{CachePadded, Machine, Memory, Ordering, Word};

/// How an owner's store stays ahead of its next load, and what a thief pays for it.
///
/// An implementation guarantees, for an owner that runs `store tail; owner(); load head` and a
/// thief that runs `announce on head; thief(); load tail`, one of:
///
/// - the owner's load sees the announcement;
/// - the thief's load sees the store, or a later one;
/// - the thief's load misses at most [`margin`](StoreLoad::margin) of the owner's stores of `tail`.
///
/// The announcement is a read-modify-write, or a load of `head` that a compare-and-swap of the same
/// value follows: a policy with a margin has no fence that would drain a thief's plain store.
///
/// A thief closer to the owner than the margin may call [`resolve`](StoreLoad::resolve).
///
/// # Safety
///
/// Queues hand out each task once on the strength of this guarantee: an implementation keeps it for
/// every owner and every thief of the queues that are given the policy. The margin is the same in
/// every call. After [`resolve`](StoreLoad::resolve) has answered `true`, the calling thief's loads
/// see every store of `tail` that the owner had issued before the call, and the owner's loads of
/// `head` that come later see the thief's announcement. No method unwinds: a thief would leave the
/// task that it is about to take with nobody.
pub unsafe trait StoreLoad<M: Memory>: Send + Sync {
    /// Called by the owner between its store of `tail` and its load of `head`.
    fn owner(&self);

    /// Whether [`owner`](StoreLoad::owner) calls no function. Where it does, a queue may pop in a
    /// function of its own, so that the usual path saves no registers for that call.
    #[inline(always)]
    fn is_inline(&self) -> bool {
        true
    }

    /// [`owner`](StoreLoad::owner), where [`is_inline`](StoreLoad::is_inline) has just said `true`.
    #[inline(always)]
    fn owner_inline(&self) {
        self.owner();
    }

    /// Called by a thief between its announcement on `head` (or its load of `head`, where a
    /// compare-and-swap of `head` follows) and its load of `tail`.
    fn thief(&self);

    /// [`thief`](StoreLoad::thief), where the system may refuse the thief's fence: `false` says
    /// that nothing is promised of the thief's next load of `tail`, as if the margin were endless.
    #[inline(always)]
    #[must_use = "if it is false there was no fence"]
    fn try_thief(&self) -> bool {
        self.thief();
        true
    }

    /// A thief to which [`try_thief`](StoreLoad::try_thief) says `false` asks the owner to issue
    /// full fences. Once the owner has come to its next [`owner`](StoreLoad::owner), thieves need
    /// no fence but their own. Only for a policy that **one** queue with one owner has.
    #[cold]
    fn ask_owner(&self) {}

    /// How many of the owner's stores of `tail` a thief may fail to see: the paper's delta.
    #[inline(always)]
    fn margin(&self) -> u64 {
        0
    }

    /// Makes every store that the owner issued before now visible to this thief, and returns
    /// `true`; or returns `false`, and the thief must abort its steal.
    #[inline(always)]
    fn resolve(&self) -> bool {
        false
    }
}

/// A full fence on both sides. Sound on every processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

// SAFETY: of two sequentially consistent fences one comes first, and what stands before it is seen
// after the other: the owner's load sees the announcement, or the thief's load sees the store.
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
/// Where the memory has no such barrier both sides fall back to a full fence:
/// [`in_force`](Asymmetric::in_force) tells which it is. The choice is made when the policy is made
/// and kept in it, so the owner tests a word on its own cache line.
///
/// If the barrier [fails later](crate::membarrier#a-barrier-that-fails-later),
/// [`thief`](StoreLoad::thief) aborts the program, and [`try_thief`](StoreLoad::try_thief) does
/// not. A thief that [asks](StoreLoad::ask_owner) sets the word, so that the owner's next call
/// fences. That call then says so by the word (release). A thief that has seen this (acquire) sees
/// the stores of `tail` of all calls up to that one; of its own full fence and that of any later
/// call of the owner's one comes first, as in [`Full`].
#[derive(Debug)]
pub struct Asymmetric<M: Memory = Machine> {
    expedited: bool,
    /// [`LIGHT`], [`ASKED`] or [`FENCES`]. It is not used where the memory [cannot
    /// lose](Memory::can_lose) its barrier.
    state: M::Word,
}

/// The owner's fence is light.
const LIGHT: u64 = 0;
/// The owner is asked to fence.
const ASKED: u64 = 1;
/// The owner fences.
const FENCES: u64 = 2;

/// What an [`Asymmetric`] policy runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InForce {
    /// The owner's fence is free and the thief's is process-wide.
    ProcessWide,
    /// Both fences are full: this memory has no process-wide barrier.
    Full,
}

impl<M: Memory> Asymmetric<M> {
    /// Registers the process for the barrier if nobody has yet, and falls back if it cannot be had.
    pub fn new() -> Self {
        let expedited = M::asymmetric();
        Asymmetric { expedited, state: M::Word::new(if expedited { LIGHT } else { FENCES }) }
    }

    /// Which fences this policy uses.
    pub fn in_force(&self) -> InForce {
        // Relaxed: a hint.
        if self.is_light(Ordering::Relaxed) { InForce::ProcessWide } else { InForce::Full }
    }

    /// Whether the owner's fence is light.
    #[inline(always)]
    fn is_light(&self, order: Ordering) -> bool {
        if M::can_lose() { self.state.load(order) == LIGHT } else { self.expedited }
    }

    /// Whether the owner fences, as a thief must know it.
    #[inline(always)]
    fn owner_fences(&self) -> bool {
        // Acquire: pairs with the release in `fence_instead`.
        if M::can_lose() { self.state.load(Ordering::Acquire) == FENCES } else { !self.expedited }
    }

    /// The owner's fence where it is not light. Out of line, so that an owner's path holds no fence
    /// where it needs none.
    #[cold]
    #[inline(never)]
    fn fence_instead(&self) {
        M::full();
        // Relaxed: thieves write it once, and nothing is read on the strength of it.
        if M::can_lose() && self.state.load(Ordering::Relaxed) == ASKED {
            // Release: pairs with the acquire in `owner_fences`, for the stores of `tail` that came
            // before.
            self.state.store(FENCES, Ordering::Release);
        }
    }
}

impl<M: Memory> Default for Asymmetric<M> {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: where the memory had the asymmetric fence when the policy was made, its ends keep their
// promise for ever, and every owner has its light end, or more, and every thief its heavy end, one
// of which comes first, as in `Full`; elsewhere both are full, and so they are for a thief that
// knows that the owner fences, as the type's documentation says. A thief whose fence failed is told
// so.
unsafe impl<M: Memory> StoreLoad<M> for Asymmetric<M> {
    #[inline(always)]
    fn owner(&self) {
        // Relaxed: a thief relies on nothing before it has seen the release in `fence_instead`.
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
            // Relaxed, both: the owner fences for whatever reason. If it fails it was asked before.
            let _ = self.state.compare_exchange(LIGHT, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// The owner pays no fence, a thief pays none; a thief within delta of the owner aborts.
///
/// The thief sees a `tail` that misses at most delta of the owner's pops (see
/// [`delta`](crate::delta)), so beyond delta it knows enough.
///
/// Stores of `tail` with no other store between them may leave the store buffer as one, and then no
/// delta is large enough. If the client has not promised such stores ([`Delta::fills`]), the policy
/// makes one at each pop, between the owner's store of `tail` and its load of `head`, to a cache
/// line of its own.
pub struct Bounded<M: Memory = Machine> {
    delta: Delta,
    elsewhere: CachePadded<M::Word>,
}

/// Why a queue cannot do without its fence here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The memory is not total store order: nothing bounds what a thief may fail to see.
    NotTotalStoreOrder,
    /// There is no process-wide barrier with which a thief could resolve its doubt.
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

// SAFETY: whoever made the delta has promised that a thief's load misses at most so many of the
// owner's pops, where there is a store to another line between any two; the memory is total store
// order, or there was no policy.
unsafe impl<M: Memory> StoreLoad<M> for Bounded<M> {
    #[inline(always)]
    fn owner(&self) {
        if self.delta.fills() {
            // Release, not Relaxed, so that no compiler moves it before the store of `tail`; what
            // it writes means nothing to anyone. It only has to take an entry of the
            // store buffer.
            self.elsewhere.store(0, Ordering::Release);
        }
        M::light();
    }

    #[inline(always)]
    fn thief(&self) {
        // A thief's loads stay in order by themselves, and a queue whose thieves announce by a
        // store makes that store a read-modify-write.
        M::light();
    }

    #[inline(always)]
    fn margin(&self) -> u64 {
        self.delta.pops()
    }
}

/// [`Bounded`] and [`Asymmetric`] together: beyond delta a thief takes the task at once, within
/// delta it pays one process-wide barrier and then knows. It neither aborts nor waits.
///
/// After the barrier every pop that the owner had begun is visible, and every pop that it begins
/// later sees the thief's announcement; so the thief decides on the exact `tail`.
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

// SAFETY: as `Bounded`, and `resolve` is the heavy end of an asymmetric fence whose light end
// stands in `owner`; without one there was no policy.
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
    fn margin(&self) -> u64 {
        self.bounded.margin()
    }

    #[inline]
    fn resolve(&self) -> bool {
        M::heavy_may_succeed() && M::try_heavy()
    }
}

/// No fence on either side and no bound: a thief is never certain by itself.
///
/// For queues whose owner answers a thief that waits (THEP: there it is the paper's delta =
/// infinity, and sound on every processor). Under any other queue every steal aborts, until the
/// owner is gone.
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
    fn margin(&self) -> u64 {
        u64::MAX
    }
}

/// No fence at all. **Wrong on every processor with a store buffer**: tasks are lost and taken
/// twice. It exists so that benchmarks have a limit and checkers have something to catch.
#[derive(Clone, Copy, Debug)]
pub struct Unfenced(());

impl Unfenced {
    /// The policy.
    ///
    /// # Safety
    ///
    /// No operation of a thief runs beside one of the owner: of any two, one happens before the
    /// other.
    ///
    /// A checker of a simulated memory, which has no fence to rely on, may break this with tasks
    /// that may be copied. So does a program that shows what happens without a fence; its queue
    /// must not grow, or a ring would be freed that a thief still reads, and what it prints is
    /// all that can be relied on.
    #[inline(always)]
    pub const unsafe fn new() -> Self {
        Unfenced(())
    }
}

// SAFETY: whoever made it has promised that no thief's operation runs beside an owner's.
unsafe impl<M: Memory> StoreLoad<M> for Unfenced {
    #[inline(always)]
    fn owner(&self) {}

    #[inline(always)]
    fn thief(&self) {}
}
