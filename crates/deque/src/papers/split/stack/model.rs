//! The stack under the memory model of C11: an owner that takes requests down while a thief
//! exposes, and what a thief must see.
//!
//! The searches are bounded in preemptions, as each test says. Each load may read a value that is
//! not the latest.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use poach_check::{Simulated, Threads};

use super::*;
use crate::c11;

/// This number of executions takes less than a second.
const MOST: u64 = 60_000;

/// No execution with at most `preemptions` preemptions is wrong; all of them run, or the first
/// [`MOST`].
fn clean(preemptions: u32, model: impl Fn(&mut Threads)) {
    c11::clean(preemptions, MOST, model);
}

/// A stack, and which tasks have been taken: a task is its own payload.
struct Forks {
    stack: Stack<Simulated>,
    taken: RefCell<Vec<u64>>,
}

type Top = Head<Simulated>;

impl Forks {
    /// With these tasks on it, all private, and the head above them.
    fn with(slots: usize, tasks: std::ops::Range<u64>) -> (Rc<Forks>, Top) {
        let forks = Forks { stack: Stack::new(slots, ()).unwrap(), taken: RefCell::default() };
        // SAFETY: the models have one owner at a time, and the stack outlives its heads.
        let bottom = unsafe { forks.stack.bottom() };
        let top = tasks.fold(bottom, push);
        (Rc::new(forks), top)
    }

    /// The head above `tasks` tasks.
    fn head(&self, tasks: usize) -> Top {
        Head::at(self.stack.slot_at(tasks as u32))
    }

    fn take(&self, task: u64) {
        let mut taken = self.taken.borrow_mut();
        assert!(!taken.contains(&task), "task {task} is taken twice");
        taken.push(task);
    }

    /// The owner pops the task below this head. If it was stolen, the owner does no more.
    fn pop(&self, above: Top) -> Option<Top> {
        let head = self.head(above.depth() - 1);
        // SAFETY: the owner of the model calls, and the task below its head is there.
        let is_own = unsafe { head.pop() } == Popped::Own;
        is_own.then(|| {
            self.take(payload(head));
            head
        })
    }

    /// A thief that has just seen a task exposes what it sees next, and takes all that are shared.
    fn expose_and_steal(&self) {
        let header = self.stack.head();
        let before = Cell::new(true);
        header.sharing.expose(&*header.hot, |first| {
            if before.replace(false) { 1 } else { self.stack.private_from(header, first) }
        });
        while let Ok(stolen) = self.stack.steal() {
            // SAFETY: claimed, and a u64.
            self.take(unsafe { stolen.slot().take::<u64>() });
        }
    }
}

fn push(head: Top, task: u64) -> Top {
    #[repr(align(8))]
    struct Descriptor;
    static DESCRIPTOR: Descriptor = Descriptor;
    let descriptor = (&raw const DESCRIPTOR).cast_mut().cast();
    // SAFETY: the owner of the model calls, and pops in reverse order; a u64 fits, and is Copy.
    unsafe { head.push(descriptor, &raw const task) }.expect("a free slot")
}

fn payload(head: Top) -> u64 {
    // SAFETY: the owner calls, for a slot that it has pushed to.
    let slot = unsafe { head.slot() };
    // SAFETY: popped just now, and a u64.
    unsafe { slot.take() }
}

/// The words of an exposure and of an owner that takes its request down meet in two orders:
/// `floor`, then the bounds. With `asks` another thief comes to the second half of a request, whose
/// first half was answered, so that the owner does not acquire what the exposing thief has written.
fn exposed(
    tasks: u64,
    asks: bool,
    owner: impl Fn(&Forks, Top) + Clone + 'static,
) -> impl Fn(&mut Threads) {
    move |threads| {
        let (forks, top) = Forks::with(4, 0..tasks);
        let (own, works) = (Rc::clone(&forks), owner.clone());
        threads.spawn("owner", move || works(&own, top));
        let exposes = Rc::clone(&forks);
        threads.spawn("exposes", move || exposes.expose_and_steal());
        if asks {
            let hot = Rc::clone(&forks);
            threads.spawn("asks", move || {
                hot.stack.head().hot.floor.store(REQUESTED, Ordering::Release);
            });
        }
        threads.finally(move || drop(forks));
    }
}

