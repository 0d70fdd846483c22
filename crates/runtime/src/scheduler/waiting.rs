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
//! | [`Waiting::Transitive`] | and of those whom the thief itself waits for, as far as that goes |
//! | [`Waiting::Random`] | and then everything that an idle worker takes |
//!
//! In all of them a worker takes what no other can: calls to an interrupt, and its mail (broadcasts). The
//! first three are the *restricted* waits. A random wait that would nest too deep, by
//! [nesting](crate::Builder::nesting) or by its call stack, is a transitive one instead.
//!
//! That is what a join does. A scope, a handle, and a call into another pool wait for what may not have begun:
//!
//! | a wait for | begins itself | takes beside that | with `Sleep`, or in [`blocking`](crate::blocking()) |
//! |---|---|---|---|
//! | a scope | its own youngest tasks | everything that an idle worker takes | the same |
//! | a handle of its own pool | | everything that an idle worker takes | the task itself, if it has not begun |
//! | another pool: a handle, a call | | everything that an idle worker takes | nothing |
//!
//! # Tasks beside each other
//!
//! A spawned task may wait, by a handle, for one that was spawned beside it: three tasks of which each waits for the one before, say.
//! A worker that runs the second, and waits, must not begin the third on top of it: the third would wait for what stands below it on its own
//! call stack. So while any task of the pool is *awaitable*, that is under way, with a handle by which nobody waits yet, no wait begins what it does not need:
//!
//! | a wait for | takes while a task is awaitable |
//! |---|---|
//! | a stolen half | what [`Waiting::Transitive`] takes |
//! | a scope, a handle, a call | the task itself, or those of the scope; tasks that the task in hand has pushed |
//!
//! Why that is enough: say that a wait begins task *t* on top of others at a moment at which no task is awaitable. A task waits for another by its one
//! handle. So for what was under way at that moment somebody waits already, or nobody ever will, and it is not *t* who does. So all that *t*
//! will wait for begins later than *t*, or has ended, and that holds of what those wait for, too. So nobody comes from *t*, by waits and by what stands on top of what
//! waits, to what stands below *t*. What the task in hand has pushed cannot wait for what was begun
//! before it but by a handle that it was given when it was made, and those are of tasks that were there before: older ones, which are not on this stack above
//! the one in hand. (A handle that comes by a channel, or a lock, is not covered. Where what it waits for stands below it on the same thread, the wait panics: a
//! task knows the thread that has begun it.)
//!
//! A worker counts an awaitable task before it begins it, and what stands on a call stack has begun there, or was stolen later from where
//! it began. So relaxed accesses do. A wait that takes nothing sleeps for a millisecond at a time, and where no other worker runs anything and no task begins, it takes one
//! task after all: a scope's own task may lie in the queue of a worker that waits as well. A pool whose tasks have no handles pays nothing, and neither does one whose handles are joined by threads
//! from outside, awaited, or dropped: a service that runs for as long as the program is to be spawned without one
//! ([`spawn_detached`](crate::spawn_detached)).
//!
//! # How deep they nest
//!
//! What a wait takes stands on top of it on the worker's call stack, may wait itself, and take more. So once *half of the call
//! stack* is in use, a scope, a handle or a call waits *deep*: it begins what it waits for, the tasks that were spawned since the
//! scope was opened or the handle's (until three quarters are in use), and then takes nothing and sleeps. Since another pool, or a worker that waits deep as well, may wait for what this one leaves alone, it does not
//! sleep for ever. Once it has slept for a millisecond in which no task of the pool has begun, while no other worker runs anything,
//! it takes one task after the other all the same, the oldest of its own first, which
//! is the one that others wait for if anything is, until its wait is over. The next deep wait on top of that has a patience of two milliseconds, and so on, up to a
//! second, and leaves it to a worker with fewer of them: what this one would take may wait for what stands below it. Where another worker does
//! run something, but nothing begins, it takes after a thousand times its patience: that worker may wait for something outside.
//! So a million tasks that each wait need half a stack, and a program that does need more than that
//! goes on, if slowly, rather than hang. [`yield_now`](crate::yield_now) runs nothing so deep, but once in a thousand times.
//!
//! A thief steals the oldest fork of its victim first, so while a worker waits for a stolen half all that
//! it forked before that half is stolen, too: what is left in its deque was forked by what it has run
//! since. So a restricted wait runs parts of the half that it waits for. There are two exceptions. The
//! thief may have ended that half and begun another thing since the last look. And a thief that took the
//! half while it waited for a scope, or for a handle, may have older forks of its own. So this bounds the
//! stack in practice, as in Lace, and is no promise that nothing foreign runs. `Sleep` makes that promise.
//!
//! # Why restricted waits end
//!
//! A worker that waits so leaves work alone that it could take, hence somebody else must be able to take
//! whatever an end depends on. Say that all workers wait, none has anything to take, and look at what the
//! topmost wait of each is for.
//!
//! - *A stolen half.* It has begun, on another worker's stack, and has not ended. So it is that worker's
//!   topmost task, and waits for something itself; or another task stands on top of it, which that worker
//!   began later, and which waits. What a wait waits for began after it, or has not begun. So whoever goes
//!   from a wait to what it waits for, and from a task to the one on top of it, comes always to something
//!   that began later: never in a circle. The way ends at something that runs, or that has not begun.
//! - *What has not begun* is no half of a join: those are not waited for before they are stolen, and what
//!   is stolen is begun at once. It is a spawned task, and whoever waits for it in a scope
//!   does so without restriction: it takes everything that can be
//!   seen, at the latest when its patience has ended. So the task must be where it can be seen: in an inbox, or in the shared part of a queue.
//!   A worker in a restricted wait therefore shares *all* spawned tasks of its own before it looks for
//!   anything, and again after each task that it has run meanwhile. Mail and calls it takes itself. Whoever
//!   waits for its handle begins it.
//!
//! Two kinds of waits are not covered with `Sleep`, or in `blocking`, which take nothing that others wait for: a call into another pool whose
//! task calls back, if no worker of the first is left; and a task that waits for a handle whose own task stands below it on the same stack. No wait makes the second
//! itself: see "Tasks beside each other" (`tests/deep.rs` has chains of a million tasks).
//!
//! Detached tasks that nobody waits for begin when some worker is idle, at the latest when all waits have
//! ended. What this does not cover is a wait that the runtime does not know: a half that blocks on a
//! channel for a message from a spawned task, with every other worker in a restricted wait, blocks for
//! ever. [`blocking`](crate::blocking()) is for that.
//!
//! # How they sleep
//!
//! A worker in a restricted wait is no searcher: a producer of work that it will not take must not count
//! on it. It sleeps apart, as a *follower*; see `sleep/README.md`.

