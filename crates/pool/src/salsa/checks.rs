//! Which of the paper's checks a SALSA makes: all of them, but in models that must fail.

/// Which of the paper's checks are made. Programs make [`EveryCheck`]; each of them left out is a
/// bug that a model has to find, or the model proves nothing.
///
/// # Safety
///
/// A pool whose `Checks` leave any of the constants `false` may hand one task to two consumers. Who
/// implements this so must see to it that its tasks can be taken twice, as plain numbers can.
pub unsafe trait Checks: Send + Sync {
    /// Lines 87-88: the owner looks at the term after it saw the task and before it publishes.
    const FIRST_LOOK: bool = true;
    /// Line 91: the owner looks again after it published.
    const SECOND_LOOK: bool = true;
    /// A thief that leaves the owner's fence out looks first whether the owner is at the chunk.
    const LOOK_FOR_OWNER: bool = true;
    /// Line 125: the thief gives up where the chunk was stolen from it and had been taken from.
    const RECHECK: bool = true;
    /// Section 5.3: each change of owner gives the term a new tag.
    const TAG: bool = true;
    /// A thief's hazard pointer is set before it reads the term, not only before it acts on it.
    const PROTECT_FIRST: bool = true;
}

/// All [`Checks`]: the algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryCheck;

// SAFETY: every check is made.
unsafe impl Checks for EveryCheck {}
