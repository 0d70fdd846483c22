//! Atomic types of every width, and their orderings.

use super::{is_wrong, shown};

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use loom::thread;

macro_rules! widths {
    ($($name:ident $value:ident)*) => {$(
        #[test]
        fn $value() {
            use loom::sync::atomic::$name;
            use std::sync::atomic::$name as Std;
            loom::model(|| {
                for start in [$value::MIN, $value::MAX, 0, 3] {
                    for by in [$value::MIN, $value::MAX, 0, 5] {
                        let (ours, std) = ($name::new(start), Std::new(start));
                        macro_rules! same {
                            ($method:ident) => {
                                assert_eq!(ours.$method(by, AcqRel), std.$method(by, AcqRel));
                                assert_eq!(ours.load(Acquire), std.load(Acquire));
                            };
                        }
                        same!(fetch_add);
                        same!(fetch_xor);
                        same!(fetch_sub);
                        same!(fetch_max);
                        same!(swap);
                        same!(fetch_nand);
                        same!(fetch_min);
                        same!(fetch_or);
                        same!(fetch_and);
                        let found = ours.compare_exchange(by, 7, AcqRel, Acquire);
                        assert_eq!(found, std.compare_exchange(by, 7, AcqRel, Acquire));
                        let next = |old: $value| old.checked_add(1);
                        let found = ours.fetch_update(AcqRel, Acquire, next);
                        assert_eq!(found, std.fetch_update(AcqRel, Acquire, next));
                        ours.store(by, Release);
                        assert_eq!(ours.compare_exchange_weak(by, 9, SeqCst, SeqCst), Ok(by));
                        let mut ours = ours;
                        let held = ours.with_mut(|value| std::mem::replace(value, 3));
                        // SAFETY: no other thread has it.
                        assert_eq!((held, unsafe { ours.unsync_load() }), (9, 3));
                    }
                }
                assert_eq!($name::from(1).load(Relaxed), 1);
                assert_eq!($name::default().into_inner(), 0);
            });
        }
    )*};
}

widths! {
    AtomicI8 i8 AtomicU8 u8 AtomicI16 i16 AtomicU16 u16 AtomicI32 i32 AtomicU32 u32
    AtomicI64 i64 AtomicU64 u64 AtomicIsize isize AtomicUsize usize
}

#[test]
fn booleans_and_pointers() {
    loom::model(|| {
        for held in [false, true] {
            for by in [false, true] {
                let word = AtomicBool::new(held);
                assert_eq!(word.fetch_xor(by, AcqRel), held);
                assert_eq!(word.fetch_nand(by, AcqRel), held ^ by);
                assert_eq!(word.swap(true, SeqCst), !((held ^ by) & by));
                assert!(word.fetch_and(by, Relaxed) && word.fetch_or(true, Relaxed) == by);
            }
        }
        let (mut one, mut two) = (1u8, 2u8);
        let (one, two): (*mut u8, *mut u8) = (&raw mut one, &raw mut two);
        let word = AtomicPtr::<u8>::default();
        assert_eq!(word.compare_exchange(one, two, AcqRel, Acquire), Err(std::ptr::null_mut()));
        word.store(one, Release);
        assert_eq!(word.swap(two, AcqRel), one);
        assert_eq!(word.load(Acquire), two);
    });
}

/// Two threads store to one word each and load the other's.
fn store_buffering(order: [std::sync::atomic::Ordering; 2], fenced: bool) -> Vec<(usize, usize)> {
    shown(move || {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = words.clone();
        let run = move |words: &[AtomicUsize; 2], mine: usize| {
            words[mine].store(1, order[0]);
            if fenced {
                fence(SeqCst);
            }
            words[1 - mine].load(order[1])
        };
        let other = thread::spawn(move || run(&shared, 1));
        let mine = run(&words, 0);
        (mine, other.join().unwrap())
    })
}

#[test]
fn a_store_may_be_late_unless_a_fence_forbids_it() {
    let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
    assert_eq!(store_buffering([Release, Acquire], false), all);
    assert_eq!(store_buffering([Relaxed, Relaxed], true), all[1..]);
}

/// A message in one word, and a flag in another.
fn message_passing(
    store: std::sync::atomic::Ordering,
    load: std::sync::atomic::Ordering,
) -> Vec<(usize, usize)> {
    shown(move || {
        let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let shared = words.clone();
        thread::spawn(move || {
            shared[0].store(1, Relaxed);
            shared[1].store(1, store);
        });
        (words[1].load(load), words[0].load(Relaxed))
    })
}

#[test]
fn a_message_passes_by_a_release_and_an_acquire() {
    let all = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let right = [(0, 0), (0, 1), (1, 1)];
    assert_eq!(message_passing(Release, Acquire), right);
    assert_eq!(message_passing(Relaxed, Acquire), all);
    assert_eq!(message_passing(Release, Relaxed), all);
}

#[test]
fn fences_pass_messages_for_relaxed_accesses() {
    for (release, acquire, right) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let seen = shown(move || {
            let words = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
            let shared = words.clone();
            thread::spawn(move || {
                shared[0].store(1, Relaxed);
                if release {
                    fence(Release);
                }
                shared[1].store(1, Relaxed);
            });
            let flag = words[1].load(Relaxed);
            if acquire {
                fence(Acquire);
            }
            (flag, words[0].load(Relaxed))
        });
        assert_eq!(seen.contains(&(1, 0)), !right, "{release} {acquire}");
    }
}

#[test]
fn increments_are_not_lost_and_plain_ones_are() {
    let add = |atomic: bool| {
        shown(move || {
            let word = Arc::new(AtomicUsize::new(0));
            let add = move |word: &AtomicUsize| {
                if atomic {
                    word.fetch_add(1, Relaxed);
                } else {
                    let held = word.load(Relaxed);
                    word.store(held + 1, Relaxed);
                }
            };
            let threads = [(); 2].map(|()| {
                let word = word.clone();
                thread::spawn(move || add(&word))
            });
            for thread in threads {
                thread.join().unwrap();
            }
            word.load(Relaxed)
        })
    };
    assert_eq!(add(true), [2]);
    assert_eq!(add(false), [1, 2]);
}

#[test]
fn a_read_without_synchronization_that_races_is_found() {
    assert!(is_wrong(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        thread::spawn(move || shared.store(1, Relaxed));
        // SAFETY: the checker judges it.
        unsafe { word.unsync_load() };
    }));
    loom::model(|| {
        let word = Arc::new(AtomicUsize::new(0));
        let shared = word.clone();
        thread::spawn(move || shared.store(1, Relaxed)).join().unwrap();
        // SAFETY: the store comes before the end of its thread.
        assert_eq!(unsafe { word.unsync_load() }, 1);
    });
}

#[test]
fn a_loop_that_waits_ends() {
    loom::model(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let shared = flag.clone();
        thread::spawn(move || shared.store(true, Release));
        while !flag.load(Acquire) {
            loom::hint::spin_loop();
        }
    });
}
