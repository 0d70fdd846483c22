//! Specifications, and the check of a history against one.
//!
//! A history is linearizable if every operation can be given one instant between its call and its
//! return, such that in the order of those instants they are a run of the sequential object. The
//! check is Wing and Gong's search with a memo of (operations done, object's state). Operations
//! that have not returned may have taken effect or not, with whatever outcome suits.

use std::collections::{HashSet, VecDeque};

use crate::history::{Call, History, Operation, Outcome, Time};
use crate::machine::MAX_THREADS;
use crate::{Kind, Unexplained};

/// A sequential object, with the liberties that its users are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Spec {
    /// A work-stealing deque (section 3.1): push and pop at the tail, steal at the head, and a
    /// thief's "empty" only if every push that has become visible is taken.
    Deque,
    /// The same, where a thief may also abort and change nothing (section 4) if there are no more
    /// than `margin` tasks that have become visible: delta.
    DequeWithAbort {
        /// Delta.
        margin: u64,
    },
    /// A deque whose owner keeps tasks to itself: a thief's "empty" and "abort" say nothing.
    PartlyPrivate,
    /// The same, whose thieves take from the same end as the owner.
    PartlyPrivateLifo,
    /// The same, but all threads take the oldest task.
    PartlyPrivateFifo,
    /// The same, but thieves take any task: what the owner keeps may be older.
    PartlyPrivateBlocks,
    /// A bag that may give one task to several threads. It gives no task that was not put in, and
    /// tells the owner "empty" only if every task has been given to some thread.
    AtLeastOnce,
    /// A queue whose owner, too, takes the oldest task.
    Fifo,
    /// A pool: any task, each once, and "empty" only if there is an instant at which there is none.
    Pool,
}

/// A task in the object, and whether thieves must have heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Item {
    pub(crate) task: u64,
    pub(crate) visible: bool,
    /// A thread has it already ([`Spec::AtLeastOnce`]).
    given: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    done: [u8; MAX_THREADS],
    items: VecDeque<Item>,
}

struct Checker<'a> {
    spec: Spec,
    operations: &'a [Operation],
    by_thread: [Vec<usize>; MAX_THREADS],
    tried: HashSet<State>,
}

/// Checks a history, complete or not.
///
/// Exponential in the number of operations that overlap, in the worst case; linear if none do.
///
/// # Errors
///
/// What is wrong with it.
pub fn check(spec: Spec, history: &History) -> Result<(), Unexplained> {
    let operations = history.operations();
    let mut by_thread: [Vec<usize>; MAX_THREADS] = Default::default();
    for (number, operation) in operations.iter().enumerate() {
        by_thread[operation.thread].push(number);
    }
    let mut checker = Checker { spec, operations, by_thread, tried: HashSet::new() };
    let start = State { done: [0; MAX_THREADS], items: VecDeque::new() };
    if checker.search(start) {
        return Ok(());
    }
    Err(explain(spec, history))
}

impl Checker<'_> {
    fn search(&mut self, state: State) -> bool {
        if self.tried.contains(&state) {
            return false;
        }
        let next: [Option<Operation>; MAX_THREADS] = core::array::from_fn(|thread| {
            let number = *self.by_thread[thread].get(usize::from(state.done[thread]))?;
            Some(self.operations[number])
        });
        // An operation may come next if none that is still to come had returned before its call.
        let open = || next.iter().flatten();
        let Some(earliest_return) = open().map(|operation| operation.returned).min() else {
            return true;
        };
        if open().all(|operation| operation.outcome.is_none()) {
            return true;
        }
        for (thread, candidate) in next.iter().enumerate() {
            let Some(operation) = *candidate else { continue };
            if operation.called > earliest_return {
                continue;
            }
            let mut after = state.clone();
            after.done[thread] += 1;
            let outrun = self.outrun(&operation);
            let known = |item: &Item| self.visible(item.task) < operation.called;
            let Operation { call, outcome, .. } = operation;
            for result in self.spec.apply(&after.items, call, outcome, outrun, &known) {
                if self.search(State { done: after.done, items: result }) {
                    return true;
                }
            }
        }
        self.tried.insert(state);
        false
    }

    /// When a thief must know of a task: when all stores of its push had drained.
    fn visible(&self, task: u64) -> Time {
        let pushes = self.operations.iter().filter(|operation| operation.call == Call::Push(task));
        pushes.map(|push| push.visible).min().unwrap_or(Time::MAX)
    }

    /// Whether a thief may say that it was outrun, which changes nothing: another thread was in an
    /// operation meanwhile, or had stores of one on their way to memory.
    fn outrun(&self, operation: &Operation) -> bool {
        self.spec.retries_freely()
            || self.operations.iter().any(|other| {
                other.thread != operation.thread
                    && other.called < operation.returned
                    && other.visible > operation.called
            })
    }
}

impl Spec {
    /// Whether a thief may say at any time that it was outrun. The owner of a private deque may let
    /// a thief wait in vain; a pool's consumer says so of a pool in which it has found nothing.
    pub(crate) fn retries_freely(self) -> bool {
        self.private() || self == Spec::Pool
    }

