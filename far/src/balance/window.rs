//! A split queue in a window: its owner shares parcels there, and thieves take half of them without
//! the owner's doing.
//!
//! Source: Dinan et al., *Scalable work stealing* (2009), and Lace's split deque, with parcels of
//! tasks in the place of tasks, so that an operation on the network moves many. A rank's window has
//! [`SLOTS`] slots and two words.
//!
//! | step | who | what |
//! |---|---|---|
//! | 1 | owner | shares only when the queue is empty and everything claimed was copied: writes slots 0.. and then, by an addition, the ends (head 0, tail n) in one word |
//! | 2 | thief | reads the ends of a victim |
//! | 3 | thief | claims half of the parcels, rounded up: an addition moves the head, and tells where it was |
//! | 4 | thief | copies the claimed slots |
//! | 5 | thief | adds their number to the victim's count of copied parcels |
//! | 6 | owner | takes everything back: an addition moves the head to the tail or beyond, and tells where it was |
//!
//! Each slot is claimed once: every claim moves the head of one word by one atomic addition, and
//! claims the slots that it moved the head over, as far as the tail. What it claims is decided by
//! the addition alone; the ends of step 2 only say whether to claim, and how many. No claimed slot
//! is overwritten: step 1 waits until the count of step 5 is as high as the number of claimed
//! slots.
//!
//! **Late claims.** A head at or beyond the tail is an empty queue. A thief that has read the ends
//! before the queue became empty moves the head of an empty queue, and claims nothing. If this
//! happens between the owner's last look and its addition of step 1, the new head is not 0, and no
//! thief can claim the slots before it. The owner sees that from what its addition returns, and
//! takes these parcels back at once. The head has 48 bits and does not overflow: between two looks
//! a thief moves it once, by at most half of the slots.
//!
//! Additions are the only atomic operations, because MPI can begin an addition and tell later
//! whether it has ended (`MPI_Rget_accumulate`). It cannot do so for a compare-and-swap. Where the
//! network needs the victim to act, a thief sleeps meanwhile.
//!
//! For the end of the job a claim *is* the sending of its parcels: the owner learns the number from
//! the ends. So it counts as sent from step 3 on, and as received when the thief takes it after
//! step 4; in between it is on its way.

use std::ops::Range;

use crate::transport::{Transport, Word};

/// Parcels that a window holds.
pub const SLOTS: usize = 16;

/// The two ends of the shared part: the tail in 16 bits, the head in 48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    tail: u64,
    head: u64,
}

const HEAD: u64 = (1 << 48) - 1;

impl Ends {
    fn of(word: u64) -> Ends {
        Ends { tail: word >> 48, head: word & HEAD }
    }

    fn word(self) -> u64 {
        self.tail << 48 | self.head
    }

    fn len(self) -> u64 {
        self.tail.saturating_sub(self.head)
    }

    /// The slots that a thief claims by moving the head.
    fn claimed_by(self, number: u64) -> Range<usize> {
        let first = self.head.min(self.tail);
        first as usize..first.saturating_add(number).min(self.tail) as usize
    }
}

/// The owner's part.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// The ends as they were seen last.
    seen: u64,
    /// Parcels that were ever shared, and how many of them were taken back.
    shared: u64,
    taken_back: u64,
}

impl Owner {
    fn look(&mut self, transport: &mut impl Transport) -> Ends {
        let own = transport.rank();
        self.seen = transport.fetch_add(own, Word::Ends, 0);
        Ends::of(self.seen)
    }

    /// Whether parcels may be shared now (step 1).
    pub fn may_share(&mut self, transport: &mut impl Transport) -> bool {
        let (own, ends) = (transport.rank(), self.look(transport));
        ends.len() == 0
            && transport.fetch_add(own, Word::Copied, 0) + self.taken_back == self.shared
    }

    /// Shares parcels (step 1), at most [`SLOTS`]. Only just after there [they may
    /// be](Owner::may_share). Returns the parcels that late claims keep from being shared.
    #[must_use]
    pub fn share(&mut self, transport: &mut impl Transport, parcels: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let own = transport.rank();
        for (slot, bytes) in parcels.iter().enumerate() {
            transport.put_own(slot, bytes);
        }
        let new = Ends { tail: parcels.len() as u64, head: 0 };
        let found = transport.fetch_add(own, Word::Ends, new.word().wrapping_sub(self.seen));
        let late = new.claimed_by(found.wrapping_sub(self.seen));
        self.shared += (parcels.len() - late.len()) as u64;
        late.map(|slot| transport.get(own, slot)).collect()
    }

    /// Takes back the parcels that no rank has claimed (step 6).
    pub fn take_back(&mut self, transport: &mut impl Transport) -> Vec<Vec<u8>> {
        if self.look(transport).len() == 0 {
            return Vec::new();
        }
        let own = transport.rank();
        let all = SLOTS as u64;
        let back = Ends::of(transport.fetch_add(own, Word::Ends, all)).claimed_by(all);
        self.taken_back += back.len() as u64;
        back.map(|slot| transport.get(own, slot)).collect()
    }

    /// Parcels that others have claimed. Exact only while nothing is shared.
    pub fn claimed(&self) -> u64 {
        self.shared - self.taken_back
    }

    /// Whether nothing that was shared waits to be claimed.
    pub fn is_empty(&mut self, transport: &mut impl Transport) -> bool {
        self.look(transport).len() == 0
    }
}

/// A theft, one operation on the network a step, so that anything may happen between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theft {
    /// Step 2.
    Look(usize),
    /// Step 3, with how many to claim.
    Claim(usize, u64),
    /// Steps 4 and 5: the slots from the first to before the second.
    Copy(usize, usize, usize),
}

/// What a step of a theft came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Go on with this.
    Next(Theft),
    /// There was nothing.
    Nothing,
    /// These parcels.
    Parcels(Vec<Vec<u8>>),
}

impl Theft {
    /// Does the next step.
    pub fn step(self, transport: &mut impl Transport) -> Taken {
        match self {
            Theft::Look(victim) => {
                match Ends::of(transport.fetch_add(victim, Word::Ends, 0)).len() {
                    0 => Taken::Nothing,
                    len => Taken::Next(Theft::Claim(victim, len.div_ceil(2))),
                }
            }
            Theft::Claim(victim, number) => {
                let found = Ends::of(transport.fetch_add(victim, Word::Ends, number));
                let slots = found.claimed_by(number);
                if slots.is_empty() {
                    Taken::Nothing
                } else {
                    Taken::Next(Theft::Copy(victim, slots.start, slots.end))
                }
            }
            Theft::Copy(victim, first, last) => {
                let parcels = (first..last).map(|slot| transport.get(victim, slot)).collect();
                transport.fetch_add(victim, Word::Copied, (last - first) as u64);
                Taken::Parcels(parcels)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_a_word() {
        for ends in
            [Ends { tail: 0, head: 0 }, Ends { tail: 16, head: 7 }, Ends { tail: 1, head: HEAD }]
        {
            assert_eq!(Ends::of(ends.word()), ends);
        }
    }

    #[test]
    fn a_claim_ends_at_the_tail() {
        let ends = |head, tail| Ends { tail, head };
        assert_eq!(ends(2, 6).claimed_by(2), 2..4);
        assert_eq!(ends(5, 6).claimed_by(3), 5..6);
        assert!(ends(6, 6).claimed_by(1).is_empty());
        assert!(ends(60, 6).claimed_by(8).is_empty());
    }
}
