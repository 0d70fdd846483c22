//! Worked example: a sequence lock. Its readers write nothing and try again if a writer was there.
//!
//! ```console
//! $ cargo run --release -p poach-check --example seqlock
//! ```
//!
//! The writer makes the sequence odd, writes, and makes it even. A reader takes what it has read
//! only if the sequence was even before and is the same after. On x86 this needs no fence, on
//! either side: stores stay in order, and loads do. It does on other processors, which this checker
//! does not see: loom does.
//!
//! The bug: a writer that makes the sequence odd after its first write. A reader that comes between
//! the two takes half of one value and half of another, under sequential consistency already.

use poach_check::loom;

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::{Machine, hint, model_on, thread};

pub(crate) struct SequenceLock {
    sequence: AtomicUsize,
    words: [AtomicUsize; 2],
}

impl SequenceLock {
    fn new() -> Self {
        SequenceLock {
            sequence: AtomicUsize::new(0),
            words: [AtomicUsize::new(0), AtomicUsize::new(0)],
        }
    }

    /// Writes both words; one writer at a time. `late` is the bug.
    fn write(&self, value: usize, late: bool) {
        let sequence = self.sequence.load(Relaxed);
        if late {
            self.words[0].store(value, Release);
            self.sequence.store(sequence + 1, Release);
        } else {
            self.sequence.store(sequence + 1, Release);
            self.words[0].store(value, Release);
        }
        self.words[1].store(value, Release);
        self.sequence.store(sequence + 2, Release);
    }

    /// Reads both words as they were at one time.
    fn read(&self) -> [usize; 2] {
        loop {
            let before = self.sequence.load(Acquire);
            if before % 2 == 0 {
                let words = [self.words[0].load(Acquire), self.words[1].load(Acquire)];
                if self.sequence.load(Acquire) == before {
                    return words;
                }
            }
            hint::spin_loop();
        }
    }
}

pub(crate) fn readers(late: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let lock = Arc::new(SequenceLock::new());
        let shared = lock.clone();
        let writer = thread::spawn(move || {
            shared.write(1, late);
            shared.write(2, late);
        });
        let [first, second] = lock.read();
        assert_eq!(first, second, "half of one value and half of another");
        writer.join().expect("it returns");
    }
}

#[allow(dead_code, reason = "the tests have their own")]
fn main() {
    for machine in [Machine::sequential(), Machine::tso(2), Machine::unbounded()] {
        model_on(machine, readers(false));
        println!("in order, {machine}: right");
        let late = std::panic::AssertUnwindSafe(move || model_on(machine, readers(true)));
        let wrong = std::panic::catch_unwind(late).expect_err("the bug is found");
        let text = wrong.downcast_ref::<String>().expect("a text");
        println!("late, {machine}: {}", text.lines().next().unwrap_or_default());
    }
}
