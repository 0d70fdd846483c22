//! The costs of this machine's accesses, as a machine for `poach-simulate`.
//!
//! | field | how |
//! |---|---|
//! | `load`, `store`, `exchange`, `pause`, `give_way` | many in a row on a line that the processor owns |
//! | `forward` | a store and a load of the same word, in a chain |
//! | `load`, `store`, `forward`, then | the owner of a split deque pushes and pops, and is simulated, too; all three are scaled to make it take as long |
//! | `fence` | a store and a fence, less what the simulated buffer takes to drain |
//! | `transfer` | two threads hand a word to and fro. The same program is simulated, and `transfer` is what makes both take as long |
//! | `prefetch` | one thread writes many lines in a row, and another reads them; the number of lines with which the same program takes as long simulated |
//! | `memory.kept` | two threads add to one word at once; fitted in the same way. `memory.queued` is 1 |
//! | `memory` of a level, `memory.line` | a walk through more lines than caches hold, in random order; the same lines in order |
//! | `barrier` | `membarrier` alone, and while another thread runs; and what that thread loses |
//! | `threads` | a thread that parks is called by another, which also looks how long its call takes |
//! | `cache_lines` | the second-level cache, where the system tells |
//!
//! What a user cannot measure is taken over from the machine `xeon` that is shipped: `copy`, links,
//! and groups of which this process may use one processor only. Each number is the median of
//! [`TIMES`] samples; transfers between virtual processors include what the host does with them
//! meanwhile.

mod calls;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use poach_deque::split::Split;
use poach_memory::{CachePadded, Machine, Memory, Ordering as Order, Word};
use poach_simulate::{Coherent, Description, DescriptionError, Level, Simulation};
use thiserror::Error;

use crate::place::{CannotPlace, Topology, bind};

/// Samples of each cost.
pub const TIMES: usize = 15;

/// Lines of the walk: 64 MiB.
const WALK: usize = 1 << 20;

/// Steps of the walk, and lines read in order, in a sample.
const STEPS: u32 = 1 << 15;

