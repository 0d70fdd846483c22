//! What safe code can do to a pool: no task is lost, taken twice or freed twice by it. (What it
//! cannot write is in the crate's module `compile_fail`.)

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use poach_memory::{Asymmetric, Full, Machine};
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::baselines::{ConcBag, Retention};
use poach_pool::mechanism::{Consume, Mechanism, NoHandle, Produce};
use poach_pool::policy::{Feeder, Policy, Taker};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::{Consumer, Producer, PutManyError, TaskPool, TryGetError};

const TASKS: u64 = if cfg!(miri) { 30 } else { 2000 };

/// Everything that a mechanism's interface allows, in an order that no policy would choose.
fn every_call<P: Mechanism<Box<u64>> + 'static>(pools: P)
where
    P::Producer: 'static,
    P::Consumer: 'static,
{
    let pools = Arc::new(pools);
    let taken = Mutex::new(Vec::new());
    let mut first = pools.producer().expect("memory");
    let mut second = pools.producer().expect("memory");
    let mut consumers: Vec<_> = (0..3).map(|_| pools.consumer().expect("memory")).collect();
    let put = |producer: &mut P::Producer, pool, task| match producer.produce_force(pool, task) {
        Ok(()) => {}
        // There is no such pool, or none that is not full.
        Err(task) => taken.lock().expect("no panic").push(*task),
    };
    thread::scope(|scope| {
        scope.spawn(|| (0..TASKS).for_each(|n| put(&mut first, n as usize % 5, Box::new(n))));
        scope.spawn(|| {
            for n in TASKS..2 * TASKS {
                second.prepare(n as usize % 9, n % 2 == 0);
                if let Err(task) = second.produce(usize::MAX - n as usize % 3, Box::new(n)) {
                    put(&mut second, 0, task);
                }
            }
        });
        for consumer in &mut consumers {
            let taken = &taken;
            scope.spawn(move || {
                for n in 0..TASKS as usize {
                    let got = match n % 4 {
                        0 => consumer.consume(),
                        1 => consumer.steal(consumer.number()),
                        2 => consumer.steal(n % 7),
                        _ => consumer.steal(usize::MAX),
                    };
                    consumer.is_empty(n % 9);
                    taken.lock().expect("no panic").extend(got.map(|task| *task));
                }
            });
        }
    });
    assert!(first.number() != second.number() && pools.pools() <= 3);
    // Entries that are not released before the pool is, with what is in them.
    let held = (consumers.pop(), second);
    drop(consumers);
    let mut last = Taker::at(&pools, Policy::default(), usize::MAX).expect("memory");
    let mut taken = taken.into_inner().expect("no panic");
    taken.extend(std::iter::from_fn(|| last.get()).map(|task| *task));
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..2 * TASKS), "not every task once");
    assert!(first.produce_force(0, Box::new(1)).is_ok());
    drop((last, first, held, pools));
}

#[test]
fn every_pool_that_safe_code_can_make() {
    for chunk in [1, 2, 1000] {
        every_call(Salsa::<Box<u64>>::new(chunk).expect("memory"));
        every_call(Salsa::<Box<u64>, Machine, Full>::new(chunk).expect("memory"));
        let fences = |_| Asymmetric::new();
        every_call(
            Salsa::<_, Machine, Asymmetric<Machine>>::with_fences(chunk, fences).expect("memory"),
        );
        every_call(SalsaCas::<Box<u64>>::new(chunk).expect("memory"));
        every_call(ConcBag::<Box<u64>>::new(chunk).expect("memory"));
    }
    every_call(WsMsq::<Box<u64>, Machine>::new().expect("memory"));
    every_call(WsLifo::<Box<u64>, Machine>::new().expect("memory"));
}

