//! The replay of task trees on any number of workers: what the suite `simulate` rests on.
//!
//! A [tree] says what its strands do and where it forks; the [engine] plays it on workers with Lace's split
//! [deque], of a described [topology], that wait by a [strategy]. Nothing here knows a program: those that can
//! say what their tree is do so themselves, and `simulate` writes down the others'.

mod deque;
pub(crate) mod engine;
pub(crate) mod strategy;
#[cfg(test)]
mod tests;
pub(crate) mod topology;
pub(crate) mod tree;

use anyhow::Result;

use crate::Sample;
use crate::cores::forks;

use self::engine::{Outcome, Setting};
use self::tree::Tree;

/// A tree, whatever its tasks are.
pub(crate) trait Replay {
    /// Simulates it.
    ///
    /// # Errors
    ///
    /// Those of [`engine::replay`].
    fn replay(&self, setting: &Setting<'_>) -> Result<Outcome>;

    /// Simulates it on processors with caches.
    ///
    /// # Errors
    ///
    /// Those of [`forks::play`].
    fn play(&self, setting: &forks::Setting<'_>) -> Result<Sample>;
}

impl<T: Tree<Task: 'static> + Clone + 'static> Replay for T {
    fn replay(&self, setting: &Setting<'_>) -> Result<Outcome> {
        engine::replay(self, setting)
    }

    fn play(&self, setting: &forks::Setting<'_>) -> Result<Sample> {
        forks::play(self, setting)
    }
}
