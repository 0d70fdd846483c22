//! What a message between two ranks costs.

use std::time::{Duration, Instant};

use super::{Error, World};
use crate::balance::{Failure, Message, Stealing};
use crate::simulate::Machine;
use crate::transport::Transport as _;

/// How long rank 0 waits for rank 1.
const PATIENCE: Duration = Duration::from_secs(8);

impl World {
    /// Measures the `LogGP` parameters of the network between ranks 0 and 1, in nanoseconds: medians of so many rounds. At rank 0; `None`
    /// elsewhere. Collective.
    ///
    /// o is what a send takes its caller, and a receive is taken to take the same; L is what is left of half the way there and
    /// back; G is what each byte of a message of `bytes` adds; g is taken to be o.
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
        self.link.begin(Stealing::Messages, 0).map_err(Error::Window)?;
        let mut medians = Vec::new();
        if rank <= 1 {
            for size in [8, bytes] {
                let (mut sends, mut rounds_took) = (Vec::new(), Vec::new());
                for _ in 0..rounds {
                    let began = Instant::now();
                    if rank == 0 {
                        self.link.send(1, Message::Result(vec![0; size]));
                        sends.push(began.elapsed().as_nanos() as f64);
                    }
                    self.answer(size)?;
                    rounds_took.push(began.elapsed().as_nanos() as f64);
                }
                medians.push((median(sends), median(rounds_took)));
            }
        }
        // The others wait here.
        self.agree("the end of a ping-pong", &())?;
        if rank > 0 {
            return Ok(None);
        }
        let [(overhead, short), (_, long)] = medians[..] else {
            unreachable!("two sizes were sent")
        };
        let byte = ((long - short) / 2.0 / (bytes - 8) as f64).max(0.0);
        let latency = (short / 2.0 - 2.0 * overhead).max(0.0);
        Ok(Some(Machine { latency, overhead, gap: overhead, byte, ..Machine::default() }))
    }

    /// Waits for a message; rank 1 sends it back.
    fn answer(&mut self, size: usize) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            if self.link.receive().is_some() {
                if self.rank() == 1 {
                    self.link.send(0, Message::Result(vec![0; size]));
                }
                return Ok(());
            }
            if began.elapsed() > PATIENCE || self.link.error.is_some() {
                self.broken = true;
                let (rank, watcher) = (1 - self.rank(), self.rank());
                return Err(Failure::Silent { rank, watcher, seconds: PATIENCE.as_secs() }.into());
            }
        }
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
