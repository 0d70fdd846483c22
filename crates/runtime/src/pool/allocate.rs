//! The memory of a pool's workers, allocated before they start.

use std::ops::Range;
use std::sync::Arc;

use poach_deque::split::{MAX_SLOTS, Split, Stack, StackError, layout};
use poach_memory::{CachePadded, membarrier};
#[cfg(all(target_os = "linux", not(miri)))]
use rustix::process::{Resource, getrlimit};

use super::build_error::BuildError;
use crate::shared::handlers::Handlers;
use crate::shared::victims::{Plan, Victims};
use crate::shared::{Parts, PoolShared, Spawns, WaitPolicy, WorkerSlot};
use crate::sleep::Sleep;
use crate::sleep::parking::ThreadParking;
use crate::sleep::wake_policy::DequeEvents;
use crate::sleep::wake_policy::WakePolicy;
use crate::stats::watch::Watch;
#[cfg(all(target_os = "linux", not(miri)))]
use crate::system::process::PerProcess;
use crate::system::reserved::Reserved;
use crate::worker::current::WorkerThread;
use poach_topology::{Placement, Topology};

/// Spawned tasks that a worker's queue holds before it grows: 32 bytes each, and 56 for the payload
/// of a large one.
const SPAWN_QUEUE: usize = 1 << 8;

/// How a pool's workers are made.
#[derive(Clone)]
pub(crate) struct PoolConfig {
    /// Regular workers: the first.
    pub(crate) threads: usize,
    /// Places of guests: the last of the plan's slots.
    pub(crate) guests: usize,
    /// Workers that begin asleep: their threads do nothing before they look for work.
    pub(crate) asleep: Range<usize>,
    pub(crate) task_stacks: TaskStacks,
    pub(crate) wait_policy: WaitPolicy,
}

/// The number of pending forks for which each of a pool's workers has room.
#[derive(Clone, Copy)]
pub(crate) struct TaskStacks {
    /// For workers on threads whose call stacks the pool knows.
    pub(crate) own: usize,
    /// For workers on other threads: guests, and worker 0 if `resident`.
    pub(crate) foreign: usize,
    pub(crate) resident: bool,
}

impl TaskStacks {
    /// The same number for all.
    pub(crate) fn all(forks: usize) -> TaskStacks {
        TaskStacks { own: forks, foreign: forks, resident: false }
    }

    /// The next smaller sizes to try, with at least `least` forks each; `None` if there are none.
    fn less(self, least: usize) -> Option<TaskStacks> {
        let less = |forks: usize| forks.min((forks / 4).max(least));
        let (own, foreign) = (less(self.own), less(self.foreign));
        ((own, foreign) != (self.own, self.foreign)).then_some(TaskStacks { own, foreign, ..self })
    }

    fn of(self, index: usize, first_guest: usize) -> usize {
        let foreign = index >= first_guest || index == 0 && self.resident;
        if foreign { self.foreign } else { self.own }
    }
}

/// The default for the most pending forks of a worker.
const MOST: usize = if MAX_SLOTS < 1 << 20 { MAX_SLOTS } else { 1 << 20 };

/// The default for the fewest pending forks of a worker beside a call stack that is [`ENOUGH`].
const SMALLEST: usize = 1 << 14;

/// The least bytes of call stack of a fork whose first half forks again: its return address and its
/// place.
const LEAST_FRAME: usize = 32;

/// The default number of forks of a worker with this much call stack, if that is known: as many as
/// fit in it.
pub(super) fn task_stack_beside(call_stack: Option<usize>) -> usize {
    call_stack.map_or(MOST, |bytes| (bytes / LEAST_FRAME).clamp(SMALLEST, MOST))
}

/// Address space that a C library may reserve for a thread's allocations.
const ARENA: usize = 64 << 20;

/// Memory that a thread maps beside its call stack before it works: its guard page and the stack of
/// its signal handlers. If there is no room for an [`ARENA`], each of its first allocations takes a
/// page.
const BESIDE_CALL_STACK: usize = 128 << 10;

