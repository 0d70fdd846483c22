//! What a worker does while the second half of its join runs elsewhere.
//!
//! Source: Lace, sections 1.2 and 4.3, for leapfrogging, its transitive form (Wool's), and random
//! stealing; the first is Wagner's and Calder's.
//!
//! # Who takes what
//!
//! | a wait | takes |
//! |---|---|
//! | [`Waiting::Sleep`] | nothing |
//! | [`Waiting::Leapfrog`] | forks of the thief |
//! | [`Waiting::Transitive`] | and of the workers that the thief waits for, along the chain |
//! | [`Waiting::Random`] | and then everything that an idle worker takes |
//! | [`Waiting::Patient`] | the same, but not before it has slept for a millisecond |
//!
//! In all of them a worker takes what no other can: calls to an interrupt, and its mail
//! (broadcasts). The first three are the *restricted* waits. A random or a patient wait that would
//! nest too deep, by [nesting](crate::ThreadPoolBuilder::nesting) or by its call stack, is a
//! transitive one instead.
//!
//! That is what a join does. A scope, a handle, and a call into another pool may wait for tasks
//! that have not begun:
//!
//! | a wait for | begins itself | takes beside that | with `Sleep`, or in [`blocking`](crate::blocking()) |
//! |---|---|---|---|
//! | a scope | its own youngest tasks | everything that an idle worker takes | the same |
//! | a handle of its own pool | | everything that an idle worker takes | the task itself, if it has not begun and is no future |
//! | another pool: a handle, a call | | everything that an idle worker takes | nothing |
//!
//! # Tasks beside each other
//!
//! A spawned task may wait, by a handle, for a task that was spawned beside it: of three tasks,
//! each may wait for the one before. A worker that runs the second task, and waits, must not begin
//! the third on top of it. The third would wait for the second, which stands below it on the same
//! call stack. So a task is *awaitable* while it is under way and has a handle by which no thread
//! waits yet. While any task of the pool is awaitable, a wait begins nothing that it does not need:
//!
//! | a wait for | takes while a task is awaitable |
//! |---|---|
//! | a stolen half | what [`Waiting::Transitive`] takes |
//! | a scope, a handle, a call | the task itself, or those of the scope; tasks that the task in hand has pushed; futures that were woken |
//!
//! Why this is enough: let a wait begin task *t* on top of others while no task is awaitable. A
//! task has one handle. So each task under way at that moment is waited for already, or never will
//! be, and *t* does not wait for it. Everything that *t* will wait for has ended or begins later
//! than *t*, and the same holds for what those tasks wait for. So no chain of waits leads from *t*
//! to what stands below it on the stack.
//!
//! A task that the task in hand has pushed was given its handles when it was made. They are of
//! older tasks, and none of those stands on this stack above the task in hand. (A handle that comes
//! by a channel, or a lock, is not covered. If the task that it stands for is below the wait on the
//! same thread, the wait panics: a task knows the thread that has begun it.)
//!
//! A future is under way during each of its polls, and awaitable then. A wait takes futures all the
//! same, since it cannot tell those of its scope from others. So no closure that waits for a future
//! is begun on top of its poll. A poll that waits for a task below it is not covered, and panics.
//! A task that a future awaits stays awaitable, since the future pauses and others may wait for it.
//! Woken futures may wake themselves for ever, so after 64 tasks in a row a wait takes one closure.
//!
//! Relaxed accesses of the count are enough: a worker counts an awaitable task before it begins it,
//! and a task on a call stack was begun there, or was stolen from there later. A wait that takes
//! nothing sleeps for a millisecond at a time. Suppose that by then no other worker runs anything
//! and no task has begun. Then it takes one task after all, since a scope's own task may lie in the
//! queue of a worker that waits as well. A pool whose tasks have no handles pays nothing for this.
//! Nor does a pool whose handles are dropped, or joined by threads from outside. Spawn a service
//! that runs for as long as the program without a handle ([`spawn`](crate::spawn())).
//!
//! # How deep they nest
//!
//! A task that a wait takes runs on top of it on the worker's call stack. It may wait, too, and
//! take more. So once *half of the call stack* is in use, a wait for a scope, a handle or a call is
//! *deep*. It begins what it waits for: the tasks that were spawned since the scope was opened, or
//! the task of the handle (until three quarters of the stack are in use). Then it takes nothing and
//! sleeps.
//!
//! It cannot sleep for ever, since another pool, or another worker that waits deep, may wait for a
//! task that this worker leaves alone. So a deep wait has a *patience*. Suppose that it has slept
//! for a millisecond in which no task of the pool has begun, and no other worker runs anything.
//! Then it takes one task after the other all the same, until its wait is over. It takes the oldest
//! of its own first, because others wait for that one if for any.
//!
//! The next deep wait on top of it has a patience of two milliseconds, and so on, up to a second.
//! So it leaves the work to a worker with fewer deep waits, since a task that it took might wait
//! for a task that stands below it. If another worker does run something, but no task begins, the
//! wait takes work after a thousand times its patience: that worker may be waiting for something
//! outside of the pool. So a million tasks that each wait need half a stack, and a program that
//! needs more goes on slowly and does not hang. So deep, [`yield_now`](crate::yield_now) runs
//! something once in a thousand times.
//!
//! A thief steals the oldest fork of its victim first. So while a worker waits for a stolen half,
//! all that it forked before that half is stolen, too, and what is left in its deque was forked by
//! tasks that it has run since. So a restricted wait runs parts of the half that it waits for, with
//! two exceptions. The thief may have ended that half and begun something else since the last look.
//! And a thief that took the half while it waited for a scope, or for a handle, may have older
//! forks of its own. So this bounds the stack in practice, as in Lace, and does not promise that
//! nothing foreign runs. `Sleep` promises that.
//!
//! # Why restricted waits end
//!
//! A worker in a restricted wait leaves work alone that it could take, so another worker must be
//! able to take whatever an end depends on. Suppose that all workers wait, and none has anything to
//! take, and look at what the topmost wait of each is for.
//!
//! - *A stolen half.* It has begun, on another worker's stack, and has not ended. So it is that
//!   worker's topmost task, and waits for something itself; or another task stands on top of it,
//!   which that worker began later, and which waits. What a wait waits for began after it, or has
//!   not begun. So a step from a wait to what it waits for, or from a task to the one on top of it,
//!   always leads to something that began later, and these steps form no circle. They end at
//!   something that runs, or that has not begun.
//! - *Something that has not begun.* It is no half of a join: a worker waits for a half only once
//!   it is stolen, and a stolen half is begun at once. So it is a spawned task. A wait for it by
//!   its handle begins it. A wait for it in a scope is not restricted, and takes all visible work,
//!   at the latest when its patience has ended. So the task must be visible: in an inbox, or in the
//!   shared part of a queue. A worker in a restricted wait therefore shares *all* its spawned tasks
//!   before it looks for anything, and again after each task that it has run meanwhile. Mail and
//!   calls it takes itself.
//!
//! Two kinds of waits are not covered with `Sleep`, or in `blocking`, which take nothing that
//! others wait for. The first is a call into another pool whose task calls back, if the calling
//! pool has no worker left. The second is a task that waits for a handle whose own task stands
//! below it on the same stack. No wait makes the second itself: see "Tasks beside each other"
//! (`tests/it/deep.rs` has chains of a million tasks).
//!
//! Detached tasks that no thread waits for begin when some worker is idle, at the latest when all
//! waits have ended. Waits that the runtime does not know are not covered. Suppose that a half
//! blocks on a channel for a message from a spawned task, with every other worker in a restricted
//! wait: it blocks for ever. [`blocking`](crate::blocking()) is for that.
//!
//! # How they sleep
//!
//! A worker in a restricted wait is no searcher, since it does not take all work, and a producer
//! must not rely on it. It sleeps in a state of its own, as a *follower*: see `sleep/README.md`.

