//! Lock-freedom (section 7.2): threads that stop before each of their accesses to shared memory.
//!
//! Two threads are stopped, at every pair of accesses. A third must then get every task except
//! those that the two may have made their own, find the pool empty, and go on with tasks that come
//! later. At last the two wake up, in either order, and each task has been taken once.

use std::sync::{Arc, Mutex};
use std::thread;

use poach_memory::{Asymmetric, Full, StoreLoad};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::policy::{Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

use crate::stopping::{Kind, LEFT, Stopping, start, stop_at, stop_before};

const ENOUGH: u64 = 100_000;

type Act = Box<dyn FnOnce(&Mutex<Vec<u64>>) + Send>;

/// Tasks that are there from the start, in chunks of two.
const TASKS: u64 = 3;
const LATER: u64 = 3;

#[derive(Clone, Copy, Debug)]
enum Who {
    /// The consumer whose pool the tasks are in: takes two of them, and with them a whole chunk.
    Owner,
    /// Another that steals, and takes what it has stolen.
    Thief,
    /// A third that steals from the first and then from the second.
    Robber,
    /// Puts a task that begins a chunk, and one more.
    Producer,
    /// A consumer that comes to the pool, and gets a task.
    Comer,
}

/// Handles for all of them, and what they do. `TASKS` + 1 and + 2 are the stopped producer's.
fn acts<P: Mechanism<u64> + 'static>(pools: &Arc<P>, who: [Who; 2]) -> [Act; 2]
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    // The owner's entry is 0 and the thief's 1 in each case.
    let mut owner = Some(pools.consumer().expect("memory"));
    let mut thief = Some(pools.consumer().expect("memory"));
    let mut first = pools.producer().expect("memory");
    let mut second = pools.producer().expect("memory");
    for task in 1..=TASKS {
        assert!(first.produce_force(0, task).is_ok());
    }
    // The producer that is stopped is the first; another goes on with its own chunk.
    assert!(second.produce_force(0, 0).is_ok());
    let mut producer = Some(first);
    who.map(|who| -> Act {
        match who {
            Who::Owner => {
                let mut owner = owner.take().expect("one owner");
                Box::new(move |taken| {
                    for _ in 0..2 {
                        let task = owner.consume();
                        taken.lock().expect("no panic").extend(task);
                    }
                })
            }
            Who::Thief => {
                let mut thief = thief.take().expect("one thief");
                Box::new(move |taken| {
                    let task = thief.steal(0);
                    taken.lock().expect("no panic").extend(task);
                    let task = thief.consume();
                    taken.lock().expect("no panic").extend(task);
                })
            }
            Who::Robber => {
                let mut robber = pools.consumer().expect("memory");
                Box::new(move |taken| {
                    for from in [1, 0] {
                        let task = robber.steal(from);
                        taken.lock().expect("no panic").extend(task);
                    }
                })
            }
            Who::Producer => {
                let mut producer = producer.take().expect("one producer");
                Box::new(move |_| {
                    for task in TASKS + 1..=TASKS + 2 {
                        assert!(producer.produce_force(0, task).is_ok());
                    }
                })
            }
            Who::Comer => {
                let pools = Arc::clone(pools);
                Box::new(move |taken| {
                    let mut comer = Taker::at(&pools, Policy::default(), 0).expect("memory");
                    let task = comer.get();
                    taken.lock().expect("no panic").extend(task);
                })
            }
        }
    })
}

/// Stops the two at accesses `at`; whether each was stopped before its end.
fn stop_two<P: Mechanism<u64> + 'static>(
    pools: P,
    who: [Who; 2],
    at: [usize; 2],
    order: bool,
) -> [bool; 2]
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    let pools = Arc::new(pools);
    let taken = Mutex::new(Vec::new());
    let [first, second] = acts(&pools, who);
    let puts = who.iter().any(|who| matches!(who, Who::Producer));
    let most = TASKS + if puts { 2 } else { 0 };
    let stopped = thread::scope(|scope| {
        let first = stop_at(scope, at[0], || first(&taken));
        let second = stop_at(scope, at[1], || second(&taken));
        let stopped = [first.stopped, second.stopped];
        // Each may have one task for itself; a producer may have put one or neither of its two.
        let away: usize = who
            .iter()
            .zip(stopped)
            .map(|(who, stopped)| match who {
                _ if !stopped => 0,
                Who::Producer => 2,
                _ => 1,
            })
            .sum();
        LEFT.set(ENOUGH);
        let mut other = Taker::at(&pools, Policy::default(), 0).expect("memory");
        let mut producer = pools.producer().expect("memory");
        let mut get = |wanted: u64| {
            while let Some(task) = other.get() {
                taken.lock().expect("no panic").push(task);
            }
            let found = taken.lock().expect("no panic").len();
            let least = (wanted + 1) as usize - away;
            assert!(found >= least, "{who:?} stopped at {at:?}: {found} tasks, not {least}");
        };
        get(most);
        for task in 0..LATER {
            assert!(producer.produce_force(0, 100 + task).is_ok());
        }
        get(most + LATER);
        if order {
            first.wake();
            second.wake();
        } else {
            second.wake();
            first.wake();
        }
        while let Some(task) = other.get() {
            taken.lock().expect("no panic").push(task);
        }
        LEFT.set(u64::MAX);
        stopped
    });
    let mut taken = taken.into_inner().expect("no panic");
    taken.sort_unstable();
    assert!(
        taken.iter().copied().eq((0..=most).chain(100..100 + LATER)),
        "{who:?} stopped at {at:?}: taken {taken:?}"
    );
    stopped
}

