//! A thief of an idempotent queue that loses its processor between its look at the queue and its exchange, while the owner
//! pushes and pops 2^20 times, so that the queue has come back to where the thief saw it: no task is lost.
//!
//! The double-ended queue's tag had 20 bits once, and the thief's exchange succeeded: it took the task that the owner had
//! popped long ago, and stepped over the one that stood there now. The tags of today, of 41 and of 32 bits, come back after an
//! hour and after six seconds of pushes; the queues' modules say how likely it is that a thief is deceived.

use std::cell::RefCell;
use std::rc::Rc;

use poach_deque::{IdempotentDeque, IdempotentFifo, IdempotentLifo, Owner, Steal, Thief};
use poach_memory::{Machine, Memory, Ordering, Word};

thread_local! {
    /// What the thread does before its next compare-and-swap of a word.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// The machine's memory, with [`MEANWHILE`].
struct Interrupted;

// SAFETY: the machine's.
unsafe impl Memory for Interrupted {
    type Word = InterruptedWord;
    type Pointer<T> = <Machine as Memory>::Pointer<T>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {
        Machine::full();
    }

    fn light() {
        Machine::light();
    }

    fn heavy() {
        Machine::heavy();
    }

    fn asymmetric() -> bool {
        Machine::asymmetric()
    }

    fn pause() {
        Machine::pause();
    }
}

struct InterruptedWord(<Machine as Memory>::Word);

// SAFETY: the machine's; what the test does comes before the access.
unsafe impl Word for InterruptedWord {
    fn new(value: u64) -> Self {
        InterruptedWord(Word::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        Word::load(&self.0, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        Word::store(&self.0, value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        Word::swap(&self.0, value, order)
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        Word::fetch_add(&self.0, value, order)
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        Word::fetch_sub(&self.0, value, order)
    }

    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        Word::fetch_or(&self.0, value, order)
    }

    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        Word::fetch_and(&self.0, value, order)
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if let Some(meanwhile) = MEANWHILE.take() {
            meanwhile();
        }
        Word::compare_exchange(&self.0, current, new, success, failure)
    }
}

/// The tag of 20 bits came back after so many. Miri would take minutes.
const PUSHES: u64 = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

fn no_task_is_lost(owner: impl Owner<u64> + 'static) {
    let owner = Rc::new(owner);
    let thief = owner.thief();
    owner.push(0);
    let pushes = Rc::clone(&owner);
    MEANWHILE.set(Some(Box::new(move || {
        for task in 1..=PUSHES {
            assert!(pushes.pop().is_some());
            pushes.push(task);
        }
    })));
    let mut out = Vec::new();
    if let Steal::Success(task) = thief.steal() {
        out.push(task);
    }
    out.extend(std::iter::from_fn(|| owner.pop()));
    assert!(out.contains(&PUSHES), "task {PUSHES} is lost; what came out: {out:?}");
}

#[test]
fn deque() {
    no_task_is_lost(IdempotentDeque::<u64, Interrupted>::default());
}

#[test]
fn lifo() {
    no_task_is_lost(IdempotentLifo::<u64, Interrupted>::default());
}

#[test]
fn fifo() {
    no_task_is_lost(IdempotentFifo::<u64, Interrupted>::default());
}
