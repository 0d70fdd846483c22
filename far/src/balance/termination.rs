//! When no task is left anywhere: Mattern's four-counter method, over a tree of ranks.
//!
//! Source: Mattern, *Algorithms for distributed termination detection* (1987), section 6, "the four
//! counter method". Each rank counts the parcels of tasks that it has sent and received; no other
//! message counts, as no other makes an idle rank busy. Rank 0 sends a wave down a binary tree. A
//! rank reports the sums of its subtree once its children have reported and it is *idle*: it has no
//! task, and runs none. Rank 0 starts a wave only once the last has come back. The job is over if
//! the parcels *received* by the last wave are as many as those *sent* by this one.
//!
//! # Why it is right
//!
//! Let wave 1 end at time t, before wave 2 starts. Counts only grow, and at any moment no more
//! parcels have been received than sent. Let r and s be what wave 1 and wave 2 add up, and R(t) and
//! S(t) the counts at t. Each rank reported to wave 1 before t and to wave 2 after t, so r <= R(t)
//! <= S(t) <= s. If r = s all four are equal. Then
//!
//! - R(t) = S(t): no parcel was on its way at t.
//! - r = R(t): no rank received a parcel between its report to wave 1 and t. Each was idle when it
//!   reported, and only a parcel makes an idle rank busy; so all were idle at t.
//!
//! No rank was busy at t and no parcel was on its way: the job has been over since t. And the end
//! is found: once all ranks are idle for ever, the first wave that starts after that counts as many
//! parcels sent as received, and the next wave agrees with it.
//!
//! One wave is not enough, even if it counts as many sent as received. A rank that has reported may
//! receive a parcel from a rank that has not reported, and has not counted the parcel yet.
//! `tests/it/model_termination.rs` searches all interleavings of a few ranks, parcels and messages,
//! with [`Waves::Two`] and, where it must find the error, with [`Waves::One`].

use crate::message::Message;

/// How many agreeing waves it takes. Only [`Waves::Two`] is right; the other is for tests that must
/// fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waves {
    /// The first wave that counts as many received as sent ends the job: wrong.
    One,
    /// Mattern's.
    #[default]
    Two,
}

/// One rank's part in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Detector {
    rank: usize,
    ranks: usize,
    waves: Waves,
    /// The wave that this rank is to report to, if it has not.
    wave: Option<u8>,
    /// The last wave that came by: waves do not overlap, so 0 and 1 in turn tell them apart.
    last: u8,
    /// Children that have not reported to it, and what the others have.
    missing: usize,
    sent: u64,
    received: u64,
    /// At rank 0: what the last wave counted as received.
    before: Option<u64>,
}

/// What the detector wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing now.
    Wait,
    /// These messages to be sent.
    Send(Vec<(usize, Message)>),
    /// At rank 0: all ranks are idle, and no parcel is on its way.
    Quiet,
}

/// The rank above `rank` in the tree; none above rank 0.
pub fn parent(rank: usize) -> Option<usize> {
    rank.checked_sub(1).map(|below| below / 2)
}

/// The ranks below `rank` in the tree.
pub fn children(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    (2 * rank + 1..=2 * rank + 2).filter(move |&child| child < ranks)
}

impl Detector {
    /// The part of `rank`, of all ranks.
    pub fn new(rank: usize, ranks: usize, waves: Waves) -> Detector {
        Detector {
            rank,
            ranks,
            waves,
            wave: None,
            last: 0,
            missing: 0,
            sent: 0,
            received: 0,
            before: None,
        }
    }

    /// A wave has come down.
    pub fn asked(&mut self, wave: u8) -> Vec<(usize, Message)> {
        self.wave = Some(wave);
        self.last = wave;
        (self.sent, self.received) = (0, 0);
        let below: Vec<_> = children(self.rank, self.ranks).collect();
        self.missing = below.len();
        below.into_iter().map(|child| (child, Message::Ask { wave })).collect()
    }

    /// A child has reported.
    pub fn reported(&mut self, wave: u8, sent: u64, received: u64) {
        debug_assert_eq!(self.wave, Some(wave), "a report to another wave");
        self.missing -= 1;
        self.sent += sent;
        self.received += received;
    }

    /// To be called while this rank is idle, with the parcels that it has sent and received.
    pub fn idle(&mut self, sent: u64, received: u64) -> Step {
        let Some(wave) = self.wave else {
            return if self.rank == 0 {
                let messages = self.asked(self.last ^ 1);
                if messages.is_empty() { self.idle(sent, received) } else { Step::Send(messages) }
            } else {
                Step::Wait
            };
        };
        if self.missing > 0 {
            return Step::Wait;
        }
        self.wave = None;
        let (sent, received) = (self.sent + sent, self.received + received);
        if let Some(parent) = parent(self.rank) {
            return Step::Send(vec![(parent, Message::Report { wave, sent, received })]);
        }
        let quiet = match self.waves {
            Waves::One => sent == received,
            Waves::Two => self.before == Some(sent),
        };
        self.before = Some(received);
        if quiet {
            self.before = None;
            return Step::Quiet;
        }
        // The next wave at once.
        self.idle(sent, received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_alone_is_quiet_when_it_is_idle() {
        assert_eq!(Detector::new(0, 1, Waves::Two).idle(0, 0), Step::Quiet);
    }

    #[test]
    fn every_rank_has_one_parent_and_is_its_child() {
        for ranks in 1..50 {
            for rank in 1..ranks {
                let above = parent(rank).unwrap();
                assert!(above < rank && children(above, ranks).any(|child| child == rank));
            }
            let below: usize = (0..ranks).map(|rank| children(rank, ranks).count()).sum();
            assert_eq!(below, ranks - 1);
        }
        assert_eq!(parent(0), None);
    }
}
