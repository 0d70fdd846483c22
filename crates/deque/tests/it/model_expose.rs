//! The direct task stack when a thief exposes private tasks: every task runs once, whether the
//! owner comes back or not; and without the thief's barrier it does not.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell as Count;
use std::rc::Rc;

use poach_check::{Config, Report, Simulated, Threads, Verdict, WithoutBarrier, explore};
use poach_deque::split::{Head, Popped, Stack, Status};
use poach_memory::{Memory, Ordering, Word};

use crate::barrierless::{Barrierless, Fenceless, Losing, Retiring, RetiringBarrierless};

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

fn descriptor() -> *mut () {
    (&raw const DESCRIPTOR).cast_mut().cast()
}

/// What the model's threads share.
struct Shared<M: Memory> {
    stack: Stack<M>,
    /// How often each task has been run, and by whom last.
    runs: [Count<u32>; 3],
    stolen: Count<u32>,
}

impl<M: Memory> Shared<M> {
    fn run(&self, task: u64) {
        let count = &self.runs[task as usize];
        count.set(count.get() + 1);
        assert_eq!(count.get(), 1, "task {task} was run twice");
    }

    fn push(head: Head<M>, task: u64) -> Head<M> {
        // SAFETY: the model's owner thread owns the stack and pops in reverse order.
        unsafe { head.push(descriptor(), &raw const task) }.expect("the model's stack has room")
    }

    fn pop(&self, head: Head<M>, task: u64) {
        // SAFETY: as in `push`.
        if unsafe { head.pop() } == Popped::Own {
            self.run(task);
            return;
        }
        // SAFETY: the owner calls, for a slot it has pushed to.
        let slot = unsafe { head.slot() };
        while slot.status().load(Ordering::Acquire) & Status::DONE == 0 {
            M::pause();
        }
        // SAFETY: stolen and done, and nothing is above it.
        unsafe { head.retire() };
    }

    /// A thief that finds nothing shared exposes, and takes what it then finds. If its barrier
    /// fails, it asks and does so again.
    fn expose_and_steal(&self) {
        let had_barrier = M::asymmetric();
        self.stack.expose();
        if had_barrier && M::owners_fence() {
            self.stack.request();
            self.stack.expose();
        }
        while let Ok(stolen) = self.stack.steal() {
            // SAFETY: claimed, and a u64.
            self.run(unsafe { stolen.slot().take::<u64>() });
            self.stolen.set(self.stolen.get() + 1);
            stolen.slot().status().fetch_or(Status::DONE, Ordering::SeqCst);
        }
    }
}

/// What an owner does after it has pushed two tasks, or one for the last two.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// It pops the younger, pushes another into its slot, and pops both.
    Reuses,
    /// It shares them, and pops both.
    Shares,
    /// It pops the one.
    Pops,
    /// It pops the one, shares what is left, which is nothing, and pushes and pops another.
    SharesNothing,
}

fn model<M: Memory>(threads: &mut Threads, does: Does, before: fn()) {
    let losing = Losing::begins();
    let shared = Rc::new(Shared::<M> {
        stack: Stack::new(2, ()).expect("a small stack"),
        runs: Default::default(),
        stolen: Count::new(0),
    });
    let owner = Rc::clone(&shared);
    threads.spawn("owner", move || {
        // SAFETY: this thread is the one owner, and the stack outlives its heads.
        let bottom = unsafe { owner.stack.bottom() };
        let one = Shared::push(bottom, 0);
        if does == Does::Pops {
            owner.pop(bottom, 0);
            return;
        }
        if does == Does::SharesNothing {
            owner.pop(bottom, 0);
            // SAFETY: the owner calls, and no task stands below this head.
            unsafe { bottom.share() };
            let _ = Shared::push(bottom, 1);
            owner.pop(bottom, 1);
            return;
        }
        let two = Shared::push(one, 1);
        if does == Does::Shares {
            // SAFETY: the owner calls, and two tasks stand below this head.
            unsafe { two.share() };
            owner.pop(one, 1);
        } else {
            owner.pop(one, 1);
            let _ = Shared::push(one, 2);
            owner.pop(one, 2);
        }
        owner.pop(bottom, 0);
    });
    let thief = Rc::clone(&shared);
    threads.spawn("thief", move || {
        before();
        thief.expose_and_steal();
    });
    threads.finally(move || {
        let pushed = match does {
            Does::Reuses => 3,
            Does::Shares | Does::SharesNothing => 2,
            Does::Pops => 1,
        };
        assert!(shared.runs[..pushed].iter().all(|runs| runs.get() == 1), "a task was lost");
        drop(losing);
        poach_check::observe(0, u64::from(shared.stolen.get()));
    });
}

fn check<M: Memory>(config: &Config, does: Does) -> Report {
    explore(config, &move |threads: &mut Threads| model::<M>(threads, does, || ()))
}

