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
    /// It asks other ranks for tasks meanwhile.
    pub(super) asks: bool,
}

impl<J: Job> View<'_, '_, J> {
    fn is_last(&self) -> bool {
        // Acquire: see `leave`.
        self.bag.is_some() && self.rank.running.load(Ordering::Acquire) == 1
    }

    /// Whether no run of this rank has anything to do. A guess, but for the last run.
    fn all_wait(&self) -> bool {
        self.rank.waiting.load(RELAXED) >= self.rank.running.load(RELAXED)
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
            Some(Waits { asks }) => asks && self.all_wait() && self.has_none(),
            None => self.is_idle(),
        }
    }

    fn tasks(&self) -> u64 {
        self.rank.tasks.load(RELAXED)
    }

    fn returned(&mut self, from: usize, call: u64, result: &[u8]) -> Result<(), Failure> {
        let rank = self.rank.number;
        let unreadable = |message| Failure::Unreadable { rank, from, message };
        self.rank.job.returned(call, result).map_err(unreadable)
    }

    fn is_still(&self) -> bool {
        let empty = self.bag.as_ref().is_some_and(|bag| bag.is_empty());
        empty && self.is_last()
    }

    fn give(&mut self, parcels: usize, bytes: usize) -> Result<Given, Failure> {
        let rank = self.rank.number;
        let mut given = Vec::new();
        {
            let mut aside = lock(&self.rank.aside);
            if !aside.is_empty() {
                let all = aside.len();
                given = aside.give_first(rank, all, parcels, bytes)?;
            }
        }
        if let Some(bag) = self.bag.as_mut().filter(|_| given.is_empty()) {
            given = bag.give(rank, parcels, bytes)?;
        }
        if !given.is_empty() {
            return Ok(Given::Parcels(given));
        }
        if self.is_last() || self.all_wait() {
            return Ok(Given::Nothing);
        }
        self.rank.wanted.store(true, RELAXED);
        Ok(Given::Later)
    }

    fn take(&mut self, from: usize, parcel: &Parcel) -> Result<(), Failure> {
        let tasks = Bag::open(self.rank.number, from, parcel)?;
        match &mut self.bag {
            Some(bag) => bag.append(tasks),
            None => lock(&self.rank.aside).append(tasks),
        }
        Ok(())
    }

    fn pause(&mut self, paused: bool) {
        self.rank.paused.store(paused, RELAXED);
        if paused && let Some(bag) = &mut self.bag {
            lock(&self.rank.aside).append(std::mem::take(bag));
        }
    }

    fn save(&mut self) -> Result<(u64, Vec<u8>), Failure> {
        let rank = self.rank.number;
        let aside = lock(&self.rank.aside);
        let result = lock(&self.rank.result);
        let identity = self.rank.job.identity();
        // As `Saved` is encoded, from what is borrowed.
        postcard::to_allocvec(&(
            aside.iter().collect::<Vec<_>>(),
            result.as_ref().unwrap_or(&identity),
        ))
        .map(|bytes| (aside.len() as u64, bytes))
        .map_err(|error| Failure::Other {
            rank,
            message: format!("cannot encode a checkpoint: {error}"),
        })
    }

    fn commit(&mut self, parts: Vec<Vec<u8>>) -> Result<(), Failure> {
        let rank = self.rank.number;
        let Some(checkpoint) = &self.rank.checkpoint else { return Ok(()) };
        checkpoint::write(checkpoint, &parts)
            .map_err(|error| Failure::Other { rank, message: format!("{error:#}") })
    }
}