const PAIRS: [[Who; 2]; 7] = [
    [Who::Owner, Who::Thief],
    [Who::Thief, Who::Owner],
    [Who::Thief, Who::Robber],
    [Who::Owner, Who::Producer],
    [Who::Thief, Who::Producer],
    [Who::Producer, Who::Comer],
    [Who::Comer, Who::Thief],
];

/// Accesses of the first thread between two places where it is stopped; an interpreter skips most,
/// and as many times more of the second's: with 16 it takes eight minutes.
const STEP: usize = if cfg!(miri) { 40 } else { 1 };

/// Each access of the first, `stride` between those of the second, from another start each time.
fn stop_everywhere<P: Mechanism<u64> + 'static>(stride: usize, make: impl Fn() -> Option<P>)
where
    P::Consumer: 'static,
    P::Producer: 'static,
{
    let stride = stride * STEP;
    for who in PAIRS.into_iter().step_by(if cfg!(miri) { 3 } else { 1 }) {
        let (mut stops, mut first) = (0, 0);
        loop {
            let mut second = first % stride;
            let more = loop {
                let order = (first + second) % 2 == 0;
                let pools = make().expect("memory");
                let stopped = stop_two(pools, who, [first, second], order);
                stops += 1;
                if !stopped[1] {
                    break stopped[0];
                }
                second += stride;
            };
            if !more {
                break;
            }
            first += STEP;
        }
        println!("{who:?}: {stops} pairs of places, {first} of the first thread's");
        assert!(first > 5, "{who:?} makes only {first} accesses");
    }
}

fn salsa<F: StoreLoad<Stopping> + Default>() -> Option<Salsa<u64, Stopping, F>> {
    Salsa::new(2)
}

#[test]
fn salsa_goes_on() {
    stop_everywhere(3, salsa::<Asymmetric<Stopping>>);
}

#[test]
fn salsa_with_full_fences_goes_on() {
    stop_everywhere(7, salsa::<Full>);
}

#[test]
fn the_rivals_go_on() {
    stop_everywhere(7, || SalsaCas::<u64, Stopping>::new(2));
    stop_everywhere(7, || ConcBag::<u64, Stopping>::new(2));
    stop_everywhere(7, WsMsq::<u64, Stopping>::new);
    stop_everywhere(7, WsLifo::<u64, Stopping>::new);
}

/// A thief reads how much of a chunk is taken, and sleeps. The chunk is used again by the same two;
/// the owner is about to publish its first task. The thief steals the chunk of another life, and
/// sleeps; a robber steals it from the thief. The owner publishes: as much is taken now as the
/// thief read. The robber finds nothing; then comes a task. Both have it, but for the thief's
/// hazard pointer and the tag, of which either stops it (the mutant `salsa-oversleeps-untagged` has
/// neither). Returns what was taken.
fn a_thief_oversleeps() -> Vec<u64> {
    let pools = Arc::new(Salsa::<u64, Stopping>::new(2).expect("memory"));
    let mut owner = pools.consumer().expect("memory");
    let mut thief = pools.consumer().expect("memory");
    let mut robber = pools.consumer().expect("memory");
    let producer = Mutex::new(pools.producer().expect("memory"));
    let put = |task| {
        assert!(producer.lock().expect("no panic").produce_force(0, task).is_ok());
    };
    put(1);
    put(2);
    let taken = Mutex::new(Vec::new());
    let take = |task: Option<u64>| taken.lock().expect("no panic").extend(task);
    take(owner.consume());
    let (owner, thief, robber) = (&mut owner, &mut thief, &mut robber);
    thread::scope(|scope| {
        let mut sleeping_thief = start(scope, |stops| {
            stop_before(stops, Some(Kind::Store), 0);
            take(thief.steal(0));
        });
        let sleeping_owner = start(scope, |stops| {
            take(owner.consume());
            put(3);
            // The hazard pointer is the first, `taken` the second.
            stop_before(stops, Some(Kind::Store), 1);
            take(owner.consume());
        });
        sleeping_thief.go_on_to(Kind::Heavy);
        let sleeping_robber = start(scope, |stops| {
            stop_before(stops, Some(Kind::Heavy), 0);
            take(robber.steal(1));
            put(4);
            take(robber.consume());
        });
        sleeping_owner.wake();
        sleeping_robber.wake();
        sleeping_thief.wake();
    });
    for from in 0..3 {
        while let Some(task) = if from == 1 { thief.consume() } else { thief.steal(from) } {
            take(Some(task));
        }
    }
    let mut taken = taken.into_inner().expect("no panic");
    taken.sort_unstable();
    taken
}

#[test]
fn a_thief_that_oversleeps_is_stopped() {
    assert_eq!(a_thief_oversleeps(), [1, 2, 3, 4]);
}
