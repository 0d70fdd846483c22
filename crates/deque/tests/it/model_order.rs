//! A machine that lets a load overtake buffered stores. A thread that pushes and then looks for
//! sleepers, and a thread that goes to sleep and looks for tasks a last time, do not both see
//! nothing.
//!
//! Neither thread has a fence of its own but what its own word's operation is, as crossbeam-deque's
//! users write it.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.
#![forbid(unsafe_code)]

use std::cell::Cell as Count;
use std::rc::Rc;

use poach_check::{Config, Report, Simulated, Threads, Verdict, explore};
use poach_deque::{Injector, Steal};
use poach_memory::{Memory, Ordering, Word};

/// How the sleeper looks for tasks.
#[derive(Clone, Copy)]
enum Look {
    IsEmpty,
    Len,
    Steal,
}

struct Shared<M: Memory> {
    injector: Injector<u64, M, 2>,
    sleepers: M::Word,
    /// Whether the pusher saw a sleeper, and the sleeper a task.
    seen: [Count<bool>; 2],
}

/// `fenced`: whether the sleeper announces itself by a read-modify-write, as it must.
fn model<M: Memory>(look: Look, fenced: bool) -> impl Fn(&mut Threads) {
    move |threads| {
        let shared = Rc::new(Shared::<M> {
            injector: Injector::new().with_patience(0),
            sleepers: M::Word::new(0),
            seen: Default::default(),
        });
        let pusher = Rc::clone(&shared);
        threads.spawn("pusher", move || {
            pusher.injector.push(7);
            pusher.seen[0].set(pusher.sleepers.load(Ordering::SeqCst) != 0);
        });
        let sleeper = Rc::clone(&shared);
        threads.spawn("sleeper", move || {
            if fenced {
                sleeper.sleepers.fetch_add(1, Ordering::SeqCst);
            } else {
                sleeper.sleepers.store(1, Ordering::Relaxed);
            }
            sleeper.seen[1].set(match look {
                Look::IsEmpty => !sleeper.injector.is_empty(),
                Look::Len => sleeper.injector.len() == 1,
                Look::Steal => sleeper.injector.steal() != Steal::Empty,
            });
        });
        threads.finally(move || {
            let [pusher, sleeper] = &shared.seen;
            assert!(pusher.get() || sleeper.get(), "the wake-up was lost");
        });
    }
}

fn check(look: Look, fenced: bool, capacity: u32) -> Report {
    explore(&Config::bounded(capacity, true), &model::<Simulated>(look, fenced))
}

#[test]
fn an_injector_loses_no_wake_up() {
    for look in [Look::IsEmpty, Look::Len, Look::Steal] {
        for capacity in [1, 2, 4] {
            let report = check(look, true, capacity);
            assert_eq!(report.verdict, Verdict::Clean, "S = {capacity}");
            assert!(report.complete, "{report:?}");
        }
    }
}

/// The same program whose sleeper announces itself by a plain store loses it, unless the look is a
/// steal, which has a fence before it says that there is nothing.
#[test]
fn a_sleeper_without_a_fence_is_caught() {
    for look in [Look::IsEmpty, Look::Len] {
        assert!(matches!(check(look, false, 2).verdict, Verdict::Violation(_)));
    }
    assert_eq!(check(Look::Steal, false, 2).verdict, Verdict::Clean);
}
