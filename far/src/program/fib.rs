//! `poach-far fib`: a Fibonacci number, by its definition.

use poach_far::{Divided, Error, World};

use super::{Report, counted};

/// A Fibonacci number by its definition: both halves of each call may run on other ranks, but for the small ones.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Which.
    #[arg(default_value_t = 35, value_parser = clap::value_parser!(u32).range(0..=60))]
    n: u32,
    /// Calls below this are no tasks.
    #[arg(long, default_value_t = 16)]
    leaf: u32,
}

fn fib(n: u32) -> u64 {
    if n < 2 { n.into() } else { fib(n - 1) + fib(n - 2) }
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let Arguments { n, leaf } = *arguments;
    let divide = move |n: u32| {
        if n < 2 || n < leaf { Divided::Whole(fib(n)) } else { Divided::Halves(n - 1, n - 2) }
    };
    let outcome = world.divide(n, divide, |a, b| a + b)?;
    let (mut expected, mut next) = (0, 1);
    for _ in 0..n {
        (expected, next) = (next, expected + next);
    }
    Ok(outcome.map(|outcome| counted(world, &outcome, "result", outcome.result, Some(expected))))
}