use std::cell::Cell;
use std::ops::Sub;
use std::time::Duration;

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::pace::{DEEP_YIELDS, LONGEST_NAP, UNKNOWN_HALF_STACK};

/// The tasks that a worker runs while it waits for the second half of its [`join`](crate::join)
/// that another worker has stolen:
/// [`ThreadPoolBuilder::waiting`](crate::ThreadPoolBuilder::waiting).
///
/// These tasks run on top of the caller, on the same call stack. If the caller holds a lock that
/// such a task wants, the task waits for ever for its own thread. So use [`Sleep`](Waiting::Sleep)
/// in a program that holds locks across joins, or across waits for handles and calls, and make sure
/// that the task that is waited for does not want the lock itself. For a single wait for a handle
/// or a call there is [`blocking`](crate::blocking()). Never hold a lock across a scope.
///
/// | a wait for | runs meanwhile | with `Sleep`, or in `blocking` |
/// |---|---|---|
/// | a stolen half of a join | what the variants below say | nothing with `Sleep`; in `blocking` what the variant says |
/// | a handle, a call into another pool | any task | nothing, except the task of a handle of the same pool |
/// | a scope | any task: it cannot know what its tasks depend on | any task |
///
/// "Any task" has one exception. Suppose that a task of the pool runs whose handle no thread waits
/// by yet. Then a wait starts only what it waits for and what its own task has spawned, so that a
/// task can wait for a task that was spawned beside it (see
/// [`JoinHandle::join`](crate::JoinHandle::join)).
///
/// Once half of the worker's call stack is in use, waits for handles, calls and scopes take no more
/// tasks while any other worker makes progress. So they do not nest without bound (the module's
/// comment in the source has the rules).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Waiting {
    /// Runs only what no other worker can: broadcasts, interrupts and, for a handle, its task. The
    /// processor is idle meanwhile. If tasks of this pool call into another pool, and its tasks
    /// call back into this one, this pool needs a worker that is not waiting.
    Sleep,
    /// Runs forks of the worker that runs the half. They are nearly always parts of that half (the
    /// module's comment in the source says when not), so that call stacks stay as small as in
    /// the sequential program. Source: Lace, Figure 1.
    Leapfrog,
    /// As `Leapfrog`; if that worker waits as well, also forks of the worker that it waits for, and
    /// so on. Source: Lace, section 4.3, after Wool.
    Transitive,
    /// As `Transitive`; if that finds nothing, any other task of the pool, unless the waits nest
    /// too deep: [`ThreadPoolBuilder::nesting`](crate::ThreadPoolBuilder::nesting). Source:
    /// Lace, section 4.3.
    #[default]
    Random,
    /// As `Transitive` until that has found nothing for a millisecond; then as `Random`. The first
    /// part ends after one sleep of a millisecond in which nothing wakes the worker, and each wait
    /// begins with it.
    ///
    /// For programs in which a task takes a lock and joins under it. With `Random` a worker that
    /// runs a part of such a join may begin, in a wait of its own, a task that waits for the lock.
    /// Then neither the part nor the holder's join ends. That is rare here. Unlike with `Sleep` it
    /// is not excluded, since a part may take longer.
    Patient,
}

