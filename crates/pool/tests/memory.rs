//! Where there is no memory the task comes back. Memory that is not used any more is given back.

#![expect(unsafe_code, reason = "an allocator that can be told to refuse")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Debug;
use std::ptr;
use std::sync::Arc;

use poach_memory::Machine;
use poach_pool::baselines::WsLifo;
use poach_pool::baselines::concbag::{BagConsumer, ConcBag};
use poach_pool::baselines::{Retention, WsMsq};
use poach_pool::mechanism::{Consume, Mechanism, Produce};
use poach_pool::salsa::{Salsa, SalsaCas};
use poach_pool::{NoHandle, PutError, TaskPool};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "it/stopping/mod.rs"]
mod stopping;

use stopping::{HOOK, Kind, Stopping};

/// The system's allocator. It refuses large requests of a thread that asks it to, or all requests
/// after a chosen number, and counts what a thread has not given back.
struct Sparing;

thread_local! {
    static SPARING: Cell<bool> = const { Cell::new(false) };
    /// Requests that are granted.
    static GRANTED: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Blocks, and those of them that are large enough for a node with a [`Large`] task.
    static BLOCKS: Cell<i64> = const { Cell::new(0) };
    static NODES: Cell<i64> = const { Cell::new(0) };
}

type Large = [u64; 1000];

fn count(layout: Layout, change: i64) {
    BLOCKS.set(BLOCKS.get() + change);
    if layout.size() >= size_of::<Large>() {
        NODES.set(NODES.get() + change);
    }
}

/// What a chunk of [`LENGTH`] words, or any list that grows, is not smaller than.
const LARGE: usize = 512;
const LENGTH: usize = 64;
/// As many chunks full of tasks are put; by an interpreter, fewer.
const CHUNKS: usize = if cfg!(miri) { 10 } else { 100 };

// SAFETY: it is the system's allocator, or a refusal, which a caller must expect.
unsafe impl GlobalAlloc for Sparing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE && SPARING.get() || GRANTED.get() == 0 {
            return ptr::null_mut();
        }
        GRANTED.set(GRANTED.get() - 1);
        count(layout, 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: the caller's promises are passed on; every block is the system's.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Sparing = Sparing;

fn without_memory<R>(act: impl FnOnce() -> R) -> R {
    SPARING.set(true);
    let result = act();
    SPARING.set(false);
    result
}

#[test]
fn a_task_that_needs_a_chunk_comes_back() {
    let pool = TaskPool::builder().chunk_length(LENGTH).build().unwrap();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    assert_eq!(without_memory(|| producer.put(7)), Err(PutError::OutOfMemory(7)));
    // The first chunk is had, and filled; the second is not.
    assert_eq!(producer.put(0), Ok(()));
    let put = without_memory(|| producer.put_many(1..1000)).unwrap_err();
    assert_eq!((put.put, put.error), (LENGTH - 1, PutError::OutOfMemory(LENGTH)));
    // An emptied chunk is as good as memory.
    assert!(consumer.drain().eq(0..LENGTH));
    assert_eq!(without_memory(|| producer.put_many(0..LENGTH)), Ok(LENGTH));
    assert!(consumer.drain().eq(0..LENGTH));
}

#[test]
fn nothing_is_lost_when_memory_comes_back() {
    let pool = TaskPool::builder().chunk_length(LENGTH).build().unwrap();
    let (mut producer, mut consumer) = (pool.producer().unwrap(), pool.consumer().unwrap());
    let mut wanted = Vec::new();
    for task in 0..CHUNKS * LENGTH {
        let put = if task / 50 % 2 == 0 {
            producer.put(task)
        } else {
            without_memory(|| producer.put(task))
        };
        match put {
            Ok(()) => wanted.push(task),
            Err(error) => assert_eq!(error, PutError::OutOfMemory(task)),
        }
    }
    assert!(wanted.len() > CHUNKS / 2 * LENGTH && wanted.len() < CHUNKS * LENGTH);
    assert!(consumer.drain().eq(wanted));
}

#[test]
fn a_pool_or_a_handle_that_cannot_be_had_is_an_error() {
    assert!(without_memory(|| TaskPool::<u8>::builder().build()).is_err());
    let pool = TaskPool::<u8>::new();
    // The entries of the first are there; a second needs more.
    let _first = pool.consumer().unwrap();
    let second = without_memory(|| pool.consumer());
    assert_eq!(second.map(|_| ()), Err(NoHandle::OutOfMemory));
    assert!(pool.consumer().is_ok());
}

/// Runs `act` with 0 requests granted, then with 0 and 1, then with 0, 1 and 2, until it succeeds.
/// Each round begins at 0: memory from earlier rounds is kept, and fewer requests are needed.
fn at_each_request<R>(mut act: impl FnMut() -> Option<R>) -> R {
    for most in 0..50 {
        for granted in 0..=most {
            GRANTED.set(granted);
            let done = act();
            GRANTED.set(usize::MAX);
            if let Some(done) = done {
                return done;
            }
        }
    }
    panic!("it needs more than a handle or a chunk does");
}

/// Handles that could not be had have taken no entry from those that come after.
fn no_entry_is_lost<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let consumers = [(); 3].map(|()| at_each_request(|| pools.consumer().ok()));
    assert_eq!(consumers.each_ref().map(Consume::number), [0, 1, 2], "{pools:?}");
    let producers = [(); 3].map(|()| at_each_request(|| pools.producer().ok()));
    assert_eq!(producers.each_ref().map(Produce::number), [0, 1, 2], "{pools:?}");
}

