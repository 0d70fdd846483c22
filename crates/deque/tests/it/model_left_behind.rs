//! A thief that is about to sleep leaves no task behind, wherever its owner stops in the midst of a
//! push: either it finds the task, or the push finds the thief's request and shares. Without the
//! thief's barrier it may do neither. So does an owner that has begun a pop and puts the task back.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell as Flag;
use std::rc::Rc;

use poach_check::{Config, Report, Simulated, Threads, Verdict, explore};
use poach_deque::split::{Split, Stack, Thief};
use poach_memory::Memory;

use crate::barrierless::Barrierless;
use crate::put_back::put_back;

#[repr(align(8))]
struct Descriptor;
static DESCRIPTOR: Descriptor = Descriptor;

/// What a thief sees of a split deque.
struct Victim {
    request: Box<dyn Fn()>,
    has_private_tasks: Box<dyn Fn() -> bool>,
    shared: Box<dyn Fn() -> usize>,
}

/// A push, and then nothing more of the owner; a thief that asks, fences, looks, and sleeps if it
/// finds nothing.
fn model<M: Memory>(threads: &mut Threads, push: impl FnOnce() + 'static, victim: Victim) {
    let victim = Rc::new(victim);
    let sleeps = Rc::new(Flag::new(false));
    threads.spawn("owner", push);
    let (looks, asleep) = (Rc::clone(&victim), Rc::clone(&sleeps));
    threads.spawn("thief", move || {
        (looks.request)();
        M::heavy();
        asleep.set((looks.shared)() == 0 && !(looks.has_private_tasks)());
    });
    threads.finally(move || {
        let shared = (victim.shared)();
        assert!(!sleeps.get() || shared == 1, "a task was left behind");
        poach_check::observe(0, u64::from(sleeps.get()));
    });
}

fn queue<M: Memory>(threads: &mut Threads) {
    let owner = Rc::new(Split::<u64, M>::with_capacity(1).expect("a power of two"));
    let stays = Rc::clone(&owner);
    let [request, looks, shared] = [owner.thief(), owner.thief(), owner.thief()];
    let victim = Victim {
        request: Box::new(move || request.request()),
        has_private_tasks: Box::new(move || looks.has_private_tasks()),
        shared: Box::new(move || {
            // The owner stays as long: dropped, it would share.
            let _ = &stays;
            shared.len()
        }),
    };
    model::<M>(threads, move || owner.push(0), victim);
}

fn stack<M: Memory>(threads: &mut Threads) {
    let stack = Rc::new(Stack::<M>::new(2, ()).expect("a small stack"));
    let [request, looks, shared] = [&stack, &stack, &stack].map(Rc::clone);
    let victim = Victim {
        request: Box::new(move || request.request()),
        has_private_tasks: Box::new(move || looks.has_private_tasks()),
        shared: Box::new(move || shared.shared() as usize),
    };
    let push = move || {
        // SAFETY: this thread is the one owner, and the stack outlives its heads.
        let bottom = unsafe { stack.bottom() };
        let (descriptor, task) = ((&raw const DESCRIPTOR).cast_mut().cast(), 0_u64);
        // SAFETY: this thread is the one owner; a u64 fits, and is Copy.
        let pushed = unsafe { bottom.push(descriptor, &raw const task) };
        assert!(pushed.is_ok());
    };
    model::<M>(threads, push, victim);
}

fn check(model: &dyn Fn(&mut Threads)) -> Report {
    explore(&Config::bounded(4, true), &|threads: &mut Threads| model(threads))
}

fn is_clean(report: &Report) {
    assert_eq!(report.verdict, Verdict::Clean);
    assert!(report.complete, "{report:?}");
    // It slept, and it found the task.
    assert_eq!(report.outcomes.len(), 2, "{report:?}");
    println!("{} executions", report.executions);
}

#[test]
fn a_spawned_task_is_found_or_shared() {
    is_clean(&check(&queue::<Simulated>));
}

#[test]
fn a_fork_is_found_or_shared() {
    is_clean(&check(&stack::<Simulated>));
}

#[test]
fn a_task_that_is_put_back_is_found_or_shared() {
    let series = |owner: &Split<u64, Simulated>| {
        let mut taken = Vec::new();
        let mut take = |task: *mut u64| {
            // SAFETY: a task stands there, and is taken once.
            taken.push(unsafe { task.read() });
            false
        };
        // SAFETY: the task is moved out, and the queue is not used before.
        unsafe { owner.pop_each_in_place(|task, _| take(task)) };
        !taken.is_empty()
    };
    let report = check(&|threads| {
        let owner = Split::<u64, Simulated>::with_capacity(2).expect("a power of two");
        put_back(threads, owner, series, Thief::request, Thief::has_private_tasks);
    });
    assert_eq!(report.verdict, Verdict::Clean);
    assert!(report.complete, "{report:?}");
    // The thief finds it, or it is put back and shared while the thief sleeps; or it is taken, and
    // then the thief finds nothing.
    assert_eq!(Vec::from_iter(&report.outcomes), [&[0], &[1], &[3]], "{report:?}");
    println!("{} executions", report.executions);
}

#[test]
fn without_the_barrier_a_spawned_task_is_left_behind() {
    assert_eq!(check(&queue::<Barrierless>).verdict.word(), "violation");
}

#[test]
fn without_the_barrier_a_fork_is_left_behind() {
    assert_eq!(check(&stack::<Barrierless>).verdict.word(), "violation");
}
