//! A scheduler of one's own on `Split`: the page "Writing a scheduler" of the crate, as a program.
//!
//! ```text
//! cargo run --release -p poach-deque --example scheduler
//! ```
//!
//! Four threads count the nodes of a tree. Each runs its own tasks, youngest first; a thread
//! without tasks steals, and a thread that finds nothing to steal sleeps. It shows the three things
//! that a split deque needs from a scheduler: requests, the look before a sleep, and sharing before
//! a long leaf.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;

use poach_deque::split::{Exposure, Thief};
use poach_deque::{Owner, Split, Steal};
use poach_memory::{Machine, Memory};

/// A subtree of that number of levels.
struct Tree(u32);

struct Pool {
    thieves: Vec<Thief<Tree>>,
    /// Tasks that have not ended.
    pending: AtomicUsize,
    nodes: AtomicUsize,
    /// How often somebody was called; under the lock of those who sleep.
    calls: Mutex<usize>,
    called: Condvar,
}

impl Pool {
    fn is_done(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    fn call(&self) {
        *self.calls.lock().unwrap() += 1;
        self.called.notify_all();
    }

    /// What a worker does until all tasks have ended.
    fn work(&self, me: usize, own: &Split<Tree>) {
        while !self.is_done() {
            if let Some(task) = own.pop().or_else(|| self.steal(me)) {
                self.run(own, task);
            } else {
                self.sleep(me);
            }
        }
    }

    fn run(&self, own: &Split<Tree>, Tree(levels): Tree) {
        if levels == 0 {
            // A long leaf: a thief that asks meanwhile would wait for its end, so private tasks are
            // shared first.
            if own.share() {
                self.call();
            }
            for _ in 0..3 {
                thread::yield_now();
                // Or, in the midst of it, now and then, if somebody has asked.
                if own.poll() {
                    self.call();
                }
            }
        } else {
            self.pending.fetch_add(2, Ordering::Relaxed);
            // A push meets a thief's request by itself, and shares half of what is private.
            own.push(Tree(levels - 1));
            own.push(Tree(levels - 1));
        }
        self.nodes.fetch_add(1, Ordering::Relaxed);
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.call();
        }
    }

    /// Takes a task of somebody else's, or has left a request with everybody.
    fn steal(&self, me: usize) -> Option<Tree> {
        for (_, thief) in self.thieves.iter().enumerate().filter(|(index, _)| *index != me) {
            loop {
                match thief.steal() {
                    Steal::Success(task) => return Some(task),
                    Steal::Retry => Machine::pause(),
                    // Nothing is shared. This has left a request: what is private is shared at its
                    // owner's next push or pop.
                    Steal::Empty | Steal::Abort => break,
                }
            }
        }
        None
    }

    /// Sleeps, unless there is something after all. `Empty` says only that nothing is *shared*: one
    /// who slept for it would lose what is private to an owner that does not come back to its
    /// queue.
    fn sleep(&self, me: usize) {
        let calls = *self.calls.lock().unwrap();
        // The requests are left; after a process-wide barrier a push that is not seen here sees its
        // request, and shares.
        Machine::heavy();
        for (_, thief) in self.thieves.iter().enumerate().filter(|(index, _)| *index != me) {
            if !thief.is_empty() || thief.has_private_tasks() && thief.expose() != Exposure::Refused
            {
                return;
            }
        }
        let sleepers = self.calls.lock().unwrap();
        // An owner that answers a request calls nobody by itself (a `Context` of `with_context`
        // may); so no sleep is for ever here.
        let nap = std::time::Duration::from_millis(1);
        drop(self.called.wait_timeout_while(sleepers, nap, |now| *now == calls && !self.is_done()));
    }
}

pub(crate) fn main() {
    const WORKERS: usize = 4;
    const LEVELS: u32 = 14;
    let owners: Vec<Split<Tree>> = (0..WORKERS).map(|_| Split::new()).collect();
    let pool = Pool {
        thieves: owners.iter().map(Owner::thief).collect(),
        pending: AtomicUsize::new(1),
        nodes: AtomicUsize::new(0),
        calls: Mutex::new(0),
        called: Condvar::new(),
    };
    owners[0].push(Tree(LEVELS));
    thread::scope(|scope| {
        for (me, own) in owners.into_iter().enumerate() {
            let pool = &pool;
            scope.spawn(move || pool.work(me, &own));
        }
    });
    let nodes = pool.nodes.into_inner();
    assert_eq!(nodes, (1 << (LEVELS + 1)) - 1);
    println!("{nodes} nodes");
}
