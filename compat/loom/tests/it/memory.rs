//! What is owned, and must be given back.

use super::shown;

use loom::alloc::{Layout, Track, alloc_zeroed, dealloc};
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;

#[test]
fn an_owner_is_counted() {
    loom::model(|| {
        let mut one = Arc::new(5);
        assert!(Arc::get_mut(&mut one).is_some());
        let two = one.clone();
        assert!(Arc::ptr_eq(&one, &two) && Arc::strong_count(&one) == 2);
        assert!(Arc::get_mut(&mut one).is_none());
        let one = Arc::try_unwrap(one).unwrap_err();
        let raw = Arc::into_raw(two);
        assert_eq!(raw, Arc::as_ptr(&one));
        // SAFETY: one owner was given up, and one more is made.
        unsafe { Arc::increment_strong_count(raw) };
        // SAFETY: and given up here.
        unsafe { Arc::decrement_strong_count(raw) };
        // SAFETY: the owner that was given up above.
        drop(unsafe { Arc::from_raw(raw) });
        assert_eq!(Arc::try_unwrap(one).unwrap(), 5);
        assert_eq!(*Arc::from_std(std::sync::Arc::new(6)) + *Arc::pin(7), 13);
    });
}

#[test]
fn the_last_owner_drops_and_has_heard_of_all() {
    struct Last(AtomicUsize);
    impl Drop for Last {
        fn drop(&mut self) {
            assert_eq!(self.0.with_mut(|value| *value), 1);
        }
    }
    loom::model(|| {
        let owner = Arc::new(Last(AtomicUsize::new(0)));
        let shared = owner.clone();
        thread::spawn(move || shared.0.store(1, Relaxed));
        drop(owner);
    });
    let seen = shown(|| {
        let owner = Arc::new(());
        let shared = owner.clone();
        thread::spawn(move || drop(shared));
        Arc::try_unwrap(owner).is_ok()
    });
    assert_eq!(seen, [false, true]);
}

#[test]
fn what_is_tracked_is_given_back() {
    loom::model(|| {
        let mut tracked = Track::new(1);
        *tracked.get_mut() += 1;
        assert_eq!((*tracked.get_ref(), tracked.into_inner()), (2, 2));
        let layout = Layout::new::<u64>();
        // SAFETY: the layout has a size.
        let pointer = unsafe { alloc_zeroed(layout) };
        // SAFETY: it was allocated with this layout, and is used no more.
        unsafe { dealloc(pointer, layout) };
    });
}
