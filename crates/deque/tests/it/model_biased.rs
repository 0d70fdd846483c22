//! The biased deque: its fenced form under loom, and with the thieves' barrier alone on a machine
//! with bounded store buffers; without the barrier, and with its steps in another order, it is
//! caught.

#![cfg(not(target_arch = "s390x"))] // The models' coroutines do not know that processor.

use std::cell::Cell as Count;
use std::rc::Rc;

use poach_check::spec::Spec;
use poach_check::{Config, Report, Simulated, Threads, Verdict, explore};
use poach_deque::{Biased, Fifo, Owner, Steal, Thief};
use poach_memory::{Asymmetric, Full, Loom, Memory, Ordering, StoreLoad, Unfenced, Word};
use poach_models::{Deque, Scenario, model as scene};

use crate::model::{Do, play};

const MEET: &[Do] = &[Do::Push, Do::Push, Do::Pop, Do::Pop];
const SHORT: &[Do] = &[Do::Push, Do::Push, Do::Pop];
/// One task, to keep the executions few where threads are many.
const LAST: &[Do] = &[Do::Push, Do::Pop];
/// A ring of one slot grows while a thief is at it, and its slots are used again.
const GROW: &[Do] = &[Do::Push, Do::Push, Do::Push, Do::Pop];

fn under_loom(capacity: usize, looks: u32) -> Biased<u64, Full, Loom> {
    Biased::starting_at(Full, capacity, 0, looks).unwrap()
}

#[test]
fn at_the_last_task() {
    play(|| under_loom(2, 0), MEET, 1, 2, true);
}

#[test]
fn with_two_thieves() {
    play(|| under_loom(2, 0), LAST, 2, 1, true);
}

#[test]
fn a_thief_that_looks_first() {
    play(|| under_loom(2, 1), SHORT, 1, 2, true);
}

#[test]
fn grows_under_a_thief() {
    play(|| under_loom(1, 0), GROW, 1, 2, true);
}

#[test]
#[should_panic(expected = "how often each came out")]
fn without_its_fences_it_is_caught() {
    let queue = || {
        // SAFETY: the model's tasks are numbers.
        let policy = unsafe { Unfenced::new() };
        Biased::<u64, _, Loom>::starting_at(policy, 2, 0, 0).unwrap()
    };
    play(queue, LAST, 1, 1, true);
}

fn simulated<P: StoreLoad<Simulated> + 'static>(
    policy: impl Fn() -> P + Copy + Send + Sync + 'static,
    looks: u32,
    scenario: &Scenario,
    capacity: u32,
) -> Report {
    // A thief's "empty" may be said while the owner pops the last task, and its "retry" says
    // nothing.
    let config =
        Config { shorten: 0, ..Config::bounded(capacity, true) }.against(Spec::PartlyPrivate);
    let queue = move |slots| {
        Deque(Biased::<u64, P, Simulated>::starting_at(policy(), slots, 0, looks).unwrap())
    };
    explore(&config, &scene(scenario, &[], queue))
}

#[test]
fn the_barrier_alone_is_enough() {
    for capacity in [1, 2] {
        for looks in [0, 1] {
            for scenario in [Scenario::drain(2, 0, 1, 1), Scenario::brief(0, 1, 1)] {
                let report = simulated(Asymmetric::<Simulated>::new, looks, &scenario, capacity);
                assert_eq!(report.verdict, Verdict::Clean, "S = {capacity}, {looks} looks");
                assert!(report.complete, "{report:?}");
            }
        }
    }
}

/// Two thieves: one opens late what the other has opened, or what the owner has closed.
#[test]
fn a_thief_that_is_late_opens_nothing() {
    let report = simulated(Asymmetric::<Simulated>::new, 0, &Scenario::drain(1, 0, 2, 1), 1);
    assert_eq!(report.verdict, Verdict::Clean);
    assert!(report.complete, "{report:?}");
}

/// No fence, no barrier.
#[test]
fn without_the_barrier_a_task_comes_out_twice() {
    // SAFETY: the model's tasks are numbers.
    let unfenced = || unsafe { Unfenced::new() };
    let report = simulated(unfenced, 0, &Scenario::drain(1, 0, 1, 1), 1);
    assert!(matches!(report.verdict, Verdict::Violation(_)), "{report:?}");
}

struct Shared<Q: Owner<u64>, M: Memory> {
    queue: Q,
    sleepers: M::Word,
    seen: [Count<bool>; 2],
}

/// How the sleeper looks for tasks.
#[derive(Clone, Copy, Debug)]
enum Look {
    IsEmpty,
    Len,
    Steal,
}

/// An owner that pushes and looks for sleepers, and a sleeper that looks for tasks, a fence between
/// the two on each side.
fn wake<Q, M>(make: impl Fn() -> Q, look: Look, fenced: bool) -> impl Fn(&mut Threads)
where
    M: Memory,
    Q: Owner<u64> + 'static,
    Q::Thief: 'static,
{
    move |threads| {
        let shared = Rc::new(Shared::<Q, M> {
            queue: make(),
            sleepers: M::Word::new(0),
            seen: Default::default(),
        });
        let thief = shared.queue.thief();
        let owner = Rc::clone(&shared);
        threads.spawn("owner", move || {
            owner.queue.push(7);
            if fenced {
                M::full();
            }
            owner.seen[0].set(owner.sleepers.load(Ordering::Relaxed) != 0);
        });
        let sleeper = Rc::clone(&shared);
        threads.spawn("sleeper", move || {
            // The look has the fence.
            sleeper.sleepers.store(1, Ordering::Relaxed);
            let empty = match look {
                Look::IsEmpty => thief.is_empty(),
                Look::Len => thief.len() == 0,
                Look::Steal => thief.steal() == Steal::Empty,
            };
            sleeper.seen[1].set(!empty);
        });
        threads.finally(move || {
            let [owner, sleeper] = &shared.seen;
            assert!(owner.get() || sleeper.get(), "the wake-up was lost");
        });
    }
}

#[test]
fn a_worker_s_queue_loses_no_wake_up() {
    fn check<Q: Owner<u64> + 'static>(make: impl Fn() -> Q + Copy)
    where
        Q::Thief: 'static,
    {
        for look in [Look::IsEmpty, Look::Len, Look::Steal] {
            for capacity in [1, 2] {
                let config = Config::bounded(capacity, true);
                let report = explore(&config, &wake::<Q, Simulated>(make, look, true));
                assert_eq!(report.verdict, Verdict::Clean, "S = {capacity}, {look:?}");
                assert!(report.complete, "{report:?}");
                let report = explore(&config, &wake::<Q, Simulated>(make, look, false));
                assert!(
                    matches!(report.verdict, Verdict::Violation(_)),
                    "an owner without a fence"
                );
            }
        }
    }
    check(|| {
        let policy = Asymmetric::<Simulated>::new();
        Biased::<u64, _, Simulated>::starting_at(policy, 2, 0, 0).unwrap()
    });
    check(|| Fifo::<u64, Simulated>::starting_at(2, 0).unwrap());
}