// Miri's allocator refuses nothing: it ends the run where there is too little.
#[cfg(not(miri))]
#[test]
fn lengths_that_cannot_be() {
    fn put<T: Send, P: Mechanism<T>>(pools: Option<P>, task: T) -> bool {
        let Some(pools) = pools else { return false };
        // A bag's list has a chunk from the start.
        let Ok(mut producer) = Arc::new(pools).producer() else { return false };
        producer.produce_force(0, task).is_ok()
    }
    assert!(catch_unwind(|| Salsa::<u8>::new(0)).is_err());
    assert!(catch_unwind(|| SalsaCas::<u8>::new(0)).is_err());
    assert!(catch_unwind(|| ConcBag::<u8>::new(0)).is_err());
    for length in [usize::MAX, usize::MAX / 2 + 1, isize::MAX as usize] {
        assert!(!put(Salsa::<Box<u64>>::new(length), Box::new(1)));
        assert!(!put(SalsaCas::<Box<u64>>::new(length), Box::new(1)));
        assert!(!put(ConcBag::<Box<u64>>::new(length), Box::new(1)));
        // Of a type without size there is room for any number, and not for a bit for each.
        assert!(!put(Salsa::<()>::new(length), ()));
        let pool = TaskPool::builder().chunk_length(length).build().expect("memory");
        let mut producer = pool.producer().expect("memory");
        assert_eq!(producer.put(Box::new(1)).map_err(|error| *error.into_inner()), Err(1));
    }
    let pool = TaskPool::builder().capacity(usize::MAX).build().expect("memory");
    assert!(pool.producer().expect("memory").put(1).is_ok());
}

/// A mechanism that says what it likes of a real one.
#[derive(Debug)]
struct Liar(Arc<Salsa<Box<u64>>>, AtomicUsize);

impl Liar {
    fn lie(&self) -> usize {
        self.1.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9) >> 3
    }
}

impl Mechanism<Box<u64>> for Liar {
    type Producer = <Salsa<Box<u64>> as Mechanism<Box<u64>>>::Producer;
    type Consumer = <Salsa<Box<u64>> as Mechanism<Box<u64>>>::Consumer;

    fn producer(self: &Arc<Self>) -> Result<Self::Producer, NoHandle> {
        self.0.producer()
    }
    fn consumer(self: &Arc<Self>) -> Result<Self::Consumer, NoHandle> {
        self.0.consumer()
    }
    fn pools(&self) -> usize {
        self.lie() % 9
    }
    fn is_held(&self, _: usize) -> bool {
        self.lie() % 2 == 0
    }
    fn changes(&self) -> u64 {
        self.lie() as u64
    }
    fn announced(&self, _: usize) -> u64 {
        0
    }
}

#[test]
fn a_mechanism_that_lies_costs_no_more_than_wrong_answers() {
    let liar = Arc::new(Liar(Arc::new(Salsa::new(3).expect("memory")), AtomicUsize::new(0)));
    let mut feeder = Feeder::at(&liar, Policy::default(), 0).expect("memory");
    let mut taker = Taker::at(&liar, Policy::default(), 0).expect("memory");
    let mut taken = Vec::new();
    for n in 0..TASKS {
        if let Err(task) = feeder.put(Box::new(n)) {
            taken.push(*task);
        }
        taker.check_empty();
        taken.extend(taker.get().map(|task| *task));
    }
    let mut honest = Taker::at(&liar.0, Policy::default(), 0).expect("memory");
    taken.extend(std::iter::from_fn(|| honest.get()).map(|task| *task));
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..TASKS));
}

