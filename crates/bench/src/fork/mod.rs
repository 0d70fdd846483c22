//! Fork-join programs, written once, and the systems that run them.
//!
//! A program is a [`Task`]: a value with a body that is generic over how it forks. A system is a
//! [`System`]: a pool with such a way to fork, a [`Fork`]. The halves of a join are tasks, not
//! closures. So one program runs under worker tokens that are passed by value and have a lifetime
//! of their own (Poach's) and under scopes passed by reference (chili's). It also runs without
//! either (under rayon, and sequentially). It costs nothing: each system's `join` is inlined into
//! the program's own recursion. The crate's README counts the instructions of `fib` in this form
//! and in the form for Poach alone; both are in the tests of `fib`.

mod on_queue;
mod patterns;
mod systems;
mod task;

use on_queue::Kind;
pub(crate) use patterns::{Both, for_each};
pub(crate) use systems::{Chili, PoachJoin, Rayon, Sequential, Split, System, delta};
use systems::{OnQueue, OnSpacedQueue};
pub(crate) use task::{Fork, Task};

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::suites::simulate::Play;
use crate::{Case, Request, Sample, Size, Unit, need_memory};

/// A program: its input, what is timed, and a check of the result.
pub(crate) trait Program: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;

    /// The bytes that its input, its result and their check take, where they are more than a few.
    fn memory(_size: Size) -> u64 {
        0
    }

    /// Whether a system whose stacks cannot be made larger can run it.
    const DEEP: bool = false;

    /// Makes the input.
    fn new(size: Size) -> Self;

    /// Brings the input back to its first state, and forgets the result. Not timed.
    fn reset(&mut self);

    /// Runs the program. This is what is timed.
    fn run(&mut self, system: &impl System);

    /// Its forks, and the times of its strands if the sequential program takes `_seconds` seconds;
    /// `None` if a run finds them.
    fn tree(&self, _seconds: f64) -> Option<Box<dyn Play>> {
        None
    }

    /// Compares the result with an independent computation. Not timed.
    ///
    /// # Errors
    ///
    /// What the result is, and what it should be.
    fn check(&self) -> Result<()>;
}

/// The cases of a program: under each system with each number of workers.
///
/// They share one program, made when the first of them is prepared, so that all of them read the
/// same memory. A tree that another heap has scattered takes several times as long.
pub(crate) fn cases<P: Program>(request: &Request, cases: &mut Vec<Case>) {
    let shared = Rc::new(OnceCell::new());
    let size = request.size;
    cases.push(case::<P, Sequential>(&shared, size, 1));
    for workers in &request.workers {
        cases.push(case::<P, Split>(&shared, size, *workers));
        cases.push(case::<P, PoachJoin>(&shared, size, *workers));
        cases.push(case::<P, Rayon>(&shared, size, *workers));
        // Its stacks are those of the standard library, but for the calling thread's.
        if !P::DEEP || workers == &1 || request.thread_stack >= systems::STACK {
            cases.push(case::<P, Chili>(&shared, size, *workers));
        }
        on_queues(&shared, size, *workers, cases);
    }
}

/// The queues of the papers that this machine can have.
fn on_queues<P: Program>(shared: &Input<P>, size: Size, workers: usize, cases: &mut Vec<Case>) {
    fn on<P: Program, K: Kind>(
        shared: &Input<P>,
        size: Size,
        workers: usize,
        cases: &mut Vec<Case>,
    ) {
        if K::queue().is_ok() {
            cases.push(case::<P, OnQueue<K>>(shared, size, workers));
        }
    }
    on::<P, systems::MutexKind>(shared, size, workers, cases);
    on::<P, systems::TheKind>(shared, size, workers, cases);
    // What Figure 1 of the fence-free paper leaves out of THE; with a thief it would be wrong.
    if workers == 1 {
        on::<P, systems::UnfencedTheKind>(shared, size, 1, cases);
    }
    on::<P, systems::FfTheKind>(shared, size, workers, cases);
    on::<P, systems::FfTheMeasuredKind>(shared, size, workers, cases);
    if OnSpacedQueue::is_possible() {
        cases.push(case::<P, OnSpacedQueue>(shared, size, workers));
    }
    on::<P, systems::AsymmetricTheKind>(shared, size, workers, cases);
    on::<P, systems::ThepKind>(shared, size, workers, cases);
    on::<P, systems::ThepInfiniteKind>(shared, size, workers, cases);
    on::<P, systems::ChaseLevKind>(shared, size, workers, cases);
    on::<P, systems::FfClKind>(shared, size, workers, cases);
    on::<P, systems::AsymmetricClKind>(shared, size, workers, cases);
    on::<P, systems::ResolvedKind>(shared, size, workers, cases);
    on::<P, systems::PrivateKind>(shared, size, workers, cases);
    on::<P, systems::SplitQueueKind>(shared, size, workers, cases);
}

/// A program that several systems run in turn, made when the first needs it; or why it could not
/// be, which is then the answer to all of them.
pub(crate) type Input<P> = Rc<OnceCell<Result<RefCell<P>, String>>>;

/// The program, which is made unless another system has.
pub(crate) fn make<P: Program>(shared: &Input<P>, size: Size) -> Result<&RefCell<P>> {
    let made = shared.get_or_init(|| {
        need_memory(P::memory(size)).map_err(|error| error.to_string())?;
        Ok(RefCell::new(P::new(size)))
    });
    made.as_ref().map_err(|why| anyhow!("{why}"))
}

pub(crate) fn case<P: Program, S: System>(shared: &Input<P>, size: Size, workers: usize) -> Case {
    let shared = Rc::clone(shared);
    let prepare = move || {
        make(&shared, size)?;
        let system = S::new(workers)?;
        Ok(move || {
            let mut program = make(&shared, size)?.borrow_mut();
            program.reset();
            let before = system.counters();
            let start = Instant::now();
            program.run(&system);
            let seconds = start.elapsed().as_secs_f64();
            program.check()?;
            Ok(counted(&system, before, seconds.into()))
        })
    };
    Case::new(P::NAME, S::NAME, workers, Unit::SECONDS, prepare)
}

/// The sample with what `system` has counted since `before`.
pub(crate) fn counted(
    system: &impl System,
    before: Vec<(&'static str, u64)>,
    sample: Sample,
) -> Sample {
    let counted = system.counters().into_iter().zip(before);
    counted.fold(sample, |sample, ((name, after), (_, before))| {
        sample.count(name, (after - before) as f64)
    })
}
