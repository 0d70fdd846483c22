//! Foreign code that panics inside of a pool, or parks its thread: drops of tasks, distances,
//! wakers. Nothing else is lost by it, and nobody waits for what will not come.

#![forbid(unsafe_code)]

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use poach_memory::Machine;
use poach_pool::baselines::ConcBag;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::WsMsq;
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::{OwnedPut, Producer, PutError, Selector, TaskPool, TryGetError};

use crate::watchdog::watched;

struct Task {
    panics: bool,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "a task's drop panics");
    }
}

const TASKS: usize = 20;

/// Of `TASKS` tasks in two lists and chunks of three, some taken, the drop of one panics.
fn all_are_dropped<P: Mechanism<Task>>(name: &str, make: impl Fn() -> Option<P>) {
    for panics in 0..TASKS {
        let dropped = Arc::new(AtomicUsize::new(0));
        let pools = Arc::new(make().expect("memory"));
        let mut consumer = pools.consumer().expect("memory");
        let mut producers = [pools.producer().expect("memory"), pools.producer().expect("memory")];
        let tasks = (0..TASKS).map(|n| Task { panics: n == panics, dropped: Arc::clone(&dropped) });
        for (n, task) in tasks.enumerate() {
            assert!(producers[n % 2].produce_force(0, task).is_ok());
        }
        let taken: Vec<_> = (0..4).filter_map(|_| consumer.consume()).collect();
        let panicked = catch_unwind(AssertUnwindSafe(|| drop((consumer, producers, pools))));
        let of_pool = TASKS - taken.len();
        assert_eq!(dropped.load(Ordering::Relaxed), of_pool, "{name}: the drop of {panics} panics");
        assert_eq!(panicked.is_err(), taken.iter().all(|task| !task.panics), "{name}: {panics}");
        // Their drops may panic, too; forgotten, they would leak, which Miri would say.
        for task in taken {
            _ = catch_unwind(AssertUnwindSafe(|| drop(task)));
        }
    }
}

#[test]
fn a_task_whose_drop_panics_leaks_no_other() {
    all_are_dropped("salsa", || Salsa::<Task>::new(3));
    all_are_dropped("salsa-cas", || SalsaCas::<Task>::new(3));
    all_are_dropped("conc-bag", || ConcBag::<Task>::new(3));
    all_are_dropped("ws-msq", WsMsq::<Task, Machine>::new);
    all_are_dropped("ws-lifo", WsLifo::<Task, Machine>::new);
}

/// A pool whose distance panics while the flag is set.
fn pool_with_a_trap(capacity: Option<usize>) -> (TaskPool<u32>, Arc<AtomicBool>) {
    let trap = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&trap);
    let builder = TaskPool::builder().distance(move |_, _| {
        assert!(!set.load(Ordering::Relaxed), "a distance panics");
        0
    });
    let builder = match capacity {
        Some(capacity) => builder.capacity(capacity),
        None => builder,
    };
    (builder.build().expect("memory"), trap)
}

#[test]
fn a_put_whose_distance_panics_is_over() {
    for capacity in [None, Some(5)] {
        let (pool, trap) = pool_with_a_trap(capacity);
        let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        trap.store(true, Ordering::Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(|| producer.put(1))).is_err());
        trap.store(false, Ordering::Relaxed);
        pool.close();
        // Nobody waits for the end of that put.
        assert_eq!(consumer.try_get(), Err(TryGetError::Closed), "capacity {capacity:?}");
    }
}

#[test]
fn a_put_whose_distance_panics_takes_no_room() {
    let (pool, trap) = pool_with_a_trap(Some(1));
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    trap.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| producer.try_put(1))).is_err());
    trap.store(false, Ordering::Relaxed);
    assert_eq!(producer.try_put(2), Ok(()));
    assert_eq!(producer.try_put(3), Err(PutError::Full(3)));
    assert_eq!(consumer.get(), Ok(2));
}

