//! Delays between ranks, at random: what tests inject to see whether a job depends on when a
//! message arrives.
//!
//! A message that has come is held back until its time, which is drawn when it comes; messages of
//! the same sender keep their order. A one-sided operation begins later. The draws are cubed, so
//! most delays are short and some are as long as they may be.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use crate::balance::Message;

/// Messages that have come and are held back.
pub(super) struct Delays {
    /// As long as a message is held back at most; messages are not held back if it is zero.
    most: Duration,
    random: fastrand::Rng,
    /// By sender, in the order in which they came: when each is due, its job and itself.
    held: Vec<VecDeque<(Instant, u32, Message)>>,
    /// How many they are.
    count: usize,
}

impl Delays {
    /// No delays, between this number of ranks.
    pub(super) fn none(ranks: usize) -> Delays {
        let held = (0..ranks).map(|_| VecDeque::new()).collect();
        Delays { most: Duration::ZERO, random: fastrand::Rng::with_seed(0), held, count: 0 }
    }

    /// Delays of at most this time from now on, as the seed decides.
    pub(super) fn begin(&mut self, most: Duration, seed: u64) {
        self.most = most;
        self.random.seed(seed);
    }

    /// Whether a message may be held back: there are delays, or messages from when there were.
    pub(super) fn are_there(&self) -> bool {
        self.count > 0 || !self.most.is_zero()
    }

    fn draw(&mut self) -> Duration {
        let share = self.random.f64();
        self.most.mul_f64(share * share * share)
    }

    /// Holds a message of a job back.
    pub(super) fn hold(&mut self, from: usize, job: u32, message: Message) {
        let due = Instant::now() + self.draw();
        self.held[from].push_back((due, job, message));
        self.count += 1;
    }

    /// A message whose time has come, its job, and its sender. Linear in the ranks.
    pub(super) fn due(&mut self) -> Option<(usize, u32, Message)> {
        let now = Instant::now();
        let ranks = self.held.len();
        // From a sender chosen at random on, so that those of different senders overtake each
        // other.
        let first = self.random.usize(0..ranks);
        for from in (first..ranks).chain(0..first) {
            if self.held[from].front().is_some_and(|(due, ..)| *due <= now) {
                let (_, job, message) = self.held[from].pop_front()?;
                self.count -= 1;
                return Some((from, job, message));
            }
        }
        None
    }

    /// Waits, before a one-sided operation.
    pub(super) fn wait(&mut self) {
        if !self.most.is_zero() {
            thread::sleep(self.draw());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_a_sender_keep_their_order_and_others_overtake() {
        let mut delays = Delays::none(3);
        assert!(!delays.are_there());
        delays.begin(Duration::from_millis(2), 7);
        let mut overtaken = false;
        for round in 0..20 {
            let sent: Vec<_> = (0..30).map(|number| (number % 3, number)).collect();
            for &(from, number) in &sent {
                delays.hold(from, round, Message::Count(number as u64));
            }
            let mut came = Vec::new();
            while came.len() < sent.len() {
                if let Some((from, job, Message::Count(number))) = delays.due() {
                    assert_eq!(job, round);
                    came.push((from, number as usize));
                }
            }
            overtaken |= came != sent;
            for rank in 0..3 {
                let of = |all: &[(usize, usize)]| {
                    all.iter().filter(|(from, _)| *from == rank).copied().collect::<Vec<_>>()
                };
                assert_eq!(of(&came), of(&sent));
            }
        }
        assert!(overtaken, "no message of another sender was faster");
        delays.begin(Duration::ZERO, 0);
        assert!(!delays.are_there() && delays.due().is_none());
    }
}