/// Why there is no description.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CannotMeasure {
    /// A thread cannot be bound, or there is but one processor.
    #[error("{0}")]
    Place(CannotPlace),
    /// What was measured makes no machine.
    #[error("what was measured makes no machine: {0}")]
    Description(#[from] DescriptionError),
    /// The simulation of a measured program failed.
    #[error("what was measured could not be simulated: {0}")]
    Simulation(#[from] poach_simulate::Failure),
}

impl From<CannotPlace> for CannotMeasure {
    fn from(why: CannotPlace) -> Self {
        CannotMeasure::Place(why)
    }
}

type Result<T> = std::result::Result<T, CannotMeasure>;

/// Measures this machine. `store_buffer` is its entries, if they are known. Binds the calling
/// thread.
///
/// # Errors
///
/// [`CannotMeasure`].
pub fn measure(topology: &Topology, store_buffer: Option<u64>) -> Result<Description> {
    let [first, second, ..] = topology.processors[..] else {
        return Err(CannotPlace::OneProcessor.into());
    };
    bind(first)?;
    let mut machine = Description::shipped("xeon")?;
    "here".clone_into(&mut machine.name);
    let costs = &mut machine.processor;
    if let Some(entries) = store_buffer {
        costs.store_buffer = entries as usize;
    }
    alone(costs);
    fit_owner(&mut machine)?;
    if let Some(lines) = system::second_level_lines() {
        machine.processor.cache_lines = lines;
    }
    let (walk, stream) = memory();
    machine.memory.line = stream;
    let core = topology.cores.first().filter(|core| core.len() > 1);
    let cores = topology.cores.len();
    // Uniform cores of siblings make two levels; anything else is as many processors, all alike.
    let even = core.filter(|core| topology.cores.iter().all(|other| other.len() == core.len()));
    let template = Level { memory: walk, link: 0.0, ..machine.levels[0].clone() };
    machine.levels.clear();
    let mut pairs = Vec::new();
    if let Some(core) = even {
        machine.levels.push(Level {
            name: "core".to_owned(),
            size: core.len(),
            ..template.clone()
        });
        pairs.push((core[0], core[1]));
    }
    if even.is_none() || cores > 1 {
        let size = even.map_or(topology.processors.len(), |_| cores);
        machine.levels.push(Level { name: "socket".to_owned(), size, ..template });
        let other = even.map_or(second, |_| topology.cores[1][0]);
        pairs.push((first, other));
    }
    machine.processors = topology.processors.len();
    machine.memory.node.clone_from(&machine.levels[machine.levels.len() - 1].name);
    machine.jitter = 0.1;
    for (level, pair) in pairs.iter().enumerate() {
        fit_transfer(&mut machine, level, *pair)?;
    }
    if let [inner, outer] = &mut machine.levels[..] {
        outer.transfer = outer.transfer.max(inner.transfer);
    }
    if let Some(pair) = pairs.last() {
        fit_kept(&mut machine, *pair)?;
        fit_prefetch(&mut machine, *pair)?;
    }
    calls::barrier(&mut machine, (first, second))?;
    machine.threads = calls::wakes((first, second))?;
    machine.sources = vec![
        format!("Measured by `poach measure coherence`: medians of {TIMES} samples."),
        "store_buffer: as `poach measure capacity` says, or the maker's number.".to_owned(),
        "memory.copy: not measured.".to_owned(),
    ];
    round(&mut machine);
    machine.check()?;
    Ok(machine)
}

/// To picoseconds, the clock's step; a share to thousandths.
fn round(machine: &mut Description) {
    let (costs, barrier) = (&mut machine.processor, &mut machine.barrier);
    let own = [
        &mut costs.load,
        &mut costs.store,
        &mut costs.forward,
        &mut costs.exchange,
        &mut costs.fence,
        &mut costs.pause,
        &mut costs.give_way,
    ];
    let of_threads = [&mut machine.threads.wake, &mut machine.threads.woken];
    let of_barrier = [&mut barrier.call, &mut barrier.answer, &mut barrier.interrupt];
    let of_memory = [&mut machine.memory.line, &mut machine.memory.kept];
    let of_levels =
        machine.levels.iter_mut().flat_map(|level| [&mut level.transfer, &mut level.memory]);
    for cost in
        own.into_iter().chain(of_barrier).chain(of_threads).chain(of_memory).chain(of_levels)
    {
        *cost = (*cost * 1000.0).round() / 1000.0;
    }
}

fn median(mut sample: impl FnMut() -> f64) -> f64 {
    middle((0..TIMES).map(|_| sample()).collect()).unwrap_or(f64::NAN)
}

fn try_median(mut sample: impl FnMut() -> Result<f64>) -> Result<f64> {
    let all = (0..TIMES).map(|_| sample()).collect::<Result<_>>()?;
    Ok(middle(all).unwrap_or(f64::NAN))
}

/// The middle one of these in their order; none of none.
fn middle(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}

/// Nanoseconds for one of `times` repeats.
fn each(times: u32, act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

fn alone(costs: &mut poach_simulate::ProcessorCosts) {
    const TURNS: u32 = 2_000;
    let words = CachePadded::new([const { AtomicU64::new(0) }; 8]);
    // Relaxed, all of them: one thread.
    let relaxed = Order::Relaxed;
    let turns = |act: &dyn Fn()| median(|| each(TURNS, || (0..TURNS).for_each(|_| act())));
    // A call of a closure that does nothing is the loop.
    let empty = turns(&|| {
        black_box(&words);
    });
    let eight = |cost: f64| ((cost - empty) / 8.0).max(0.1);
    costs.load = eight(turns(&|| {
        for word in &*words {
            black_box(Word::load(word, relaxed));
        }
    }));
    costs.store = eight(turns(&|| {
        for word in black_box(&*words) {
            Word::store(word, 1, relaxed);
        }
    }));
    costs.forward = eight(turns(&|| {
        for _ in 0..8 {
            let value = Word::load(&words[0], relaxed);
            Word::store(black_box(&words[0]), value + 1, relaxed);
        }
    }));
    costs.exchange = eight(turns(&|| {
        for _ in 0..8 {
            Word::fetch_add(&words[0], 1, relaxed);
        }
    }));
    let fenced = turns(&|| {
        Word::store(&words[0], 1, relaxed);
        Machine::full();
    });
    costs.fence = (fenced - empty - costs.forward - costs.store).max(0.5);
    costs.pause = (turns(&Machine::pause) - empty).max(0.1);
    costs.give_way = turns(&Machine::give_way);
}

/// A line from memory, in random order and in order.
fn memory() -> (f64, f64) {
    let mut next: Vec<u32> = (0..WALK as u32).collect();
    // One cycle through all of them (Sattolo).
    let mut random = fastrand::Rng::with_seed(1);
    for at in (1..WALK).rev() {
        next.swap(at, random.usize(..at));
    }
    let lines: Vec<CachePadded<u32>> = next.into_iter().map(CachePadded::new).collect();
    let mut at = 0;
    let walk = median(|| {
        each(STEPS, || {
            for _ in 0..STEPS {
                at = *lines[at as usize];
            }
            black_box(at);
        })
    });
    let mut from = 0;
    let stream = median(|| {
        let part = &lines[from..from + (1 << 15)];
        from = (from + (1 << 15)) % WALK;
        each(1 << 15, || {
            black_box(part.iter().map(|line| u64::from(**line)).sum::<u64>());
        })
    });
    (walk, stream)
}

/// How often a word goes to and fro, and each of two adds, in a sample.
const TRIPS: u32 = 4_000;
const ADDS: u32 = 20_000;

/// Nanoseconds in which a word goes from one processor of this process to another, now: one sample,
/// of less than a millisecond. `None` where threads cannot be bound, or there is but one processor.
///
/// A virtual machine's processors are moved: on ours a hand-over takes 22 ns for some seconds, as
/// between hyperthreads of one core, then 390 or 500. So whatever two threads do there is measured
/// with such a sample before and after it.
pub fn hand_over_now(topology: &Topology) -> Option<f64> {
    const FEW: u32 = 500;
    let [first, second, ..] = topology.processors[..] else { return None };
    let sample = || hand_over_once((first, second), FEW);
    // The caller's thread stays as it is.
    thread::scope(|scope| scope.spawn(sample).join()).ok()?.ok()
}

/// Nanoseconds from hand to hand, for a word that two threads hand to and fro.
fn hand_over(pair: (usize, usize)) -> Result<f64> {
    try_median(|| hand_over_once(pair, TRIPS))
}

fn hand_over_once(pair: (usize, usize), times: u32) -> Result<f64> {
    let word = CachePadded::new(AtomicU64::new(0));
    // Relaxed: the number is all that is said.
    let trips = |mine: u64| {
        for trip in 0..u64::from(times) {
            while word.load(Ordering::Relaxed) != 2 * trip + mine {
                std::hint::spin_loop();
            }
            word.store(2 * trip + mine + 1, Ordering::Relaxed);
        }
    };
    Ok(both(pair, || trips(0), || trips(1))? / f64::from(2 * times))
}

/// Nanoseconds for an addition, while two threads add to one word.
fn contended(pair: (usize, usize)) -> Result<f64> {
    let word = CachePadded::new(AtomicU64::new(0));
    let add = || {
        for _ in 0..ADDS {
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    try_median(|| Ok(both(pair, add, add)? / f64::from(2 * ADDS)))
}

/// Runs both on these two processors at once; nanoseconds until both are done.
fn both(pair: (usize, usize), here: impl FnOnce(), there: impl FnOnce() + Send) -> Result<f64> {
    // Both spin: a thread that a barrier of the system wakes would begin when the other is through.
    let arrived = AtomicU64::new(0);
    let start = || {
        arrived.fetch_add(1, Ordering::Relaxed);
        while arrived.load(Ordering::Relaxed) < 2 {
            std::hint::spin_loop();
        }
    };
    bind(pair.0)?;
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let bound = bind(pair.1);
            start();
            there();
            (bound, Instant::now())
        });
        start();
        let began = Instant::now();
        here();
        let mine = Instant::now();
        // How long a thread takes to end is no part of it.
        let (bound, theirs) = other.join().unwrap_or((Ok(()), mine));
        bound?;
        Ok((mine.max(theirs) - began).as_secs_f64() * 1e9)
    })
}

