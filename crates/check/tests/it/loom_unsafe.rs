//! What is unsafe in loom's interface: pointers, memory, and accesses without synchronization.

#![expect(unsafe_code, reason = "these are unsafe in loom's interface")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use poach_check::loom;

use loom::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::{Machine, model, model_on, thread};

fn wrong(machine: Machine, act: impl Fn() + Send + Sync + 'static) -> String {
    let panic = catch_unwind(AssertUnwindSafe(move || model_on(machine, act)))
        .expect_err("the model is wrong");
    *panic.downcast::<String>().expect("a text")
}

const BOTH: [Machine; 2] = [Machine::unbounded(), Machine::c11()];

#[test]
fn owners_come_back_from_their_pointers() {
    model(|| {
        let raw = Arc::into_raw(Arc::new(5));
        // SAFETY: one owner was given up, and one more is made.
        unsafe { Arc::increment_strong_count(raw) };
        // SAFETY: of the two this is the first.
        let one = unsafe { Arc::from_raw(raw) };
        // SAFETY: and this the second.
        let mut two = unsafe { Arc::from_raw(raw) };
        assert!(Arc::ptr_eq(&one, &two) && Arc::get_mut(&mut two).is_none());
        assert_eq!(Arc::try_unwrap(one).unwrap_err().to_string(), "5");
        assert_eq!(Arc::try_unwrap(two).unwrap(), 5);
        let raw = Arc::into_raw(Arc::new(6));
        // SAFETY: the one owner was given up.
        unsafe { Arc::decrement_strong_count(raw) };
    });
    // An owner that was never given up.
    // SAFETY: no pointer of an execution is null, so it is refused.
    let text = wrong(Machine::c11(), || drop(unsafe { Arc::from_raw(std::ptr::null::<u8>()) }));
    assert!(text.contains("no Arc of this execution has this address"), "{text}");
}

#[test]
fn a_pointer_of_a_cell_is_an_access_until_it_is_dropped() {
    for machine in BOTH {
        model_on(machine, || {
            let cell = UnsafeCell::new(1);
            let pointer = cell.get_mut();
            // SAFETY: no other thread has the cell.
            *unsafe { pointer.deref() } = 2;
            drop(pointer);
            // SAFETY: the same.
            assert_eq!(unsafe { *cell.get().deref() }, 2);
        });
        let text = wrong(machine, || {
            let shared = Arc::new((AtomicUsize::new(0), Cell(UnsafeCell::new(0))));
            let other = shared.clone();
            let reader = thread::spawn(move || {
                while other.0.load(Acquire) == 0 {
                    thread::yield_now();
                }
                other.1.0.with(|_| ());
            });
            let pointer = shared.1.0.get_mut();
            shared.0.store(1, Release);
            drop(pointer);
            reader.join().unwrap();
        });
        assert!(text.contains("data race"), "{text}");
    }
}

struct Cell(UnsafeCell<usize>);

// SAFETY: the model's accesses are the checker's to judge, and none goes to the content.
unsafe impl Sync for Cell {}

#[test]
fn memory_is_given_back() {
    model(|| {
        let layout = Layout::new::<u64>();
        // SAFETY: the layout has a size.
        let one = unsafe { alloc(layout) };
        // SAFETY: the same.
        let two = unsafe { alloc_zeroed(layout) };
        // SAFETY: it has been allocated with zeros.
        assert_eq!(unsafe { *two }, 0);
        // SAFETY: allocated above, and used no more.
        unsafe { dealloc(one, layout) };
        // SAFETY: the same.
        unsafe { dealloc(two, layout) };
    });
    let text = wrong(Machine::unbounded(), || {
        // SAFETY: the layout has a size.
        unsafe { alloc(Layout::new::<u64>()) };
    });
    assert!(text.contains("leak: memory made at"), "{text}");
}

#[test]
fn what_cannot_be_reached_is_a_violation_when_it_is() {
    // SAFETY: the function panics, wherever it is called.
    let text = wrong(Machine::unbounded(), || unsafe { loom::hint::unreachable_unchecked() });
    assert!(text.contains("unreachable_unchecked was reached"), "{text}");
}

#[test]
fn an_access_without_synchronization_must_be_ordered() {
    for machine in BOTH {
        let pass = |order| {
            move || {
                let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
                let shared = words.clone();
                thread::spawn(move || {
                    shared[0].store(1, Relaxed);
                    shared[1].store(1, order);
                });
                if words[1].load(Acquire) == 1 {
                    // SAFETY: the checker judges it.
                    assert_eq!(unsafe { words[0].unsync_load() }, 1);
                }
            }
        };
        model_on(machine, pass(Release));
        if machine == Machine::c11() {
            assert!(wrong(machine, pass(Relaxed)).contains("data race"));
        }
        let text = wrong(machine, || {
            let word = Arc::new(AtomicUsize::new(0));
            let shared = word.clone();
            thread::spawn(move || shared.store(1, Release));
            // SAFETY: the checker judges it.
            unsafe { word.unsync_load() };
        });
        assert!(text.contains("without synchronization"), "{text}");
    }
}
