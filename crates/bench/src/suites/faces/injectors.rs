//! Injectors: one thread, and producers and consumers under the protocol of the suite `pool`.

use std::hint::black_box;
use std::iter::repeat_with;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};
use poach_deque::crossbeam as face;

use super::{BATCH, each, second_half, see, tasks};
use crate::suites::pool::protocol::{Opened, Put, Shape, System, Take, polling};
use crate::{Case, Sample, Size, Unit};

/// How a consumer steals.
#[derive(Clone, Copy)]
enum How {
    One,
    Batch,
    Limit,
}

/// The shapes of the suite `pool`: the workloads by the way of stealing, producers, consumers.
const SHAPES: [([&str; 3], usize, usize); 4] = [
    (["injector-1p1c", "injector-1p1c-batch", "injector-1p1c-limit"], 1, 1),
    (["injector-2p2c", "injector-2p2c-batch", "injector-2p2c-limit"], 2, 2),
    (["injector-1p3c", "injector-1p3c-batch", "injector-1p3c-limit"], 1, 3),
    (["injector-3p1c", "injector-3p1c-batch", "injector-3p1c-limit"], 3, 1),
];

/// How many tasks two threads push or steal: what stands in an injector at one time.
const STANDING: u64 = 1_000_000;

/// Two threads do the same at once, and return how many of `tasks` tasks they have moved. The
/// result is million tasks a second, from when the first begins until the last ends.
fn both(tasks: u64, act: impl Fn() -> u64 + Sync) -> Result<Sample> {
    let start = Barrier::new(2);
    let timed = || {
        start.wait();
        let began = Instant::now();
        (act(), began, Instant::now())
    };
    let (mine, others) = thread::scope(|scope| {
        let other = scope.spawn(timed);
        (timed(), other.join())
    });
    let Ok(other) = others else { anyhow::bail!("the other thread has panicked") };
    let moved = mine.0 + other.0;
    ensure!(moved == tasks, "{tasks} tasks were to be moved, and {moved} were");
    let seconds = (mine.2.max(other.2) - mine.1.min(other.1)).as_secs_f64();
    Ok((tasks as f64 / seconds / 1e6).into())
}

pub(super) fn cases(size: Size) -> Vec<Case> {
    let mut cases = Vec::new();
    Theirs::cases(&mut cases, size);
    Ours::cases(&mut cases, size);
    cases
}

macro_rules! injectors {
    ($name:ident, $system:literal, $source:ident) => {
        #[derive(Clone, Copy)]
        struct $name(How);

        impl $name {
            fn cases(cases: &mut Vec<Case>, size: Size) {
                let tasks = tasks(size);
                let new = $source::Injector::<u64>::new;
                let fill = |injector: &$source::Injector<u64>| {
                    (0..BATCH).for_each(|task| injector.push(task))
                };
                let mut add = |workload, mut run: Box<dyn FnMut() -> crate::Sample>| {
                    let sample = move || Ok(run());
                    cases.push(Case::new(workload, $system, 1, Unit::NANOSECONDS, || Ok(sample)));
                };
                add(
                    "injector-pair",
                    Box::new(move || {
                        let injector = new();
                        each(tasks, || {
                            for task in 0..tasks {
                                injector.push(task);
                                see(injector.steal());
                            }
                        })
                    }),
                );
                add(
                    "injector-empty",
                    Box::new(move || {
                        let injector = new();
                        each(tasks, || (0..tasks).for_each(|_| see(injector.steal())))
                    }),
                );
                add(
                    "injector-is-empty",
                    Box::new(move || {
                        let injector = new();
                        each(tasks, || look!(tasks, injector.is_empty()))
                    }),
                );
                add(
                    "injector-idle-push",
                    Box::new(move || {
                        let injector = new();
                        second_half(
                            tasks,
                            || while injector.steal().is_success() {},
                            || fill(&injector),
                        )
                    }),
                );
                add(
                    "injector-idle-steals",
                    Box::new(move || {
                        let injector = new();
                        let steals = || while !black_box(injector.steal()).is_empty() {};
                        second_half(tasks, || fill(&injector), steals)
                    }),
                );
                for (workload, how) in
                    [("injector-idle-batch", How::Batch), ("injector-idle-limit", How::Limit)]
                {
                    add(
                        workload,
                        Box::new(move || {
                            let (injector, mine) = (new(), $source::Worker::new_fifo());
                            let steals =
                                || while black_box(Self::take(how, &injector, &mine)).is_some() {};
                            second_half(tasks, || fill(&injector), steals)
                        }),
                    );
                }
                let tasks = tasks.min(STANDING) / 2 * 2;
                let push = move |injector: &$source::Injector<u64>| {
                    (0..tasks / 2).for_each(|task| injector.push(task));
                    tasks / 2
                };
                let pushes = move || {
                    let injector = new();
                    both(tasks, || push(&injector))
                };
                let steals = move || {
                    let injector = new();
                    (0..2).for_each(|_| _ = push(&injector));
                    both(tasks, || {
                        let mut count = 0;
                        loop {
                            match black_box(injector.steal()) {
                                $source::Steal::Success(_) => count += 1,
                                $source::Steal::Retry => {}
                                $source::Steal::Empty => break count,
                            }
                        }
                    })
                };
                let unit = Unit::MILLIONS_PER_SECOND;
                cases.push(Case::new("injector-pushes-2", $system, 2, unit, move || Ok(pushes)));
                cases.push(Case::new("injector-steals-2", $system, 2, unit, move || Ok(steals)));
                for (names, producers, consumers) in SHAPES {
                    for (name, how) in names.into_iter().zip([How::One, How::Batch, How::Limit]) {
                        let shape = Shape::new(name, producers, consumers);
                        cases.push(polling($system, shape, size, $name(how)));
                    }
                }
            }

            fn take(
                how: How,
                injector: &$source::Injector<u64>,
                mine: &$source::Worker<u64>,
            ) -> Option<u64> {
                if !matches!(how, How::One)
                    && let Some(task) = mine.pop()
                {
                    return Some(task);
                }
                loop {
                    let steal = match how {
                        How::One => injector.steal(),
                        How::Batch => injector.steal_batch_and_pop(mine),
                        How::Limit => injector.steal_batch_with_limit_and_pop(mine, 4),
                    };
                    if !steal.is_retry() {
                        return steal.success();
                    }
                }
            }
        }

        impl Take for (How, Arc<$source::Injector<u64>>, $source::Worker<u64>) {
            fn take(&mut self) -> Option<u64> {
                let (how, injector, mine) = self;
                $name::take(*how, injector, mine)
            }
        }

        impl System for $name {
            type In = Arc<$source::Injector<u64>>;
            type Out = (How, Arc<$source::Injector<u64>>, $source::Worker<u64>);

            fn open(&self, shape: &Shape) -> Result<Opened<Self::In, Self::Out>> {
                let (how, injector) = (self.0, Arc::new($source::Injector::new()));
                let consumer = || (how, injector.clone(), $source::Worker::new_fifo());
                Ok(Opened {
                    producers: repeat_with(|| injector.clone()).take(shape.producers).collect(),
                    consumers: repeat_with(consumer).take(shape.consumers).collect(),
                    close: Box::new(|| ()),
                })
            }
        }
    };
}

impl Put for Arc<face::Injector<u64>> {
    fn put(&mut self, task: u64) -> Result<(), u64> {
        self.push(task);
        Ok(())
    }
}

injectors!(Theirs, "crossbeam-deque", crossbeam_deque);
injectors!(Ours, "poach", face);
