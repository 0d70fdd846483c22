//! What the load balancing asks of a network: messages, and operations on another rank's window.
//!
//! [`Balancer`](crate::balance::Balancer) is written over this trait alone, so the same lines run
//! over MPI and in the [simulator](crate::simulate).

use crate::message::Message;

/// The two words of each rank's window that others change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The ends of the shared part.
    Ends,
    /// The number of parcels that their thieves have copied out.
    Copied,
}

/// A rank's connection to the others.
///
/// Messages between two ranks arrive in the order in which they were sent, and none is lost or
/// arrives twice. No call waits for another rank, but for the one-sided operations, which wait for
/// the network alone.
pub trait Transport {
    /// This rank.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Nanoseconds since some moment.
    fn now(&mut self) -> u64;

    /// Sends a message.
    fn send(&mut self, to: usize, message: Message);

    /// The next message that has arrived, and its sender.
    fn receive(&mut self) -> Option<(usize, Message)>;

    /// Adds to a word of a rank's window, atomically, modulo 2^64. Returns what it was.
    fn fetch_add(&mut self, rank: usize, word: Word, number: u64) -> u64;

    /// Copies a slot out of a rank's window.
    fn get(&mut self, rank: usize, slot: usize) -> Vec<u8>;

    /// Writes a slot of this rank's window, before any later operation on [`Word::Ends`] can be
    /// seen.
    fn put_own(&mut self, slot: usize, bytes: &[u8]);
}
