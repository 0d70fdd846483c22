//! Locks, condition variables, notifications, channels and futures.

use super::{is_wrong, shown};

use loom::future::{AtomicWaker, block_on};
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::sync::{Arc, Condvar, Mutex, Notify, RwLock, mpsc};
use loom::thread;
use std::future::poll_fn;
use std::task::Poll;

#[test]
fn a_lock_lets_one_in() {
    let seen = shown(|| {
        let list = Arc::new(Mutex::new(Vec::new()));
        let shared = list.clone();
        let other = thread::spawn(move || shared.lock().unwrap().push(1));
        list.lock().unwrap().push(2);
        other.join().unwrap();
        let list = list.lock().unwrap();
        list.clone()
    });
    assert_eq!(seen, [[1, 2], [2, 1]]);
    loom::model(|| {
        let mut lock = Mutex::new(1);
        let guard = lock.lock().unwrap();
        assert!(lock.try_lock().is_err());
        drop(guard);
        *lock.get_mut().unwrap() += 1;
        assert_eq!(*lock.try_lock().unwrap(), 2);
        assert_eq!(lock.into_inner().unwrap(), 2);
    });
}

#[test]
fn a_readers_lock_keeps_writers_out() {
    loom::model(|| {
        let lock = Arc::new(RwLock::new((0, 0)));
        let shared = lock.clone();
        let writer = thread::spawn(move || {
            let mut pair = shared.write().unwrap();
            pair.0 += 1;
            pair.1 += 1;
        });
        let pair = lock.read().unwrap();
        assert_eq!(pair.0, pair.1);
        assert!(lock.try_write().is_err());
        drop(pair);
        writer.join().unwrap();
    });
}

#[test]
fn a_condition_is_waited_for() {
    loom::model(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let shared = pair.clone();
        thread::spawn(move || {
            *shared.0.lock().unwrap() = true;
            shared.1.notify_one();
        });
        let mut ready = pair.0.lock().unwrap();
        while !*ready {
            ready = pair.1.wait(ready).unwrap();
        }
    });
}

#[test]
fn a_notification_is_kept() {
    loom::model(|| {
        let pair = Arc::new((Notify::new(), AtomicBool::new(false)));
        let shared = pair.clone();
        thread::spawn(move || {
            shared.1.store(true, Relaxed);
            shared.0.notify();
        });
        while !pair.1.load(Relaxed) {
            pair.0.wait();
        }
    });
    assert!(is_wrong(|| {
        let notify = Notify::new();
        // It may wake without a reason, once.
        notify.wait();
        notify.wait();
    }));
}

#[test]
fn messages_come_in_their_order() {
    loom::model(|| {
        let (sender, receiver) = mpsc::channel();
        let second = sender.clone();
        thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        thread::spawn(move || second.send(9).unwrap());
        let all = [(); 3].map(|()| receiver.recv().unwrap());
        let ones: Vec<_> = all.into_iter().filter(|message| *message != 9).collect();
        assert_eq!(ones, [1, 2]);
    });
}

#[test]
fn a_future_is_polled_when_it_is_woken() {
    loom::model(|| {
        let shared = Arc::new((AtomicBool::new(false), AtomicWaker::new()));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.store(true, Release);
            other.1.wake();
        });
        block_on(poll_fn(|context| {
            shared.1.register_by_ref(context.waker());
            if shared.0.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
        }));
        thread.join().unwrap();
        drop(shared.1.take_waker());
    });
}
