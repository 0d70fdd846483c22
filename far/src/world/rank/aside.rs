//! Tasks that no run has, and what of them is encoded.
//!
//! # The user's code and the locks
//!
//! `Serialize`, `Deserialize` and `combine` of tasks and results are the user's. They may fork, and
//! a fork that waits may run another run of this rank on the same call stack. The other run takes
//! each lock of the rank sooner or later. So no user's function is called under a lock:
//!
//! | what | under the lock of `comm` | afterwards, or before, under none |
//! |---|---|---|
//! | tasks for other ranks | the balancer takes parcels that are packed, or says by `wanted` how many are | a run that has tasks packs them ([`Rank::pack`]), and polls again |
//! | tasks from other ranks | the parcels are put aside as they are | the run that takes one up opens it ([`Rank::take_up`]) |
//! | what a call came to elsewhere | kept as it is, with the number of the call | the call that waits for it decodes it (`call.rs`) |
//! | a checkpoint | `saves` is set | the last run, which is the only one then, encodes what there is ([`Rank::save`]) and tells the balancer |
//! | results of runs | | [`Run::merge`](super::run::Run) takes both out of the rank and puts the sum back |
//! | what is told of progress | the numbers are read | the user is told ([`Rank::poll`]) |
//!
//! Only the run holds what it takes out for that. The run counts as running all the while. Only the
//! last run sees [idleness](super::view::View), so no other run could find that the rank is idle:
//! the end is not found too early. And no call waits for ever for a task that a run holds so. A
//! call on top of the run was begun later than the tasks were taken, and waits for calls that were
//! begun later still ([why](crate::call)).
//!
//! Parcels that came are not given on as they are, or two ranks without tasks could send one to
//! each other for ever: a run opens them, and packs half.

use std::collections::VecDeque;

use super::{Comm, RELAXED, Rank, View, lock};
use crate::bag::Bag;
use crate::job::Job;
use crate::message::{Failure, Parcel};

/// Tasks that no run has.
pub(super) struct Aside<T> {
    /// Tasks of runs that had some to spare.
    pub(super) tasks: Bag<T>,
    /// For other ranks.
    pub(super) packed: VecDeque<Parcel>,
    /// From other ranks, or back from this one's window.
    pub(super) came: VecDeque<(usize, Parcel)>,
}

impl<T> Default for Aside<T> {
    fn default() -> Self {
        Aside { tasks: Bag::default(), packed: VecDeque::new(), came: VecDeque::new() }
    }
}

impl<T> Aside<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.packed.is_empty() && self.came.is_empty()
    }

    /// Whether a run could pack some of it.
    pub(super) fn can_be_packed(&self) -> bool {
        !self.tasks.is_empty() || !self.came.is_empty()
    }

    /// A parcel for the rank `own` itself.
    fn pop_parcel(&mut self, own: usize) -> Option<(usize, Parcel)> {
        self.came.pop_front().or_else(|| self.packed.pop_front().map(|parcel| (own, parcel)))
    }
}

/// How much a run takes up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Much {
    /// All tasks, or a parcel.
    All,
    /// The oldest task, or a parcel: for a call that waits, which runs it on top.
    One,
}

impl<J: Job> Rank<'_, J> {
    /// Puts aside for other ranks what lies aside, or half of a bag, in up to `parcels` parcels.
    /// Returns whether there was anything.
    pub(super) fn pack(&self, bag: &mut Bag<J::Task>, parcels: usize) -> Result<bool, Failure> {
        let bytes = self.limits.parcel;
        let mut spare = std::mem::take(&mut lock(&self.aside).tasks);
        let packed = if spare.is_empty() {
            bag.give(self.number, parcels, bytes)?
        } else {
            let most = spare.len();
            let packed = spare.give_first(self.number, most, parcels, bytes)?;
            lock(&self.aside).tasks.append(spare);
            packed
        };
        let any = !packed.is_empty();
        lock(&self.aside).packed.extend(packed);
        Ok(any)
    }

    /// Takes up what lies aside, into a bag. Whether there was anything.
    pub(super) fn take_up(&self, bag: &mut Bag<J::Task>, much: Much) -> Result<bool, Failure> {
        let mut aside = lock(&self.aside);
        let tasks = match much {
            Much::All => std::mem::take(&mut aside.tasks),
            Much::One => aside.tasks.pop_oldest().into_iter().collect(),
        };
        let parcel = if tasks.is_empty() { aside.pop_parcel(self.number) } else { None };
        drop(aside);
        bag.append(tasks);
        if let Some((from, parcel)) = parcel {
            bag.append(Bag::open(self.number, from, &parcel)?);
        }
        Ok(!bag.is_empty())
    }

    /// Encodes what lies aside and what was found, and tells the balancer. The rank is paused, and
    /// the calling run is the only one.
    pub(super) fn save(&self) -> Result<(), Failure> {
        let (mut bag, other) = (Bag::default(), |message| Failure::Other {
            rank: self.number,
            message: format!("cannot encode a checkpoint: {message}"),
        });
        let mut whole = Bag::default();
        while self.take_up(&mut bag, Much::All)? {
            whole.append(std::mem::take(&mut bag));
        }
        let result = lock(&self.result).take().unwrap_or_else(|| self.job.identity());
        // As `Saved` is encoded, from what is borrowed.
        let saved = postcard::to_allocvec(&(whole.iter().collect::<Vec<_>>(), &result))
            .map_err(|error| other(error.to_string()))?;
        let tasks = whole.len() as u64;
        *lock(&self.result) = Some(result);
        lock(&self.aside).tasks.append(whole);
        let mut comm = lock(&self.comm);
        let Comm { link, balancer, .. } = &mut *comm;
        let mut view = View { rank: self, bag: None, call: None };
        balancer.saved_here(*link, &mut view, (tasks, saved));
        self.stops(balancer);
        Ok(())
    }

    /// Whether a checkpoint waits for what this rank saves; once.
    pub(super) fn is_to_save(&self) -> bool {
        self.saves.load(RELAXED) && self.saves.swap(false, RELAXED)
    }
}
