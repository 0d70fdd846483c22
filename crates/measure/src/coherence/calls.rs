//! What calls of the system take: the process-wide barrier, and to wake a thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poach_memory::{Machine, Memory};
use poach_simulate::{Description, Threads};

use super::{CannotMeasure, Result, TIMES, each, median, middle};
use crate::place::bind;

/// Barriers in a sample.
const CALLS: u32 = 100;

/// A barrier that takes this many times as long as without another running thread has interrupted a
/// thread.
const INTERRUPTS: f64 = 1.5;

/// Measures the barrier, alone and with a thread to interrupt.
pub(super) fn barrier(machine: &mut Description, pair: (usize, usize)) -> Result<()> {
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
        for _ in 0..4 * TIMES {
            let (free, _) = rate(&|| thread::sleep(Duration::from_millis(1)));
            let (disturbed, took) = rate(&|| calls());
            let each = took / f64::from(CALLS);
            // In some bursts the kernel interrupts no thread, though the other thread counts on: up
            // to half of them on our virtual machine. They say nothing of what an interrupt takes.
            if each > INTERRUPTS * alone {
                times.push(each);
                losses.push((1.0 - disturbed / free).max(0.0) * each);
            }
        }
        stop.store(true, Ordering::Relaxed);
        other.join().unwrap_or(Ok(()))?;
        Ok::<_, CannotMeasure>((middle(times), middle(losses)))
    })?;
    let it = &mut machine.barrier;
    (it.call, it.each) = (alone.max(1.0), 0.0);
    if let (Some(together), Some(lost)) = (together, lost) {
        it.answer = (together - alone).max(1.0);
        it.interrupt = lost.max(1.0);
    }
    Ok(())
}

/// What it takes to wake a thread that has slept for a while, to the caller and until the thread
/// runs.
pub(super) fn wakes(pair: (usize, usize)) -> Result<Threads> {
    /// How long the caller leaves the other asleep.
    const ASLEEP: Duration = Duration::from_millis(1);
    let (calls, awake) = (AtomicU64::new(0), AtomicU64::new(0));
    let epoch = Instant::now();
    let since = || epoch.elapsed().as_nanos() as u64;
    bind(pair.0)?;
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let bound = bind(pair.1);
            for call in 1..=TIMES as u64 {
                while calls.load(Ordering::Relaxed) < call {
                    thread::park();
                }
                awake.store(since(), Ordering::Relaxed);
            }
            bound
        });
        let (mut wake, mut woken) = (Vec::new(), Vec::new());
        for call in 1..=TIMES as u64 {
            awake.store(0, Ordering::Relaxed);
            let asleep = Instant::now();
            while asleep.elapsed() < ASLEEP {
                std::hint::spin_loop();
            }
            let called = since();
            calls.store(call, Ordering::Relaxed);
            sleeper.thread().unpark();
            wake.push((since() - called) as f64);
            let answer = loop {
                match awake.load(Ordering::Relaxed) {
                    0 => std::hint::spin_loop(),
                    answer => break answer,
                }
            };
            woken.push(answer.saturating_sub(called) as f64);
        }
        sleeper.join().unwrap_or(Ok(()))?;
        // Not below 1, nor none.
        let least = |samples| middle(samples).map_or(1.0, |it| it.max(1.0));
        Ok(Threads { wake: least(wake), woken: least(woken) })
    })
}
