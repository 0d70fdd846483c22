//! A word of the simulated machine, as loom's names and litmus files use it. It is not asked
//! whether it is dropped: statics and threads' own words need not be, and loom's names have a leak
//! check of their own (`loom::execution`).

use std::panic::Location;

use crate::engine;
use crate::machine::{Change, Loc, Op};

#[derive(Debug)]
pub(crate) struct Raw(Loc);

impl Raw {
    pub(crate) fn new(value: u64) -> Self {
        Raw(engine::new_raw_word(value))
    }

    pub(crate) fn place(&self) -> Loc {
        self.0
    }

    #[track_caller]
    pub(crate) fn load(&self) -> u64 {
        engine::step(Op::Load(self.0), Location::caller())
    }

    /// A store that goes through the thread's buffer.
    #[track_caller]
    pub(crate) fn store(&self, value: u64) {
        engine::step(Op::Store(self.0, value), Location::caller());
    }

    /// A read-modify-write; returns the old value.
    #[track_caller]
    pub(crate) fn change(&self, change: Change) -> u64 {
        engine::step(Op::Change(self.0, change), Location::caller())
    }

    #[track_caller]
    pub(crate) fn add(&self, value: u64) -> u64 {
        self.change(Change::Add(value))
    }

    #[track_caller]
    pub(crate) fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        let old = self.change(Change::CompareExchange(current, new));
        if old == current { Ok(old) } else { Err(old) }
    }

    /// A read-modify-write that waits until the word, shifted right by `shift` bits, is zero.
    #[track_caller]
    pub(crate) fn wait(&self, shift: u8, change: Change) -> u64 {
        engine::step(Op::Await(self.0, shift, change), Location::caller())
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
pub(crate) fn join(thread: usize) {
    engine::step(Op::Join(thread as u8), Location::caller());
}
