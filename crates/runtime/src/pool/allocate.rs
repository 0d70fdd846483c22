//! What the workers of a pool are given before there is any.

use std::sync::Arc;

use poach_deque::split::{MAX_SLOTS, Split, Stack, StackError};
use poach_memory::{CachePadded, membarrier};
#[cfg(all(target_os = "linux", not(miri)))]
use rustix::process::{Resource, getrlimit};

use super::build_error::BuildError;
use super::handlers::Handlers;
use crate::job::current::Local;
#[cfg(all(target_os = "linux", not(miri)))]
use crate::job::forked::PerProcess;
use crate::observe::watch::Watch;
use crate::scheduler::deque_events::DequeEvents;
use crate::scheduler::registry::{Parts, Registry, Remote, Spawns, WaitPolicy};
use crate::scheduler::sleep::Sleep;
use crate::scheduler::sleep::parking::ThreadParking;
use crate::scheduler::sleep::wake_policy::WakePolicy;
use crate::scheduler::victim_order::Plan;

/// Spawned tasks that a worker's queue has room for before it grows: 32 bytes each, and 56 for what is large in it.
const SPAWN_QUEUE: usize = 1 << 8;

/// How a registry's workers are made.
#[derive(Clone, Copy)]
pub(crate) struct PoolConfig {
    /// Regular workers: the first.
    pub(crate) threads: usize,
    /// Places of guests: the last of the plan's slots.
    pub(crate) guests: usize,
    pub(crate) task_stacks: TaskStacks,
    pub(crate) wait_policy: WaitPolicy,
}

/// For how many pending forks a pool's workers have room.
#[derive(Clone, Copy)]
pub(crate) struct TaskStacks {
    /// Those on threads whose call stacks the pool knows.
    pub(crate) own: usize,
    /// Those on the threads of others: guests, and worker 0 if `resident`.
    pub(crate) foreign: usize,
    pub(crate) resident: bool,
}

impl TaskStacks {
    /// The same for all.
    pub(crate) fn all(forks: usize) -> TaskStacks {
        TaskStacks { own: forks, foreign: forks, resident: false }
    }

    /// As much less as is tried next; `None` if this is the least.
    fn less(self) -> Option<TaskStacks> {
        let less = |forks: usize| forks.min((forks / 4).max(SMALLEST));
        let (own, foreign) = (less(self.own), less(self.foreign));
        ((own, foreign) != (self.own, self.foreign)).then_some(TaskStacks { own, foreign, ..self })
    }

    fn of(self, index: usize, first_guest: usize) -> usize {
        let foreign = index >= first_guest || index == 0 && self.resident;
        if foreign { self.foreign } else { self.own }
    }
}

/// The most pending forks that a worker has room for unless the builder says otherwise.
const MOST: usize = if MAX_SLOTS < 1 << 20 { MAX_SLOTS } else { 1 << 20 };

/// The fewest forks that a worker has room for where there is not enough address space for more.
const SMALLEST: usize = 1 << 14;

/// Bytes of call stack that a fork takes at least, whose first half forks again: it returns, and knows its place.
const LEAST_FRAME: usize = 32;

/// For how many forks a worker has room by default that has so many bytes of call stack, if that is known: as many as these are enough for.
pub(super) fn task_stack_beside(call_stack: Option<usize>) -> usize {
    call_stack.map_or(MOST, |bytes| (bytes / LEAST_FRAME).clamp(SMALLEST, MOST))
}

/// Address space is looked for in pieces of so much: large enough for the allocator to ask the system for each, and to learn nothing from it.
/// As much a C library may reserve for what a thread allocates.
const PIECE: usize = 64 << 20;

/// And in no more than so many, 64 GiB.
const MOST_PIECES: usize = 1 << 10;