type Shared = std::rc::Rc<CachePadded<<Coherent as Memory>::Word>>;

/// The end of two simulated threads, the second at the first processor outside of the groups below
/// `level`.
fn simulated(
    machine: &Description,
    level: usize,
    times: u32,
    body: fn(&Shared, u64),
) -> Result<f64> {
    let other: usize = machine.levels[..level].iter().map(|level| level.size).product();
    let word: Shared = std::rc::Rc::new(CachePadded::new(Word::new(0)));
    let mut simulation = Simulation::new(machine);
    for (mine, processor) in [(0, 0), (1, other)] {
        let word = std::rc::Rc::clone(&word);
        simulation.thread(processor, "measured", move || body(&word, mine));
    }
    Ok(simulation.run()?.end as f64 / 1000.0 / f64::from(2 * times))
}

fn simulated_trips(word: &Shared, mine: u64) {
    for trip in 0..u64::from(TRIPS) {
        while word.load(Order::Relaxed) != 2 * trip + mine {
            Coherent::pause();
        }
        word.store(2 * trip + mine + 1, Order::Relaxed);
    }
}

fn simulated_adds(word: &Shared, _: u64) {
    for _ in 0..ADDS {
        word.fetch_add(1, Order::Relaxed);
    }
}

fn fit_transfer(machine: &mut Description, level: usize, pair: (usize, usize)) -> Result<()> {
    let measured = hand_over(pair)?;
    // A hand-over has two transfers: the writer's and the reader's. From there on, by what is still
    // missing.
    machine.levels[level].transfer = (measured / 2.0).max(1.0);
    for outer in level + 1..machine.levels.len() {
        machine.levels[outer].transfer = machine.levels[level].transfer;
    }
    for _ in 0..4 {
        let missing = measured - simulated(machine, level, TRIPS, simulated_trips)?;
        for level in &mut machine.levels[level..] {
            level.transfer = (level.transfer + missing / 2.0).max(1.0);
        }
    }
    Ok(())
}

