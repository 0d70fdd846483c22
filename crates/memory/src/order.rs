//! Fence policies: how the owner's store of its index stays ahead of its load of the thieves' index.
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
//! | [`Unfenced`] | nothing | nothing | nowhere: it is the limit that the others are measured by |
//!
//! Source: Morrison and Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, sections 3.2
//! and 4.

use core::marker::PhantomData;

use crate::Memory;

/// How an owner's store stays ahead of its next load, and what a thief pays for it.
///
/// An implementation guarantees, for an owner that runs `store tail; owner(); load head` and a thief
/// that runs `announce on head; thief(); load tail`, one of:
///
/// - the owner's load sees the announcement;
/// - the thief's load sees the store, or a later one;
/// - the thief's load misses at most [`margin`](StoreLoad::margin) of the owner's stores of `tail`.
///
/// A thief closer to the owner than the margin may call [`resolve`](StoreLoad::resolve).
pub trait StoreLoad<M: Memory>: Send + Sync {
    /// Called by the owner between its store of `tail` and its load of `head`.
    fn owner(&self);

    /// Called by a thief between its announcement on `head` (or its load of `head`, where a
    /// compare-and-swap of `head` follows) and its load of `tail`.
    fn thief(&self);

    /// How many of the owner's stores of `tail` a thief may fail to see: the paper's delta.
    #[inline(always)]
    fn margin(&self) -> u64 {
        0
    }

    /// Makes every store that the owner issued before now visible to this thief, and returns `true`;
    /// or returns `false`, and the thief must abort its steal.
    #[inline(always)]
    fn resolve(&self) -> bool {
        false
    }
}

/// A full fence on both sides. Sound on every processor.
#[derive(Clone, Copy, Debug, Default)]
pub struct Full;

impl<M: Memory> StoreLoad<M> for Full {
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
/// and kept in it, so the owner tests a flag on its own cache line.
#[derive(Debug)]
pub struct Asymmetric<M> {
    expedited: bool,
    memory: PhantomData<fn() -> M>,
}

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
        Asymmetric { expedited: M::asymmetric(), memory: PhantomData }
    }

    /// Which fences this policy uses.
    pub fn in_force(&self) -> InForce {
        if self.expedited { InForce::ProcessWide } else { InForce::Full }
    }
}

impl<M: Memory> Default for Asymmetric<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Clone for Asymmetric<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Asymmetric<M> {}

impl<M: Memory> StoreLoad<M> for Asymmetric<M> {
    #[inline(always)]
    fn owner(&self) {
        if self.expedited { M::light() } else { M::full() }
    }

    #[inline(always)]
    fn thief(&self) {
        if self.expedited { M::heavy() } else { M::full() }
    }
}

/// No fence at all. **Wrong on every processor with a store buffer**: tasks are lost and taken
/// twice. It exists so that benchmarks have a limit and checkers have something to catch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfenced;

impl<M: Memory> StoreLoad<M> for Unfenced {
    #[inline(always)]
    fn owner(&self) {}

    #[inline(always)]
    fn thief(&self) {}
}