#[test]
fn an_owner_that_takes_a_request_down_sees_the_exposure_that_it_was_for() {
    for asks in [false, true] {
        clean(
            2,
            exposed(2, asks, |forks, top| {
                let _ = forks.pop(top).and_then(|next| forks.pop(next));
            }),
        );
    }
}

#[test]
fn an_owner_that_shares_nothing_sees_the_exposure_whose_request_it_takes_down() {
    for asks in [false, true] {
        clean(
            2,
            exposed(0, asks, |forks, bottom| {
                // SAFETY: the owner calls, and this is its topmost head.
                unsafe { bottom.share() };
                let _ = forks.pop(push(bottom, 0));
            }),
        );
    }
}

/// The thief takes the last shared task between the step with which the owner takes others back and
/// the one with which the owner's word follows, and begins to expose.
#[test]
fn an_owner_that_takes_tasks_back_does_not_overwrite_what_stops_its_pops() {
    clean(3, |threads| {
        let (forks, top) = Forks::with(4, 0..3);
        // SAFETY: the owner of the model calls, and this is its topmost head.
        unsafe { top.share() };
        let own = Rc::clone(&forks);
        threads.spawn("owner", move || {
            let _ = own.pop(top).and_then(|next| own.pop(next));
        });
        let exposes = Rc::clone(&forks);
        threads.spawn("exposes", move || {
            if let Ok(stolen) = exposes.stack.steal() {
                // SAFETY: claimed, and a u64.
                exposes.take(unsafe { stolen.slot().take::<u64>() });
            }
            exposes.expose_and_steal();
        });
        threads.finally(move || drop(forks));
    });
}

/// A thread that overwrites the `floor` of a request sees its `limit`.
#[test]
fn a_request_is_up_until_the_owner_has_answered() {
    clean(2, |threads| {
        let (forks, top) = Forks::with(4, 0..3);
        let own = Rc::clone(&forks);
        let next = forks.head(2);
        threads.spawn("owner", move || {
            let _ = own.pop(top);
        });
        let asks = Rc::clone(&forks);
        threads.spawn("asks", move || asks.stack.request());
        threads.finally(move || {
            let _ = forks.pop(next);
            assert_eq!(forks.stack.shared(), 1, "a request was lost");
        });
    });
}

/// The first slot that is not ready yet.
const FIRST: usize = Header::<Simulated, ()>::FIRST_BATCH;

#[test]
fn a_thief_looks_at_no_slot_that_is_not_ready() {
    clean(2, |threads| {
        let (forks, top) = Forks::with(FIRST + 2, 0..FIRST as u64 - 1);
        let (own, looks) = (Rc::clone(&forks), Rc::clone(&forks));
        threads.spawn("owner", move || {
            push(push(top, 0), 1);
        });
        threads.spawn("looks", move || {
            let stack = &looks.stack;
            let _ = stack.is_present(stack.head(), FIRST as u32);
        });
        threads.finally(move || drop((forks, own)));
    });
}

#[test]
fn a_thief_that_sees_a_task_sees_its_payload() {
    clean(2, |threads| {
        let (forks, bottom) = Forks::with(2, 0..0);
        let looks = Rc::clone(&forks);
        threads.spawn("owner", move || {
            push(bottom, 7);
        });
        threads.spawn("looks", move || {
            let stack = &looks.stack;
            if stack.is_present(stack.head(), 0) {
                assert_eq!(payload(bottom), 7);
            }
        });
        threads.finally(move || drop(forks));
    });
}
