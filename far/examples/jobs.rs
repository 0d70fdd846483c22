//! Small jobs that go well, or go wrong in a way that one chooses: for the tests, and to try things
//! out.
//!
//! ```text
//! mpirun -n 3 jobs sums | ordered | divide | join | join-panic | forks | forks-tasks | panic-encoding | nest | several | panic | panic-bomb | large | full | stop | kill | long | window
//! ```

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use poach_far::{Call, Context, Divided, Error, Failure, Stealing, World, join, reduction, sum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A tree of numbers: each below 2^`depth` is added once.
fn sums((depth, number): (u32, u64), context: &mut Context<'_, (u32, u64), u64>) {
    if depth == 0 {
        *context.result() += number;
        return;
    }
    context.push((depth - 1, 2 * number));
    context.push((depth - 1, 2 * number + 1));
}

/// The result of a value, without a world.
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

/// Numbers as texts, in order, by calls that wait for two halves of different sizes.
fn texts(
    from: u64,
    to: u64,
    call: &mut Call<'_, (u64, u64), Vec<String>>,
    leaf: &impl Fn(usize),
) -> Vec<String> {
    if to - from == 1 {
        leaf(call.rank());
        return vec![from.to_string()];
    }
    let middle = from + (to - from).div_ceil(3);
    let (mut first, mut second) = join(call, (from, middle), (middle, to));
    first.append(&mut second);
    first
}

/// A number that runs what else its rank's pool has to run, wherever it is made, encoded, decoded
/// or copied.
#[derive(Debug)]
struct Forking(u64);

impl Forking {
    fn new(number: u64) -> Forking {
        for _ in 0..2 {
            poach_runtime::join(poach_runtime::yield_now, poach_runtime::yield_now);
        }
        Forking(number)
    }
}

impl Clone for Forking {
    fn clone(&self) -> Forking {
        Forking::new(self.0)
    }
}

impl Serialize for Forking {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Forking::new(self.0).0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Forking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Forking, D::Error> {
        u64::deserialize(deserializer).map(Forking::new)
    }
}

/// The numbers from `from` to `to`, added by calls.
fn added(
    (from, to): (Forking, Forking),
    call: &mut Call<'_, (Forking, Forking), Forking>,
) -> Forking {
    let (from, to) = (from.0, to.0);
    if to - from < 100 {
        return Forking((from..to).sum());
    }
    let middle = from + (to - from).div_ceil(3);
    let halves = ((Forking(from), Forking(middle)), (Forking(middle), Forking(to)));
    let (first, second) = join(call, halves.0, halves.1);
    Forking(first.0 + second.0)
}

/// A number that panics when it is encoded, if the other is 1, or decoded, if that is 2.
#[derive(Clone, Debug)]
struct Panicking(u64, u64);

impl Serialize for Panicking {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(self.1 != 1, "panic-encoding");
        (self.0, self.1).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Panicking {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Panicking, D::Error> {
        let (number, kind) = Deserialize::deserialize(deserializer)?;
        assert!(kind != 2, "panic-decoding");
        Ok(Panicking(number, kind))
    }
}

thread_local! {
    /// The number of calls that this thread has under way, and the number of these that it has
    /// begun on top of a waiting call.
    static UNDER_WAY: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// A call: how long the chain below it is, and how large the tree; and which call has made it, on
/// which thread.
type Linked = (u32, u32, u32, u64);

fn this_thread() -> u64 {
    thread_local!(static ADDRESS: u8 = const { 0 });
    ADDRESS.with(|address| (&raw const *address).addr() as u64)
}

/// A chain of calls, each with a small tree of others beside the next: how many leaves there were,
/// and how many calls at most a worker had begun on top of others that waited.
fn linked(
    (chain, tree, calls, thread): Linked,
    call: &mut Call<'_, Linked, (u64, u32)>,
) -> (u64, u32) {
    let before = UNDER_WAY.get();
    let (below, nested) = before;
    // Not begun by the call that made it, which is then this thread's last.
    let on_top = below > 0 && (below, this_thread()) != (calls, thread);
    UNDER_WAY.set((below + 1, nested + u32::from(on_top)));
    let most = UNDER_WAY.get().1;
    let of = |chain, tree| (chain, tree, below + 1, this_thread());
    let result = if (chain, tree) == (0, 0) {
        thread::sleep(Duration::from_micros(20));
        (1, most)
    } else {
        let (first, second) = match chain {
            0 => (of(0, tree - 1), of(0, tree - 1)),
            _ => (of(0, 3), of(chain - 1, 0)),
        };
        let (a, b) = join(call, first, second);
        (a.0 + b.0, most.max(a.1).max(b.1))
    };
    UNDER_WAY.set(before);
    result
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a payload that panics");
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
        // The same join by calls, of values and results that are no numbers.
        "join" => {
            let outcome =
                world.call((0, 20_000), |(from, to), call| texts(from, to, call, &|_| ()))?;
            if let Some(outcome) = outcome {
                let expected: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
                println!("{}", outcome.result == expected);
            }
        }
        "join-panic" => {
            world.call((0, 1 << 22), |(from, to), call| {
                texts(from, to, call, &|rank| assert!(rank != 1, "as it was told to"))
            })?;
        }
        // Values and results that run other tasks of their rank while they are encoded and decoded.
        "forks" => {
            let mut right = true;
            for _ in 0..10 {
                let outcome = world.call((Forking(0), Forking(400_000)), added)?;
                right &= outcome.is_none_or(|outcome| outcome.result.0 == (0..400_000).sum());
            }
            if first {
                println!("{right}");
            }
        }
        // Tasks and a reduction that do so, with checkpoints if a file is given.
        "forks-tasks" => {
            let file = std::env::args().nth(2).unwrap_or_default();
            let mut job = world.job(first.then_some((Forking(18), Forking(0))));
            if !file.is_empty() {
                job = job.checkpoint(file, Duration::from_nanos(1), "forks");
            }
            let all = reduction(Forking(0), |all: &mut Forking, more: Forking| {
                *all = Forking::new(all.0 + more.0);
            });
            let outcome = job.run(all, |(depth, number), context| {
                if depth.0 == 0 {
                    context.result().0 += number.0;
                    return;
                }
                for half in 0..2 {
                    context.push((Forking(depth.0 - 1), Forking(2 * number.0 + half)));
                }
            })?;
            if let Some(outcome) = outcome {
                println!("{}", outcome.result.0 == (0..1 << 18).sum());
            }
        }
        // As its name says.
        "panic-encoding" | "panic-decoding" | "panic-combining" => {
            let all = reduction(Panicking(0, 0), |all: &mut Panicking, more: Panicking| {
                assert!(what != "panic-combining", "panic-combining");
                all.0 += more.0;
            });
            let kind =
                ["", "panic-encoding", "panic-decoding"].iter().position(|&kind| kind == what);
            let kind = kind.unwrap_or_default() as u64;
            let seed = first.then_some(Panicking(20, kind));
            world.job(seed).run(all, |Panicking(depth, kind), context| {
                if depth == 0 {
                    context.result().0 += 1;
                    return;
                }
                (0..2).for_each(|_| context.push(Panicking(depth - 1, kind)));
            })?;
        }
        "nest" => {
            let outcome = world.call((500, 0, 0, 0), linked)?;
            if let Some(outcome) = outcome {
                let (leaves, most) = outcome.result;
                println!("{} {most}", leaves == 8 * 500 + 1);
            }
        }
        "panic-bomb" => but(world, || std::panic::panic_any(Bomb))?,
        "panic" => but(world, || panic!("as it was told to"))?,
        "stop" => but(world, || signal("-STOP"))?,
        "kill" => but(world, || signal("-KILL"))?,
        // Each task takes longer than a rank may be silent.
        "long" => {
            let seeds: &[u64] = if first { &[1, 2] } else { &[] };
            let job = world.job(seeds.iter().copied()).progress(|status| {
                eprintln!("so far: {} tasks after {:?}", status.tasks, status.elapsed);
            });
            let outcome = job.run(sum::<u64>(), |number, context| {
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
        // With a checkpoint as soon as there may be one, into a file that is given.
        "fib-tree" => {
            let file = std::env::args().nth(2).unwrap_or_default();
            let job = world.job(first.then_some(26u32)).checkpoint(
                file,
                Duration::from_nanos(1),
                "a number",
            );
            let outcome = job.run(sum::<u64>(), |n, context| {
                if n < 2 {
                    *context.result() += u64::from(n == 1);
                } else {
                    context.push(n - 1);
                    context.push(n - 2);
                }
            })?;
            if let Some(outcome) = outcome {
                println!("{}", outcome.result);
            }
        }
        "window" => {
            world.run(first.then_some((3, 0)), sum::<u64>(), sums)?;
        }
        other => panic!("there is no job `{other}`"),
    }
    Ok(())
}

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let mut builder = World::builder().threads(2).tasks_at_most(1 << 20);
    if std::env::args().nth(3).as_deref() == Some("window") {
        builder = builder.stealing(Stealing::Window);
    }
    if what == "window" {
        // No machine has one of this size.
        builder = builder.stealing(Stealing::Window).parcel_bytes(1 << 55);
    }
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
        Error::Window { rank, .. } => *rank,
        _ => 0,
    };
    if world.rank() == teller {
        eprintln!("jobs: {error}");
        world.abort(1);
    }
    thread::sleep(Duration::from_secs(3));
    ExitCode::from(1)
}