impl Waiting {
    /// The length of the chain of thieves that a wait takes from, in a pool of `workers` workers.
    pub(crate) fn reach(self, workers: usize) -> usize {
        match self {
            Waiting::Sleep => 0,
            Waiting::Leapfrog => 1,
            Waiting::Transitive | Waiting::Random | Waiting::Patient => workers,
        }
    }
}

/// A worker's call stack. Stacks grow down on all systems that Poach knows.
#[derive(Clone, Copy)]
pub(crate) struct CallStack {
    /// Below this address half of it is in use.
    half: usize,
    /// The size of that half.
    room: usize,
}

impl CallStack {
    /// This thread's stack, from here on; `size` is its whole size, if that is known.
    #[inline(never)]
    pub(crate) fn here(size: Option<usize>) -> CallStack {
        let room = size.map_or(UNKNOWN_HALF_STACK, |size| size / 2);
        CallStack { half: address().saturating_sub(room), room }
    }
}

/// About the address down to which this thread's stack is in use.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// The number of tasks that a worker has begun on top of waits, and the used part of its call
/// stack.
pub(crate) struct NestingDepth {
    tasks: Cell<usize>,
    pub(crate) stack: Cell<CallStack>,
    /// Deep yields since the last yield that ran something.
    yields: Cell<u32>,
}

impl NestingDepth {
    pub(crate) fn new() -> NestingDepth {
        let stack = Cell::new(CallStack::here(None));
        NestingDepth { tasks: Cell::new(0), stack, yields: Cell::new(0) }
    }

    /// Whether half of the call stack is in use.
    #[inline(always)]
    pub(crate) fn is_deep(&self) -> bool {
        address() < self.stack.get().half
    }

    /// Whether three quarters of the call stack are in use.
    pub(crate) fn is_at_its_end(&self) -> bool {
        let stack = self.stack.get();
        address() < stack.half.saturating_sub(stack.room / 2)
    }

    /// Whether a yield must run nothing.
    #[inline(always)]
    pub(crate) fn refuses_yield(&self) -> bool {
        self.is_deep() && self.refuses_deep_yield()
    }

    #[cold]
    fn refuses_deep_yield(&self) -> bool {
        self.yields.set((self.yields.get() + 1) % DEEP_YIELDS);
        self.yields.get() != 0
    }

    /// Whether a wait may put no foreign task on top, if `nesting` are allowed.
    pub(crate) fn is_exceeded(&self, nesting: usize) -> bool {
        self.tasks.get() >= nesting || self.is_deep()
    }

