//! What happens where there is no memory: the task comes back, and the pool goes on.

#![expect(unsafe_code, reason = "an allocator that can be told to refuse")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

use poach_pool::{NoHandle, PutError, TaskPool};

/// The system's allocator, which refuses large requests of a thread that asks it to.
struct Sparing;

thread_local! {
    static SPARING: Cell<bool> = const { Cell::new(false) };
}

/// What a chunk of [`LENGTH`] words, or any list that grows, is not smaller than.
const LARGE: usize = 512;
const LENGTH: usize = 64;
/// As many chunks full of tasks are put; by an interpreter, fewer.
const CHUNKS: usize = if cfg!(miri) { 10 } else { 100 };

// SAFETY: it is the system's allocator, or a refusal, which a caller must expect.
unsafe impl GlobalAlloc for Sparing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE && SPARING.get() {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
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
