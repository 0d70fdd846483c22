//! The paper's own fence: consumers that are bound, and thieves that visit their processors.
// Miri's threads run on no processor.
#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use poach_memory::{Displaced, Machine};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::Salsa;
use rustix::thread::{CpuSet, sched_setaffinity};

const TASKS: usize = 20_000;

fn processor(entry: usize) -> usize {
    entry % thread::available_parallelism().map_or(1, Into::into)
}

fn bind(entry: usize) {
    let mut set = CpuSet::new();
    set.set(processor(entry));
    sched_setaffinity(None, &set).expect("a processor of this process");
}

#[test]
fn tasks_are_taken_once_while_thieves_visit() {
    let fence = |entry| {
        // SAFETY: consumer `entry` binds itself there before it consumes.
        unsafe { Displaced::onto(processor(entry)) }.expect("a processor of this process")
    };
    let pools = Arc::new(Salsa::<usize, Machine, Displaced>::with_fences(50, fence).unwrap());
    let mut producer = pools.producer().unwrap();
    let consumers = [pools.consumer().unwrap(), pools.consumer().unwrap()];
    let taken = AtomicUsize::new(0);
    let mut all: Vec<usize> = thread::scope(|scope| {
        let consumers: Vec<_> = consumers
            .into_iter()
            .map(|mut consumer| {
                let taken = &taken;
                scope.spawn(move || {
                    let entry = consumer.number();
                    bind(entry);
                    let mut mine = Vec::new();
                    while taken.load(Ordering::Relaxed) < TASKS {
                        match consumer.consume().or_else(|| consumer.steal(1 - entry)) {
                            Some(task) => {
                                taken.fetch_add(1, Ordering::Relaxed);
                                mine.push(task);
                            }
                            None => thread::yield_now(),
                        }
                    }
                    mine
                })
            })
            .collect();
        for task in 0..TASKS {
            // Always to the same pool: the other consumer has to steal.
            assert!(producer.produce_force(0, task).is_ok());
        }
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(0..TASKS));
}
