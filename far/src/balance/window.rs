//! A split queue in a window: its owner shares parcels there, and thieves take half of them without the owner's doing.
//!
//! Source: Dinan et al., *Scalable work stealing* (2009), and Lace's split deque, with parcels of tasks in the place of
//! tasks, so that an operation on the network moves many. A rank's window has [`SLOTS`] slots and two words.
//!
//! | step | who | what |
//! |---|---|---|
//! | 1 | owner | shares only when the queue is empty and everything claimed was copied: writes slots 0.. and then the ends (head 0, tail n) in one word |
//! | 2 | thief | reads the ends of a victim |
//! | 3 | thief | claims half of the parcels, rounded up: a compare-and-swap moves the head |
//! | 4 | thief | copies the claimed slots |
//! | 5 | thief | adds their number to the victim's count of copied parcels |
//! | 6 | owner | takes everything back: an addition moves the head to the tail or beyond, and tells where it was |
//!
//! Each slot is claimed once: every claim moves the head of one word by one atomic operation. A head at or beyond the tail is an empty queue, whose word only
//! its owner changes, so the owner
//! gives it a new value by adding the difference. The ends hold a round number
//! too, so that a thief that has read the ends of one round cannot claim from the next (a head that comes back to an old
//! value). No claimed slot is overwritten: step 1 waits until the count of step 5 is as high as the number of claims.
//!
//! For the end of the job a claim *is* the sending of its parcels: the owner learns the number from the ends. So it counts
//! as sent from step 3 on, and as received when the thief takes it after step 4; in between it is on its way.

use crate::transport::{Transport, Word};

/// Parcels that a window holds.
pub const SLOTS: usize = 16;

/// The two ends of the shared part, and the round: 32, 16 and 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    round: u32,
    tail: u16,
    head: u16,
}

impl Ends {
    fn of(word: u64) -> Ends {
        Ends { round: (word >> 32) as u32, tail: (word >> 16) as u16, head: word as u16 }
    }

    fn word(self) -> u64 {
        u64::from(self.round) << 32 | u64::from(self.tail) << 16 | u64::from(self.head)
    }

    fn len(self) -> u16 {
        self.tail.saturating_sub(self.head)
    }
}

/// The owner's part.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    /// The ends as they were seen last: while the queue is empty, as they are.
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
    pub fn has_room(&mut self, transport: &mut impl Transport) -> bool {
        let (own, ends) = (transport.rank(), self.look(transport));
        ends.len() == 0
            && transport.fetch_add(own, Word::Copied, 0) + self.taken_back == self.shared
    }

    /// Shares parcels (step 1), at most [`SLOTS`]. Only just after there [was room](Owner::has_room).
    pub fn share(&mut self, transport: &mut impl Transport, parcels: &[Vec<u8>]) {
        let own = transport.rank();
        for (slot, bytes) in parcels.iter().enumerate() {
            transport.put_own(slot, bytes);
        }
        let round = Ends::of(self.seen).round.wrapping_add(1);
        let new = Ends { round, tail: parcels.len() as u16, head: 0 }.word();
        let found = transport.fetch_add(own, Word::Ends, new.wrapping_sub(self.seen));
        debug_assert_eq!(found, self.seen, "nobody else changes the ends of an empty queue");
        self.seen = new;
        self.shared += parcels.len() as u64;
    }

    /// Takes back what nobody has claimed (step 6).
    pub fn take_back(&mut self, transport: &mut impl Transport) -> Vec<Vec<u8>> {
        if self.look(transport).len() == 0 {
            return Vec::new();
        }
        let own = transport.rank();
        let ends = Ends::of(transport.fetch_add(own, Word::Ends, SLOTS as u64));
        self.taken_back += u64::from(ends.len());
        (ends.head..ends.tail).map(|slot| transport.get(own, slot.into())).collect()
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
    /// Step 3, with the word that was read.
    Claim(usize, u64),
    /// Steps 4 and 5: the slots from the first to before the second.
    Copy(usize, u16, u16),
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
                let seen = transport.fetch_add(victim, Word::Ends, 0);
                if Ends::of(seen).len() == 0 {
                    Taken::Nothing
                } else {
                    Taken::Next(Theft::Claim(victim, seen))
                }
            }
            Theft::Claim(victim, seen) => {
                let ends = Ends::of(seen);
                let (first, last) = (ends.head, ends.head + ends.len().div_ceil(2));
                let new = Ends { head: last, ..ends };
                if transport.compare_swap(victim, Word::Ends, seen, new.word()) == seen {
                    Taken::Next(Theft::Copy(victim, first, last))
                } else {
                    Taken::Nothing
                }
            }
            Theft::Copy(victim, first, last) => {
                let parcels =
                    (first..last).map(|slot| transport.get(victim, slot.into())).collect();
                transport.fetch_add(victim, Word::Copied, u64::from(last - first));
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
            [Ends { round: 0, tail: 0, head: 0 }, Ends { round: u32::MAX, tail: 16, head: 7 }]
        {
            assert_eq!(Ends::of(ends.word()), ends);
        }
    }
}