/// Tasks that the owner pushes, and then pops, in a turn; and turns.
const TASKS: u64 = 1000;
const TURNS: u32 = 16;

/// A turn of an owner alone, in any memory.
fn owner<M: Memory>(queue: &Split<u64, M>) {
    let mut sum = 0_u64;
    (0..TASKS).for_each(|task| queue.push(task));
    while let Some(task) = queue.pop() {
        sum = sum.wrapping_add(task);
    }
    black_box(sum);
}

/// Scales the costs of loads, stores and forwarding, which a processor does side by side, so that
/// the owner takes as long as here.
fn fit_owner(machine: &mut Description) -> Result<()> {
    let queue = Split::<u64>::new();
    let turns = || (0..TURNS).for_each(|_| owner(black_box(&queue)));
    let measured = median(|| each(TURNS, turns));
    let alone = machine.processor.clone();
    let (mut low, mut high) = (0.01, 4.0);
    for _ in 0..12 {
        let scale = f64::midpoint(low, high);
        let costs = &mut machine.processor;
        (costs.load, costs.store) = (alone.load * scale, alone.store * scale);
        costs.forward = alone.forward * scale;
        if simulated_owner(machine)? > measured { high = scale } else { low = scale }
    }
    Ok(())
}

/// Nanoseconds of a turn, once the lines are there.
fn simulated_owner(machine: &Description) -> Result<f64> {
    let took = std::rc::Rc::new(std::cell::Cell::new(0));
    let mine = std::rc::Rc::clone(&took);
    let queue = Split::<u64, Coherent>::default();
    let mut simulation = Simulation::new(machine);
    simulation.thread(0, "measured", move || {
        owner(&queue);
        let start = poach_simulate::now();
        owner(&queue);
        mine.set(poach_simulate::now() - start);
    });
    simulation.run()?;
    Ok(took.get() as f64 / 1000.0)
}

