//! Bounds how many tasks a worker runs on top of waiting tasks on its call stack.
//!
//! A call that waits runs other tasks, on top of itself, and these may wait, too. A worker counts
//! what it has begun so: halves, and runs that it took from the pool, whether a call of this crate
//! or a fork of the user's waited for them. (The forks are bounded by the pool: by
//! [`nesting`](poach_runtime::ThreadPoolBuilder::nesting), and by half of the call stack.) From
//! [`DEEP`] on a call that waits is *deep*:
//!
//! | | a call that waits | a deep one |
//! |---|---|---|
//! | runs what is in its own bag | yes | yes |
//! | runs what its worker has spawned, or stolen, for the pool | yes | yes |
//! | takes what lies aside, one task at a time | yes | if all runs of the rank wait |
//! | begins any other run of the pool | yes | no |
//! | asks other runs of the rank for tasks | yes | no |
//! | takes back what the rank shares in its window | if all runs of the rank wait | the same |
//! | asks other ranks | if all runs of the rank wait | no |
//!
//! A run waits as well if it lies under another on its worker's call stack, whatever it was that
//! its worker waited for.
//!
//! So a stack holds sixteen runs and halves that its worker took from others, and what each of
//! these brought along (half of a bag, or a parcel). It also holds some of what lay aside when the
//! last call of the rank became deep. Nothing is put aside later, since deep calls ask for none.
//!
//! # Why it is begun all the same
//!
//! A call may wait for a half that nobody has begun ([why that is enough](crate::call)). Such a
//! half is in a bag, in the queue of a worker, or aside. What is in a bag or a queue is run by that
//! bag's run, or that queue's worker, even if it waits deep. What lies aside is taken by a run that
//! is between two tasks, by a call that is not deep, or, once all runs wait, by a deep call.
//!
//! Two cases are left, both of forks of the user's. A worker may wait in a fork, so deep that the
//! pool lets it take nothing of its own, while all others wait deep, for runs in its queue. And a
//! run whose task waits for a fork does not count as waiting, though the thief of that fork may
//! have begun a waiting call on top of it. So a call has a *patience*: after a thousand looks
//! without a find, a fifth of a second, it takes what there is, of any kind and as if all runs
//! waited. The patience of a deep call doubles with each level.

use std::cell::Cell;

/// How many things a worker runs at most, one on top of the other, before its calls that wait are
/// deep.
const DEEP: u32 = 16;

/// Looks of a deep call that find nothing, before it takes anything that there is.
const PATIENCE: u32 = 1_000;

thread_local! {
    /// This worker's runs, and its halves on top of waiting calls.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One more on this worker's call stack, until it is dropped.
pub(crate) struct Nested(());

impl Nested {
    pub(crate) fn begin() -> Nested {
        DEPTH.set(DEPTH.get() + 1);
        Nested(())
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// How deep this worker is now.
#[derive(Clone, Copy)]
pub(super) struct Depth(u32);

impl Depth {
    pub(super) fn here() -> Depth {
        Depth(DEPTH.get())
    }

    /// Whether a run is under way on this call stack.
    pub(super) fn is_above(self) -> bool {
        self.0 > 0
    }

    /// Whether a call that waits here is deep. The lowest run lies on nothing.
    pub(super) fn is_deep(self) -> bool {
        self.0 > DEEP
    }

    /// Whether a call that waits here has used up its patience: it has looked often enough in vain.
    pub(super) fn patience_ends(self, looks: u32) -> bool {
        looks >= PATIENCE << self.0.saturating_sub(DEEP + 1).min(16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_counts_until_it_ends_or_unwinds() {
        assert!(!Depth::here().is_deep());
        let lowest = Nested::begin();
        let above: Vec<_> = (0..DEEP).map(|_| Nested::begin()).collect();
        let deep = Depth::here();
        assert!(deep.is_deep() && !deep.patience_ends(999) && deep.patience_ends(1_000));
        let more = Nested::begin();
        assert!(!Depth::here().patience_ends(1_999) && Depth::here().patience_ends(2_000));
        drop((more, above));
        let unwound = std::panic::catch_unwind(|| {
            let _nested = Nested::begin();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(unwound.is_err());
        assert_eq!(Depth::here().0, 1);
        drop(lowest);
        assert!(!Depth::here().is_above());
    }
}
