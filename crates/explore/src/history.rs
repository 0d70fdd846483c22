//! Histories: what was called, what it returned, and which call came after which return.
//!
//! # Where a call and a return stand
//!
//! An operation is as short as the execution allows: its call stands immediately before its first
//! step that another thread could notice, its return immediately after its last step. Any longer
//! operation of the same steps overlaps more, so a specification allows all the more for it: what no
//! short one violates, no long one does.
//!
//! # The delayed push
//!
//! Section 3.3 of *Fence-Free Work Stealing on Bounded TSO Processors*: a push may return while its
//! stores are still in the owner's store buffer, and a thief that misses them answers "empty". Every
//! queue of the field has this exception, for the owner keeps popping until the queue is empty, and
//! the paper's own queues keep it. It is part of the specification here: besides its call and return
//! a push has a third time, when the last of its stores has drained ([`Operation::visible`]), and up
//! to then a thief's "empty" may overlook its task. The owner itself may never overlook it.

use crate::machine::{MAX_THREADS, mix};

/// What was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// The owner, or a producer, adds a task.
    Push(u64),
    /// The owner, or a consumer of its own pool, takes a task.
    Pop,
    /// A thief takes a task.
    Steal,
}

/// What it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing to tell.
    Done,
    /// A task.
    Task(u64),
    /// There was no task.
    Empty,
    /// It gave up, uncertain, and changed nothing.
    Abort,
    /// It was outrun by another, and changed nothing.
    Retry,
}

/// A time in a history; [`NEVER`](Time::MAX) where it has not come.
pub type Time = u32;

const NEVER: Time = Time::MAX;

/// One operation of a history.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The thread that called it.
    pub thread: usize,
    /// What was called.
    pub call: Call,
    /// What it returned, if it has.
    pub outcome: Option<Outcome>,
    /// When it was called.
    pub called: Time,
    /// When it returned.
    pub returned: Time,
    /// When its stores had all drained.
    pub visible: Time,
    /// The threads that had stores on their way to memory when it was called: bit `i` for thread `i`.
    pub busy: u8,
}

/// The operations of one execution, in the order of their calls.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Operation>,
    now: Time,
    hashes: [u64; MAX_THREADS],
    open: [usize; MAX_THREADS],
}

impl History {
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.now = 0;
        self.hashes = [0; MAX_THREADS];
    }

    fn tick(&mut self) -> Time {
        self.now += 1;
        self.now
    }

    /// `seen` is all that the call comes after: a fingerprint of how many operations of each thread
    /// had returned and become visible. `busy` are the threads with stores on their way to memory.
    pub(crate) fn call(&mut self, thread: usize, call: Call, seen: u64, busy: u8) {
        let called = self.tick();
        self.open[thread] = self.operations.len();
        self.operations.push(Operation {
            thread,
            call,
            outcome: None,
            called,
            returned: NEVER,
            visible: NEVER,
            busy,
        });
        let what = match call {
            Call::Push(task) => mix(1, task),
            Call::Pop => 2,
            Call::Steal => 3,
        };
        self.hashes[thread] = mix(mix(self.hashes[thread], what), mix(seen, busy.into()));
    }

    pub(crate) fn ret(&mut self, thread: usize, outcome: Outcome) {
        let returned = self.tick();
        let operation = &mut self.operations[self.open[thread]];
        operation.outcome = Some(outcome);
        operation.returned = returned;
        let what = match outcome {
            Outcome::Done => 5,
            Outcome::Task(task) => mix(6, task),
            Outcome::Empty => 7,
            Outcome::Abort => 8,
            Outcome::Retry => 9,
        };
        self.hashes[thread] = mix(self.hashes[thread], what);
    }

    /// The oldest push of a thread that has returned and is not visible yet becomes visible.
    pub(crate) fn show(&mut self, thread: usize) {
        let now = self.tick();
        let hidden = self.operations.iter_mut().find(|operation| {
            operation.thread == thread
                && matches!(operation.call, Call::Push(_))
                && operation.returned != NEVER
                && operation.visible == NEVER
        });
        if let Some(operation) = hidden {
            operation.visible = now;
        }
    }

    /// The same for two histories that no specification can tell apart.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.hashes.iter().fold(self.operations.len() as u64, |hash, thread| mix(hash, *thread))
    }

    /// The operations, in the order of their calls.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The tasks that more than one operation returned, each once.
    pub fn duplicates(&self) -> Vec<u64> {
        let mut taken: Vec<u64> = self
            .operations
            .iter()
            .filter_map(|operation| match operation.outcome {
                Some(Outcome::Task(task)) => Some(task),
                _ => None,
            })
            .collect();
        taken.sort_unstable();
        let mut twice: Vec<u64> =
            taken.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        twice.dedup();
        twice
    }
}

impl core::fmt::Display for Operation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.call {
            Call::Push(task) => write!(f, "push({task})")?,
            Call::Pop => f.write_str("pop()")?,
            Call::Steal => f.write_str("steal()")?,
        }
        match self.outcome {
            None => f.write_str(" has not returned"),
            Some(Outcome::Done) => Ok(()),
            Some(Outcome::Task(task)) => write!(f, " = {task}"),
            Some(Outcome::Empty) => f.write_str(" = empty"),
            Some(Outcome::Abort) => f.write_str(" = abort"),
            Some(Outcome::Retry) => f.write_str(" = retry"),
        }
    }
}
