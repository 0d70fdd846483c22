//! What this machine's accesses cost, as a machine that `poach-coherent` can simulate.
//!
//! | field | how |
//! |---|---|
//! | `load`, `store`, `exchange`, `pause`, `give_way` | so many in a row on a line that the processor owns |
//! | `forward` | a store and a load of the same word, in a chain |
//! | `fence` | a store and a fence, less what the simulated buffer takes to drain |
//! | `transfer` | two threads hand a word to and fro. The same program is simulated, and `transfer` is what makes both take as long |
//! | `memory.queued` | two threads add to one word at once; fitted in the same way |
//! | `memory` of a level, `memory.line` | a walk through more lines than caches hold, in random order; the same lines in order |
//! | `barrier` | `membarrier` alone, and while another thread runs; and what that thread loses |
//! | `cache_lines` | the second-level cache, where the system tells |
//!
//! What a user cannot measure is taken over from the machine `xeon` that is shipped: `copy`, links, and groups of which this process
//! may use one processor only. Each number is the median of [`TIMES`] samples; transfers between virtual processors include what the
//! host does with them meanwhile.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use poach_coherent::{Coherent, Description, DescriptionError, Level, Simulation};
use poach_memory::{CachePadded, Machine, Memory, Ordering as Order, Word};
use thiserror::Error;

use crate::place::{CannotPlace, Topology, bind};

/// Samples of each cost.
pub const TIMES: usize = 15;

/// Lines of the walk: 64 MiB.
const WALK: usize = 1 << 20;

/// Steps of the walk, and lines read in order, in a sample.
const STEPS: u32 = 1 << 15;

/// Barriers in a sample.
const CALLS: u32 = 100;

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
    Simulation(#[from] poach_coherent::Failure),
}

impl From<CannotPlace> for CannotMeasure {
    fn from(why: CannotPlace) -> Self {
        CannotMeasure::Place(why)
    }
}

type Result<T> = std::result::Result<T, CannotMeasure>;

/// Measures this machine. `store_buffer` is its entries, if they are known. Binds the calling thread.
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
    if let Some(lines) = system::second_level_lines() {
        costs.cache_lines = lines;
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
        fit_queued(&mut machine, *pair)?;
    }
    barrier(&mut machine, (first, second))?;
    machine.sources = vec![
        format!("Measured by `poach measure coherence`: medians of {TIMES} samples."),
        "store_buffer: as `poach measure capacity` says, or the maker's number.".to_owned(),
        "memory.copy: not measured.".to_owned(),
    ];
    round(&mut machine);
    machine.check()?;
    Ok(machine)
}

/// To picoseconds, the clock's step; a queued share to thousandths.
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
    let of_barrier = [&mut barrier.call, &mut barrier.answer, &mut barrier.interrupt];
    let of_memory = [&mut machine.memory.line, &mut machine.memory.queued];
    let of_levels =
        machine.levels.iter_mut().flat_map(|level| [&mut level.transfer, &mut level.memory]);
    for cost in own.into_iter().chain(of_barrier).chain(of_memory).chain(of_levels) {
        *cost = (*cost * 1000.0).round() / 1000.0;
    }
}

fn median(mut sample: impl FnMut() -> f64) -> f64 {
    let mut all: Vec<f64> = (0..TIMES).map(|_| sample()).collect();
    all.sort_by(f64::total_cmp);
    all[TIMES / 2]
}

/// Nanoseconds for one of so many.
fn each(times: u32, act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

fn alone(costs: &mut poach_coherent::ProcessorCosts) {
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

/// Nanoseconds from hand to hand, for a word that two threads hand to and fro.
fn hand_over(pair: (usize, usize)) -> Result<f64> {
    let word = CachePadded::new(AtomicU64::new(0));
    // Relaxed: the number is all that is said.
    let trips = |mine: u64| {
        for trip in 0..u64::from(TRIPS) {
            while word.load(Ordering::Relaxed) != 2 * trip + mine {
                std::hint::spin_loop();
            }
            word.store(2 * trip + mine + 1, Ordering::Relaxed);
        }
    };
    let mut samples = Vec::new();
    for _ in 0..TIMES {
        word.store(0, Ordering::Relaxed);
        samples.push(both(pair, || trips(0), || trips(1))? / f64::from(2 * TRIPS));
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[TIMES / 2])
}

/// Nanoseconds for an addition, while two threads add to one word.
fn contended(pair: (usize, usize)) -> Result<f64> {
    let word = CachePadded::new(AtomicU64::new(0));
    let add = || {
        for _ in 0..TRIPS {
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut samples = Vec::new();
    for _ in 0..TIMES {
        samples.push(both(pair, add, add)? / f64::from(2 * TRIPS));
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[TIMES / 2])
}

/// Runs both on these two processors at once; nanoseconds until both are done.
fn both(pair: (usize, usize), here: impl FnOnce(), there: impl FnOnce() + Send) -> Result<f64> {
    let start = Barrier::new(2);
    bind(pair.0)?;
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let bound = bind(pair.1);
            start.wait();
            there();
            bound
        });
        start.wait();
        let began = Instant::now();
        here();
        let bound = other.join().unwrap_or(Ok(()));
        let took = began.elapsed().as_secs_f64() * 1e9;
        bound?;
        Ok(took)
    })
}