#[test]
fn every_task_is_run_once() {
    for capacity in [1, 2, 4] {
        covers::<Simulated>(capacity, Does::Reuses);
    }
}

#[test]
fn every_task_is_run_once_where_the_owner_fences() {
    for capacity in [1, 2] {
        covers::<WithoutBarrier>(capacity, Does::Reuses);
    }
    covers::<WithoutBarrier>(1, Does::SharesNothing);
}

/// The thief's first barrier fails, and it asks, so that the owner fences from then on.
#[test]
fn every_task_is_run_once_where_the_barrier_is_lost() {
    for does in [Does::Reuses, Does::Shares, Does::SharesNothing] {
        let report = check::<Losing>(&Config::bounded(1, true).within(3, 100_000), does);
        // Most are not searched to the end.
        assert_ne!(report.verdict.word(), "violation", "{does:?}\n{:?}", report.counterexample);
        println!("{does:?}: {} executions, {:?} stolen", report.executions, report.outcomes);
    }
}

#[test]
fn every_task_is_run_once_of_an_owner_that_shares_everything_meanwhile() {
    covers::<Simulated>(1, Does::Shares);
}

#[test]
fn every_task_is_run_once_of_an_owner_that_shares_when_it_has_nothing() {
    covers::<Simulated>(1, Does::SharesNothing);
}

fn covers<M: Memory>(capacity: u32, does: Does) {
    let report = check::<M>(&Config::bounded(capacity, true), does);
    assert_eq!(report.verdict, Verdict::Clean, "S = {capacity}\n{:?}", report.counterexample);
    assert!(report.complete, "{report:?}");
    // None, one or two were exposed and stolen, each somewhere: the model covers what it is about.
    let stolen: Vec<_> = report.outcomes.iter().map(|outcome| outcome[0]).collect();
    assert!(stolen.contains(&0) && stolen.contains(&1), "{stolen:?}");
    println!("S = {capacity}: {} executions, {stolen:?} stolen", report.executions);
}

/// The program switches the barrier off, which has been there, in the thread of the thief, or in
/// one of its own.
fn switched_off<M: Memory>(config: &Config, does: Does, alone: bool) -> Report {
    explore(config, &move |threads: &mut Threads| {
        model::<M>(threads, does, if alone { || () } else { Losing::switch_off });
        if alone {
            threads.spawn("program", Losing::switch_off);
        }
    })
}

#[test]
fn every_task_is_run_once_where_the_barrier_is_switched_off() {
    for config in [Config::bounded(1, true), Config::c11()] {
        for does in [Does::Pops, Does::Reuses, Does::Shares, Does::SharesNothing] {
            for alone in [false, true] {
                let config = config.clone().within(2, 20_000);
                let report = switched_off::<Retiring>(&config, does, alone);
                // Most are not searched to the end.
                let example = report.counterexample;
                assert_ne!(report.verdict.word(), "violation", "{does:?}\n{example:?}");
                let (count, stolen) = (report.executions, report.outcomes);
                println!("{does:?}: {count} executions, {stolen:?} stolen");
            }
        }
        let report = switched_off::<Retiring>(&config, Does::Pops, false);
        assert_eq!(report.verdict, Verdict::Clean, "{:?}", report.counterexample);
        assert!(report.complete && report.outcomes.len() == 2, "{report:?}");
    }
}

#[test]
fn where_it_is_switched_off_and_the_thiefs_barrier_left_out_a_task_is_run_twice() {
    for config in [Config::bounded(2, true), Config::c11()] {
        let report = switched_off::<RetiringBarrierless>(&config, Does::Pops, false);
        assert_eq!(report.verdict.word(), "violation", "{report:?}");
    }
}

/// Under the memory model of C11, too.
#[test]
fn every_task_is_run_once_on_a_weak_machine_where_the_owner_fences() {
    for does in [Does::Reuses, Does::Shares, Does::SharesNothing] {
        let report = check::<WithoutBarrier>(&Config::c11().within(3, 100_000), does);
        assert_ne!(report.verdict.word(), "violation", "{does:?}\n{:?}", report.counterexample);
        println!("{does:?}: {} executions, {:?} stolen", report.executions, report.outcomes);
        let report = check::<Fenceless>(&Config::c11(), does);
        assert_eq!(report.verdict.word(), "violation", "{does:?}\n{report:?}");
    }
}

#[test]
fn without_the_barrier_a_task_is_run_twice() {
    let report = check::<Barrierless>(&Config::bounded(2, true), Does::Reuses);
    assert_eq!(report.verdict.word(), "violation", "{report:?}");
}

#[test]
fn without_the_owners_fence_in_its_place_a_task_is_run_twice() {
    let report = check::<Fenceless>(&Config::bounded(2, true), Does::Reuses);
    assert_eq!(report.verdict.word(), "violation", "{report:?}");
}