/// Words that one thread writes and the other reads, in a round; and rounds.
const STREAM: usize = 2048;
const ROUNDS: u64 = 20;

/// One thread writes all words in order, the other then reads them in order.
fn stream<M: Memory>(words: &[M::Word], turn: &M::Word, mine: u64) {
    for round in 0..ROUNDS {
        // Acquire and Release: each round has the other's words.
        while turn.load(Order::Acquire) != 2 * round + mine {
            M::pause();
        }
        if mine == 0 {
            for word in words {
                word.store(round, Order::Relaxed);
            }
        } else {
            black_box(words.iter().map(|word| word.load(Order::Relaxed)).sum::<u64>());
        }
        turn.store(2 * round + mine + 1, Order::Release);
    }
}

fn fit_prefetch(machine: &mut Description, pair: (usize, usize)) -> Result<()> {
    let words: Vec<AtomicU64> = (0..STREAM).map(|_| AtomicU64::new(0)).collect();
    let turn = CachePadded::new(AtomicU64::new(0));
    let part = |mine| stream::<Machine>(&words, &turn, mine);
    let measured = try_median(|| {
        turn.store(0, Ordering::Relaxed);
        both(pair, || part(0), || part(1))
    })?;
    let level = machine.levels.len() - 1;
    let mut best = (f64::INFINITY, 0);
    for lines in [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32] {
        machine.processor.prefetch = lines;
        let off = (simulated_stream(machine, level)? / measured).ln().abs();
        if off < best.0 {
            best = (off, lines);
        }
    }
    machine.processor.prefetch = best.1;
    Ok(())
}

fn simulated_stream(machine: &Description, level: usize) -> Result<f64> {
    type Words = Vec<<Coherent as Memory>::Word>;
    let other: usize = machine.levels[..level].iter().map(|level| level.size).product();
    let words: std::rc::Rc<Words> = std::rc::Rc::new((0..STREAM).map(|_| Word::new(0)).collect());
    let turn: Shared = std::rc::Rc::new(CachePadded::new(Word::new(0)));
    let mut simulation = Simulation::new(machine);
    for (mine, processor) in [(0, 0), (1, other)] {
        let (words, turn) = (std::rc::Rc::clone(&words), std::rc::Rc::clone(&turn));
        simulation.thread(processor, "measured", move || stream::<Coherent>(&words, &turn, mine));
    }
    Ok(simulation.run()?.end as f64 / 1000.0)
}

fn fit_kept(machine: &mut Description, pair: (usize, usize)) -> Result<()> {
    let measured = contended(pair)?;
    let level = machine.levels.len() - 1;
    machine.memory.queued = 1.0;
    let (mut low, mut high) = (0.0, 0.99);
    for _ in 0..7 {
        machine.memory.kept = f64::midpoint(low, high);
        // The longer the owner keeps the line, the more it adds at once.
        if simulated(machine, level, ADDS, simulated_adds)? > measured {
            low = machine.memory.kept;
        } else {
            high = machine.memory.kept;
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod system {
    /// Lines of the second-level cache.
    pub(super) fn second_level_lines() -> Option<usize> {
        let text =
            std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok()?;
        let kibibytes: usize = text.trim().strip_suffix('K')?.parse().ok()?;
        Some(kibibytes * 1024 / 64).filter(|lines| *lines > 0)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn second_level_lines() -> Option<usize> {
        None
    }
}