/// [`allocate`], with smaller task stacks if the system has no address space for those, or none for so many threads with call stacks of so
/// many bytes beside them.
pub(super) fn allocate_what_fits(
    plan: &Plan,
    mut config: PoolConfig,
    handlers: &Arc<Handlers>,
    threads: usize,
    call_stack: usize,
) -> Result<(Arc<Registry>, Vec<Spawns>), BuildError> {
    loop {
        let made = allocate(plan, config, Arc::clone(handlers), None);
        let less = config.task_stacks.less();
        match made {
            Err(BuildError::TaskStack(StackError::OutOfMemory(_))) if less.is_some() => {}
            Ok(made)
                if less.is_none()
                    || has_room_for(threads.saturating_mul(call_stack.saturating_add(PIECE))) =>
            {
                return Ok(made);
            }
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        if let Some(less) = less {
            config.task_stacks = less;
        }
    }
}

/// Whether there is address space for so many bytes more, at this moment, as far as that is looked at.
fn has_room_for(bytes: usize) -> bool {
    if is_unlimited() {
        return true;
    }
    let mut pieces = Vec::new();
    (0..bytes.div_ceil(PIECE).min(MOST_PIECES)).all(|_| {
        let mut piece = Vec::<u8>::new();
        let fits = piece.try_reserve_exact(PIECE).is_ok();
        pieces.push(piece);
        fits
    })
}

/// Whether the process may have as much address space as there is: no limit is set (`ulimit -v`), and the system promises more than it has. Takes one
/// system call; the system's policy is read once a process.
#[cfg(all(target_os = "linux", not(miri)))]
fn is_unlimited() -> bool {
    struct Overcommits(bool);
    impl Default for Overcommits {
        fn default() -> Self {
            let policy = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
            // 2 is "don't overcommit". Where it cannot be read, the room is looked at.
            Overcommits(policy.is_ok_and(|policy| policy.trim() != "2"))
        }
    }
    static OVERCOMMITS: PerProcess<Overcommits> = PerProcess::new();
    getrlimit(Resource::As).current.is_none() && OVERCOMMITS.get().0
}

/// Not known, or, under Miri, not to be asked for.
#[cfg(any(not(target_os = "linux"), miri))]
fn is_unlimited() -> bool {
    false
}

/// Makes a registry and its workers' own ends of their queues, with nobody in it yet.
pub(crate) fn allocate(
    plan: &Plan,
    config: PoolConfig,
    handlers: Arc<Handlers>,
    parent: Option<Arc<Registry>>,
) -> Result<(Arc<Registry>, Vec<Spawns>), BuildError> {
    // Thieves will want it. Until the system has answered they expose nothing.
    membarrier::is_registered();
    let slots = plan.slots();
    let PoolConfig { threads, guests, task_stacks, wait_policy } = config;
    let parking = (0..slots).map(|_| ThreadParking::new(Local::called)).collect();
    let sleep = Arc::new(Sleep::new(parking, guests, wait_policy.waiting.reach(slots)));
    let wake_policy = Arc::new(WakePolicy::new());
    let mut owners = Vec::with_capacity(slots);
    let mut workers = Vec::with_capacity(slots);
    for index in 0..slots {
        let make = || {
            // In a frame within another, a worker is the same thread as outside.
            let watch = match &parent {
                Some(parent) => Arc::clone(&parent.workers[index].watch),
                None => Arc::new(CachePadded::new(Watch::new())),
            };
            let events = || DequeEvents::new(index, &sleep, &watch, &wake_policy);
            // That of a bound worker is to lie on its processor's node.
            let stack =
                if plan.processor(index).is_some() { Stack::new_untouched } else { Stack::new };
            let forks = task_stacks.of(index, slots - guests);
            let forks = stack(forks, events()).map_err(BuildError::TaskStack)?;
            let spawns: Spawns =
                Split::with_context(SPAWN_QUEUE, 0, events()).map_err(BuildError::SpawnQueue)?;
            let victim_order = plan.victim_order(index);
            Ok((Remote::new(forks, spawns.thief(), watch, victim_order), spawns))
        };
        let (worker, spawns) = plan.near(index, make).map_err(BuildError::Pin)??;
        workers.push(worker);
        owners.push(spawns);
    }
    let workers = workers.into();
    let parts =
        Parts { sleep, wake_policy, workers, threads, handlers, wait_policy, guests, parent };
    Ok((Registry::new(parts), owners))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_room_for_as_many_forks_as_its_call_stack() {
        assert_eq!(task_stack_beside(None), MOST);
        for (bytes, forks) in [(0, SMALLEST), (64 << 10, SMALLEST), (8 << 20, 1 << 18)] {
            assert_eq!(task_stack_beside(Some(bytes)), forks.min(MOST));
        }
        assert_eq!(task_stack_beside(Some(usize::MAX)), MOST);
    }

    #[test]
    fn what_does_not_fit_is_tried_with_less_until_it_is_the_least() {
        let mut stacks = TaskStacks { own: 1 << 18, foreign: MOST, resident: true };
        assert_eq!([0, 1, 2].map(|index| stacks.of(index, 2)), [MOST, 1 << 18, MOST]);
        let mut tries = 0;
        while let Some(less) = stacks.less() {
            assert!(less.own <= stacks.own && less.foreign <= stacks.foreign);
            (stacks, tries) = (less, tries + 1);
        }
        assert_eq!((stacks.own, stacks.foreign), (SMALLEST, SMALLEST));
        assert!((1..10).contains(&tries));
        // What is less already stays as it is.
        assert!(TaskStacks::all(100).less().is_none());
    }

    // Miri's threads have no call stack that could be measured.
    #[test]
    #[cfg(not(miri))]
    fn no_fork_takes_less_of_the_call_stack() {
        use crate::{ThreadPool, Worker};
        #[inline(never)]
        fn address() -> usize {
            let here = 0_u8;
            std::hint::black_box(&raw const here).addr()
        }
        fn chain(mut worker: Worker<'_>, levels: usize) -> usize {
            if levels == 0 {
                return address();
            }
            worker.join(|w| chain(w, levels - 1), |_| ()).0
        }
        const LEVELS: usize = 1000;
        let pool = ThreadPool::builder().threads(1).build().unwrap();
        let used = pool.run(|worker| address() - chain(worker, LEVELS));
        assert!(used >= LEVELS * LEAST_FRAME, "{used} bytes for {LEVELS} forks");
    }
}
