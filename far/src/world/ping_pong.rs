//! What a message between two ranks costs.
//!
//! Source: Culler et al., *Assessing fast network interfaces* (1996), and Kielmann et al., *Fast
//! measurement of `LogP` parameters* (2000). The sender's o is the time of each send of a burst.
//! The receiver's o is the time of each receive after the burst has arrived. L is the rest of half
//! of the round trip. The round trip alone cannot tell them apart: a single send, timed by itself,
//! is cold, and takes longer than one of many.

use std::thread;
use std::time::{Duration, Instant};

use super::{Error, World};
use crate::balance::Stealing;
use crate::message::{Failure, Message};
use crate::simulate::Machine;
use crate::transport::Transport as _;

/// How long rank 0 waits for rank 1.
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages of a burst: few enough that no network holds them back.
const BURST: u32 = 16;

/// How long a burst is given to arrive.
const ARRIVES: Duration = Duration::from_micros(300);

/// What is left for L where a burst's sends and receives take as long as a single message's way:
/// then they overlap.
const LEAST: f64 = 0.05;

impl World {
    /// Measures the `LogGP` parameters of the network between ranks 0 and 1, in nanoseconds, as
    /// medians of `rounds` rounds. Returns them at rank 0, and `None` elsewhere. Collective.
    ///
    /// | parameter | what it is |
    /// |---|---|
    /// | o | the mean of the times that a message of a burst takes its sender and its receiver |
    /// | L | half of the time there and back, less the times of sender and receiver; at least a twentieth of that half |
    /// | G | the time that each byte of a message of `bytes` adds, beyond 8 |
    /// | g | the time that a message of a burst takes the slower of the two ranks |
    ///
    /// # Errors
    ///
    /// If there is one rank alone, or if rank 1 does not answer.
    pub fn ping_pong(&mut self, rounds: u32, bytes: usize) -> Result<Option<Machine>, Error> {
        let rank = self.rank();
        if self.ranks() < 2 {
            let message = "a ping-pong takes two ranks".to_owned();
            return Err(Failure::Other { rank, message }.into());
        }
        self.begin(Stealing::Messages, 0)?;
        let (mut ways, mut sends, mut receives) = (Vec::new(), Vec::new(), Vec::new());
        if rank <= 1 {
            for size in [8, bytes] {
                let mut rounds_took = Vec::new();
                for _ in 0..rounds {
                    let began = Instant::now();
                    if rank == 0 {
                        self.serve(size);
                    }
                    self.answer(size)?;
                    rounds_took.push(began.elapsed().as_nanos() as f64 / 2.0);
                }
                ways.push(median(rounds_took));
            }
            // Bursts from rank 0, each answered, so that they do not meet; and then from rank 1, to
            // time what receiving takes at rank 0.
            for from in [0, 1] {
                for _ in 0..rounds.div_ceil(BURST) {
                    let began = Instant::now();
                    if rank == from {
                        (0..BURST).for_each(|_| self.serve(8));
                        sends.push(each(began, BURST));
                        self.wait()?;
                    } else {
                        thread::sleep(ARRIVES);
                        // The first may not be here yet, and what it takes to begin is not asked
                        // for.
                        self.wait()?;
                        let began = Instant::now();
                        for _ in 1..BURST {
                            self.wait()?;
                        }
                        receives.push(each(began, BURST - 1));
                        self.serve(8);
                    }
                }
            }
        }
        // The others wait here.
        self.agree("the end of a ping-pong", &())?;
        if rank > 0 {
            return Ok(None);
        }
        let [short, long] = ways[..] else { unreachable!("two sizes were sent") };
        let byte = ((long - short) / bytes.saturating_sub(8).max(1) as f64).max(0.0);
        let (send, receive) = (median(sends), median(receives));
        let latency = (short - send - receive).max(LEAST * short);
        let overhead = (short - latency) / 2.0;
        let gap = send.max(receive);
        Ok(Some(Machine { latency, overhead, gap, byte, ..Machine::default() }))
    }

    /// Sends to the other one.
    fn serve(&mut self, size: usize) {
        let to = 1 - self.rank();
        self.link.send(to, Message::Result(vec![0; size]));
    }

    /// Waits for a message; rank 1 sends it back.
    fn answer(&mut self, size: usize) -> Result<(), Error> {
        self.wait()?;
        if self.rank() == 1 {
            self.serve(size);
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        while self.link.receive().is_none() {
            if began.elapsed() > PATIENCE || self.link.error.is_some() {
                self.broken = true;
                let (rank, watcher) = (1 - self.rank(), self.rank());
                return Err(Failure::Silent { rank, watcher, seconds: PATIENCE.as_secs() }.into());
            }
        }
        Ok(())
    }
}

/// Nanoseconds of each message of a burst.
fn each(began: Instant, of: u32) -> f64 {
    began.elapsed().as_nanos() as f64 / f64::from(of)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