/// A future that owns its task has it until it is put, and says that it was put if it was.
#[test]
fn an_owned_put_that_panicked_goes_on_at_its_next_poll() {
    let (pool, trap) = pool_with_a_trap(None);
    let (producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let mut put = pin!(producer.into_put_async(1));
    let context = &mut Context::from_waker(Waker::noop());
    trap.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| put.as_mut().poll(context))).is_err());
    trap.store(false, Ordering::Relaxed);
    assert!(matches!(put.as_mut().poll(context), Poll::Ready((_, Ok(())))));
    assert_eq!(consumer.try_get(), Ok(1));
}

#[test]
fn a_get_whose_distance_panics_loses_nothing() {
    let (pool, trap) = pool_with_a_trap(None);
    let mut producer = pool.producer().unwrap();
    let mut first = pool.consumer().unwrap();
    producer.put_many(0..5).unwrap();
    assert_eq!(first.get(), Ok(0));
    // It has nothing of its own, so it steals, by a list that must be made first.
    let mut thief = pool.consumer().unwrap();
    trap.store(true, Ordering::Relaxed);
    assert!(catch_unwind(AssertUnwindSafe(|| thief.try_get())).is_err());
    trap.store(false, Ordering::Relaxed);
    let mut rest: Vec<_> = thief.drain().collect();
    rest.sort_unstable();
    assert_eq!(rest, [1, 2, 3, 4]);
}

#[test]
fn a_distance_that_says_another_thing_each_time_is_no_error() {
    let calls = AtomicUsize::new(0);
    let pool = TaskPool::builder()
        .distance(move |_, _| {
            calls.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9) as u64 % 7
        })
        .chunk_length(2)
        .build()
        .unwrap();
    let mut consumers: Vec<_> =
        (0..if cfg!(miri) { 20 } else { 100 }).map(|_| pool.consumer().unwrap()).collect();
    let mut producer = pool.producer().unwrap();
    for (task, consumer) in consumers.iter_mut().enumerate() {
        producer.put(task).unwrap();
        assert_eq!(consumer.get(), Ok(task));
        assert!(consumer.try_get().is_err());
    }
}

/// All are dropped, also if the drop of one panics; and the pool is whole.
#[test]
fn a_task_whose_drop_panics_keeps_no_other_in_an_abandoned_pool() {
    for capacity in [None, Some(TASKS)] {
        for panics in 0..TASKS {
            let dropped = Arc::new(AtomicUsize::new(0));
            let task = |panics| Task { panics, dropped: Arc::clone(&dropped) };
            let builder = TaskPool::builder().chunk_length(3);
            let builder = match capacity {
                Some(capacity) => builder.capacity(capacity),
                None => builder,
            };
            let pool = builder.build().expect("memory");
            let mut producers = [(); 2].map(|()| pool.producer().unwrap());
            let consumer = pool.consumer().unwrap();
            for n in 0..TASKS {
                assert!(producers[n % 2].put(task(n == panics)).is_ok());
            }
            assert!(catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err());
            assert_eq!(dropped.load(Ordering::Relaxed), TASKS, "the drop of {panics} panics");
            assert!((pool.len(), pool.is_full()) == (0, false));
            assert!(matches!(producers[0].put(task(false)), Err(PutError::NoConsumer(_))));
        }
    }
}

struct Puts(Option<poach_pool::Producer<Puts>>, Arc<AtomicUsize>);

impl Drop for Puts {
    fn drop(&mut self) {
        if let Some(mut producer) = self.0.take() {
            match producer.put(Puts(None, Arc::clone(&self.1))) {
                Err(PutError::NoConsumer(_)) => _ = self.1.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other:?}"),
            }
            // And a handle of either kind.
            drop(producer.clone());
        }
    }
}

