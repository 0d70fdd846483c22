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
//!   is stolen is begun at once. It is a spawned task, and whoever waits for it (in a scope, for a handle,
//!   for a call of its own into the pool) does so without restriction: it takes everything that can be
//!   seen. So the task must be where it can be seen: in an inbox, or in the shared part of a queue.
//!   A worker in a restricted wait therefore shares *all* spawned tasks of its own before it looks for
//!   anything, and again after each task that it has run meanwhile. Mail and calls it takes itself.
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

/// What a worker does while the second half of its [`join`](crate::join) runs on another:
/// [`Builder::waiting`](crate::Builder::waiting).
///
/// It concerns joins. A worker that waits for a scope, a handle or a call takes any work: it cannot know
/// what its end depends on.
///
/// A task that holds a lock across a join should know that with [`Random`](Waiting::Random) the worker may
/// run *any* other task meanwhile; if that one wants the lock, it waits for ever for its own thread. The
/// restricted ones take no spawned task meanwhile; [`Sleep`](Waiting::Sleep) takes nothing at all, and so
/// is safe if the halves themselves leave the lock alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Waiting {
    /// Takes nothing, but what only it can run: broadcasts and interrupts. The processor is left idle.
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

/// The call stack that a worker works on.
#[derive(Clone, Copy)]
pub(crate) struct CallStack {
    base: usize,
    room: usize,
}

impl CallStack {
    /// This thread's, from here on; `size` is the whole of it, if that is known.
    #[inline(never)]
    pub(crate) fn here(size: Option<usize>) -> CallStack {
        CallStack { base: address(), room: size.map_or(UNKNOWN, |size| size / 2) }
    }

    /// Whether more than half of it is in use.
    fn is_half_full(self) -> bool {
        // Stacks grow down on all systems that Poach knows.
        self.base.saturating_sub(address()) > self.room
    }
}

/// About where this thread's stack ends.
fn address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// How many tasks a worker has begun on top of waits, and how much of its call stack is in use.
pub(crate) struct NestingDepth {
    tasks: Cell<usize>,
    pub(crate) stack: Cell<CallStack>,
}

impl NestingDepth {
    pub(crate) fn new() -> NestingDepth {
        NestingDepth { tasks: Cell::new(0), stack: Cell::new(CallStack::here(None)) }
    }

    /// Whether a wait may put no foreign task on top, where `nesting` are allowed.
    pub(crate) fn is_exceeded(&self, nesting: usize) -> bool {
        self.tasks.get() >= nesting || self.stack.get().is_half_full()
    }

    /// A task on top of a wait, until the value is dropped.
    pub(crate) fn task(&self) -> impl Drop {
        struct Down<'p>(&'p Cell<usize>);
        impl Drop for Down<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.tasks.set(self.tasks.get() + 1);
        Down(&self.tasks)
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
    fn a_pile_is_exceeded_by_its_tasks() {
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
    fn a_pile_is_exceeded_by_its_stack() {
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
