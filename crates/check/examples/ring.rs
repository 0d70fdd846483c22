//! Worked example: a ring, from one thread to another, whose consumer sleeps when it is empty.
//!
//! ```console
//! $ cargo run --release -p poach-check --example ring
//! ```
//!
//! The ring itself needs no fence on x86. Its sleep does: the consumer says that it sleeps and
//! looks once more whether the ring is empty; the producer puts a value in and looks whether
//! anybody sleeps. Each stores and then loads what the other stores, as in Dekker's entry.
//!
//! The bug: no fence. Under sequential consistency every execution ends, so no test by interleaving
//! finds it; with one entry in a buffer the consumer sleeps for ever beside a full ring, which is a
//! deadlock.

use poach_check::loom;

use loom::sync::Arc;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicUsize, fence};
use loom::{Machine, model_on, thread};

const SLOTS: usize = 2;

pub(crate) struct Ring {
    slots: [AtomicUsize; SLOTS],
    /// How many values were taken; the consumer's.
    head: AtomicUsize,
    /// How many values were put in; the producer's.
    tail: AtomicUsize,
    asleep: AtomicBool,
    fenced: bool,
}

impl Ring {
    fn new(fenced: bool) -> Self {
        Ring {
            slots: [(); SLOTS].map(|()| AtomicUsize::new(0)),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            asleep: AtomicBool::new(false),
            fenced,
        }
    }

    fn fence(&self) {
        if self.fenced {
            fence(SeqCst);
        }
    }

    fn push(&self, value: usize, consumer: &thread::Thread) {
        let tail = self.tail.load(Relaxed);
        while tail - self.head.load(Acquire) == SLOTS {
            thread::yield_now();
        }
        self.slots[tail % SLOTS].store(value, Relaxed);
        self.tail.store(tail + 1, Release);
        self.fence();
        if self.asleep.load(Relaxed) {
            consumer.unpark();
        }
    }

    fn pop(&self) -> usize {
        let head = self.head.load(Relaxed);
        while self.tail.load(Acquire) == head {
            self.asleep.store(true, Relaxed);
            self.fence();
            if self.tail.load(Acquire) == head {
                thread::park();
            }
            self.asleep.store(false, Relaxed);
        }
        let value = self.slots[head % SLOTS].load(Relaxed);
        self.head.store(head + 1, Release);
        value
    }
}

/// A producer of `values` values, and their consumer.
pub(crate) fn passes(values: usize, fenced: bool) -> impl Fn() + Send + Sync + 'static {
    move || {
        let ring = Arc::new(Ring::new(fenced));
        let (shared, consumer) = (ring.clone(), thread::current());
        let producer = thread::spawn(move || {
            for value in 1..=values {
                shared.push(value, &consumer);
            }
        });
        for value in 1..=values {
            assert_eq!(ring.pop(), value);
        }
        producer.join().expect("it returns");
    }
}

#[allow(dead_code, reason = "the tests have their own")]
fn main() {
    for machine in [Machine::sequential(), Machine::tso(1), Machine::unbounded()] {
        model_on(machine, passes(3, true));
        println!("with fences, {machine}: right");
    }
    model_on(Machine::sequential(), passes(3, false));
    println!("without, {}: right", Machine::sequential());
    let unfenced = std::panic::catch_unwind(|| model_on(Machine::unbounded(), passes(1, false)));
    let wrong = unfenced.expect_err("the bug is found");
    println!("without:\n{}", wrong.downcast_ref::<String>().expect("a text"));
}