use std::cell::Cell;
use std::ops::Sub;
use std::time::Duration;

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::scheduler::sleep::LONGEST;

/// What a worker does while the second half of its [`join`](crate::join) runs on another:
/// [`Builder::waiting`](crate::Builder::waiting).
///
/// It concerns joins, and `Sleep` handles and calls into other pools ([`install`](crate::ThreadPool::install)) as well. Else a
/// worker that waits for a handle or a call takes any work, and one that waits for a scope does so in
/// all of them: it cannot know what its end depends on. Once half of the worker's call stack is in use, they take no more while any other worker
/// runs something (the module's comment in the source has the rules).
///
/// A task that holds a lock across a wait should know that with [`Random`](Waiting::Random) the worker may
/// run *any* other task meanwhile; if that one wants the lock, it waits for ever for its own thread. The
/// restricted ones take no spawned task in a join; [`Sleep`](Waiting::Sleep) takes nothing at all, in a join, for a handle or in a call, and so
/// is safe if what is waited for leaves the lock alone. So is [`blocking`](crate::blocking()), for a single wait for a handle or a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Waiting {
    /// Takes nothing, but what only it can run: broadcasts and interrupts; and, for a handle, that task. The processor is left idle.
    /// A pool that another one's tasks call back into needs a worker that does not wait meanwhile.
    Sleep,
    /// Takes forks of the worker that runs the half: nearly always parts of that half (the module's
    /// comment in the source says when not). The stacks stay as small as the sequential program's. Source:
    /// Lace, Figure 1.
    Leapfrog,
    /// And, if that worker waits as well, forks of the one that it waits for, and so on. Source: Lace,
    /// section 4.3, after Wool.
    Transitive,
    /// And, if there is nothing, any other work of the pool, while the stack is not too deep:
    /// [`Builder::nesting`](crate::Builder::nesting). Source: Lace, section 4.3.
    #[default]
    Random,
}

