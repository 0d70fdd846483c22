//! Threads, their own values, and statics.

use super::{is_wrong, shown};
use std::cell::RefCell;

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::thread;

#[test]
fn a_thread_has_a_name_and_a_result() {
    loom::model(|| {
        let named = thread::Builder::new().name("worker".to_owned()).stack_size(1 << 16);
        let handle = named.spawn(|| thread::current().name().map(str::to_owned)).unwrap();
        assert_ne!(handle.thread().id(), thread::current().id());
        assert_eq!(handle.thread().name(), Some("worker"));
        assert_eq!(handle.join().unwrap().as_deref(), Some("worker"));
        assert!(thread::current().name().is_none() && !thread::panicking());
    });
    assert!(is_wrong(|| drop(thread::spawn(|| panic!("of a thread")))));
}

#[test]
fn who_is_unparked_has_heard_of_what_came_before() {
    loom::model(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let (shared, main) = (word.clone(), thread::current());
        thread::spawn(move || {
            shared.store(1, Relaxed);
            main.unpark();
        });
        while word.load(Relaxed) == 0 {
            thread::park();
        }
    });
    assert!(is_wrong(|| {
        thread::park();
        thread::park();
    }));
}

#[test]
fn threads_take_turns() {
    let seen = shown(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        let other = thread::spawn(move || {
            shared.store(1, Release);
            thread::yield_now();
            shared.store(2, Release);
        });
        let seen = word.load(Acquire);
        other.join().unwrap();
        seen
    });
    // loom has not every order here: a thread that has yielded waits for others.
    assert!(seen.contains(&0));
}

loom::thread_local! {
    static OWN: RefCell<Vec<usize>> = RefCell::new(Vec::new());
}

loom::lazy_static! {
    static ref COUNT: AtomicUsize = AtomicUsize::new(10);
}

#[test]
fn statics_and_thread_locals_begin_anew() {
    loom::model(|| {
        let other = thread::spawn(|| {
            OWN.with(|own| own.borrow_mut().push(COUNT.fetch_add(1, SeqCst)));
            OWN.with(|own| own.borrow().len())
        });
        OWN.with(|own| own.borrow_mut().push(COUNT.fetch_add(1, SeqCst)));
        assert_eq!(other.join().unwrap(), 1);
        OWN.with(|own| assert_eq!(own.borrow().len(), 1));
        assert_eq!(COUNT.load(Relaxed), 12);
    });
}

#[test]
fn what_the_builder_is_told() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(0);
    builder.max_branches = 5_000;
    builder.max_threads = 2;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.checkpoint_interval = 1_000_000;
    (builder.location, builder.log) = (false, false);
    builder.check(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        thread::spawn(move || {
            shared.store(1, SeqCst);
            shared.store(0, SeqCst);
        });
        assert_eq!(word.load(SeqCst), 0, "in between");
    });
    let count = |explore: bool| {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&count);
        loom::model(move || {
            counted.fetch_add(1, SeqCst);
            loom::stop_exploring();
            if explore {
                loom::explore();
            }
            let word = Arc::new(AtomicUsize::new(0));
            let shared = word.clone();
            thread::spawn(move || shared.store(1, SeqCst));
            word.load(SeqCst);
            loom::skip_branch();
        });
        count.load(SeqCst)
    };
    assert!(count(false) < count(true));
}