    pub(crate) fn private(self) -> bool {
        use Spec::{PartlyPrivate, PartlyPrivateBlocks, PartlyPrivateFifo, PartlyPrivateLifo};
        matches!(self, PartlyPrivate | PartlyPrivateLifo | PartlyPrivateFifo | PartlyPrivateBlocks)
    }

    /// The states that an operation with its outcome can lead to: none if it is not allowed here. A
    /// thief has to know the tasks that are `known`.
    pub(crate) fn apply(
        self,
        items: &VecDeque<Item>,
        call: Call,
        outcome: Option<Outcome>,
        outrun: bool,
        known: &dyn Fn(&Item) -> bool,
    ) -> Vec<VecDeque<Item>> {
        let same = || vec![items.clone()];
        let steals = call == Call::Steal;
        match (call, outcome) {
            (Call::Push(task), None | Some(Outcome::Done)) => {
                let mut items = items.clone();
                items.push_back(Item { task, visible: false, given: false });
                vec![items]
            }
            (Call::Push(_), Some(_)) | (_, Some(Outcome::Done)) => Vec::new(),
            (_, Some(Outcome::Abort)) => {
                let allowed = match self {
                    Spec::DequeWithAbort { margin } => {
                        items.iter().filter(|item| known(item)).count() as u64 <= margin
                    }
                    _ => self == Spec::AtLeastOnce || self.private(),
                };
                if steals && allowed { same() } else { Vec::new() }
            }
            (_, Some(Outcome::Retry)) => {
                if steals && outrun {
                    same()
                } else {
                    Vec::new()
                }
            }
            (_, Some(Outcome::Empty)) => {
                let overlooked = |item: &Item| item.given || (steals && !known(item));
                let allowed = (steals && self.private()) || items.iter().all(overlooked);
                if allowed { same() } else { Vec::new() }
            }
            (_, Some(Outcome::Task(task))) => self
                .takable(items, steals)
                .filter(|&place| items[place].task == task)
                .map(|place| self.take(items, place))
                .collect(),
            // It has not returned: it may have found nothing, which changes nothing, or something.
            (_, None) => {
                let mut results = same();
                results.extend(self.takable(items, steals).map(|place| self.take(items, place)));
                results
            }
        }
    }

    fn take(self, items: &VecDeque<Item>, place: usize) -> VecDeque<Item> {
        let mut items = items.clone();
        if self == Spec::AtLeastOnce {
            items[place].given = true;
        } else {
            items.remove(place);
        }
        items
    }

    pub(crate) fn takable(
        self,
        items: &VecDeque<Item>,
        steals: bool,
    ) -> impl Iterator<Item = usize> + use<> {
        let last = items.len();
        match self {
            Spec::AtLeastOnce | Spec::Pool => 0..last,
            Spec::PartlyPrivateBlocks if steals => 0..last,
            Spec::PartlyPrivateLifo => last.saturating_sub(1)..last,
            Spec::Fifo | Spec::PartlyPrivateFifo | Spec::PartlyPrivateBlocks => 0..last.min(1),
            _ if steals => 0..last.min(1),
            _ => last.saturating_sub(1)..last,
        }
    }
}

fn wrong(kind: Kind, text: String) -> Unexplained {
    Unexplained { kind, text }
}

