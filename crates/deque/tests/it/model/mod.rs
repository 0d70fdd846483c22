//! What the loom models share: an owner and its thieves, over loom's memory.
//!
//! loom explores each interleaving, and each value that the C11 memory model lets a load return, up
//! to a bound on preemptions; it also reports two accesses to a slot that nothing orders. Its
//! memory has no process-wide barrier and no total store order, so these are the fenced forms of
//! the queues, and THEP by its echo alone. The others are modelled over a simulated machine with
//! bounded store buffers.

mod explore;

use std::collections::BTreeMap;

pub(crate) use explore::explore;
use loom::thread;
use poach_deque::{Owner, Steal, Thief};

/// What an owner does, in order.
#[derive(Clone, Copy)]
pub(crate) enum Do {
    Push,
    Pop,
}

/// Has the owner run `script` on a fresh queue while each thief makes `attempts` attempts, then the
/// owner pops what is left. Each task must have come out exactly once, or at least once.
pub(crate) fn play<O: Owner<u64> + 'static>(
    make: impl Fn() -> O + Sync + Send + 'static,
    script: &'static [Do],
    thieves: usize,
    attempts: usize,
    exactly: bool,
) where
    O::Thief: 'static,
{
    explore(move || {
        let queue = make();
        let handles: Vec<_> = (0..thieves)
            .map(|_| {
                let thief = queue.thief();
                thread::spawn(move || {
                    let steals = (0..attempts).map(|_| thief.steal());
                    steals.filter_map(Steal::success).collect::<Vec<_>>()
                })
            })
            .collect();
        let mut next = 0;
        let mut taken = Vec::new();
        for step in script {
            match step {
                Do::Push => {
                    queue.push(next);
                    next += 1;
                }
                Do::Pop => taken.extend(queue.pop()),
            }
        }
        for handle in handles {
            taken.extend(handle.join().unwrap());
        }
        taken.extend(std::iter::from_fn(|| queue.pop()));
        let mut counts: BTreeMap<u64, usize> = (0..next).map(|task| (task, 0)).collect();
        for task in taken {
            *counts.entry(task).or_default() += 1;
        }
        let right = |&count: &usize| if exactly { count == 1 } else { count >= 1 };
        assert!(counts.values().all(right), "tasks, and how often each came out: {counts:?}");
    });
}
