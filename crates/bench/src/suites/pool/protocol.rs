//! How every system of the suite is measured.
//!
//! All threads are made, and wait at a barrier. The time begins when the first of them comes
//! through, and ends when the last consumer knows that all tasks are taken. Each reads the clock
//! itself: a thread that only watched might be given a processor when all is over. Tasks are the
//! numbers from 0. Each consumer adds up what it takes, and its squares, so that a task lost,
//! doubled or made up shows in the sums.
//!
//! Two ways of waiting, the same for all systems:
//!
//! - *polling*: a consumer that finds nothing tries again, and after 64 times in a row gives up its
//!   time slice before each. So does a producer that finds a bounded queue full.
//! - *blocking*: a consumer calls the system's own blocking get, and ends when the system says that
//!   it is closed. A producer calls its blocking put.
//!
//! For systems with a small limit a counter says how often a thread's processor was given to
//! another (`switches_per_task`, on Linux). Other work of the machine changes the time, and hardly
//! that count.
//!
//! A system is given the number of tasks that it moves in about a quarter of a second, within
//! bounds. Doubling finds the number once. So the start of threads does not count in a fast system,
//! and a slow system ends in time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::{Case, Sample, Size, Unit, need_memory};

/// The threads that take part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) workload: &'static str,
    pub(crate) producers: usize,
    pub(crate) consumers: usize,
    /// Whether producers pass over consumers that have fallen behind, where a system can.
    pub(crate) balancing: bool,
    /// Whether each thread stays on one processor, producer n beside consumer n.
    pub(crate) pinned: bool,
    /// Whether all threads share one processor.
    pub(crate) one_processor: bool,
    /// How many tasks a system with a limit holds; ample unless it matters.
    pub(crate) capacity: Option<usize>,
}

impl Shape {
    pub(crate) fn new(workload: &'static str, producers: usize, consumers: usize) -> Self {
        let (balancing, pinned, one_processor, capacity) = (true, false, false, None);
        Shape { workload, producers, consumers, balancing, pinned, one_processor, capacity }
    }
}

/// A kind of pool, queue or channel.
pub(crate) trait System: Clone + Send + 'static {
    type In: Put;
    type Out: Take;

    fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>>;
}

/// One of them, with a handle for each thread.
pub(crate) struct Opened<I, O> {
    pub(crate) producers: Vec<I>,
    pub(crate) consumers: Vec<O>,
    /// Called when all producers are done and dropped.
    pub(crate) close: Box<dyn FnOnce()>,
}

/// A producer's handle.
pub(crate) trait Put: Send {
    /// Puts a task, or gives it back if there is no room.
    fn put(&mut self, task: u64) -> Result<(), u64>;

    /// Puts a task, and sleeps while there is no room, if it can be full. Whether the system is
    /// open.
    fn put_waiting(&mut self, task: u64) -> bool {
        self.put(task).is_ok()
    }
}

/// A consumer's handle.
pub(crate) trait Take: Send {
    /// Takes a task if there is one.
    fn take(&mut self) -> Option<u64>;

    /// Waits for a task; `None` once there will never be one.
    fn wait(&mut self) -> Option<u64> {
        None
    }

    /// Atomic read-modify-writes done by this handle, if it knows.
    fn exchanges(&self) -> Option<u64> {
        None
    }
}

/// What a consumer took.
#[derive(Default)]
struct Taken {
    tasks: u64,
    sum: u64,
    squares: u64,
    exchanges: Option<u64>,
}

/// When a thread came through the barrier, and when it was done.
type Times = (Instant, Instant);

impl Taken {
    #[inline(always)]
    fn add(&mut self, task: u64) {
        self.tasks += 1;
        self.sum = self.sum.wrapping_add(task);
        self.squares = self.squares.wrapping_add(task.wrapping_mul(task));
    }
}

/// Tries with no success before a thread gives up its time slice.
pub(crate) const POLLS: u32 = 64;

/// How many tasks a consumer takes before it tells the others.
pub(crate) const BATCH: u64 = 1024;

