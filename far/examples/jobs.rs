//! Small jobs that go well, or go wrong in a way that one chooses: for the tests, and to try things out.
//!
//! ```text
//! mpirun -n 3 jobs sums | ordered | divide | several | panic | large | full | stop | kill | long
//! ```

use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use poach_far::{Context, Divided, Error, Failure, World, sum};

/// A tree of numbers: each below 2^`depth` is added once.
fn sums((depth, number): (u32, u64), context: &mut Context<'_, (u32, u64), u64>) {
    if depth == 0 {
        *context.result() += number;
        return;
    }
    context.push((depth - 1, 2 * number));
    context.push((depth - 1, 2 * number + 1));
}

/// What a value comes to, without a world.
fn alone(
    value: (u64, u64),
    halves: &impl Fn((u64, u64)) -> Divided<(u64, u64), u64>,
    join: &impl Fn(u64, u64) -> u64,
) -> u64 {
    match halves(value) {
        Divided::Whole(result) => result,
        Divided::Halves(a, b) => join(alone(a, halves, join), alone(b, halves, join)),
    }
}

/// Does something to this process.
fn signal(name: &str) {
    let own = std::process::id().to_string();
    let _ = Command::new("kill").args([name, &own]).status();
}

/// As [`sums`], but the task of this number does something else, wherever it is run but on rank 0.
fn but(world: &mut World, act: impl Fn() + Sync) -> Result<(), Error> {
    let seed = (world.rank() == 0).then_some((22, 0));
    let outcome = world.run(seed, sum::<u64>(), |task, context| {
        if context.rank() == 1 && task.0 == 3 {
            act();
        }
        sums(task, context);
    })?;
    if let Some(outcome) = outcome {
        println!("{}", outcome.result);
    }
    Ok(())
}

fn run(world: &mut World, what: &str) -> Result<(), Error> {
    let first = world.rank() == 0;
    match what {
        "sums" => {
            let seed = first.then_some((20, 0));
            if let Some(outcome) = world.run(seed, sum::<u64>(), sums)? {
                println!("{}", outcome.result);
            }
        }
        "several" => {
            for depth in 0..30 {
                // Each rank begins with a task of its own.
                let seed = [(depth % 12, world.rank() as u64)];
                if let Some(outcome) = world.run(seed, sum::<u64>(), sums)? {
                    print!("{} ", outcome.result);
                }
            }
            if first {
                println!();
            }
        }
        "ordered" => {
            let seed = first.then_some((12u32, 0u32));
            let outcome = world.job(seed).run_ordered(|(depth, number), context| {
                // A parent before its children: the numbers of a depth-first walk.
                context.emit((depth, number));
                if depth > 0 {
                    context.push((depth - 1, 2 * number));
                    context.push((depth - 1, 2 * number + 1));
                }
            })?;
            if let Some(outcome) = outcome {
                let (mut expected, mut waiting) = (Vec::new(), vec![(12, 0)]);
                while let Some((depth, number)) = waiting.pop() {
                    expected.push((depth, number));
                    if depth > 0 {
                        waiting.push((depth - 1, 2 * number + 1));
                        waiting.push((depth - 1, 2 * number));
                    }
                }
                println!("{}", outcome.result == expected);
            }
        }
        "divide" => {
            // A join that is neither commutative nor associative.
            let (halves, join) = (
                |(from, to): (u64, u64)| {
                    if to - from == 1 {
                        Divided::Whole(from)
                    } else {
                        let middle = from + (to - from).div_ceil(3);
                        Divided::Halves((from, middle), (middle, to))
                    }
                },
                |a: u64, b: u64| a.wrapping_mul(31).wrapping_sub(b) ^ 5,
            );
            if let Some(outcome) = world.divide((0, 100_000), halves, join)? {
                println!("{}", outcome.result == alone((0, 100_000), &halves, &join));
            }
        }
        "panic" => but(world, || panic!("as it was told to"))?,
        "stop" => but(world, || signal("-STOP"))?,
        "kill" => but(world, || signal("-KILL"))?,
        // Each task takes longer than a rank may be silent.
        "long" => {
            let seeds: &[u64] = if first { &[1, 2] } else { &[] };
            let outcome = world.run(seeds.iter().copied(), sum::<u64>(), |number, context| {
                thread::sleep(Duration::from_secs(8));
                *context.result() += number;
            })?;
            if let Some(outcome) = outcome {
                println!("{}", outcome.result);
            }
        }
        "large" => {
            let seeds = vec![vec![0u8; 100_000]; if first { 64 } else { 0 }];
            world.run(seeds, sum::<u64>(), |_, _| thread::sleep(Duration::from_millis(10)))?;
        }
        "full" => {
            let seed = first.then_some(0u64);
            world.run(seed, sum::<u64>(), |task, context| {
                loop {
                    context.push(task + 1);
                }
            })?;
        }
        other => panic!("there is no job `{other}`"),
    }
    Ok(())
}

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let builder = World::builder().threads(2).tasks_at_most(1 << 20);
    let mut world = match builder.init() {
        Ok(world) => world,
        Err(error) => {
            eprintln!("jobs: {error}");
            return ExitCode::from(2);
        }
    };
    let Err(error) = run(&mut world, &what) else { return ExitCode::SUCCESS };
    let teller = match &error {
        Error::Failed(Failure::Silent { watcher, .. }) => *watcher,
        Error::Failed(failure) => failure.rank(),
        _ => 0,
    };
    if world.rank() == teller {
        eprintln!("jobs: {error}");
        world.abort(1);
    }
    thread::sleep(Duration::from_secs(3));
    ExitCode::from(1)
}