fn explain(spec: Spec, history: &History) -> Unexplained {
    let operations = history.operations();
    if spec != Spec::AtLeastOnce {
        if let Some(task) = history.duplicates().first() {
            return wrong(Kind::Duplicate, format!("task {task} was taken twice"));
        }
    }
    let pushed = |task: u64| operations.iter().any(|operation| operation.call == Call::Push(task));
    for operation in operations {
        if let Some(Outcome::Task(task)) = operation.outcome {
            if !pushed(task) {
                return wrong(Kind::Invented, format!("task {task} was taken and never pushed"));
            }
        }
    }
    let taken = |task: u64| {
        operations.iter().any(|operation| operation.outcome == Some(Outcome::Task(task)))
    };
    let last = operations.iter().filter(|operation| operation.outcome.is_some());
    let last = last.max_by_key(|operation| operation.returned);
    if let Some(last) = last {
        if last.outcome == Some(Outcome::Empty) {
            let lost = operations.iter().find_map(|operation| match operation.call {
                Call::Push(task) if operation.returned < last.called && !taken(task) => Some(task),
                _ => None,
            });
            if let Some(task) = lost {
                let text =
                    format!("task {task} was lost: a queue that holds it answered \"empty\"");
                return wrong(Kind::Lost, text);
            }
        }
    }
    let Some(last) = last else {
        return wrong(Kind::Order, "no order explains these operations".to_owned());
    };
    let kind = match last.outcome {
        Some(Outcome::Abort | Outcome::Retry) => Kind::Refusal,
        _ => Kind::Order,
    };
    wrong(kind, format!("no order of the operations explains {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(lines: &[(usize, Call, Outcome, u32, u32, u32)]) -> History {
        let mut events: Vec<(u32, u8, usize)> = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            events.extend([(line.3, 0, number), (line.4, 1, number)]);
            if matches!(line.1, Call::Push(_)) {
                events.push((line.5, 2, number));
            }
        }
        events.sort_unstable();
        let mut history = History::default();
        for (_, what, number) in events {
            let (thread, call, outcome, ..) = lines[number];
            match what {
                0 => history.call(thread, call),
                1 => history.ret(thread, outcome, matches!(call, Call::Push(_))),
                _ => {
                    history.show(thread);
                }
            }
        }
        history
    }

    const PUSH: Call = Call::Push(7);
    const DONE: Outcome = Outcome::Done;
    const TASK: Outcome = Outcome::Task(7);

    #[test]
    fn one_task_goes_to_one_taker() {
        let twice = history(&[
            (0, PUSH, DONE, 1, 2, 3),
            (0, Call::Pop, TASK, 4, 7, 0),
            (1, Call::Steal, TASK, 5, 6, 0),
        ]);
        let aborts = Spec::DequeWithAbort { margin: 1 };
        for spec in [Spec::Deque, aborts, Spec::PartlyPrivate, Spec::Pool] {
            assert_eq!(check(spec, &twice).unwrap_err().kind, Kind::Duplicate, "{spec:?}");
        }
        assert_eq!(check(Spec::AtLeastOnce, &twice), Ok(()));
    }

    #[test]
    fn a_thief_may_overlook_a_push_only_until_it_has_drained() {
        let steal = |called| (1, Call::Steal, Outcome::Empty, called, called + 1, 0);
        let early = history(&[(0, PUSH, DONE, 1, 2, 9), steal(4)]);
        assert_eq!(check(Spec::Deque, &early), Ok(()));
        let late = history(&[(0, PUSH, DONE, 1, 2, 3), steal(4)]);
        assert!(check(Spec::Deque, &late).is_err());
        assert_eq!(check(Spec::PartlyPrivate, &late), Ok(()));
    }

    #[test]
    fn the_owner_overlooks_nothing() {
        let lost = history(&[(0, PUSH, DONE, 1, 2, 9), (0, Call::Pop, Outcome::Empty, 3, 4, 0)]);
        for spec in [Spec::Deque, Spec::PartlyPrivate, Spec::AtLeastOnce, Spec::Pool] {
            assert_eq!(check(spec, &lost).unwrap_err().kind, Kind::Lost, "{spec:?}");
        }
    }

    #[test]
    fn an_abort_is_for_those_who_may() {
        let abort = history(&[(0, PUSH, DONE, 1, 2, 3), (1, Call::Steal, Outcome::Abort, 4, 5, 0)]);
        assert!(check(Spec::Deque, &abort).is_err());
        assert_eq!(check(Spec::DequeWithAbort { margin: 1 }, &abort), Ok(()));
    }

    #[test]
    fn an_abort_is_for_what_lies_within_delta() {
        let abort = |seen| {
            history(&[
                (0, Call::Push(1), DONE, 1, 2, 3),
                (0, Call::Push(2), DONE, 4, 5, seen),
                (1, Call::Steal, Outcome::Abort, 7, 8, 0),
            ])
        };
        let spec = Spec::DequeWithAbort { margin: 1 };
        assert_eq!(check(spec, &abort(6)).unwrap_err().kind, Kind::Refusal);
        assert_eq!(check(spec, &abort(9)), Ok(()));
    }

    #[test]
    fn nobody_is_outrun_alone() {
        let retry = |called| {
            history(&[(0, PUSH, DONE, 1, 3, 4), (1, Call::Steal, Outcome::Retry, called, 6, 0)])
        };
        assert_eq!(check(Spec::Deque, &retry(2)), Ok(()));
        assert_eq!(check(Spec::Deque, &retry(5)).unwrap_err().kind, Kind::Refusal);
        assert_eq!(check(Spec::PartlyPrivate, &retry(5)), Ok(()));
    }

    #[test]
    fn the_ends_matter() {
        let first = |taken| {
            history(&[
                (0, Call::Push(1), DONE, 1, 2, 3),
                (0, Call::Push(2), DONE, 4, 5, 6),
                (1, Call::Steal, Outcome::Task(taken), 7, 8, 0),
            ])
        };
        assert_eq!(check(Spec::Deque, &first(1)), Ok(()));
        assert!(check(Spec::Deque, &first(2)).is_err());
        assert_eq!(check(Spec::Pool, &first(2)), Ok(()));
        assert_eq!(check(Spec::PartlyPrivateLifo, &first(2)), Ok(()));
    }

    #[test]
    fn an_operation_that_has_not_returned_may_have_taken_effect() {
        let mut history = history(&[(0, PUSH, DONE, 1, 2, 3)]);
        history.call(1, Call::Steal);
        history.call(0, Call::Pop);
        history.ret(0, Outcome::Empty, false);
        assert_eq!(check(Spec::Deque, &history), Ok(()));
    }
}
