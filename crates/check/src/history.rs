//! Histories: what was called, what it returned, and which call came after which return.
//!
//! # Where a call and a return stand
//!
//! An operation is as short as the execution allows: its call stands immediately before its first
//! step that another thread could notice, its return immediately after its last step. A longer
//! operation of the same steps overlaps more operations, so a specification allows more for it.
//!
//! # The delayed push
//!
//! Section 3.3 of *Fence-Free Work Stealing on Bounded TSO Processors*: a push may return while its
//! stores are still in the owner's store buffer, and a thief that misses them answers "empty".
//! Every queue of the field has this exception, because the owner keeps popping until the queue is
//! empty. It is part of the specification here: until the last store of a push has drained
//! ([`Operation::visible`]) a thief's "empty" may overlook its task. The owner itself may never
//! overlook it.

use crate::machine::MAX_THREADS;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

/// The operations of one execution, in the order of their calls.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Operation>,
    now: Time,
    open: [usize; MAX_THREADS],
}

impl History {
    pub(crate) fn clear(&mut self) {
        self.operations.clear();
        self.now = 0;
    }

    fn tick(&mut self) -> Time {
        self.now += 1;
        self.now
    }

    pub(crate) fn call(&mut self, thread: usize, call: Call) {
        let called = self.tick();
        self.open[thread] = self.operations.len();
        let (returned, visible) = (NEVER, NEVER);
        self.operations.push(Operation { thread, call, outcome: None, called, returned, visible });
    }

    pub(crate) fn ret(&mut self, thread: usize, outcome: Outcome, delayed: bool) {
        let returned = self.tick();
        let operation = &mut self.operations[self.open[thread]];
        operation.outcome = Some(outcome);
        operation.returned = returned;
        if !delayed {
            operation.visible = returned;
        }
    }

    /// The stores of a thread's oldest returned operation with stores on their way have drained.
    pub(crate) fn show(&mut self, thread: usize) -> Option<Call> {
        let now = self.tick();
        let hidden = self.operations.iter_mut().find(|operation| {
            operation.thread == thread && operation.returned != NEVER && operation.visible == NEVER
        });
        hidden.map(|operation| {
            operation.visible = now;
            operation.call
        })
    }

    pub(crate) fn last_call(&self, thread: usize) -> Call {
        self.operations[self.open[thread]].call
    }

    pub(crate) fn is_open(&self, thread: usize) -> bool {
        let last = self.operations.iter().rev().find(|operation| operation.thread == thread);
        last.is_some_and(|operation| operation.returned == NEVER)
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
