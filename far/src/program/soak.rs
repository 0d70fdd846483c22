//! `poach-far soak`: many small jobs with delays between the ranks, each of whose tasks is looked
//! for among the results.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poach_far::{Context, Counters, Error, World, reduction};
use serde_json::json;

use super::{Common, Report};

/// Many small jobs, with delays between the ranks at random: each ends, and runs each of its tasks
/// once.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How many jobs.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Seed of the first job; each later job's seed is greater by one.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Delay each message and each one-sided operation by up to N microseconds.
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    delay: u32,
    /// Fail if a job takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
}

/// A task: its number, which tells it from all others of its job, and how many levels may be below
/// it.
type Task = (u64, u32);

/// How deep the trees are at most.
const DEEP: u32 = 8;

fn random(seed: u64, number: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The tasks that a task makes.
fn children(seed: u64, (number, levels): Task) -> impl Iterator<Item = Task> {
    let most = if levels == 0 { 0 } else { random(seed, number).u64(0..4) };
    // The path from the root, in base 4, behind a 1: no two tasks have the same.
    (0..most).map(move |index| (4 * number + index, levels - 1))
}

/// The tasks that a rank begins with: in every other job all ranks begin with one, otherwise rank 0
/// does.
fn seeds(seed: u64, rank: usize) -> Option<Task> {
    (rank == 0 || seed % 2 == 1).then_some(((rank as u64 + 1) << 32 | 1, DEEP))
}

/// The tasks of a job, without a scheduler.
fn expected(seed: u64, ranks: usize) -> Vec<u64> {
    let mut waiting: Vec<_> = (0..ranks).filter_map(|rank| seeds(seed, rank)).collect();
    let mut all = Vec::new();
    while let Some(task) = waiting.pop() {
        all.push(task.0);
        waiting.extend(children(seed, task));
    }
    all.sort_unstable();
    all
}

/// Runs a task, which takes up to 20 microseconds.
fn task(seed: u64, task: Task, context: &mut Context<'_, Task, Vec<u64>>) {
    context.result().push(task.0);
    let takes = Duration::from_nanos(random(seed ^ 1, task.0).u64(0..20_000));
    children(seed, task).for_each(|child| context.push(child));
    let began = Instant::now();
    while began.elapsed() < takes {
        std::hint::spin_loop();
    }
}

/// Ends the program if a job takes longer than it may.
fn watch(job: Arc<AtomicU64>, seed: u64, patience: Duration, rank: usize) {
    thread::spawn(move || {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            thread::sleep(Duration::from_millis(200));
            let now = job.load(Ordering::Relaxed);
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > patience {
                let seconds = patience.as_secs();
                super::say(&format!(
                    "rank {rank}: the job of seed {} is not over after {seconds} s",
                    seed + now
                ));
                std::process::abort();
            }
        }
    });
}

pub(super) fn run(
    world: &mut World,
    arguments: &Arguments,
    common: &Common,
) -> Result<Option<Report>, Error> {
    let &Arguments { runs, seed: first, delay, patience } = arguments;
    let (rank, ranks, began) = (world.rank(), world.ranks(), Instant::now());
    let job = Arc::new(AtomicU64::new(0));
    watch(Arc::clone(&job), first, Duration::from_secs(patience), rank);
    let (mut tasks, mut longest, mut balance) = (0, Duration::ZERO, Counters::default());
    let mut wrong = Vec::new();
    for run in 0..runs {
        let seed = first + run;
        job.store(run, Ordering::Relaxed);
        let append = reduction(Vec::new(), |all: &mut Vec<u64>, mut more| all.append(&mut more));
        let outcome = world
            .job(seeds(seed, rank))
            .delays(Duration::from_micros(delay.into()), seed)
            .run(append, |of, context| task(seed, of, context))?;
        let Some(mut outcome) = outcome else { continue };
        outcome.result.sort_unstable();
        tasks += outcome.result.len();
        longest = longest.max(outcome.elapsed);
        outcome.ranks.iter().for_each(|rank| balance.add(&rank.balance));
        let expected = expected(seed, ranks);
        if outcome.result != expected {
            let (found, should) = (outcome.result.len(), expected.len());
            wrong.push(format!(
                "seed {seed}: {found} tasks were run, and {should} should be, each once"
            ));
        }
        if common.progress && (run + 1) % 1_000 == 0 {
            super::say(&format!("{} jobs after {} s", run + 1, began.elapsed().as_secs()));
        }
    }
    if rank > 0 {
        return Ok(None);
    }
    let Counters { steals, lifeline_parcels, failed_steals, bytes, messages, .. } = balance;
    let seconds = began.elapsed().as_secs_f64();
    let mut text = format!(
        "{runs} jobs of {ranks} ranks from seed {first} on, delays up to {delay} us, {seconds:.1} s; the longest took {:.1} ms\n\
         {tasks} tasks; {steals} parcels stolen and {lifeline_parcels} by lifelines, {bytes} bytes in them; {failed_steals} steals failed; {messages} messages\n",
        longest.as_secs_f64() * 1e3,
    );
    let told = match wrong.len() {
        0 => "each job ended, and ran each of its tasks once\n".to_owned(),
        many => format!("{many} jobs went wrong: {}\n", wrong.join("; ")),
    };
    text.push_str(&told);
    let document = json!({
        "runs": runs,
        "ranks": ranks,
        "seed": first,
        "delay_us": delay,
        "elapsed_s": seconds,
        "longest_s": longest.as_secs_f64(),
        "tasks": tasks,
        "balance": balance,
        "wrong": wrong,
    });
    Ok(Some(Report { text, document, well: wrong.is_empty() }))
}
