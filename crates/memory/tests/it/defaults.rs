//! The default methods of `Memory`.

use std::cell::Cell;

use poach_memory::{Machine, Memory};

thread_local! {
    static PAUSES: Cell<u32> = const { Cell::new(0) };
}

struct Little;

// SAFETY: the machine's memory, whose asymmetric fence it does not offer.
unsafe impl Memory for Little {
    type Word = <Machine as Memory>::Word;
    type Pointer<T> = <Machine as Memory>::Pointer<T>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {
        Machine::full();
    }

    fn light() {
        Machine::light();
    }

    fn heavy() {
        Machine::full();
    }

    fn asymmetric() -> bool {
        false
    }

    fn pause() {
        PAUSES.set(PAUSES.get() + 1);
    }
}

#[test]
fn who_gives_way_waits() {
    Little::give_way();
    assert_eq!(PAUSES.get(), 1, "a model's scheduler must hear of it");
}

#[test]
fn nothing_is_promised_that_was_not_said() {
    assert!(!Little::asymmetric_by_now());
    assert!(!Little::total_store_order());
    assert_eq!([0, 1, u32::MAX].map(Little::patience), [0, 1, u32::MAX]);
    assert_eq!(Little::zeros(3).map(|words| words.len()), Some(3));
    assert!(Little::zeros(usize::MAX).is_none());
    Little::evict(&[1, 2]);
    Little::will_write(&0);
}
