//! `poach-far fib`: a Fibonacci number, by its definition.

use poach_far::{Call, Divided, Error, World, join};

use super::{Report, counted};

/// A Fibonacci number by its definition: both halves of each call may run on other ranks, but for
/// the small ones.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Index of the Fibonacci number.
    #[arg(default_value_t = 35, value_parser = clap::value_parser!(u32).range(0..=60))]
    n: u32,
    /// Calls below N are not tasks.
    #[arg(long, default_value_t = 16)]
    leaf: u32,
    /// By calls that wait for both halves, in the place of values that are divided and joined.
    #[arg(long)]
    by_join: bool,
}

fn fib(n: u32) -> u64 {
    if n < 2 { n.into() } else { fib(n - 1) + fib(n - 2) }
}

fn by_joins(n: u32, leaf: u32, call: &mut Call<'_, u32, u64>) -> u64 {
    if n < 2 || n < leaf {
        return fib(n);
    }
    let (a, b) = join(call, n - 1, n - 2);
    a + b
}

pub(super) fn run(world: &mut World, arguments: &Arguments) -> Result<Option<Report>, Error> {
    let Arguments { n, leaf, by_join } = *arguments;
    let divide = move |n: u32| {
        if n < 2 || n < leaf { Divided::Whole(fib(n)) } else { Divided::Halves(n - 1, n - 2) }
    };
    let outcome = if by_join {
        world.call(n, move |n, call| by_joins(n, leaf, call))?
    } else {
        world.divide(n, divide, |a, b| a + b)?
    };
    let (mut expected, mut next) = (0, 1);
    for _ in 0..n {
        (expected, next) = (next, expected + next);
    }
    Ok(outcome.map(|outcome| counted(world, &outcome, "result", outcome.result, Some(expected))))
}
