//! Stops the work of all workers, runs one task to its end with all of them, and then resumes.
//!
//! Source: Lace's NEWFRAME, which Sylvan uses to collect garbage in the middle of a computation.
//! Ours is cooperative and follows these rules.
//!
//! # What it means
//!
//! `interrupt(f)` on a worker of a pool:
//!
//! 1. *Takes its turn.* One interrupt at a time for each pool; a second waits for the first, and
//!    its worker serves the first meanwhile.
//! 2. *Calls all workers*: regular workers, and spare workers at work. A worker answers at its next
//!    **cooperation point**: wherever it looks for work, between two tasks of a scope, at the end
//!    of a [`blocking`](crate::blocking()) section, and at [`check`]. It looks for work in a join
//!    whose second half was stolen, in a scope that waits for its tasks, in a yield, and when idle.
//!    In between nothing is stopped: a leaf that computes for a second without a check delays the
//!    interrupt by a second, and a leaf that waits for the interrupt to have happened waits for
//!    ever.
//! 3. *Waits until all have come.* From here to step 5 no task of the pool runs on any worker:
//!    those that have begun are suspended, each on its own worker's call stack. `f` may do to their
//!    shared data whatever they allow at a cooperation point.
//! 4. *Runs `f` in a new frame*: `join`, `scope`, `spawn`, `broadcast` and the pool's own methods,
//!    called in `f`, mean the frame, which has the same workers under the same indices, but deques
//!    of its own. No worker takes a task of the suspended computation, and all steal `f`'s tasks.
//!    The pool's tasks from outside wait. `f` may be interrupted in its turn: frames nest.
//! 5. *Ends* when `f` and all that it has spawned have ended. Then all resume where they were. A
//!    panic in `f` ends the frame in the same way and travels to the caller.
//!
//! # How
//!
//! A frame is a [`PoolShared`] whose workers are not threads but visits of threads. Each worker
//! finds a task in its inbox for calls, which only it takes from, and looks into first. This task
//! makes the thread a worker of the frame while the frame lasts, as a pool's own thread is a worker
//! while its pool lasts. So a frame's sleeping, stealing and ending need no argument of their own.
//! While step 3 waits, the workers that have come wait in the frame's main loop.
//!
//! The last worker to leave a frame gives it to the interrupted pool. The pool keeps it, with its
//! stacks and queues, for its next interrupt: making them anew took most of the time of a short
//! one.
//!
//! A worker that is called cannot have left: the call keeps the pool open (see `termination`). A
//! spare worker comes and goes under the lock that the roll call takes.

use std::panic;
use std::sync::{Arc, Mutex, PoisonError};

use poach_memory::{Machine, Memory, Ordering, Word};

use crate::pool::allocate::{PoolConfig, TaskStacks, allocate};
use crate::pool::build_error::BuildError;
use crate::pool::global;
use crate::shared::victims::Plan;
use crate::shared::{Frame, OpenPool, PoolShared, Spawns};
use crate::task::frame::FrameTask;
use crate::task::panic::catch;
use crate::task::value::Task;
use crate::worker::current::WorkerThread;
use crate::worker::signal::Signal;

/// Stops all workers of this thread's pool at their next cooperation point, runs `f` with all of
/// them, and lets them go on.
///
/// No other task of the pool runs before `f` has ended. All workers take part in the forks and
/// spawns of `f`. Interrupts of one pool take turns, and may nest. A thread from outside that works
/// for the pool ([`ThreadPoolBuilder::callers`](crate::ThreadPoolBuilder::callers)) is stopped too.
/// On a thread that is no worker, the global pool is interrupted, and one of its workers runs `f`.
///
/// The cooperation points are: a look for work, also in a wait for a stolen half or for a scope's
/// tasks; the end of a task of a scope; [`yield_now`](crate::yield_now); the end of
/// [`blocking`](crate::blocking()); and [`check`]. The call waits for a worker that blocks, and for
/// a thread that a pool [uses](crate::ThreadPoolBuilder::use_current_thread), until they come to
/// one. The module's comment in the source has the rules in full.
///
/// Costs a message to each worker. The first interrupt, and each new depth of nesting, also takes
/// address space for a task stack and a queue for each worker, which the pool keeps.
///
/// ```
/// # use poach_runtime as poach;
/// use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
///
/// let pool = poach::ThreadPool::builder().num_threads(2).build()?;
/// let (done, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
/// pool.install(|| {
///     poach::join(
///         || {
///             let still = poach::interrupt(|| {
///                 let before = rounds.load(SeqCst);
///                 poach::join(|| (), || ()); // with both workers
///                 rounds.load(SeqCst) == before // the other half stands still
///             });
///             done.store(true, SeqCst);
///             assert!(still);
///         },
///         || {
///             while !done.load(SeqCst) {
///                 rounds.fetch_add(1, SeqCst);
///                 poach::check();
///             }
///         },
///     );
/// });
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// # Panics
///
/// With `f`'s payload, when all have resumed. If the system refuses the frame's memory. As
/// [`broadcast`](crate::broadcast()), if the pool has ended.
pub fn interrupt<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    WorkerThread::with(|local| match local {
        Some(local) => interrupt_on(local, f),
        None => global().interrupt(f),
    })
}