    /// Counts a task on top of a wait, until the value is dropped.
    pub(crate) fn task(&self) -> impl Drop {
        self.tasks.set(self.tasks.get() + 1);
        Down(&self.tasks)
    }
}

/// The number of a worker's deep waits. Written by its own thread, and read by all.
pub(crate) struct DeepWaits(<Machine as Memory>::Word);

impl DeepWaits {
    pub(crate) fn new() -> DeepWaits {
        DeepWaits(Word::new(0))
    }

    /// An estimate.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: an estimate. A worker that sleeps in such a wait is not seen asleep before it
        // has counted the wait (F2).
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a deep wait until the second value is dropped, and returns its patience.
    pub(crate) fn begin(&self) -> (Patience, impl Drop) {
        struct End<'d>(&'d DeepWaits, u64);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                // Relaxed: as in `count`.
                self.0.0.store(self.1, Ordering::Relaxed);
            }
        }
        let before = self.count();
        // Relaxed: as in `count`.
        self.0.store(before + 1, Ordering::Relaxed);
        (Patience::new(before), End(self, before))
    }
}

/// The time for which a deep wait takes nothing; see "How deep they nest".
pub(crate) struct Patience {
    time: Duration,
    /// The time in which nothing has begun.
    waited: Duration,
    /// The part of that time that is enough even if another worker runs something.
    most: Duration,
}

impl Patience {
    /// The patience of a wait on top of `others` deep waits.
    fn new(others: u64) -> Patience {
        let time = Duration::from_millis(1 << others.min(10)).min(LONGEST_NAP);
        Patience { time, waited: Duration::ZERO, most: time * 1000 }
    }

    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// After such a sleep, returns whether the wait takes any work.
    pub(crate) fn ends(&mut self, nobody_else: bool, nothing_begins: bool) -> bool {
        self.waited = if nothing_begins { self.waited + self.time } else { Duration::ZERO };
        nothing_begins && (nobody_else || self.waited >= self.most)
    }

    pub(crate) fn doubles(&mut self) {
        self.time = (self.time * 2).min(LONGEST_NAP);
    }
}

struct Down<'n, N: Copy + From<bool> + Sub<Output = N>>(&'n Cell<N>);

impl<N: Copy + From<bool> + Sub<Output = N>> Drop for Down<'_, N> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - N::from(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_each_wait_goes() {
        let reach = |waiting: Waiting| waiting.reach(8);
        assert_eq!(reach(Waiting::Sleep), 0);
        assert_eq!(reach(Waiting::Leapfrog), 1);
        assert_eq!(reach(Waiting::Transitive), 8);
        assert_eq!(reach(Waiting::default()), 8);
    }

    #[test]
    fn a_deep_wait_takes_something_when_nobody_else_does() {
        let deep = DeepWaits::new();
        let (mut first, one) = deep.begin();
        let (second, two) = deep.begin();
        assert_eq!((deep.count(), second.time()), (2, 2 * first.time()));
        drop(two);
        assert_eq!(deep.count(), 1);
        drop(one);
        assert!(!first.ends(true, false) && first.ends(true, true));
        assert!((0..2000).any(|_| first.ends(false, true)));
        // As soon as anything begins, its time begins again.
        assert!(!first.ends(false, false) && !first.ends(false, true));
    }

    #[test]
    fn a_nesting_depth_is_exceeded_by_its_tasks() {
        let nesting_depth = NestingDepth::new();
        let one = nesting_depth.task();
        assert!(!nesting_depth.is_exceeded(2));
        let two = nesting_depth.task();
        assert!(nesting_depth.is_exceeded(2));
        drop((one, two));
        assert!(!nesting_depth.is_exceeded(2));
        assert!(nesting_depth.is_exceeded(0));
    }

    #[test]
    #[cfg(not(miri))] // whose addresses are not those of a stack
    fn the_nesting_is_exceeded_by_its_stack() {
        fn deeper(nesting_depth: &NestingDepth, calls: u32) -> bool {
            let frame = std::hint::black_box([calls as u8; 1024]);
            let high = if calls == 0 {
                nesting_depth.is_exceeded(usize::MAX)
            } else {
                deeper(nesting_depth, calls - 1)
            };
            high && std::hint::black_box(frame)[0] == calls as u8
        }
        let nesting_depth = NestingDepth::new();
        nesting_depth.stack.set(CallStack::here(Some(64 << 10)));
        assert!(!deeper(&nesting_depth, 4));
        assert!(deeper(&nesting_depth, 40));
    }
}