#[test]
fn a_handle_that_cannot_be_had_leaves_its_entry() {
    no_entry_is_lost(Salsa::<u64>::new(2).unwrap());
    no_entry_is_lost(SalsaCas::<u64>::new(2).unwrap());
    no_entry_is_lost(ConcBag::<u64>::new(2).unwrap());
    no_entry_is_lost(WsMsq::<u64, Machine>::new().unwrap());
    no_entry_is_lost(WsLifo::<u64, Machine>::new().unwrap());
}

fn chunks(pools: &impl Debug) -> usize {
    let text = format!("{pools:?}");
    let count = text.split("chunks: ").nth(1).unwrap().split(',').next();
    count.unwrap().trim().parse().unwrap()
}

/// A producer has a chunk, and no memory for the words of a consumer that has none in it.
#[test]
fn a_chunk_that_was_had_in_vain_is_used_once() {
    let pools = Arc::new(Salsa::<u64>::new(2).unwrap());
    let mut consumers = [(); 8].map(|()| pools.consumer().unwrap());
    let mut producer = pools.producer().unwrap();
    at_each_request(|| producer.produce_force(7, 0).ok());
    assert_eq!(chunks(&pools), 1);
    assert!((1..6).all(|task| producer.produce_force(7, task).is_ok()));
    assert_eq!(chunks(&pools), 3);
    assert!(std::iter::from_fn(|| consumers[7].consume()).eq(0..6));
}

/// The list of eight chunks is full, and the first of them is gone.
#[test]
fn a_list_that_has_room_does_not_grow() {
    let pools = Arc::new(Salsa::<u64>::new(1).unwrap());
    let mut producer = pools.producer().unwrap();
    let mut consumer = pools.consumer().unwrap();
    assert!((0..8).all(|task| producer.produce_force(0, task).is_ok()));
    assert_eq!(consumer.consume(), Some(0));
    GRANTED.set(0);
    let put = producer.produce_force(0, 8);
    GRANTED.set(usize::MAX);
    assert_eq!(put, Ok(()));
    assert!(std::iter::from_fn(|| consumer.consume()).eq(1..9));
}

