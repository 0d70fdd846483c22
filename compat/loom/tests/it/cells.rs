//! Cells: an access that nothing orders is a race.

use super::is_wrong;

use loom::cell::{Cell, UnsafeCell};
use loom::sync::Arc;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;

struct Shared<T>(T);

// SAFETY: the accesses of a model are the checker's to judge.
unsafe impl<T> Sync for Shared<T> {}

#[test]
fn a_cell_needs_an_order() {
    let pass = |store, load| {
        move || {
            let cell = Arc::new((Shared(UnsafeCell::new(0)), AtomicBool::new(false)));
            let shared = cell.clone();
            thread::spawn(move || {
                // SAFETY: the checker judges it, and the pointer is the cell's.
                shared.0.0.with_mut(|value| unsafe { *value = 1 });
                shared.1.store(true, store);
            });
            if cell.1.load(load) {
                // SAFETY: the same.
                cell.0.0.with(|value| assert_eq!(unsafe { *value }, 1));
            }
        }
    };
    loom::model(pass(Release, Acquire));
    assert!(is_wrong(pass(Relaxed, Acquire)));
    assert!(is_wrong(pass(Release, Relaxed)));
}

#[test]
fn readers_do_not_race_with_readers() {
    loom::model(|| {
        let cell = Arc::new(Shared(UnsafeCell::new(0)));
        let shared = cell.clone();
        thread::spawn(move || shared.0.with(|_| ()));
        cell.0.with(|_| ());
    });
    assert!(is_wrong(|| {
        let cell = Arc::new(Shared(UnsafeCell::new(0)));
        let shared = cell.clone();
        thread::spawn(move || shared.0.with_mut(|_| ()));
        cell.0.with(|_| ());
    }));
}

#[test]
fn pointers_of_a_cell() {
    loom::model(|| {
        let cell = UnsafeCell::new(1);
        let pointer = cell.get_mut();
        // SAFETY: no other thread has the cell.
        *unsafe { pointer.deref() } += 1;
        // SAFETY: the same.
        pointer.with(|value| unsafe { *value += 1 });
        drop(pointer);
        let pointer = cell.get();
        // SAFETY: the same.
        assert_eq!(unsafe { *pointer.deref() }, 3);
        // SAFETY: the same.
        pointer.with(|value| assert_eq!(unsafe { *value }, 3));
        drop(pointer);
        assert_eq!(cell.into_inner(), 3);
        let cell = Cell::new(4);
        cell.set(5);
        assert_eq!((cell.replace(6), cell.get(), cell.take()), (5, 6, 6));
        let other = Cell::from(7);
        cell.swap(&other);
        assert_eq!((cell.clone().into_inner(), other.into_inner()), (7, 0));
    });
}
