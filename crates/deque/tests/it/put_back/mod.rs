//! An owner that has begun a pop and puts the task back, beside a thief that is about to sleep.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell;
use std::rc::Rc;

use poach_check::{Kind, Simulated, Threads, fail, observe};
use poach_deque::{Owner, Thief};
use poach_memory::Memory;

/// The owner of one private task takes it by a series of pops (`series` says whether it has), or
/// puts it back where a thief has asked. The thief asks, fences, looks, and sleeps if it finds
/// nothing.
pub(crate) fn put_back<Q: Owner<u64, Thief: 'static> + 'static>(
    threads: &mut Threads,
    owner: Q,
    series: impl Fn(&Q) -> bool + 'static,
    request: impl Fn(&Q::Thief) + 'static,
    has_private_tasks: impl Fn(&Q::Thief) -> bool + 'static,
) {
    owner.push(0);
    let owner = Rc::new(owner);
    let [thief, shared] = [owner.thief(), owner.thief()];
    let [sleeps, taken] = [(); 2].map(|()| Rc::new(Cell::new(false)));
    let (asleep, takes, queue) = (Rc::clone(&sleeps), Rc::clone(&taken), Rc::clone(&owner));
    threads.spawn("owner", move || takes.set(series(&queue)));
    threads.spawn("thief", move || {
        request(&thief);
        Simulated::heavy();
        asleep.set(thief.is_empty() && !has_private_tasks(&thief));
    });
    threads.finally(move || {
        // The owner stays as long: dropped, it would share.
        let _ = &owner;
        if sleeps.get() && !taken.get() && shared.is_empty() {
            fail(Kind::Request, "a thief has asked and sleeps, and a task is private");
        }
        observe(0, u64::from(sleeps.get()) + 2 * u64::from(taken.get()));
    });
}
