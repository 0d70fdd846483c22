//! Worked example: Dekker's entry without a fence on one side, where the buffer has a bound.
//!
//! ```console
//! $ cargo run --release -p poach-check --example dekker
//! ```
//!
//! Each of two threads says that it comes and looks whether the other does; at most one may enter.
//! That needs the store before the load, which x86 does not promise without a fence. A buffer of S
//! entries promises it after S more stores: the last of them finds room only when the first has
//! left. So the frequent side can pay with stores that it makes anyway, if they are enough; the
//! rare side has its fence. This is how the fence-free deques work.
//!
//! The bug: S - 1 stores on S entries, or S stores where an egress slot stands behind the buffer.

use poach_check::loom;

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::{Machine, model_on, thread};

/// The frequent side makes `stores` stores between its two steps, to `words` words in turn.
pub(crate) fn entry(stores: usize, words: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let shared = flags.clone();
        let rare = thread::spawn(move || {
            shared[1].store(true, Relaxed);
            fence(SeqCst);
            !shared[0].load(Acquire)
        });
        let work: Vec<_> = (0..words).map(|_| AtomicUsize::new(0)).collect();
        flags[0].store(true, Release);
        for round in 0..stores {
            work[round % words].store(round, Relaxed);
        }
        let entered = !flags[1].load(Acquire);
        assert!(!(entered && rare.join().expect("it returns")), "both have entered");
    }
}

/// What is tried: a name, the machine, the stores, the words, and whether it is right.
pub(crate) const TRIED: &[(&str, Machine, usize, usize, bool)] = &[
    ("S stores, S = 3", Machine::tso(3), 3, 2, true),
    ("S - 1 stores, S = 3", Machine::tso(3), 2, 2, false),
    ("S stores and an egress slot", Machine::tso(3).with_egress(), 3, 2, false),
    ("S + 1 stores and an egress slot", Machine::tso(3).with_egress(), 4, 2, true),
    ("20 stores without a bound", Machine::unbounded(), 20, 2, false),
];

#[allow(dead_code, reason = "the tests have their own")]
fn main() {
    for (name, machine, stores, words, right) in TRIED {
        let (machine, model) = (*machine, entry(*stores, *words));
        let run = std::panic::AssertUnwindSafe(move || model_on(machine, model));
        let found = std::panic::catch_unwind(run);
        assert_eq!(found.is_ok(), *right, "{name}");
        println!("{name}: {}", if *right { "right" } else { "both have entered" });
    }
}