/// A point at which this thread, if it is a worker, can be [interrupted](interrupt). Without an
/// interrupt, this is a load.
#[inline]
pub fn check() {
    WorkerThread::with(|local| {
        if let Some(local) = local {
            local.answer_calls();
        }
    });
}

/// Interrupts a pool of which this thread is no worker; it may be a worker of another.
pub(crate) fn interrupt_from<R: Send>(
    shared: &Arc<PoolShared>,
    local: Option<&WorkerThread>,
    f: impl FnOnce() -> R + Send,
) -> R {
    let open = shared.keep_open();
    let signal = Signal::new(local);
    let task = FrameTask::new(|| interrupt(f));
    let told = signal.clone();
    task.hand_over(
        move || told.set(),
        |task| {
            // The last one: the first may be a thread with other work.
            open.call(shared.threads - 1, task);
            signal.wait(local);
        },
    );
    match task.outcome() {
        Ok(result) => result,
        Err(payload) => panic::resume_unwind(payload),
    }
}

fn interrupt_on<R>(local: &WorkerThread, f: impl FnOnce() -> R) -> R {
    let shared = &local.shared;
    let open = shared.keep_open();
    let frame = loop {
        let mut made = None;
        let begun = shared.spares.begin_interrupt(|spares| {
            made = Some(
                Interruption::new(shared)
                    .inspect(|frame| frame.call_all(&open, local.index, spares)),
            );
        });
        match made {
            Some(Ok(frame)) => break frame,
            Some(Err(error)) => {
                end(shared);
                panic!("an interrupt's frame could not be made: {error}");
            }
            None => debug_assert!(!begun, "the thread that has the turn makes a frame"),
        }
        local.wait_for_any(&|| !shared.spares.is_interrupted(), &|| false);
    };
    let result = frame.visit(local.index, |visit| {
        visit.wait_for_any(&|| frame.is_complete(), &|| false);
        let result = catch(f);
        frame.shared.close();
        visit.main_loop();
        result
    });
    frame.finish();
    end(shared);
    match result {
        Ok(result) => result,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Gives the turn to the next interrupt.
fn end(shared: &PoolShared) {
    shared.sleep.open_places();
    shared.spares.end_interrupt();
    // Line P1 of sleep/README.md was the end; the threads that wait for their turn may sleep
    // anywhere.
    shared.sleep.wake_all();
}

struct Interruption {
    shared: Arc<PoolShared>,
    /// The workers' ends of the frame's queues, for the workers that come.
    owners: Mutex<Vec<Option<Spawns>>>,
    /// The number of called workers that have not come yet.
    missing: <Machine as Memory>::Word,
}

impl Interruption {
    fn new(parent: &Arc<PoolShared>) -> Result<Arc<Interruption>, BuildError> {
        let frame = match parent.kept_frame() {
            Some(frame) => frame,
            None => Interruption::allocate(parent)?,
        };
        let Frame { shared, owners } = frame;
        let (owners, missing) = (Mutex::new(owners), Word::new(0));
        Ok(Arc::new(Interruption { shared, owners, missing }))
    }

    #[cold]
    fn allocate(parent: &Arc<PoolShared>) -> Result<Frame, BuildError> {
        let (shared, owners) = allocate(
            &Arc::new(Plan::anywhere(parent.workers.len())),
            PoolConfig {
                threads: parent.threads,
                task_stacks: TaskStacks::all(parent.workers[0].forks.capacity()),
                guests: 0,
                asleep: 0..0,
                wait_policy: parent.wait_policy,
            },
            Arc::clone(&parent.handlers),
            Some(Arc::clone(parent)),
            None,
        )?;
        Ok(Frame { shared, owners: owners.into_iter().map(Some).collect() })
    }

    /// This thread leaves the frame. The last one keeps it for the next interrupt.
    fn finish(self: Arc<Self>) {
        if let Some(Interruption { shared, owners, .. }) = Arc::into_inner(self) {
            let owners = owners.into_inner().unwrap_or_else(PoisonError::into_inner);
            PoolShared::keep_frame(Frame { shared, owners });
        }
    }

    /// The roll call, under the lock of the spares.
    fn call_all(
        self: &Arc<Self>,
        open: &OpenPool,
        caller: usize,
        spares: &mut dyn Iterator<Item = usize>,
    ) {
        let parent = open.shared();
        let spares = spares.map(|slot| parent.threads + slot);
        let guests = parent.sleep.close_places().map(|place| parent.first_guest() + place);
        let called: Vec<_> = (0..parent.threads)
            .chain(spares)
            .chain(guests)
            .filter(|&index| index != caller)
            .collect();
        // Relaxed: the inboxes' locks hand it over.
        self.missing.store(called.len() as u64, Ordering::Relaxed);
        for index in called {
            let frame = Arc::clone(self);
            open.call(index, Task::detached(move || frame.answer(index, caller)));
        }
    }

    /// A worker of the parent comes, notifies the waiting one, and stays until the frame is
    /// finished.
    fn answer(self: Arc<Self>, index: usize, caller: usize) {
        self.visit(index, |visit| {
            // Release: what the suspended tasks have done is seen by `f`; pairs with `is_complete`.
            // It is line P1 of sleep/README.md.
            self.missing.fetch_sub(1, Ordering::AcqRel);
            self.shared.sleep.wake(caller);
            visit.main_loop();
        });
        self.finish();
    }

    /// Line S5.
    fn is_complete(&self) -> bool {
        // Acquire: pairs with `answer`.
        self.missing.load(Ordering::Acquire) == 0
    }

    /// Makes this thread a worker of the frame for as long as `f` runs.
    fn visit<R>(&self, index: usize, f: impl FnOnce(&WorkerThread) -> R) -> R {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners[index].take().expect("a worker comes once");
        drop(owners);
        let visitor = WorkerThread::new(Arc::clone(&self.shared), index, owner);
        WorkerThread::with(|below| {
            if let Some(below) = below {
                visitor.nesting_depth.stack.set(below.nesting_depth.stack.get());
            }
        });
        let result = visitor.enter(f);
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners[index] = Some(visitor.into_spawns());
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::ThreadPool;

    fn nested(depth: usize) -> usize {
        if depth == 0 {
            return 0;
        }
        interrupt(|| crate::join(|| nested(depth - 1), || 1)).0 + 1
    }

    #[test]
    fn frames_are_kept_for_the_next_interrupt_and_end_with_their_pool() {
        let pool = ThreadPool::builder().num_threads(2).build().unwrap();
        let shared = Arc::downgrade(pool.shared());
        for _ in 0..50 {
            assert_eq!(pool.install(|| nested(3)), 3);
        }
        // The last worker may be leaving it yet.
        let kept = loop {
            match pool.shared().kept_frame() {
                Some(frame) => break frame,
                None => thread::yield_now(),
            }
        };
        assert!(kept.shared.serves(pool.shared()));
        assert!(kept.shared.kept_frame().is_some(), "with the frames that it keeps itself");
        drop(kept);
        drop(pool);
        assert!(shared.upgrade().is_none(), "a frame that is kept keeps nothing");
    }

    /// All who wait for their turn sleep by then, and nobody else would wake a thread from outside.
    #[test]
    fn the_end_of_an_interrupt_wakes_all_that_wait_for_their_turn() {
        for _ in 0..if cfg!(miri) { 1 } else { 10 } {
            let pool = Arc::new(ThreadPool::builder().num_threads(2).build().unwrap());
            let shared = pool.shared();
            assert!(shared.spares.begin_interrupt(|_| ()));
            let (send, answers) = mpsc::channel();
            for answer in 0..2 {
                let (pool, send) = (Arc::clone(&pool), send.clone());
                thread::spawn(move || {
                    pool.run(|_| {
                        send.send(0).unwrap();
                        interrupt(|| ());
                    });
                    send.send(1 + answer).unwrap();
                });
            }
            assert_eq!([answers.recv(), answers.recv()], [Ok(0); 2]);
            while shared.does_anybody_run() || shared.sleep.is_anybody_searching() {
                thread::yield_now();
            }
            end(shared);
            let answer = || answers.recv_timeout(Duration::from_secs(60));
            let mut both = [answer(), answer()];
            both.sort_unstable_by_key(|answer| answer.ok());
            assert_eq!(both, [Ok(1), Ok(2)], "they sleep on");
        }
    }
}
