//! The split deque of values when a thief exposes private tasks: every task comes out once, whether
//! the owner comes back or not, also when its ring grows meanwhile. Without the thief's barrier the
//! models fail.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell as Count;
use std::rc::Rc;

use poach_check::{Config, Report, Simulated, Threads, WithoutBarrier, explore};
use poach_deque::Steal;
use poach_deque::split::Split;
use poach_memory::Memory;

use crate::barrierless::{Barrierless, Fenceless, Losing};

/// What an owner does.
#[derive(Clone, Copy)]
enum Step {
    Push,
    Pop,
    /// Shares everything.
    Share,
    /// Gives its memory back, if the queue is empty.
    Shrink,
}
use Step::{Pop, Push, Share, Shrink};

/// Pops, pushes over a slot that was popped, and comes down to the split.
const MEETS: &[Step] = &[Push, Push, Pop, Push, Pop];
/// Shares while the thief exposes.
const SHARES: &[Step] = &[Push, Push, Share, Pop];
/// Its ring, of one slot at first, grows, and goes round.
const GROWS: &[Step] = &[Push, Push, Pop, Push];
/// Its ring grows, is empty, and is a small one again.
const SHRINKS: &[Step] = &[Push, Push, Pop, Pop, Shrink, Push];

/// Slots of a ring that grows in each script, and of a ring that grows in none.
const SMALL: usize = 1;
const ROOMY: usize = 4;

/// An owner that follows `script` and then pops all, against a thief that exposes, takes what it
/// then finds, and does so again if there was something. The thief may have asked before.
fn model<M: Memory>(threads: &mut Threads, slots: usize, script: &'static [Step], asks: bool) {
    let losing = Losing::begins();
    let queue = Split::<u64, M>::with_capacity(slots).expect("a power of two");
    // The last handle: what the threads have done comes before its drop.
    let (thief, last) = (queue.thief(), queue.thief());
    let runs: Rc<[Count<u32>; 3]> = Rc::default();
    let stolen = Rc::new(Count::new(0_u64));
    let run = |runs: &[Count<u32>; 3], task: u64| {
        let count = &runs[task as usize];
        count.set(count.get() + 1);
        assert_eq!(count.get(), 1, "task {task} came out twice");
    };
    let (mine, theirs) = (Rc::clone(&runs), Rc::clone(&runs));
    threads.spawn("owner", move || {
        let mut next = 0;
        for step in script {
            match step {
                Push => {
                    queue.push(next);
                    next += 1;
                }
                Pop => queue.pop().into_iter().for_each(|task| run(&mine, task)),
                Share => _ = queue.share(),
                Shrink => _ = queue.shrink_to(SMALL),
            }
        }
        while let Some(task) = queue.pop() {
            run(&mine, task);
        }
    });
    let count = Rc::clone(&stolen);
    threads.spawn("thief", move || {
        if asks {
            thief.request();
        }
        let had_barrier = M::asymmetric();
        thief.expose();
        // Its barrier has failed: it asks, so that the owner fences from then on, and does so
        // again.
        if had_barrier && M::owners_fence() {
            thief.request();
            thief.expose();
        }
        while let Steal::Success(task) = thief.steal() {
            run(&theirs, task);
            count.set(count.get() + 1);
        }
    });
    threads.finally(move || {
        let pushed = script.iter().filter(|step| matches!(step, Push)).count();
        assert!(runs[..pushed].iter().all(|runs| runs.get() == 1), "a task was lost");
        drop((losing, last));
        poach_check::observe(0, stolen.get());
    });
}

fn check<M: Memory>(config: &Config, slots: usize, script: &'static [Step], asks: bool) -> Report {
    explore(config, &move |threads: &mut Threads| model::<M>(threads, slots, script, asks))
}

/// Every execution where the ring does not grow. Where it grows there are tens of millions: there,
/// the first 400,000 of those with at most two preemptions.
fn every_task_comes_out_once<M: Memory>(capacity: u32, script: &'static [Step], asks: bool) {
    for slots in [SMALL, ROOMY] {
        let mut config = Config::bounded(capacity, true);
        if slots == SMALL {
            config = config.within(2, 400_000);
        }
        let report = check::<M>(&config, slots, script, asks);
        println!("{slots} slots, S = {capacity}: {report:?}");
        assert_ne!(report.verdict.word(), "violation", "{:?}", report.counterexample);
        assert!(report.complete || slots == SMALL, "{report:?}");
        // None, one or two were stolen, each somewhere: the model covers what it is about.
        let stolen: Vec<_> = report.outcomes.iter().map(|outcome| outcome[0]).collect();
        assert!(stolen.contains(&0) && stolen.contains(&1), "{stolen:?}");
    }
}

#[test]
fn every_task_comes_out_once_of_an_owner_that_was_not_asked() {
    for capacity in [1, 2] {
        every_task_comes_out_once::<Simulated>(capacity, MEETS, false);
    }
}