type Shared = std::rc::Rc<CachePadded<<Coherent as Memory>::Word>>;

/// The end of two simulated threads, the second at the first processor outside of the groups below `level`.
fn simulated(machine: &Description, level: usize, body: fn(&Shared, u64)) -> Result<f64> {
    let other: usize = machine.levels[..level].iter().map(|level| level.size).product();
    let word: Shared = std::rc::Rc::new(CachePadded::new(Word::new(0)));
    let mut simulation = Simulation::new(machine);
    for (mine, processor) in [(0, 0), (1, other)] {
        let word = std::rc::Rc::clone(&word);
        simulation.thread(processor, "measured", move || body(&word, mine));
    }
    Ok(simulation.run()?.end as f64 / 1000.0 / f64::from(2 * TRIPS))
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
    for _ in 0..TRIPS {
        word.fetch_add(1, Order::Relaxed);
    }
}

fn fit_transfer(machine: &mut Description, level: usize, pair: (usize, usize)) -> Result<()> {
    let measured = hand_over(pair)?;
    // A hand-over has two transfers: the writer's and the reader's. From there on, by what is still missing.
    machine.levels[level].transfer = (measured / 2.0).max(1.0);
    for outer in level + 1..machine.levels.len() {
        machine.levels[outer].transfer = machine.levels[level].transfer;
    }
    for _ in 0..4 {
        let missing = measured - simulated(machine, level, simulated_trips)?;
        for level in &mut machine.levels[level..] {
            level.transfer = (level.transfer + missing / 2.0).max(1.0);
        }
    }
    Ok(())
}

fn fit_queued(machine: &mut Description, pair: (usize, usize)) -> Result<()> {
    let measured = contended(pair)?;
    let level = machine.levels.len() - 1;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..7 {
        machine.memory.queued = f64::midpoint(low, high);
        if simulated(machine, level, simulated_adds)? > measured {
            high = machine.memory.queued;
        } else {
            low = machine.memory.queued;
        }
    }
    Ok(())
}

fn barrier(machine: &mut Description, pair: (usize, usize)) -> Result<()> {
    if !Machine::asymmetric() {
        return Ok(());
    }
    let calls = || (0..CALLS).for_each(|_| Machine::heavy());
    let alone = median(|| each(CALLS, calls));
    let stop = AtomicBool::new(false);
    let turns = AtomicU64::new(0);
    // The other thread counts, and so tells what it loses.
    let (together, lost) = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let bound = bind(pair.1);
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                count += 1;
                turns.store(count, Ordering::Relaxed);
            }
            bound
        });
        while turns.load(Ordering::Relaxed) == 0 {
            std::hint::spin_loop();
        }
        // Turns a nanosecond, undisturbed and not.
        let rate = |act: &dyn Fn()| {
            let (from, start) = (turns.load(Ordering::Relaxed), Instant::now());
            act();
            let took = start.elapsed().as_secs_f64() * 1e9;
            ((turns.load(Ordering::Relaxed) - from) as f64 / took, took)
        };
        let (mut times, mut losses) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let (free, _) = rate(&|| thread::sleep(std::time::Duration::from_millis(1)));
            let (disturbed, took) = rate(&|| calls());
            times.push(took / f64::from(CALLS));
            losses.push((1.0 - disturbed / free).max(0.0) * took / f64::from(CALLS));
        }
        stop.store(true, Ordering::Relaxed);
        times.sort_by(f64::total_cmp);
        losses.sort_by(f64::total_cmp);
        other.join().unwrap_or(Ok(()))?;
        Ok::<_, CannotMeasure>((times[TIMES / 2], losses[TIMES / 2]))
    })?;
    let it = &mut machine.barrier;
    (it.call, it.each) = (alone.max(1.0), 0.0);
    it.answer = (together - alone).max(1.0);
    it.interrupt = lost.max(1.0);
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
