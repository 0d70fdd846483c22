//! A word of the simulated machine, as loom's names and litmus files use it. Its drop is not
//! checked: statics and threads' own words need not be dropped, and loom's names have a leak check
//! of their own (`loom::execution`).

use std::panic::Location;

use crate::engine;
use crate::machine::{Access, Change, Choice, Loc, Op, Owners};

#[derive(Debug)]
pub(crate) struct Raw(Loc);

#[track_caller]
fn step(op: Op, access: Access) -> u64 {
    engine::step_as(op, access, Location::caller())
}

impl Raw {
    pub(crate) fn new(value: u64) -> Self {
        Raw(engine::new_raw_word(value))
    }

    /// A word that a thread may use even if its making does not happen before that use.
    pub(crate) fn common(value: u64) -> Self {
        Raw(engine::new_common_word(value))
    }

    pub(crate) fn place(&self) -> Loc {
        self.0
    }

    #[track_caller]
    pub(crate) fn load(&self) -> u64 {
        self.load_as(Access::STRONG)
    }

    #[track_caller]
    pub(crate) fn load_as(&self, access: Access) -> u64 {
        step(Op::Load(self.0), access)
    }

    #[track_caller]
    pub(crate) fn store(&self, value: u64) {
        self.store_as(value, Access::STRONG);
    }

    #[track_caller]
    pub(crate) fn store_as(&self, value: u64, access: Access) {
        step(Op::Store(self.0, value), access);
    }

    /// Without a step. No other thread may store to the word at this time, or, if `writes`, use it.
    #[track_caller]
    pub(crate) fn alone(&self, writes: bool) -> u64 {
        engine::alone(self.0, writes, Location::caller())
    }

    #[track_caller]
    pub(crate) fn change(&self, change: Change) -> u64 {
        self.change_as(change, Access::STRONG)
    }

    #[track_caller]
    pub(crate) fn change_as(&self, change: Change, access: Access) -> u64 {
        step(Op::Change(self.0, change), access)
    }

    /// A read-modify-write that waits until the word, shifted right by `shift` bits, is zero.
    #[track_caller]
    pub(crate) fn wait_as(&self, shift: u8, change: Change, access: Access) -> u64 {
        step(Op::Await(self.0, shift, change), access)
    }

    /// A read-modify-write of what is the newest in every memory model. The word is less than 2^63.
    #[track_caller]
    pub(crate) fn newest(&self, change: Change, access: Access) -> u64 {
        step(Op::Await(self.0, 63, change), access)
    }

    #[track_caller]
    pub(crate) fn owners(&self, owners: Owners) -> u64 {
        step(Op::Count(self.0, owners), Access::STRONG)
    }
}

/// Gives the turn away until something that this thread has read since the last time has changed.
#[track_caller]
pub(crate) fn pause() {
    engine::step(Op::Pause, Location::caller());
}

#[track_caller]
pub(crate) fn full_fence() {
    engine::step(Op::Full, Location::caller());
}

#[track_caller]
pub(crate) fn fence(access: Access) {
    engine::step_as(Op::Fence, access, Location::caller());
}

#[track_caller]
pub(crate) fn join(thread: usize) {
    engine::step(Op::Join(thread as u8), Location::caller());
}

/// A number below that of the choice's possibilities: the search tries each. No step comes between
/// the thread's step before and this one.
#[track_caller]
pub(crate) fn choose(choice: Choice) -> usize {
    engine::step(Op::Choose(choice), Location::caller()) as usize
}