/// A node is freed when its task is taken, after the reads of other threads.
fn no_node_is_kept<P: Mechanism<Large>>(pools: P) {
    let pools = Arc::new(pools);
    let mut producer = pools.producer().unwrap();
    let mut owner = pools.consumer().unwrap();
    let mut looker = pools.consumer().unwrap();
    let before = NODES.get();
    let looks: [fn(&mut P::Consumer); 4] = [
        |_| (),
        |looker| assert!(looker.consume().is_none()),
        |looker| assert!(looker.steal(0).is_none()),
        |looker| assert!(looker.is_empty(0)),
    ];
    for look in looks {
        look(&mut looker);
        assert!(producer.produce_force(0, [1; 1000]).is_ok());
        assert_eq!(owner.consume(), Some([1; 1000]));
        assert_eq!(NODES.get(), before, "{pools:?}");
    }
}

#[test]
fn a_node_that_nobody_looks_at_is_freed() {
    no_node_is_kept(WsMsq::<Large, Machine>::with_retention(Retention::NONE).unwrap());
    no_node_is_kept(WsLifo::<Large, Machine>::with_retention(Retention::NONE).unwrap());
}

/// Each task is a chunk of its own. A consumer's last chunk is freed with the next.
#[test]
fn a_bags_chunk_that_nobody_looks_at_is_freed() {
    type Look = fn(&mut BagConsumer<Large, Machine>) -> bool;
    let bag = Arc::new(ConcBag::<Large>::with_retention(1, Retention::NONE).unwrap());
    let mut producer = bag.producer().unwrap();
    let [mut owner, mut looker] = [(); 2].map(|()| bag.consumer().unwrap());
    let mut before = None;
    let looks: [Look; 3] =
        [|_| true, |looker| looker.consume().is_none(), |looker| looker.is_empty(0)];
    for look in looks {
        assert!(look(&mut looker));
        for _ in 0..3 {
            assert!(producer.produce_force(0, [1; 1000]).is_ok());
            assert_eq!(owner.consume(), Some([1; 1000]));
        }
        assert_eq!(*before.get_or_insert(NODES.get()), NODES.get());
    }
}

fn handles_leave_nothing<P: Mechanism<u64>>(pools: P) {
    let pools = Arc::new(pools);
    let come_and_go = || drop((pools.producer().unwrap(), pools.consumer().unwrap()));
    come_and_go();
    let before = BLOCKS.get();
    (0..10).for_each(|_| come_and_go());
    assert_eq!(BLOCKS.get(), before, "{pools:?}");
}

#[test]
fn a_handle_that_goes_leaves_nothing() {
    handles_leave_nothing(Salsa::<u64>::new(2).unwrap());
    handles_leave_nothing(SalsaCas::<u64>::new(2).unwrap());
    handles_leave_nothing(ConcBag::<u64>::new(2).unwrap());
    handles_leave_nothing(WsMsq::<u64, Machine>::new().unwrap());
    handles_leave_nothing(WsLifo::<u64, Machine>::new().unwrap());
    let pool = TaskPool::<u64>::builder().stays_open(true).build().unwrap();
    let come_and_go = || drop((pool.producer().unwrap(), pool.consumer().unwrap()));
    come_and_go();
    let before = BLOCKS.get();
    (0..10).for_each(|_| come_and_go());
    assert_eq!(BLOCKS.get(), before);
}

/// Two thieves whose words do not stand in a chunk make them at once.
#[test]
fn a_chunks_further_words_are_freed_with_it() {
    let before = BLOCKS.get();
    {
        let pools = Arc::new(Salsa::<u64, Stopping>::new(3).unwrap());
        let mut producer = pools.producer().unwrap();
        let consumers = [(); 9].map(|()| pools.consumer().unwrap());
        let [.., mut first, mut second] = consumers;
        assert!((0..3).all(|task| producer.produce_force(0, task).is_ok()));
        // After the fence of the hazard pointer, before the exchange that publishes the words.
        let mut exchanges = 0;
        HOOK.set(Some(Box::new(move |kind| {
            exchanges += usize::from(kind == Kind::Exchange);
            if kind == Kind::Exchange && exchanges == 2 {
                assert_eq!(second.steal(0), Some(0));
            }
        })));
        assert_eq!(first.steal(0), None);
        drop(HOOK.take());
    }
    assert_eq!(BLOCKS.get(), before);
}
