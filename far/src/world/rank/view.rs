//! The rank as the balancer sees it.

use std::sync::atomic::Ordering;

use super::{RELAXED, Rank, lock};
use crate::bag::Bag;
use crate::balance::{Given, Local};
use crate::job::Job;
use crate::message::{Failure, Parcel};
use crate::world::checkpoint;

/// The rank as the balancer sees it, from a run or from the heart.
pub(super) struct View<'v, 'j, J: Job> {
    pub(super) rank: &'v Rank<'j, J>,
    /// The bag of the run that polls.
    pub(super) bag: Option<&'v mut Bag<J::Task>>,
    /// A call of that run waits.
    pub(super) call: Option<Waits>,
}

/// A call that waits.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    /// It may ask other ranks for tasks meanwhile.
    pub(super) asks: bool,
    /// It takes what there is, even if other runs may be at work.
    pub(super) impatient: bool,
}

impl<J: Job> View<'_, '_, J> {
    fn is_last(&self) -> bool {
        // Acquire: see `leave`.
        self.bag.is_some() && self.rank.running.load(Ordering::Acquire) == 1
    }

    fn has_none(&self) -> bool {
        let empty = self.bag.as_ref().is_some_and(|bag| bag.is_empty());
        empty && lock(&self.rank.aside).is_empty()
    }
}

impl<J: Job> Local for View<'_, '_, J> {
    fn is_idle(&self) -> bool {
        // A run in which a call waits is at work.
        self.call.is_none() && self.is_last() && self.has_none()
    }

    fn is_hungry(&self) -> bool {
        match self.call {
            Some(Waits { asks, .. }) => asks && self.wants_back(),
            None => self.is_idle(),
        }
    }

    fn wants_back(&self) -> bool {
        match self.call {
            Some(Waits { impatient, .. }) => (impatient || self.rank.all_wait()) && self.has_none(),
            None => self.is_idle(),
        }
    }

    fn tasks(&self) -> u64 {
        self.rank.tasks.load(RELAXED)
    }

    fn returned(&mut self, from: usize, call: u64, result: &[u8]) -> Result<(), Failure> {
        let rank = self.rank.number;
        let unreadable = |message| Failure::Unreadable { rank, from, message };
        self.rank.job.returned(from, call, result).map_err(unreadable)
    }

    fn is_still(&self) -> bool {
        let empty = self.bag.as_ref().is_some_and(|bag| bag.is_empty());
        empty && self.is_last()
    }

    /// Parcels that are packed, since nothing is encoded here.
    fn give(&mut self, parcels: usize, _: usize) -> Result<Given, Failure> {
        let mut aside = lock(&self.rank.aside);
        if !aside.packed.is_empty() {
            let most = parcels.min(aside.packed.len());
            return Ok(Given::Parcels(aside.packed.drain(..most).collect()));
        }
        let can_be_packed =
            aside.can_be_packed() || self.bag.as_ref().is_some_and(|bag| bag.len() > 1);
        drop(aside);
        if !can_be_packed && (self.is_last() || self.rank.all_wait()) {
            return Ok(Given::Nothing);
        }
        self.rank.wanted.fetch_max(parcels, RELAXED);
        Ok(Given::Later)
    }

    fn take(&mut self, from: usize, parcel: Parcel) -> Result<(), Failure> {
        lock(&self.rank.aside).came.push_back((from, parcel));
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        self.rank.paused.store(paused, RELAXED);
        if paused {
            if let Some(bag) = &mut self.bag {
                lock(&self.rank.aside).tasks.append(std::mem::take(bag));
            }
        }
    }

    fn save(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        self.rank.saves.store(true, RELAXED);
        Ok(None)
    }

    fn commit(&mut self, parts: Vec<Vec<u8>>) -> Result<(), Failure> {
        let rank = self.rank.number;
        let Some(checkpoint) = &self.rank.checkpoint else { return Ok(()) };
        checkpoint::write(checkpoint, &parts)
            .map_err(|error| Failure::Other { rank, message: format!("{error:#}") })
    }
}