#[inline]
fn pause(polls: &mut u32) {
    *polls += 1;
    if *polls > POLLS {
        thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

fn feed(put: &mut impl Put, tasks: impl Iterator<Item = u64>) {
    let mut polls = 0;
    for mut task in tasks {
        while let Err(back) = put.put(task) {
            task = back;
            pause(&mut polls);
        }
        polls = 0;
    }
}

fn feed_waiting(put: &mut impl Put, mut tasks: impl Iterator<Item = u64>) {
    assert!(tasks.all(|task| put.put_waiting(task)), "it is open as long as there are producers");
}

/// How often this thread's processor was given to another thread, where the system says so.
fn switches() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    let counts = status.lines().filter(|line| line.contains("_ctxt_switches"));
    counts.map(|line| line.split_whitespace().next_back()?.parse::<u64>().ok()).sum()
}

fn since(before: Option<u64>) -> Option<u64> {
    Some(switches()? - before?)
}

fn poll(take: &mut impl Take, all: u64, done: &AtomicU64) -> Taken {
    let mut taken = Taken::default();
    let mut told = 0;
    let mut polls = 0;
    loop {
        if let Some(task) = take.take() {
            taken.add(task);
            polls = 0;
            if taken.tasks - told == BATCH {
                done.fetch_add(BATCH, Ordering::Relaxed);
                told = taken.tasks;
            }
            continue;
        }
        if taken.tasks > told {
            done.fetch_add(taken.tasks - told, Ordering::Relaxed);
            told = taken.tasks;
        }
        if done.load(Ordering::Relaxed) >= all {
            taken.exchanges = take.exchanges();
            return taken;
        }
        pause(&mut polls);
    }
}

fn wait(take: &mut impl Take) -> Taken {
    let mut taken = Taken::default();
    while let Some(task) = take.wait() {
        taken.add(task);
    }
    taken
}

fn run<S: System>(system: &S, shape: &Shape, tasks: u64, blocking: bool) -> Result<Sample> {
    let Opened { producers, consumers, close } = system.open(shape)?;
    let count = producers.len() as u64;
    let start = Barrier::new(producers.len() + consumers.len());
    let done = AtomicU64::new(0);
    let mut switched: Vec<Option<u64>> = Vec::new();
    let (times, taken) = thread::scope(|scope| -> Result<(Vec<Times>, Vec<Taken>)> {
        let producers: Vec<_> = (0..count)
            .zip(producers)
            .map(|(number, mut put)| {
                let (start, shape) = (&start, *shape);
                scope.spawn(move || {
                    pin(&shape, number as usize);
                    start.wait();
                    let (began, before) = (Instant::now(), switches());
                    let tasks = (number..tasks).step_by(count as usize);
                    if blocking {
                        feed_waiting(&mut put, tasks);
                    } else {
                        feed(&mut put, tasks);
                    }
                    let times = (began, Instant::now());
                    // Its consumers end when it is gone.
                    drop(put);
                    (times, since(before))
                })
            })
            .collect();
        let consumers: Vec<_> = (0..)
            .zip(consumers)
            .map(|(number, mut take)| {
                let (start, done, shape) = (&start, &done, *shape);
                scope.spawn(move || {
                    pin(&shape, number);
                    start.wait();
                    let (began, before) = (Instant::now(), switches());
                    let taken =
                        if blocking { wait(&mut take) } else { poll(&mut take, tasks, done) };
                    ((began, Instant::now()), since(before), taken)
                })
            })
            .collect();
        let mut times = Vec::new();
        for producer in producers {
            let one = producer.join().map_err(|_| anyhow::anyhow!("a producer panicked"))?;
            times.push(one.0);
            switched.push(one.1);
        }
        close();
        let mut taken = Vec::new();
        for consumer in consumers {
            let one = consumer.join().map_err(|_| anyhow::anyhow!("a consumer panicked"))?;
            times.push(one.0);
            switched.push(one.1);
            taken.push(one.2);
        }
        Ok((times, taken))
    })?;
    let began = times.iter().map(|times| times.0).min();
    let ended = times.iter().map(|times| times.1).max();
    let elapsed = began.zip(ended).map_or(Duration::ZERO, |(began, ended)| ended - began);
    check(tasks, &taken)?;
    let sample = Sample::from(tasks as f64 / elapsed.as_secs_f64() / 1e6);
    let exchanges: Option<u64> = taken.iter().map(|one| one.exchanges).sum();
    let switches: Option<u64> = switched.into_iter().sum();
    let sample = match switches.filter(|_| shape.capacity.is_some()) {
        Some(switches) => sample.count("switches_per_task", switches as f64 / tasks as f64),
        None => sample,
    };
    Ok(match exchanges {
        Some(exchanges) => sample.count("exchanges_per_task", exchanges as f64 / tasks as f64),
        None => sample,
    })
}

fn check(tasks: u64, taken: &[Taken]) -> Result<()> {
    let mut wanted = Taken::default();
    (0..tasks).for_each(|task| wanted.add(task));
    let count: u64 = taken.iter().map(|one| one.tasks).sum();
    let sum = taken.iter().fold(0u64, |sum, one| sum.wrapping_add(one.sum));
    let squares = taken.iter().fold(0u64, |sum, one| sum.wrapping_add(one.squares));
    ensure!(
        (count, sum, squares) == (wanted.tasks, wanted.sum, wanted.squares),
        "{count} tasks were taken of {tasks}, and their sums are wrong: some were lost or doubled"
    );
    Ok(())
}

/// Where thread `number` of its kind is pinned.
pub(crate) fn processor(number: usize) -> usize {
    number % thread::available_parallelism().map_or(1, Into::into)
}

fn pin(shape: &Shape, number: usize) {
    if shape.one_processor {
        bind(0);
    } else if shape.pinned {
        bind(processor(number));
    }
}

#[cfg(target_os = "linux")]
fn bind(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    // Where the system does not allow it the threads stay free, as in the other workloads.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Elsewhere the suite has no pinned shape.
#[cfg(not(target_os = "linux"))]
fn bind(_processor: usize) {}

/// What a task takes, at most, in a queue that keeps each in a piece of the heap of its own.
const NODE: u64 = 64;

/// How many tasks a sample moves.
fn calibrate<S: System>(system: &S, shape: &Shape, size: Size, blocking: bool) -> Result<u64> {
    let seconds = size.pick(0.0, 0.01, 0.25, 2.0);
    let mut tasks = size.pick(2_000, 1 << 16, 1 << 20, 1 << 22);
    if size == Size::Tiny {
        return Ok(tasks);
    }
    // Above this a queue whose consumers fall behind would fill the memory.
    while tasks < 1 << 25 && need_memory(2 * tasks * NODE).is_ok() {
        let rate = run(system, shape, tasks, blocking)?.value * 1e6;
        if tasks as f64 / rate >= seconds / 2.0 {
            break;
        }
        tasks *= 2;
    }
    Ok(tasks)
}

fn case<S: System>(name: String, shape: Shape, size: Size, system: S, blocking: bool) -> Case {
    let unit = Unit::MILLIONS_PER_SECOND;
    Case::new(shape.workload, name, shape.producers + shape.consumers, unit, move || {
        let tasks = calibrate(&system, &shape, size, blocking)?;
        Ok(move || run(&system, &shape, tasks, blocking))
    })
}

/// A case whose consumers poll.
pub(crate) fn polling(
    name: impl Into<String>,
    shape: Shape,
    size: Size,
    system: impl System,
) -> Case {
    case(name.into(), shape, size, system, false)
}

/// A case whose consumers sleep.
pub(crate) fn blocking(
    name: impl Into<String>,
    shape: Shape,
    size: Size,
    system: impl System,
) -> Case {
    case(name.into(), shape, size, system, true)
}

/// One thread puts a task and gets it, in turn: nanoseconds a pair.
pub(crate) fn pair(name: &'static str, size: Size, system: impl System) -> Case {
    let tasks = size.pick(1_000, 100_000, 4_000_000, 40_000_000);
    Case::new("pair", name, 1, Unit::NANOSECONDS, move || {
        Ok(move || {
            let Opened { mut producers, mut consumers, close } =
                system.open(&Shape::new("pair", 1, 1))?;
            let (put, take) = (&mut producers[0], &mut consumers[0]);
            let mut taken = Taken::default();
            let began = Instant::now();
            for task in 0..tasks {
                ensure!(put.put(task).is_ok(), "there is no room for one task");
                if let Some(task) = take.take() {
                    taken.add(task);
                }
            }
            let elapsed = began.elapsed();
            check(tasks, &[taken])?;
            drop(producers);
            close();
            Ok(Sample::from(elapsed.as_secs_f64() * 1e9 / tasks as f64))
        })
    })
}