#[test]
fn a_distance_that_uses_the_pool() {
    let place: Arc<Mutex<Option<TaskPool<Box<u64>>>>> = Arc::default();
    let inside = Arc::clone(&place);
    thread_local! { static DEEP: Cell<bool> = const { Cell::new(false) } }
    let pool = TaskPool::builder()
        .chunk_length(2)
        .distance(move |_, _| {
            let pool = inside.lock().expect("no panic").clone();
            if let Some(pool) = pool {
                if !DEEP.replace(true) {
                    // From within a put or a get, a whole life of others.
                    let mut producer = pool.producer().expect("memory");
                    let mut consumer = pool.consumer().expect("memory");
                    producer.put(Box::new(1000)).expect("it is open");
                    assert!(!pool.is_empty());
                    consumer.try_get().expect("a task, whichever");
                    DEEP.set(false);
                }
            }
            0
        })
        .build()
        .expect("memory");
    *place.lock().expect("no panic") = Some(pool.clone());
    let mut producer = pool.producer().expect("memory");
    let mut consumer = pool.consumer().expect("memory");
    for n in 0..20 {
        producer.put(Box::new(n)).expect("it is open");
    }
    let taken = std::iter::from_fn(|| consumer.try_get().ok()).count();
    assert_eq!(taken, 20);
    // The pool is in its own distance, and would live for ever.
    drop(place.lock().expect("no panic").take());
    assert!(pool.close() && matches!(consumer.try_get(), Err(TryGetError::Closed)));
}

/// Handles that are never dropped, but can be found: Miri takes what nobody can find for a leak.
static FORGOTTEN: Mutex<Option<Handles>> = Mutex::new(None);
type Handles = (Producer<Box<u64>>, Consumer<Box<u64>>);

#[test]
fn handles_that_are_forgotten_hold_nobody_up() {
    let pool = TaskPool::builder().chunk_length(2).capacity(100).build().expect("memory");
    let mut producer = pool.producer().expect("memory");
    producer.put_many((0..10).map(Box::new)).expect("it is open");
    let mut consumer = pool.consumer().expect("memory");
    assert_eq!(consumer.get().map(|task| *task), Ok(0));
    assert!(FORGOTTEN.lock().expect("no panic").replace((producer, consumer)).is_none());
    pool.close();
    let mut other = pool.consumer().expect("memory");
    let mut rest: Vec<u64> = other.iter().map(|task| *task).collect();
    rest.sort_unstable();
    assert!(rest.into_iter().eq(1..10));
}

/// Where handles are at home is a number; how many retired nodes are kept is one, too.
#[test]
fn homes_and_retentions_of_any_value() {
    let pool = TaskPool::builder().chunk_length(2).stays_open(true).build().expect("memory");
    for home in [0, 1, usize::MAX] {
        let mut producer = pool.producer_at(home).expect("memory");
        let mut consumer = pool.consumer_at(usize::MAX - home).expect("memory");
        producer.put_many((0..9).map(Box::new)).expect("it is open");
        assert_eq!(std::iter::from_fn(|| consumer.try_get().ok()).count(), 9);
    }
    pool.close();
    let mut late = pool.producer_at(7).expect("memory");
    let error: PutManyError<Box<u64>> = late.put_many([Box::new(1)]).expect_err("it is closed");
    assert_eq!((error.put, *error.error.into_inner()), (0, 1));
    for retention in [
        Retention::USUAL,
        Retention::NONE,
        Retention { for_each_hazard: usize::MAX, more: usize::MAX },
    ] {
        every_call(ConcBag::<Box<u64>>::with_retention(3, retention).expect("memory"));
        every_call(WsMsq::<Box<u64>, Machine>::with_retention(retention).expect("memory"));
        every_call(WsLifo::<Box<u64>, Machine>::with_retention(retention).expect("memory"));
    }
}

#[test]
fn counts_of_takers() {
    let pools = Arc::new(Salsa::<Box<u64>>::new(2).expect("memory"));
    let mut feeder = Feeder::at(&pools, Policy::default(), 0).expect("memory");
    let mut taker = Taker::at(&pools, Policy::default(), 0).expect("memory");
    assert!(taker.check_empty());
    feeder.put(Box::new(1)).expect("memory");
    assert!(!taker.check_empty());
    assert_eq!(taker.get().map(|task| *task), Some(1));
    assert_eq!(taker.exchanges(), taker.exchanges());
}
