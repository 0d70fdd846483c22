//! Threads that a model's own thread makes while it runs.
//!
//! A thread's number is the number of threads made before it. To make a thread is a
//! read-modify-write of a word that counts them, so the search chooses the order. All that the
//! maker has done happens before the new thread ([`Machine::learn`]), and the maker's stores are in
//! memory before it exists.
//!
//! [`Machine::learn`]: crate::machine::Machine::learn

use std::panic::Location;

use super::{Job, MAX_THREADS, Mode, race, slot, step, with};
use crate::machine::{Change, Loc, Op};
use crate::search::Exploring;
use crate::trace::place;

/// The threads' names in counterexamples; [`Threads`](crate::Threads) has names of the model's own.
const NAMES: [&str; MAX_THREADS] =
    ["main", "thread 1", "thread 2", "thread 3", "thread 4", "thread 5", "thread 6", "thread 7"];

/// Makes a thread and returns its number. `count` is the word that counts the threads.
///
/// # Panics
///
/// If there are [`MAX_THREADS`] already.
pub(crate) fn spawn(count: Loc, site: &'static Location<'static>, job: Job) -> usize {
    step(Op::Change(count, Change::Add(1)), site);
    let made = with(|engine| {
        if engine.mode == Mode::Unwind {
            return Err(job);
        }
        let (index, maker) = (engine.machine.count, engine.current);
        if index == MAX_THREADS {
            return Err(job);
        }
        engine.machine.add_thread();
        engine.machine.learn(index, maker);
        // What the maker does from now on the new thread does not know.
        engine.machine.threads[maker].clock[maker] += 1;
        engine.search.names[index] = NAMES[index];
        engine.jobs[index] = Some(job);
        Ok(index)
    });
    // What is not run is dropped outside of the engine: it may look at words.
    made.unwrap_or_else(|_job| panic!("a model has at most {MAX_THREADS} threads, main among them"))
}

pub(crate) fn current() -> Option<usize> {
    with(|engine| engine.creator())
}

/// Says in the set-up that this search keeps clocks from its first execution on.
pub(crate) fn keep_clocks() {
    with(|engine| {
        engine.machine.clocks = true;
        engine.machine.clocks_wanted = true;
    });
}

/// Says in the set-up that no thread may be unwound, but by a panic of its own: destructors may not
/// be written to run where an execution is given up.
pub(crate) fn keep_whole() {
    with(|engine| engine.keep_whole = true);
}

/// Says in the set-up that this execution's panics are to be printed, as those of a program are.
pub(crate) fn print_panics() {
    with(|engine| engine.loud = true);
}

/// Says in the set-up that the threads share more than words and cells hold.
pub(crate) fn share_beside_words() {
    with(|engine| engine.machine.whole_past = true);
}

/// Whether alternatives are explored from here on; no more once they were to be skipped.
pub(crate) fn exploring(exploring: Exploring) {
    with(|engine| {
        if engine.search.exploring != Exploring::Skips {
            engine.search.exploring = exploring;
        }
    });
}

/// What a word holds, for a thread that says that no other writes it at this time, or, if `writes`,
/// that no other uses it. It is no step; if it is wrong, it is a race.
pub(crate) fn alone(loc: Loc, writes: bool, site: &'static Location<'static>) -> u64 {
    let found = with(|engine| {
        engine.need_execution();
        if engine.mode != Mode::Run || engine.probes() || std::thread::panicking() {
            return Ok(engine.machine.perform_directly(Op::Load(loc)));
        }
        engine.machine.alone(engine.current, loc, writes, site)
    });
    found.unwrap_or_else(|other| {
        let (this, that) = if writes { ("use", "use") } else { ("read", "store") };
        race(format!(
            "nothing orders the {this} without synchronization at {} and the {that} at {}",
            place(site),
            place(other),
        ))
    })
}

pub(super) fn stay() {
    let thread = with(|engine| {
        engine.next = None;
        engine.current
    });
    loop {
        slot(thread).with(|yielder| yielder.suspend(()));
    }
}
