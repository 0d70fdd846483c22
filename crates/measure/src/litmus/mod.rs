//! Litmus tests on this processor: what a load overtakes.
//!
//! - [`program`]: the worker and the thief of the paper on the shipping FF-THE queue (Morrison and
//!   Afek, *Fence-Free Work Stealing on Bounded TSO Processors*, Figure 9).
//! - [`grid`]: what the outcomes say about the bound (Figure 8).
//! - [`journal`]: the points that were done, for a grid that takes hours.
//! - [`classic`]: store buffering, message passing, load buffering, and independent reads of
//!   independent writes.
//! - [`soak`]: the queue in use, with a bound from a profile.

pub mod classic;
pub mod grid;
pub mod journal;
pub mod program;
pub mod soak;

use std::{fmt, io};

use poach_deque::CapacityError;
use poach_memory::order::Refused;

use crate::place::CannotPlace;

/// Why a litmus test could not be run.
#[derive(Debug)]
#[non_exhaustive]
pub enum CannotTest {
    /// The threads cannot be where they have to be.
    Place(CannotPlace),
    /// This is no machine with total store order.
    Refused(Refused),
    /// A queue could not be made.
    Queue(CapacityError),
    /// A thread could not be started.
    Thread(io::Error),
    /// A delta of 0 is a queue without a bound.
    NoDelta,
    /// A thread of the test has panicked.
    Panicked,
}

impl fmt::Display for CannotTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotTest::Place(error) => error.fmt(f),
            CannotTest::Refused(error) => error.fmt(f),
            CannotTest::Queue(error) => error.fmt(f),
            CannotTest::Thread(error) => write!(f, "a thread could not be started ({error})"),
            CannotTest::NoDelta => {
                f.write_str("delta is at least 1: 0 would be a queue without a bound")
            }
            CannotTest::Panicked => f.write_str("a thread of the litmus test has panicked"),
        }
    }
}

impl std::error::Error for CannotTest {}

impl From<CannotPlace> for CannotTest {
    fn from(error: CannotPlace) -> Self {
        CannotTest::Place(error)
    }
}
