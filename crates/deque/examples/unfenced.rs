//! What becomes of a deque on this processor if its owner's fence is left out.
//!
//! `cargo run --release -p poach-deque --example unfenced -- [rounds]`
//!
//! The owner pushes some tasks and pops them, over and over, while a thief steals. Between two pops
//! it stores to memory that is in no cache, as a client may, so that its store buffer is slow to
//! drain. Each queue counts how often each task came out: Chase-Lev and THE with their fences and
//! without, FF-CL with the delta that its maker's documents give, and with 1, which is too small.

use std::num::NonZeroU64;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use poach_deque::{Bounded, CapacityError, ChaseLev, Delta, Owner, Steal, The, Thief, Unfenced};

/// Tasks a round: more than any delta, so that a thief of FF-CL has something to steal.
const BATCH: u32 = 256;

/// A delta for a processor of which nothing is documented.
const LARGEST: NonZeroU64 = NonZeroU64::new(128).expect("128 is not 0");

/// What the client stores to: 64 MiB, a page at a time.
struct Client {
    memory: Vec<u64>,
    next: usize,
}

impl Client {
    fn new() -> Self {
        Client { memory: vec![0; 1 << 23], next: 0 }
    }

    fn store(&mut self, task: u32) {
        // A page and a line further.
        self.next = (self.next + 520) % self.memory.len();
        self.memory[self.next] = task.into();
    }
}

/// How many tasks came out twice or more, and how many not at all.
fn off<O: Owner<u32>>(queue: &O, rounds: u32) -> (u32, u32) {
    let tasks = BATCH * rounds;
    let mut client = Client::new();
    let start = Barrier::new(2);
    let done = AtomicBool::new(false);
    let mut counts = vec![0_u8; tasks as usize];
    let thief = queue.thief();
    let stolen = thread::scope(|scope| {
        let handle = scope.spawn(|| {
            let mut stolen = Vec::new();
            start.wait();
            // Relaxed: a thief that sees it late steals from an empty queue meanwhile.
            while !done.load(Ordering::Relaxed) {
                if let Steal::Success(task) = thief.steal() {
                    stolen.push(task);
                }
            }
            stolen
        });
        start.wait();
        for round in 0..rounds {
            (BATCH * round..BATCH * (round + 1)).for_each(|task| queue.push(task));
            while let Some(task) = queue.pop() {
                client.store(task);
                counts[task as usize] = counts[task as usize].saturating_add(1);
            }
        }
        done.store(true, Ordering::Relaxed);
        handle.join().unwrap_or_default()
    });
    for task in stolen {
        counts[task as usize] = counts[task as usize].saturating_add(1);
    }
    let number = |wanted: fn(u8) -> bool| counts.iter().filter(|&&count| wanted(count)).count();
    (number(|count| count > 1) as u32, number(|count| count == 0) as u32)
}

/// No fence.
fn unfenced() -> Unfenced {
    // SAFETY: not kept, which is what this program shows. Its tasks are numbers, and its queues do
    // not grow.
    unsafe { Unfenced::new() }
}

/// A bound, which may be too small.
fn bound(pops: NonZeroU64) -> Delta {
    // SAFETY: kept or not, as this program is to show; otherwise as in `unfenced`.
    unsafe { Delta::exactly(pops) }
}

/// Room for all tasks of a round, twice.
const ROOM: usize = 2 * BATCH as usize;

fn main() -> Result<(), CapacityError> {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok());
    let rounds = rounds.unwrap_or(20_000).min(u32::MAX / BATCH);
    let show = |name: &str, (twice, never): (u32, u32)| {
        println!("{name:24} {twice:>9} twice {never:>9} never");
    };
    println!("of {} tasks, each to come out once:", BATCH * rounds);
    show("chase-lev", off(&ChaseLev::new(), rounds));
    show("chase-lev, no fence", off(&ChaseLev::with_capacity(unfenced(), ROOM)?, rounds));
    show("the", off(&The::new(), rounds));
    show("the, no fence", off(&The::with_capacity(unfenced(), ROOM)?, rounds));
    // SAFETY: as in `bound`.
    let documented = unsafe { Delta::documented(0) };
    let documented = documented.unwrap_or_else(|_| bound(LARGEST));
    for (name, delta) in [("ff-cl", documented), ("ff-cl, delta 1", bound(NonZeroU64::MIN))] {
        match Bounded::new(delta) {
            Ok(policy) => show(name, off(&ChaseLev::with_capacity(policy, ROOM)?, rounds)),
            Err(refused) => println!("{name}: {refused}"),
        }
    }
    Ok(())
}
