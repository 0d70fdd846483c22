//! A future that is ready, and not dropped yet, has given up its place among those that wait: no
//! wake-up goes to it. It becomes ready between its two looks, while it clones its waker.

#![expect(unsafe_code, reason = "a waker whose clone does something")]

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};

use poach_pool::TaskPool;

thread_local! {
    /// What the next clone of a [`meddling`] waker does.
    static MEDDLES: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

static MEDDLING: RawWakerVTable = RawWakerVTable::new(meddle, |_| (), |_| (), |_| ());

fn meddle(_: *const ()) -> RawWaker {
    if let Some(meddles) = MEDDLES.take() {
        meddles();
    }
    RawWaker::new(ptr::null(), &MEDDLING)
}

/// A waker that wakes nobody, and does this when it is cloned.
fn meddling(meddles: impl FnOnce() + 'static) -> Waker {
    MEDDLES.set(Some(Box::new(meddles)));
    // SAFETY: its functions do not look at the pointer, and each thread has its own `MEDDLES`.
    unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &MEDDLING)) }
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_consumer_that_found_a_task_by_itself_is_not_woken() {
    let pool = TaskPool::new();
    let [mut first, mut second] = [(); 2].map(|()| pool.consumer().unwrap());
    let producer = Rc::new(RefCell::new(pool.producer().unwrap()));
    let puts = Rc::clone(&producer);
    let waker = meddling(move || puts.borrow_mut().put(1).unwrap());
    let mut first = pin!(first.get_async());
    assert_eq!(first.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(1)));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut second = pin!(second.get_async());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    producer.borrow_mut().put(2).unwrap();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}

#[test]
fn a_producer_that_found_room_by_itself_is_not_woken() {
    let pool = TaskPool::builder().capacity(1).build().unwrap();
    let [mut first, mut second] = [(); 2].map(|()| pool.producer().unwrap());
    let consumer = Rc::new(RefCell::new(pool.consumer().unwrap()));
    first.put(1).unwrap();
    let takes = Rc::clone(&consumer);
    let waker = meddling(move || assert_eq!(takes.borrow_mut().try_get(), Ok(1)));
    let mut first = pin!(first.put_async(2));
    assert_eq!(first.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(())));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut second = pin!(second.put_async(3));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(consumer.borrow_mut().try_get(), Ok(2));
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
}
