//! After a job: what the ranks have found, brought to rank 0.

use std::collections::BTreeMap;

use super::rank::rest;
use super::{RankStats, World};
use crate::balance::termination::{children, parent};
use crate::balance::{Balancer, Given, Local, Progress};
use crate::job::Job;
use crate::message::{Failure, Message, Parcel};
use crate::transport::Transport as _;

impl World {
    /// Brings the results to rank 0, up the tree of ranks.
    #[expect(clippy::type_complexity, reason = "a result, and what each rank has done")]
    pub(super) fn gather<J: Job>(
        &mut self,
        job: &J,
        balancer: &mut Balancer,
        result: Option<J::Result>,
        tasks: u64,
        ranks: usize,
    ) -> Result<Option<(J::Result, BTreeMap<usize, RankStats>)>, Failure> {
        let rank = self.rank();
        let stats = RankStats { tasks, balance: balancer.counters() };
        let mut all = BTreeMap::from([(rank, stats)]);
        let mut result = result.unwrap_or_else(|| job.identity());
        let mut missing = children(rank, ranks).count();
        let mut sent = false;
        let mut idle = 0;
        loop {
            if missing == 0 && !sent {
                sent = true;
                match parent(rank) {
                    None => {
                        self.send_down(&Message::Final);
                        return Ok(Some((result, all)));
                    }
                    Some(parent) => {
                        let bytes = postcard::to_allocvec(&(&result, &all)).map_err(|error| {
                            Failure::Other {
                                rank,
                                message: format!("cannot encode a result: {error}"),
                            }
                        })?;
                        self.link.send(parent, Message::Result(bytes));
                    }
                }
            }
            balancer.poll(&mut self.link, &mut Nobody);
            if let Some(message) = self.link.error.clone() {
                balancer.fail(&mut self.link, Failure::Other { rank, message });
            }
            if let Progress::Failed(failure) = balancer.progress() {
                return Err(failure.clone());
            }
            while let Some((from, message)) = balancer.results.pop_front() {
                idle = 0;
                let Message::Result(bytes) = message else {
                    self.send_down(&Message::Final);
                    return Ok(None);
                };
                let (theirs, stats): (J::Result, BTreeMap<usize, RankStats>) =
                    postcard::from_bytes(&bytes).map_err(|error| {
                        let message = error.to_string();
                        Failure::Unreadable { rank, from, message }
                    })?;
                job.combine(&mut result, theirs);
                all.extend(stats);
                missing -= 1;
            }
            rest(&mut idle);
        }
    }

    fn send_down(&mut self, message: &Message) {
        for child in children(self.rank(), self.ranks()) {
            self.link.send(child, message.clone());
        }
    }
}

/// A rank whose job is over.
struct Nobody;

impl Local for Nobody {
    fn is_idle(&self) -> bool {
        false
    }

    fn is_still(&self) -> bool {
        false
    }

    fn give(&mut self, _: usize, _: usize) -> Result<Given, Failure> {
        Ok(Given::Nothing)
    }

    fn take(&mut self, _: usize, _: Parcel) -> Result<(), Failure> {
        Ok(())
    }

    fn pause(&mut self, _: bool) {}

    fn save(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        Ok(Some((0, Vec::new())))
    }

    fn commit(&mut self, _: Vec<Vec<u8>>) -> Result<(), Failure> {
        Ok(())
    }
}