#[test]
fn every_task_comes_out_once_where_the_owner_fences() {
    for capacity in [1, 2] {
        every_task_comes_out_once::<WithoutBarrier>(capacity, MEETS, false);
    }
}

#[test]
fn every_task_comes_out_once_where_the_barrier_is_lost() {
    for (script, asks) in [(MEETS, false), (GROWS, true), (SHARES, false)] {
        let config = Config::bounded(1, true).within(3, 100_000);
        let report = check::<Losing>(&config, SMALL, script, asks);
        // Most are not searched to the end.
        assert_ne!(report.verdict.word(), "violation", "{:?}", report.counterexample);
        println!("{} executions, {:?} stolen", report.executions, report.outcomes);
    }
}

#[test]
fn every_task_comes_out_once_of_an_owner_that_was_asked() {
    every_task_comes_out_once::<Simulated>(1, GROWS, true);
}

#[test]
fn every_task_comes_out_once_of_an_owner_that_shares_everything_meanwhile() {
    every_task_comes_out_once::<Simulated>(1, SHARES, false);
}

/// At one look a thief may have read the head of before, and at the next take the ring of after.
#[test]
fn every_task_comes_out_once_of_an_owner_that_gives_its_memory_back() {
    every_task_comes_out_once::<Simulated>(1, SHRINKS, false);
    for asks in [false, true] {
        let config = Config::c11().within(2, 20_000);
        let report = check::<Simulated>(&config, SMALL, SHRINKS, asks);
        assert!(report.coverage().is_some(), "{:?}\n{:?}", report.verdict, report.counterexample);
    }
}

/// The owner of `tasks` shared tasks takes half of them, gives its memory back if no other is
/// left, and shares one more. A thief meanwhile takes one after the other, or half at a time.
fn gives_back<M: Memory>(threads: &mut Threads, tasks: u64, halves: bool) {
    let queue = Split::<u64, M>::with_capacity(tasks as usize).expect("a power of two");
    let (thief, last) = (queue.thief(), queue.thief());
    (0..tasks).for_each(|task| queue.push(task));
    assert!(queue.share());
    let taken: Rc<Count<u64>> = Rc::default();
    let take = |taken: &Count<u64>, task: u64| {
        assert_eq!(taken.get() & 1 << task, 0, "task {task} came out twice");
        taken.set(taken.get() | 1 << task);
    };
    let shrunk = Rc::new(Count::new(false));
    let (mine, theirs, shrinks) = (Rc::clone(&taken), Rc::clone(&taken), Rc::clone(&shrunk));
    threads.spawn("owner", move || {
        (0..tasks / 2).for_each(|_| queue.pop().into_iter().for_each(|task| take(&mine, task)));
        shrinks.set(queue.shrink_to(SMALL));
        queue.push(tasks);
        queue.share();
        while let Some(task) = queue.pop() {
            take(&mine, task);
        }
    });
    threads.spawn("thief", move || {
        let own = Split::<u64, M>::with_capacity(tasks as usize).expect("a power of two");
        for _ in 0..2 {
            let first = if halves { thief.steal_half(&own) } else { thief.steal() };
            let tasks = first.success().into_iter().chain(std::iter::from_fn(|| own.pop()));
            tasks.for_each(|task| take(&theirs, task));
        }
    });
    threads.finally(move || {
        assert_eq!(taken.get(), (2 << tasks) - 1, "a task was lost");
        drop(last);
        poach_check::observe(0, u64::from(shrunk.get()));
    });
}

/// Both in executions where a claim keeps the memory, and where it is given back before or after.
#[test]
fn memory_is_given_back_beside_claims() {
    for (config, tasks, halves) in [
        (Config::bounded(1, true), 2, false),
        (Config::c11().within(2, 100_000), 2, false),
        (Config::c11().within(2, 100_000), 4, true),
    ] {
        let scene = move |threads: &mut Threads| gives_back::<Simulated>(threads, tasks, halves);
        let report = explore(&config, &scene);
        println!("{tasks} tasks: {} executions, {:?}", report.executions, report.elapsed);
        assert!(report.coverage().is_some(), "{:?}\n{:?}", report.verdict, report.counterexample);
        let shrunk: Vec<_> = report.outcomes.iter().map(|outcome| outcome[0]).collect();
        assert!(shrunk.contains(&0) && shrunk.contains(&1), "{shrunk:?}");
    }
}

#[test]
fn without_the_barrier_a_task_comes_out_twice() {
    let report = check::<Barrierless>(&Config::bounded(2, true), ROOMY, MEETS, false);
    assert_eq!(report.verdict.word(), "violation", "{report:?}");
}

#[test]
fn without_the_owners_fence_in_its_place_a_task_comes_out_twice() {
    let report = check::<Fenceless>(&Config::bounded(2, true), ROOMY, MEETS, false);
    assert_eq!(report.verdict.word(), "violation", "{report:?}");
}
