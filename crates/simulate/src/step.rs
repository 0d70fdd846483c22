//! What a thread does next, and what a word's content in memory is.

use std::panic::Location;

use crate::lines::Time;

pub(crate) type Place = &'static Location<'static>;

/// What a thread does next. Addresses are those of the word or cell; a line is found by them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Load {
        word: u32,
        address: usize,
    },
    Store {
        word: u32,
        address: usize,
        value: u64,
    },
    Change {
        word: u32,
        address: usize,
        change: Change,
    },
    /// A part of a cell, which lies on one line.
    Read {
        address: usize,
    },
    Write {
        address: usize,
    },
    Evict {
        address: usize,
    },
    Fence,
    Barrier,
    Pause,
    GiveWay,
}

/// A read-modify-write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Swap(u64),
    Add(u64),
    Or(u64),
    And(u64),
    CompareExchange(u64, u64),
}

impl Change {
    pub(crate) fn apply(self, old: u64) -> u64 {
        match self {
            Change::Swap(new) => new,
            Change::Add(more) => old.wrapping_add(more),
            Change::Or(bits) => old | bits,
            Change::And(bits) => old & bits,
            Change::CompareExchange(current, new) => {
                if old == current {
                    new
                } else {
                    old
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    Done(u64),
    Suspend,
}

/// A word's content in memory.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) value: u64,
    /// Stores that are still in buffers.
    pub(crate) pending: u32,
    /// The word is gone; its place is used again when no store is pending.
    pub(crate) dropped: bool,
    /// The processor that wrote the word last, and when that store was issued.
    pub(crate) writer: u32,
    pub(crate) written: Time,
    /// The content before, for processors whose copy of the line has to go by the time `fresh`.
    pub(crate) before: u64,
    pub(crate) fresh: Time,
}

impl Slot {
    /// Changes the content, while others may read the old one until `stale`.
    pub(crate) fn put(&mut self, value: u64, stale: Option<Time>) {
        if let Some(fresh) = stale {
            if self.fresh != fresh {
                (self.before, self.fresh) = (self.value, fresh);
            }
        }
        self.value = value;
    }

    /// The content, as read from a copy that has to go by `stale`; or from a copy that may stay.
    pub(crate) fn get(&self, stale: Option<Time>) -> u64 {
        if stale == Some(self.fresh) { self.before } else { self.value }
    }
}

pub(crate) const NOBODY: u32 = u32::MAX;