#[test]
fn a_task_that_puts_when_it_is_dropped_is_told_that_nobody_takes() {
    for capacity in [1, 100] {
        let told = Arc::new(AtomicUsize::new(0));
        let pool = TaskPool::builder().capacity(capacity).build().expect("memory");
        let (mut producer, consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
        let tasks = capacity.min(10);
        for _ in 0..tasks {
            let task = Puts(Some(producer.clone()), Arc::clone(&told));
            assert!(producer.put(task).is_ok());
        }
        drop(consumer);
        assert_eq!((told.load(Ordering::Relaxed), pool.len()), (tasks, 0));
    }
}

struct Loud;

impl Wake for Loud {
    fn wake(self: Arc<Self>) {
        panic!("a waker panics");
    }
}

/// The waker of a waiting future panics when the last consumer goes.
#[test]
fn a_waker_that_panics_at_the_end_keeps_no_task() {
    let reply = Arc::new(());
    let pool = TaskPool::bounded(1);
    let mut producers = [(); 2].map(|()| pool.producer().unwrap());
    let consumer = pool.consumer().unwrap();
    let [first, second] = &mut producers;
    first.put(Arc::clone(&reply)).unwrap();
    let waker = Waker::from(Arc::new(Loud));
    let mut waits = pin!(second.put_async(Arc::clone(&reply)));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err());
    assert_eq!(Arc::strong_count(&reply), 2, "the one that waits has its own");
}

/// A get finds what it was not woken for; the waker of the consumer woken in its place panics.
#[test]
fn a_consumers_waker_that_panics_takes_no_task_with_it() {
    watched(|| {
        // A consumer that has none of the seats before looks whom it may rob: then a task comes.
        let feeds = Arc::new(Mutex::new(None));
        let comes = Arc::clone(&feeds);
        let distance = move |_, _| {
            // To put asks for a distance, too.
            let producer: Option<Producer<_>> = comes.lock().unwrap().take();
            if let Some(mut producer) = producer {
                producer.put(1).unwrap();
            }
            0
        };
        let pool = TaskPool::builder().distance(distance).stays_open(true).build().unwrap();
        let mut consumers = [(); 4].map(|()| pool.consumer().unwrap());
        let [first, second, others @ ..] = &mut consumers;
        {
            let bomb = Waker::from(Arc::new(Loud));
            let (mut waits, mut next) = (pin!(first.get_async()), pin!(second.get_async()));
            let context = &mut Context::from_waker(Waker::noop());
            assert!(waits.as_mut().poll(context).is_pending());
            assert!(next.as_mut().poll(&mut Context::from_waker(&bomb)).is_pending());
            assert!(others.iter_mut().all(|other| other.try_get() == Err(TryGetError::Empty)));
            let mut last = pool.consumer().unwrap();
            assert_eq!(last.try_get(), Err(TryGetError::Empty));
            let mut more = pool.consumer().unwrap();
            assert_eq!(more.try_get(), Err(TryGetError::Empty));
            *feeds.lock().unwrap() = Some(pool.producer().unwrap());
            assert!(catch_unwind(AssertUnwindSafe(|| waits.as_mut().poll(context))).is_err());
        }
        assert_eq!(first.try_get(), Ok(1));
    });
}

struct Last(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Wake for Last {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Last {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|call| call());
    }
}

fn when_dropped(call: impl FnOnce() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Last(Some(Box::new(call)))))
}