/// Memory of a worker beside its task stack: its queue above all.
const BESIDE_TASK_STACK: usize = 128 << 10;

/// Memory of all of them together.
const BESIDE_WORKERS: usize = 1 << 20;

/// The default for bytes of call stack that are enough.
const ENOUGH: usize = 2 << 20;

/// The fewest bytes of call stack that are tried.
const LEAST: usize = 256 << 10;

/// The sizes that a pool reserves, smaller if address space is short.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) task_stacks: TaskStacks,
    /// Whether the builder has set them.
    pub(super) task_stacks_set: bool,
    /// Bytes of a call stack.
    pub(super) call_stack: usize,
    pub(super) call_stack_set: bool,
    /// Whether a handler starts the threads, and so has to find the room for them.
    pub(super) handler: bool,
}

impl Sizes {
    /// The next smaller sizes to try; `None` if these are the least.
    fn less(self) -> Option<Sizes> {
        if !self.task_stacks_set {
            if let Some(task_stacks) = self.task_stacks.less(SMALLEST) {
                return Some(Sizes { task_stacks, ..self });
            }
        }
        if self.call_stack_set || self.handler || self.call_stack <= LEAST {
            return None;
        }
        let call_stack = (self.call_stack / 2).max(LEAST);
        // Half of the call stack has room for half of the forks, once that is less than enough.
        let fewest = SMALLEST.min(call_stack / (ENOUGH / SMALLEST));
        let less = if self.task_stacks_set { None } else { self.task_stacks.less(fewest) };
        Some(Sizes { task_stacks: less.unwrap_or(self.task_stacks), call_stack, ..self })
    }
}

/// The result of [`allocate_what_fits`].
pub(super) struct Made {
    pub(super) shared: Arc<PoolShared>,
    pub(super) owners: Vec<Spawns>,
    /// Bytes of call stack that each thread gets.
    pub(super) call_stack: usize,
    /// Address space for the threads, [`for_thread`] each, if it is limited.
    pub(super) reserved: Option<Reserved>,
}

/// The address space of a worker with room for `forks` forks.
fn for_worker(forks: usize) -> usize {
    forks.saturating_mul(layout::SLOT).saturating_add(BESIDE_TASK_STACK)
}

/// The address space of a thread with a call stack of `call_stack` bytes.
pub(super) fn for_thread(call_stack: usize) -> usize {
    call_stack.saturating_add(BESIDE_CALL_STACK)
}

/// [`allocate`], with smaller task stacks and then smaller call stacks, if the system has too
/// little address space for larger ones in this number of threads.
///
/// If they can be, the task stacks leave room for what the C library reserves for each thread.
/// Otherwise the threads do with less.
pub(super) fn allocate_what_fits(
    plan: &Arc<Plan>,
    mut config: PoolConfig,
    handlers: &Arc<Handlers>,
    threads: usize,
    mut sizes: Sizes,
) -> Result<Made, BuildError> {
    let limited = !is_unlimited();
    let first_guest = plan.slots() - config.guests;
    // A handler has to find the room for its threads.
    let own_threads = if sizes.handler { 0 } else { threads };
    loop {
        config.task_stacks = sizes.task_stacks;
        let forks = (0..plan.slots()).map(|index| sizes.task_stacks.of(index, first_guest));
        let workers = forks.fold(0_usize, |bytes, forks| bytes.saturating_add(for_worker(forks)));
        let call_stacks = own_threads.saturating_mul(for_thread(sizes.call_stack));
        let bytes = workers.saturating_add(call_stacks).saturating_add(BESIDE_WORKERS);
        let may_shrink = !sizes.task_stacks_set && sizes.task_stacks.less(SMALLEST).is_some();
        let arenas = if may_shrink { threads.saturating_mul(ARENA) } else { 0 };
        let mut reserved = None;
        if limited {
            reserved = Reserved::new(bytes.saturating_add(arenas));
        }
        let error = if limited && reserved.is_none() {
            BuildError::AddressSpace { threads, bytes }
        } else {
            if let Some(reserved) = &mut reserved {
                reserved.release(arenas);
            }
            match allocate(plan, config.clone(), Arc::clone(handlers), None, reserved.as_mut()) {
                Ok((shared, owners)) => {
                    let call_stack = sizes.call_stack;
                    return Ok(Made { shared, owners, call_stack, reserved });
                }
                Err(error @ BuildError::TaskStack(StackError::OutOfMemory(_))) => error,
                Err(error) => return Err(error),
            }
        };
        sizes = sizes.less().ok_or(error)?;
    }
}

