//! Every task that is put is taken exactly once, whatever the number of producers and consumers and
//! however often chunks are stolen; and a `None` is only given when nothing can come any more.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;

use poach_memory::{Asymmetric, Full, Machine};
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::Mechanism;
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};

const TASKS: usize = if cfg!(miri) { 60 } else { 20_000 };

/// Seen flags, one a task; owned by the test, shared by its tasks.
struct Ledger {
    seen: Vec<AtomicU8>,
}

struct Task {
    number: usize,
    check: [usize; 2],
    ledger: Arc<Ledger>,
}

impl Drop for Task {
    fn drop(&mut self) {
        assert_eq!(self.check, [self.number, !self.number], "a task was torn");
        let before = self.ledger.seen[self.number].fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "task {} was dropped twice", self.number);
    }
}

struct Shape {
    producers: usize,
    consumers: usize,
    balancing: bool,
    /// Tasks left in the pool for its drop to drop.
    leave: usize,
}

fn run<P: Mechanism<Task> + 'static>(pools: P, shape: &Shape, seed: u64) {
    let pools = Arc::new(pools);
    let ledger = Arc::new(Ledger { seen: (0..TASKS).map(|_| AtomicU8::new(0)).collect() });
    let mut policy = Policy::default();
    policy.balancing = shape.balancing;
    let taken = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for producer in 0..shape.producers {
            let (pools, ledger, policy) = (pools.clone(), ledger.clone(), policy.clone());
            let producers = shape.producers;
            let mut random = fastrand::Rng::with_seed(seed ^ producer as u64);
            scope.spawn(move || {
                let mut feeder = Feeder::at(&pools, policy.clone(), 0).expect("memory");
                for number in (producer..TASKS).step_by(producers) {
                    let check = [number, !number];
                    let task = Task { number, check, ledger: ledger.clone() };
                    assert!(feeder.put(task).is_ok(), "memory");
                    if random.u32(..) % 512 == 0 {
                        drop(feeder);
                        thread::yield_now();
                        feeder = Feeder::at(&pools, policy.clone(), 0).expect("memory");
                    }
                }
            });
        }
        for consumer in 0..shape.consumers {
            let (pools, taken, policy) = (pools.clone(), taken.clone(), policy.clone());
            let wanted = TASKS - shape.leave;
            let mut random = fastrand::Rng::with_seed(!seed ^ consumer as u64);
            scope.spawn(move || {
                let mut taker = Taker::at(&pools, policy.clone(), 0).expect("memory");
                while taken.load(Ordering::Relaxed) < wanted {
                    match taker.get() {
                        Some(task) => {
                            drop(task);
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                        None => thread::yield_now(),
                    }
                    if random.u32(..) % 512 == 0 {
                        drop(taker);
                        thread::yield_now();
                        taker = Taker::at(&pools, policy.clone(), 0).expect("memory");
                    }
                }
            });
        }
    });
    if shape.leave == 0 {
        let mut taker = Taker::at(&pools, policy, 0).expect("memory");
        assert!(taker.get().is_none(), "seed {seed}: more tasks than were put");
    }
    drop(pools);
    let missing = ledger.seen.iter().filter(|seen| seen.load(Ordering::Relaxed) != 1).count();
    assert_eq!(missing, 0, "seed {seed}: tasks that were not dropped exactly once");
}

fn all_shapes<P: Mechanism<Task> + 'static>(make: impl Fn(usize) -> Option<P>) {
    let seed = fastrand::u64(..);
    let mut turn = 0;
    for (producers, consumers) in [(1, 1), (2, 2), (1, 3), (3, 1)] {
        for chunk in if cfg!(miri) { vec![1, 7] } else { vec![1, 2, 7, 64] } {
            turn += 1;
            for (way, (balancing, leave)) in
                [(true, 0), (false, 0), (true, TASKS / 3)].into_iter().enumerate()
            {
                // An interpreter goes one of the ways, another each time.
                if cfg!(miri) && way != turn % 3 {
                    continue;
                }
                eprintln!("seed {seed}: {producers}P/{consumers}C, chunks of {chunk}");
                let shape = Shape { producers, consumers, balancing, leave };
                run(make(chunk).expect("memory"), &shape, seed);
            }
        }
    }
}

#[test]
fn salsa_with_the_default_fence() {
    all_shapes(Salsa::<Task, Machine, Asymmetric<Machine>>::new);
}

#[test]
fn salsa_with_full_fences() {
    all_shapes(Salsa::<Task, Machine, Full>::new);
}

#[test]
fn salsa_cas() {
    all_shapes(SalsaCas::<Task>::new);
}

#[test]
fn conc_bag() {
    all_shapes(ConcBag::<Task>::new);
}

#[test]
fn ws_msq() {
    all_shapes(|_| WsMsq::<Task, Machine>::new());
}

#[test]
fn ws_lifo() {
    all_shapes(|_| WsLifo::<Task, Machine>::new());
}
