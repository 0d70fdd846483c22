//! What the workers of one pool share: their deques, the injector, and who sleeps.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_utils::sync::{Parker, Unparker};
use poach_deque::Thief;
use poach_deque::split::{Context, Split, Stack, Stealer};
use poach_memory::{CachePadded, Machine, Memory, Ordering, Pointer, Word};

use crate::job::current::Local;
use crate::job::task::Task;
use crate::place::Rings;
use crate::pool::Handlers;
use crate::sleep::{Seat, Sleep};
use crate::trace::Recordings;
use crate::watch::Watch;

/// A pool never has more workers than this.
pub const MAX_THREADS: usize = 1024;

/// A seat of real threads.
pub(crate) struct ThreadSeat {
    /// Held by its worker whenever it parks; nobody else locks it.
    parker: Mutex<Parker>,
    unparker: Unparker,
}

impl Seat for ThreadSeat {
    fn new() -> Self {
        let parker = Parker::new();
        let unparker = parker.unparker().clone();
        ThreadSeat { parker: Mutex::new(parker), unparker }
    }

    fn park(&self) {
        self.parker.lock().unwrap_or_else(PoisonError::into_inner).park();
    }

    fn unpark(&self) {
        Local::with(|local| {
            if let Some(local) = local {
                local.watch.called();
            }
        });
        self.unparker.unpark();
    }
}

pub(crate) type PoolSleep = Sleep<Machine, ThreadSeat>;

/// What a worker's task stack knows of its pool.
pub(crate) struct Home {
    pub(crate) index: usize,
    sleep: Arc<PoolSleep>,
    watch: Arc<CachePadded<Watch>>,
}

impl Context for Home {
    fn shared(&self) {
        self.watch.shared();
        self.sleep.wake_one();
    }

    fn took_back(&self) {
        self.watch.took_back();
    }
}

/// A worker's own queue of spawned tasks.
pub(crate) type Spawns = Split<Task, Machine, Home>;

/// A worker as the others see it.
pub(crate) struct Remote {
    pub(crate) forks: Stack<Machine, Home>,
    pub(crate) spawns: Stealer<Task>,
    pub(crate) watch: Arc<CachePadded<Watch>>,
    /// In which order this worker robs the others.
    pub(crate) rings: Rings,
}

pub(crate) struct Registry {
    pub(crate) workers: Box<[Remote]>,
    pub(crate) sleep: Arc<PoolSleep>,
    injector: Mutex<VecDeque<Task>>,
    /// The injector's length, so that nobody locks it to find it empty.
    injected: CachePadded<<Machine as Memory>::Word>,
    closing: <Machine as Memory>::Word,
    /// Where each worker's [`Local`] is, once it runs.
    pub(crate) locals: Box<[<Machine as Memory>::Pointer<Local>]>,
    pub(crate) handlers: Handlers,
    pub(crate) recordings: Recordings,
}

impl Registry {
    pub(crate) fn new(
        sleep: Arc<PoolSleep>,
        workers: Box<[Remote]>,
        handlers: Handlers,
    ) -> Arc<Registry> {
        let locals = workers.iter().map(|_| Pointer::new(ptr::null_mut())).collect();
        Arc::new(Registry {
            locals,
            workers,
            sleep,
            injector: Mutex::new(VecDeque::new()),
            injected: CachePadded::new(Word::new(0)),
            closing: Word::new(0),
            handlers,
            recordings: Recordings::new(),
        })
    }

    pub(crate) fn home(
        index: usize,
        sleep: &Arc<PoolSleep>,
        watch: &Arc<CachePadded<Watch>>,
    ) -> Home {
        Home { index, sleep: Arc::clone(sleep), watch: Arc::clone(watch) }
    }

    /// Hands a task to the pool from outside, or from a worker whose own queue is full.
    pub(crate) fn inject(&self, task: Task) {
        let mut queue = self.injector.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(task);
        drop(queue);
        // Relaxed: line P1 of sleep/README.md, whose P2 follows. After the push, so that whoever sees it
        // finds the task.
        self.injected.fetch_add(1, Ordering::Relaxed);
        self.sleep.wake_one();
    }

    /// The oldest injected task.
    pub(crate) fn injected(&self) -> Option<Task> {
        // Relaxed: a task missed here is seen in `visible_work` before anybody sleeps.
        if self.injected.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = self.injector.lock().unwrap_or_else(PoisonError::into_inner);
        let task = queue.pop_front()?;
        drop(queue);
        // Relaxed: a length that is too large for a moment costs a look at an empty queue. It may wrap
        // below zero for a moment, if the pusher has not counted yet: then it is not zero either.
        self.injected.fetch_sub(1, Ordering::Relaxed);
        Some(task)
    }

    /// Line S4: leaves a request with every worker but `except`, the one that asks.
    pub(crate) fn request_everywhere(&self, except: Option<usize>) {
        for (index, worker) in self.workers.iter().enumerate() {
            if Some(index) == except {
                continue;
            }
            worker.forks.request();
            worker.spawns.request();
        }
    }

    /// Line S5: whether there is work that a searcher could take.
    pub(crate) fn visible_work(&self) -> bool {
        // Relaxed: S3 or L2 precedes.
        self.injected.load(Ordering::Relaxed) != 0
            || self
                .workers
                .iter()
                .any(|worker| worker.forks.shared() != 0 || !worker.spawns.is_empty())
    }

    /// A searcher has found something: lines L1 to L3.
    pub(crate) fn found(&self) {
        if self.sleep.found() {
            self.request_everywhere(None);
            if self.visible_work() {
                self.sleep.wake_one();
            }
        }
    }

    /// Tells the workers to end once there is no work left.
    pub(crate) fn close(&self) {
        // Release: the workers see what the closing thread did before. It is a P1.
        self.closing.fetch_or(1, Ordering::Release);
        self.sleep.wake_all();
    }

    pub(crate) fn is_closing(&self) -> bool {
        // Acquire: pairs with `close`.
        self.closing.load(Ordering::Acquire) != 0
    }
}