/// Whether the process may use all of its address space: no limit is set (`ulimit -v`), and the
/// system overcommits. Takes one system call; the system's policy is read once a process.
#[cfg(all(target_os = "linux", not(miri)))]
fn is_unlimited() -> bool {
    struct Overcommits(bool);
    impl Default for Overcommits {
        fn default() -> Self {
            let policy = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
            // 2 is "don't overcommit". If it cannot be read, the room is measured.
            Overcommits(policy.is_ok_and(|policy| policy.trim() != "2"))
        }
    }
    static OVERCOMMITS: PerProcess<Overcommits> = PerProcess::new();
    getrlimit(Resource::As).current.is_none() && OVERCOMMITS.get().0
}

/// Unknown, or, under Miri, not to be asked for.
#[cfg(any(not(target_os = "linux"), miri))]
fn is_unlimited() -> bool {
    true
}

/// Makes a pool's shared state and its workers' ends of their queues, without threads, in
/// `reserved` memory if there is some.
pub(crate) fn allocate(
    plan: &Arc<Plan>,
    config: PoolConfig,
    handlers: Arc<Handlers>,
    parent: Option<Arc<PoolShared>>,
    mut reserved: Option<&mut Reserved>,
) -> Result<(Arc<PoolShared>, Vec<Spawns>), BuildError> {
    // Thieves will need the barrier. Until the system has answered they expose nothing, and workers
    // must look by themselves.
    let is_answered = membarrier::is_registered() || membarrier::is_refused();
    let slots = plan.slots();
    let PoolConfig { threads, guests, asleep, task_stacks, wait_policy } = config;
    let asleep = if is_answered { asleep } else { 0..0 };
    let parking = (0..slots).map(|_| ThreadParking::new(WorkerThread::called)).collect();
    let sleep = Arc::new(Sleep::new(parking, guests, wait_policy.waiting.reach(slots)));
    let wake_policy = Arc::new(WakePolicy::new());
    let mut owners = Vec::with_capacity(slots);
    let mut workers = Vec::with_capacity(slots);
    for index in 0..slots {
        let make = || {
            // In a frame, a worker is the same thread as outside.
            let watch = match &parent {
                Some(parent) => Arc::clone(&parent.workers[index].watch),
                None => Arc::new(CachePadded::new(Watch::new())),
            };
            let events = || DequeEvents::new(index, &sleep, &watch, &wake_policy);
            // The stack of a bound worker must lie on its processor's node.
            let stack =
                if plan.processor(index).is_some() { Stack::new_untouched } else { Stack::new };
            let forks = task_stacks.of(index, slots - guests);
            let (of_forks, of_spawns) = (events(), events());
            if let Some(reserved) = &mut reserved {
                reserved.release(for_worker(forks));
            }
            // No allocation happens in between.
            let forks = stack(forks, of_forks).map_err(BuildError::TaskStack)?;
            let spawns: Spawns =
                Split::with_context(SPAWN_QUEUE, 0, of_spawns).map_err(BuildError::SpawnQueue)?;
            Ok((WorkerSlot::new(forks, spawns.thief(), watch), spawns))
        };
        let (worker, spawns) = plan.near(index, make).map_err(BuildError::Pin)??;
        workers.push(worker);
        owners.push(spawns);
    }
    let workers = workers.into();
    let plan = Arc::clone(plan);
    let parts = Parts {
        sleep,
        wake_policy,
        workers,
        threads,
        handlers,
        wait_policy,
        guests,
        parent,
        plan,
        asleep,
    };
    Ok((PoolShared::new(parts), owners))
}

