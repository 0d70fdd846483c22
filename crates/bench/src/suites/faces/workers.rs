//! Workers and their thieves.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use poach_deque::crossbeam as face;
use poach_deque::st3 as st3_face;

use super::{BATCH, each, second_half, see, tasks};
use crate::{Case, Sample, Size, Unit};

pub(super) fn cases(size: Size) -> Vec<Case> {
    let mut cases = Vec::new();
    crossbeam_lifo(&mut cases, size);
    poach_lifo(&mut cases, size);
    crossbeam_fifo(&mut cases, size);
    poach_fifo(&mut cases, size);
    st3_lifo(&mut cases, size);
    poach_st3_lifo(&mut cases, size);
    st3_fifo(&mut cases, size);
    poach_st3_fifo(&mut cases, size);
    cases
}

fn case(
    cases: &mut Vec<Case>,
    workload: &'static str,
    system: &'static str,
    mut run: impl FnMut() -> Sample + 'static,
) {
    let sample = move || Ok(run());
    cases.push(Case::new(workload, system, 1, Unit::NANOSECONDS, || Ok(sample)));
}

/// An owner that pushes and pops, and a thief: million tasks a second. `push` may wait for room.
fn served(
    tasks: u64,
    push: impl Fn(u64),
    pop: impl Fn() -> Option<u64>,
    mut steal: impl FnMut(&mut dyn FnMut(u64)) + Send,
) -> Result<Sample> {
    let (start, done) = (Barrier::new(2), AtomicBool::new(false));
    let (mut own, mut sum) = (0, 0_u64);
    let (seconds, stolen, stolen_sum) = thread::scope(|scope| {
        let (start, done) = (&start, &done);
        let thief = scope.spawn(move || {
            let (mut count, mut sum) = (0, 0_u64);
            start.wait();
            // Relaxed: what the thief misses by seeing it late is nothing.
            while !done.load(Ordering::Relaxed) {
                steal(&mut |task| {
                    count += 1;
                    sum = sum.wrapping_add(task);
                });
            }
            (count, sum)
        });
        start.wait();
        let began = Instant::now();
        for round in 0..tasks / BATCH {
            (0..BATCH).for_each(|task| push(round * BATCH + task));
            while let Some(task) = pop() {
                own += 1;
                sum = sum.wrapping_add(task);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let (stolen, stolen_sum): (u64, u64) = thief.join().unwrap_or_default();
        (seconds, stolen, stolen_sum)
    });
    let right = (0..tasks).fold(0, u64::wrapping_add);
    ensure!(
        own + stolen == tasks && sum.wrapping_add(stolen_sum) == right,
        "{tasks} tasks went in, and {own} and {stolen} came out, or others"
    );
    Ok(Sample::from(tasks as f64 / seconds / 1e6).count("stolen", stolen as f64 / tasks as f64))
}

macro_rules! owner_names {
    ($prefix:literal) => {
        [concat!($prefix, "-empty-pop"), concat!($prefix, "-alternate"), concat!($prefix, "-owner")]
    };
}

/// What an owner does without thieves.
fn owner_alone<W: 'static>(
    add: &mut impl FnMut(&'static str, Box<dyn FnMut() -> Sample>),
    [empty_pop, alternate, owner]: [&'static str; 3],
    tasks: u64,
    new: impl Fn() -> W + Copy + 'static,
    push: impl Fn(&W, u64) + Copy + 'static,
    pop: impl Fn(&W) -> Option<u64> + Copy + 'static,
) {
    add(
        empty_pop,
        Box::new(move || {
            let worker = new();
            each(tasks, || (0..tasks).for_each(|_| see(pop(&worker))))
        }),
    );
    add(
        alternate,
        Box::new(move || {
            let worker = new();
            each(tasks, || {
                for task in 0..tasks {
                    push(&worker, task);
                    black_box(pop(&worker));
                }
            })
        }),
    );
    add(
        owner,
        Box::new(move || {
            let worker = new();
            each(tasks, || {
                for _ in 0..tasks / BATCH {
                    (0..BATCH).for_each(|task| push(&worker, task));
                    (0..BATCH).for_each(|_| see(pop(&worker)));
                }
            })
        }),
    );
}

macro_rules! crossbeam {
    ($cases:ident, $system:literal, $source:ident, $new:ident, $prefix:literal) => {
        fn $cases(cases: &mut Vec<Case>, size: Size) {
            let tasks = tasks(size);
            let new = $source::Worker::<u64>::$new;
            let fill =
                |worker: &$source::Worker<u64>| (0..BATCH).for_each(|task| worker.push(task));
            let mut add =
                |workload, run: Box<dyn FnMut() -> Sample>| case(cases, workload, $system, run);
            let names = owner_names!($prefix);
            owner_alone(
                &mut add,
                names,
                tasks,
                new,
                |worker: &$source::Worker<u64>, task| worker.push(task),
                |worker| worker.pop(),
            );
            add(
                concat!($prefix, "-empty-steal"),
                Box::new(move || {
                    let thief = new().stealer();
                    each(tasks, || (0..tasks).for_each(|_| see(thief.steal())))
                }),
            );
            add(
                concat!($prefix, "-idle-steals"),
                Box::new(move || {
                    let worker = new();
                    let thief = worker.stealer();
                    second_half(
                        tasks,
                        || fill(&worker),
                        || while !black_box(thief.steal()).is_empty() {},
                    )
                }),
            );
            add(
                concat!($prefix, "-idle-batch"),
                Box::new(move || {
                    let (worker, mine) = (new(), new());
                    let thief = worker.stealer();
                    let steals =
                        || while !black_box(thief.steal_batch_and_pop(&mine)).is_empty() {};
                    let fill = || {
                        while mine.pop().is_some() {}
                        fill(&worker);
                    };
                    second_half(tasks, fill, steals)
                }),
            );
            add(
                concat!($prefix, "-idle-limit"),
                Box::new(move || {
                    let (worker, mine) = (new(), new());
                    let thief = worker.stealer();
                    let steals =
                        || while !black_box(thief.steal_batch_with_limit(&mine, 4)).is_empty() {};
                    let fill = || {
                        while mine.pop().is_some() {}
                        fill(&worker);
                    };
                    second_half(tasks, fill, steals)
                }),
            );
            add(
                concat!($prefix, "-one-steal"),
                Box::new(move || {
                    let worker = new();
                    let thief = worker.stealer();
                    each(tasks, || {
                        for task in 0..tasks {
                            worker.push(task);
                            see(thief.steal());
                        }
                    })
                }),
            );
            add(
                concat!($prefix, "-one-batch"),
                Box::new(move || {
                    let (worker, mine) = (new(), new());
                    let thief = worker.stealer();
                    each(tasks, || {
                        for task in 0..tasks {
                            worker.push(task);
                            see(thief.steal_batch_and_pop(&mine));
                        }
                    })
                }),
            );
            add(
                concat!($prefix, "-len"),
                Box::new(move || {
                    let worker = new();
                    worker.push(1);
                    each(tasks, || look!(tasks, worker.len()))
                }),
            );
            add(
                concat!($prefix, "-is-empty"),
                Box::new(move || {
                    let worker = new();
                    worker.push(1);
                    let thief = worker.stealer();
                    each(tasks, || look!(tasks, thief.is_empty()))
                }),
            );
            for (workload, batch) in [
                (concat!($prefix, "-served-steals"), false),
                (concat!($prefix, "-served-batch"), true),
            ] {
                let sample = move || {
                    let worker = new();
                    let (thief, mine) = (worker.stealer(), new());
                    let steal = move |each: &mut dyn FnMut(u64)| {
                        if !batch {
                            thief.steal().success().into_iter().for_each(each);
                        } else if let Some(task) = thief.steal_batch_and_pop(&mine).success() {
                            each(task);
                            while let Some(task) = mine.pop() {
                                each(task);
                            }
                        }
                    };
                    served(tasks, |task| worker.push(task), || worker.pop(), steal)
                };
                let unit = Unit::MILLIONS_PER_SECOND;
                cases.push(Case::new(workload, $system, 2, unit, move || Ok(sample)));
            }
        }
    };
}

crossbeam!(crossbeam_lifo, "crossbeam-deque", crossbeam_deque, new_lifo, "lifo");
crossbeam!(poach_lifo, "poach", face, new_lifo, "lifo");
crossbeam!(crossbeam_fifo, "crossbeam-deque", crossbeam_deque, new_fifo, "fifo");
crossbeam!(poach_fifo, "poach", face, new_fifo, "fifo");

/// Room for a batch and what a thief holds claimed meanwhile.
const CAPACITY: usize = 2048;

macro_rules! st3 {
    ($cases:ident, $system:literal, $source:ident, $flavour:ident, $prefix:literal) => {
        fn $cases(cases: &mut Vec<Case>, size: Size) {
            use $source::$flavour::Worker;
            let tasks = tasks(size);
            let new = || Worker::<u64>::new(CAPACITY);
            // A full queue: a thief holds half of it claimed, and is at work.
            let push = |worker: &Worker<u64>, task: u64| {
                let mut task = task;
                while let Err(back) = worker.push(task) {
                    task = back;
                    std::hint::spin_loop();
                }
            };
            let mut add =
                |workload, run: Box<dyn FnMut() -> Sample>| case(cases, workload, $system, run);
            owner_alone(&mut add, owner_names!($prefix), tasks, new, push, |worker| worker.pop());
            add(
                concat!($prefix, "-extend-drain"),
                Box::new(move || {
                    let worker = new();
                    each(tasks, || {
                        for _ in 0..tasks / BATCH {
                            worker.extend(0..BATCH);
                            worker
                                .drain(|count| count)
                                .into_iter()
                                .flatten()
                                .for_each(|task| see(task));
                        }
                    })
                }),
            );
            add(
                concat!($prefix, "-empty-steal"),
                Box::new(move || {
                    let (thief, mine) = (new().stealer(), new());
                    each(tasks, || (0..tasks).for_each(|_| see(thief.steal(&mine, |count| count))))
                }),
            );
            add(
                concat!($prefix, "-idle-half"),
                Box::new(move || {
                    let (worker, mine) = (new(), new());
                    let thief = worker.stealer();
                    let fill = || {
                        while mine.pop().is_some() {}
                        (0..BATCH).for_each(|task| push(&worker, task));
                    };
                    let steals = || {
                        while black_box(thief.steal_and_pop(&mine, |count| count - count / 2))
                            .is_ok()
                        {}
                    };
                    second_half(tasks, fill, steals)
                }),
            );
            let sample = move || {
                let worker = new();
                let (thief, mine) = (worker.stealer(), new());
                let steal = move |each: &mut dyn FnMut(u64)| {
                    if let Ok((task, _)) = thief.steal_and_pop(&mine, |count| count - count / 2) {
                        each(task);
                        while let Some(task) = mine.pop() {
                            each(task);
                        }
                    }
                };
                served(tasks, |task| push(&worker, task), || worker.pop(), steal)
            };
            let unit = Unit::MILLIONS_PER_SECOND;
            cases.push(Case::new(concat!($prefix, "-served-half"), $system, 2, unit, move || {
                Ok(sample)
            }));
        }
    };
}

st3!(st3_lifo, "st3", st3, lifo, "st3-lifo");
st3!(poach_st3_lifo, "poach", st3_face, lifo, "st3-lifo");
st3!(st3_fifo, "st3", st3, fifo, "st3-fifo");
st3!(poach_st3_fifo, "poach", st3_face, fifo, "st3-fifo");
