//! All five pools and the face, with handles that come and go while tasks do: each task taken once.
//!
//! `ThreadSanitizer` cannot see an asymmetric fence that is a system call, and need not: tasks are
//! handed over by Release and Acquire.

#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex};
use std::thread;

use poach_memory::{Asymmetric, Full, Machine};
use poach_pool::TaskPool;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

const TASKS: u64 = if cfg!(miri) { 240 } else { 60_000 };
const STINT: usize = if cfg!(miri) { 40 } else { 500 };
const THREADS: u64 = 2;
const SEED: u64 = 20_261_121;

/// Boxes: a task read before it was written, or twice, is a fault of memory.
type Taken = Mutex<Vec<Box<u64>>>;

fn each_once(taken: &Taken) {
    let mut taken: Vec<u64> = taken.lock().expect("no panic").iter().map(|task| **task).collect();
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..TASKS), "{} of {TASKS}, seed {SEED}", taken.len());
}

fn stints(number: u64, most: usize) -> Vec<Vec<u64>> {
    let mut random = fastrand::Rng::with_seed(SEED ^ number);
    let mut tasks = (number..TASKS).step_by(THREADS as usize).peekable();
    let mut stints = Vec::new();
    while tasks.peek().is_some() {
        stints.push(tasks.by_ref().take(random.usize(1..=most)).collect());
    }
    stints
}

fn mechanism<P: Mechanism<Box<u64>> + 'static>(pools: Option<P>) {
    let pools = Arc::new(pools.expect("memory"));
    let taken = Taken::default();
    thread::scope(|scope| {
        let producers: Vec<_> = (0..THREADS)
            .map(|number| {
                let pools = &pools;
                scope.spawn(move || {
                    for stint in stints(number, STINT) {
                        let mut feeder =
                            Feeder::at(pools, Policy::default(), 0).expect("a producer's entry");
                        for task in stint {
                            assert!(feeder.put(Box::new(task)).is_ok());
                        }
                    }
                })
            })
            .collect();
        for number in 0..THREADS {
            let (pools, taken) = (&pools, &taken);
            let mut random = fastrand::Rng::with_seed(!SEED ^ number);
            scope.spawn(move || {
                loop {
                    let stint = random.usize(1..=STINT);
                    let mut taker = Taker::at(pools, Policy::default(), 0).expect("memory");
                    let mut mine = Vec::new();
                    while mine.len() < stint {
                        let Some(task) = taker.get() else { break };
                        mine.push(task);
                    }
                    let mut all = taken.lock().expect("no panic");
                    let none = mine.is_empty();
                    all.extend(mine);
                    if all.len() as u64 == TASKS {
                        return;
                    }
                    drop(all);
                    if none {
                        thread::yield_now();
                    }
                }
            });
        }
        for producer in producers {
            producer.join().expect("no panic");
        }
    });
    each_once(&taken);
}

#[test]
fn salsas_handles_come_and_go() {
    mechanism(Salsa::<Box<u64>, Machine, Asymmetric<Machine>>::new(16));
    mechanism(Salsa::<Box<u64>, Machine, Full>::new(100));
}

#[test]
fn the_rivals_handles_come_and_go() {
    mechanism(SalsaCas::<Box<u64>>::new(16));
    mechanism(ConcBag::<Box<u64>>::new(16));
    mechanism(WsMsq::<Box<u64>, Machine>::new());
    mechanism(WsLifo::<Box<u64>, Machine>::new());
}

fn face(capacity: Option<usize>) {
    let builder = TaskPool::builder().chunk_length(32).stays_open(true);
    let builder = match capacity {
        Some(capacity) => builder.capacity(capacity),
        None => builder,
    };
    let pool = builder.build().expect("memory");
    let taken = Taken::default();
    thread::scope(|scope| {
        let producers: Vec<_> = (0..THREADS)
            .map(|number| {
                let pool = &pool;
                scope.spawn(move || {
                    for stint in stints(number, STINT) {
                        let mut producer = pool.producer().expect("memory");
                        producer.put_many(stint.into_iter().map(Box::new)).expect("memory");
                        thread::yield_now();
                    }
                })
            })
            .collect();
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let mut consumer = pool.consumer().expect("memory");
                    let mine: Vec<_> = consumer.iter().take(STINT).collect();
                    let ends = mine.len() < STINT;
                    taken.lock().expect("no panic").extend(mine);
                    if ends {
                        return;
                    }
                }
            });
        }
        for producer in producers {
            producer.join().expect("no panic");
        }
        pool.close();
    });
    each_once(&taken);
}

#[test]
fn the_faces_handles_come_and_go() {
    face(None);
    face(Some(1000));
    face(Some(3));
}