impl Plan {
    pub(crate) fn new(
        slots: usize,
        threads: usize,
        placement: &Placement,
        victims: Option<Victims>,
        topology: Option<Topology>,
    ) -> Result<Plan, BuildError> {
        if *placement == Placement::Anywhere {
            return match victims {
                Some(Victims::Nearest) => Err(BuildError::NearestUnpinned),
                _ => Ok(Plan::anywhere(slots)),
            };
        }
        let topology = topology.map_or_else(Topology::read, Ok).map_err(BuildError::Topology)?;
        let processors = topology.place(placement, threads).map_err(BuildError::Topology)?;
        let nearest = victims != Some(Victims::Random);
        Ok(Plan { slots, processors, topology: nearest.then_some(topology) })
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn a_worker_has_room_for_as_many_forks_as_its_call_stack() {
        assert_eq!(task_stack_beside(None), MOST);
        for (bytes, forks) in [(0, SMALLEST), (64 << 10, SMALLEST), (8 << 20, 1 << 18)] {
            assert_eq!(task_stack_beside(Some(bytes)), forks.min(MOST));
        }
        assert_eq!(task_stack_beside(Some(usize::MAX)), MOST);
    }

    /// What a pool with call stacks of 8 MiB reserves, and all that is tried after it.
    fn tried(set: impl FnOnce(&mut Sizes)) -> Vec<Sizes> {
        let task_stacks = TaskStacks { own: 1 << 18, foreign: MOST, resident: true };
        let (task_stacks_set, call_stack_set, handler) = (false, false, false);
        let call_stack = 8 << 20;
        let mut sizes = Sizes { task_stacks, task_stacks_set, call_stack, call_stack_set, handler };
        set(&mut sizes);
        iter::successors(Some(sizes), |sizes| sizes.less()).collect()
    }

    #[test]
    fn what_does_not_fit_is_tried_with_less_until_it_is_the_least() {
        let stacks = tried(|_| ())[0].task_stacks;
        assert_eq!([0, 1, 2].map(|index| stacks.of(index, 2)), [MOST, 1 << 18, MOST]);
        let forks = |sizes: &Sizes| (sizes.task_stacks.own, sizes.task_stacks.foreign);
        let tries = tried(|_| ());
        // First the task stacks, down to what is enough beside 2 MiB, then the call stacks down to
        // that, and then both.
        let enough = tries.partition_point(|sizes| forks(sizes) != (SMALLEST, SMALLEST));
        assert!(tries[..=enough].iter().all(|sizes| sizes.call_stack == 8 << 20));
        let (least, half) = (tries[tries.len() - 1], tries[tries.len() - 2]);
        assert_eq!((least.call_stack, forks(&least)), (LEAST, (1 << 11, 1 << 11)));
        assert_eq!((half.call_stack, forks(&half)), (2 * LEAST, (1 << 12, 1 << 12)));
        assert!(tries.len() < 12);
        for two in tries.windows(2) {
            assert!(two[1].call_stack <= two[0].call_stack && forks(&two[1]) <= forks(&two[0]));
        }
    }

    #[test]
    fn what_was_asked_for_stays_as_it_is() {
        let tries = tried(|sizes| sizes.call_stack_set = true);
        assert!(tries.iter().all(|sizes| sizes.call_stack == 8 << 20) && tries.len() > 1);
        let tries = tried(|sizes| sizes.handler = true);
        assert!(tries.iter().all(|sizes| sizes.call_stack == 8 << 20) && tries.len() > 1);
        let tries = tried(|sizes| sizes.task_stacks_set = true);
        assert!(tries.iter().all(|sizes| sizes.task_stacks.own == 1 << 18));
        assert_eq!(tries[tries.len() - 1].call_stack, LEAST);
        assert!(TaskStacks::all(100).less(SMALLEST).is_none());
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
        let pool = ThreadPool::builder().num_threads(1).build().unwrap();
        let used = pool.run(|worker| address() - chain(worker, LEVELS));
        assert!(used >= LEVELS * LEAST_FRAME, "{used} bytes for {LEVELS} forks");
    }
}