/// A put is refused at its last look; the waker of the producer woken in its place panics.
#[test]
fn a_refused_put_that_panicked_is_not_said_to_be_put() {
    watched(|| {
        let pool = TaskPool::bounded(1);
        let [mut fills, puts, mut waits] = [(); 3].map(|()| pool.producer().unwrap());
        let [mut asleep, takes] = [(); 2].map(|()| pool.consumer().unwrap());
        // Each put wakes one, also if it is refused.
        let mut others = [(); 9].map(|()| Box::pin(pool.consumer().unwrap().into_get_async()));
        let (put, takes) = (Arc::new(Mutex::new(puts.into_put_async(1))), Mutex::new(takes));
        let poll = |put: &Mutex<OwnedPut<u32>>, waker: &Waker| {
            let mut put = put.lock().unwrap_or_else(PoisonError::into_inner);
            Pin::new(&mut *put).poll(&mut Context::from_waker(waker)).map(|(_, done)| done)
        };
        let answers = Arc::new(Mutex::new(Vec::new()));
        // The close wakes consumers first: this waker polls the put before producers are told.
        let (polls, says) = (Arc::clone(&put), Arc::clone(&answers));
        let at_the_close = when_dropped(move || {
            for _ in 0..2 {
                let polled = catch_unwind(AssertUnwindSafe(|| poll(&polls, Waker::noop())));
                says.lock().unwrap().push(polled.ok());
            }
        });
        let context = &mut Context::from_waker(Waker::noop());
        assert!(others.iter_mut().all(|other| other.as_mut().poll(context).is_pending()));
        let mut asleep = pin!(asleep.get_async());
        assert!(asleep.as_mut().poll(&mut Context::from_waker(&at_the_close)).is_pending());
        drop(at_the_close);
        fills.put(0).unwrap();
        // Dropped in the poll with another waker: it makes room, for which the put is woken.
        let in_the_poll = when_dropped(move || assert_eq!(takes.lock().unwrap().try_get(), Ok(0)));
        assert!(poll(&put, &in_the_poll).is_pending());
        drop(in_the_poll);
        let loud = Waker::from(Arc::new(Loud));
        let mut waits = pin!(waits.put_async(2));
        assert!(waits.as_mut().poll(&mut Context::from_waker(&loud)).is_pending());
        pool.close();
        let answers = answers.lock().unwrap();
        assert_eq!(*answers, [None, Some(Poll::Ready(Err(PutError::Closed(1))))]);
    });
}

#[test]
fn a_selection_that_panicked_is_over() {
    let pools = [(); 2].map(|()| TaskPool::new());
    let [mut one, mut other] = pools.each_ref().map(|pool| pool.consumer().unwrap());
    let mut producers = pools.each_ref().map(|pool| pool.producer().unwrap());
    producers[0].put_many(0..2).unwrap();
    {
        let mut selection = pin!(
            Selector::new()
                .get(&mut one, |_| -> u32 { panic!("what is done panics") })
                .get(&mut other, |task| task.unwrap())
        );
        for _ in 0..2 {
            let context = &mut Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| selection.as_mut().poll(context)));
            assert!(polled.is_err());
            producers[1].put(5).unwrap();
        }
    }
    assert_eq!((one.try_get(), one.try_get()), (Ok(1), Err(TryGetError::Empty)));
    assert_eq!((other.try_get(), other.try_get()), (Ok(5), Ok(5)));
}

/// Single-consumer pools of high numbers are for one look; while all are taken a consumer waits.
#[test]
#[cfg(not(miri))] // which takes minutes for 1100 consumers
fn futures_that_panicked_keep_nobody_from_the_pool() {
    watched(|| {
        let (pool, trap) = pool_with_a_trap(None);
        let mut consumers: Vec<_> = (0..1100).map(|_| pool.consumer().unwrap()).collect();
        let (last, others) = consumers.split_last_mut().unwrap();
        let context = &mut Context::from_waker(Waker::noop());
        trap.store(true, Ordering::Relaxed);
        for other in others {
            let mut get = pin!(other.get_async());
            assert!(catch_unwind(AssertUnwindSafe(|| get.as_mut().poll(context))).is_err());
        }
        trap.store(false, Ordering::Relaxed);
        assert_eq!(last.try_get(), Err(TryGetError::Empty));
    });
}

/// Foreign code, here a distance, may park itself, and so take the wake-up of the thread.
#[test]
fn a_selection_is_woken_though_foreign_code_parks() {
    watched(|| {
        let tasks = TaskPool::new();
        let (from, stays) = (&mut tasks.consumer().unwrap(), tasks.producer().unwrap());
        let to = Mutex::new(Some(stays.clone()));
        let distance = move |_, _| {
            if let Some(mut producer) = to.lock().unwrap().take() {
                producer.put(1).unwrap();
                thread::park();
            }
            0
        };
        let other = TaskPool::<u8>::builder().distance(distance).build().unwrap();
        let (_putter, mut nothing) = (other.producer().unwrap(), other.consumer().unwrap());
        let _robbed = other.consumer().unwrap();
        let selection = Selector::new().get(from, |task| task.unwrap());
        assert_eq!(selection.get(&mut nothing, |_| 0).wait(), 1);
        drop(stays);
    });
}
