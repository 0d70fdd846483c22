//! What one more future costs that waits for a task: nanoseconds for its first poll, beside others
//! that wait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Instant;

use anyhow::{Result, ensure};
use poach_pool::TaskPool;

use crate::{Case, Sample, Size, Unit};

type Waiter = Pin<Box<dyn Future<Output = ()>>>;
/// Makes a waiter for the same tasks as the others wait for.
type Make = Box<dyn FnMut() -> Waiter>;

/// How many wait, and the workload's name.
const WAITERS: [(usize, &str); 4] =
    [(0, "pending"), (100, "pending-100"), (900, "pending-900"), (100_000, "pending-100000")];

pub(super) fn cases(cases: &mut Vec<Case>, size: Size) {
    for (waiters, workload) in WAITERS {
        let waiters = size.pick(waiters.min(100), waiters, waiters, waiters);
        let polls = size.pick(10, 1_000, 10_000, 10_000);
        let mut case = |system: &'static str, make: fn() -> Make| {
            let run = move || Ok(move || measure(make(), waiters, polls));
            cases.push(Case::new(workload, system, 1, Unit::NANOSECONDS, run));
        };
        case("task-pool", || {
            // Also while the only consumer is the one that was measured last.
            let pool =
                TaskPool::<u64>::builder().stays_open(true).build().expect("there is memory");
            Box::new(move || {
                let consumer = pool.consumer();
                Box::pin(async move {
                    if let Ok(mut consumer) = consumer {
                        consumer.get_async().await.ok();
                    }
                })
            })
        });
        case("flume", || {
            let (send, receive) = flume::unbounded::<u64>();
            Box::new(move || {
                let (send, receive) = (send.clone(), receive.clone());
                Box::pin(async move {
                    receive.recv_async().await.ok();
                    drop(send);
                })
            })
        });
        case("kanal", || {
            let (send, receive) = kanal::unbounded_async::<u64>();
            Box::new(move || {
                let (send, receive) = (send.clone(), receive.clone());
                Box::pin(async move {
                    receive.recv().await.ok();
                    drop(send);
                })
            })
        });
    }
}

fn measure(mut make: Make, waiters: usize, polls: u32) -> Result<Sample> {
    let context = &mut Context::from_waker(Waker::noop());
    let mut others: Vec<Waiter> = (0..waiters).map(|_| make()).collect();
    let waits = others.iter_mut().all(|waiter| waiter.as_mut().poll(context).is_pending());
    ensure!(waits, "there is nothing to be had");
    let mut spent = 0.0;
    for _ in 0..polls {
        let mut one = make();
        let began = Instant::now();
        let pending = one.as_mut().poll(context).is_pending();
        spent += began.elapsed().as_secs_f64();
        ensure!(pending, "there is nothing to be had");
    }
    Ok(Sample::from(spent * 1e9 / f64::from(polls)))
}