impl Waiting {
    /// How many workers down the chain of thieves a wait takes from, in a pool of so many.
    pub(crate) fn reach(self, workers: usize) -> usize {
        match self {
            Waiting::Sleep => 0,
            Waiting::Leapfrog => 1,
            Waiting::Transitive | Waiting::Random => workers,
        }
    }
}

/// Tasks that a worker may have under way on top of waits unless the builder says otherwise.
pub(crate) const NESTING: usize = 64;

/// How much of a call stack of unknown size may be used before waits are restricted: half of what a
/// thread of the standard library has left when most of it was used before.
const UNKNOWN: usize = 512 << 10;

/// The call stack that a worker works on. Stacks grow down on all systems that Poach knows.
#[derive(Clone, Copy)]
pub(crate) struct CallStack {
    /// Below here, half of it is in use.
    half: usize,
    /// That half.
    room: usize,
}

impl CallStack {
    /// This thread's, from here on; `size` is the whole of it, if that is known.
    #[inline(never)]
    pub(crate) fn here(size: Option<usize>) -> CallStack {
        let room = size.map_or(UNKNOWN, |size| size / 2);
        CallStack { half: address().saturating_sub(room), room }
    }
}

/// About where this thread's stack ends.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// How many tasks a worker has begun on top of waits, and how much of its call stack is in use.
pub(crate) struct NestingDepth {
    tasks: Cell<usize>,
    pub(crate) stack: Cell<CallStack>,
    /// Deep yields since the last one that ran something.
    yields: Cell<u32>,
}

/// One in so many deep yields runs something.
const DEEP_YIELDS: u32 = 1000;

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

    /// Whether three quarters are.
    pub(crate) fn is_at_its_end(&self) -> bool {
        let stack = self.stack.get();
        address() < stack.half.saturating_sub(stack.room / 2)
    }

    /// Whether a yield is to run nothing.
    #[inline(always)]
    pub(crate) fn refuses_yield(&self) -> bool {
        self.is_deep() && self.refuses_deep_yield()
    }

    #[cold]
    fn refuses_deep_yield(&self) -> bool {
        self.yields.set((self.yields.get() + 1) % DEEP_YIELDS);
        self.yields.get() != 0
    }

    /// Whether a wait may put no foreign task on top, where `nesting` are allowed.
    pub(crate) fn is_exceeded(&self, nesting: usize) -> bool {
        self.tasks.get() >= nesting || self.is_deep()
    }

    /// A task on top of a wait, until the value is dropped.
    pub(crate) fn task(&self) -> impl Drop {
        self.tasks.set(self.tasks.get() + 1);
        Down(&self.tasks)
    }
}

/// How many deep waits a worker has under way. Written by its own thread, and read by all.
pub(crate) struct DeepWaits(<Machine as Memory>::Word);

impl DeepWaits {
    pub(crate) fn new() -> DeepWaits {
        DeepWaits(Word::new(0))
    }

    /// Out of date at once.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: an estimate. One that sleeps in such a wait is not seen asleep before it has counted it (F2).
        self.0.load(Ordering::Relaxed)
    }

    /// One more, until the second value is dropped, and its patience.
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

/// How long a deep wait takes nothing; see "How deep they nest".
pub(crate) struct Patience {
    time: Duration,
    /// For how long nothing has begun.
    waited: Duration,
    /// Of that, what is enough even if another worker runs something.
    most: Duration,
}

impl Patience {
    /// That of a wait on top of so many others.
    fn new(others: u64) -> Patience {
        let time = Duration::from_millis(1 << others.min(10)).min(LONGEST);
        Patience { time, waited: Duration::ZERO, most: time * 1000 }
    }

    /// How long to sleep.
    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    /// After such a sleep, whether the wait is to take what there is.
    pub(crate) fn ends(&mut self, nobody_else: bool, nothing_begins: bool) -> bool {
        self.waited = if nothing_begins { self.waited + self.time } else { Duration::ZERO };
        nothing_begins && (nobody_else || self.waited >= self.most)
    }

    /// There was nothing to take.
    pub(crate) fn doubles(&mut self) {
        self.time = (self.time * 2).min(LONGEST);
    }
}

/// Takes one off when dropped.
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
