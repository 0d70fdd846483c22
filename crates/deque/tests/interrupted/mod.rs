//! The machine's memory, whose words do something else at one of this thread's accesses: what another thread might do then.

use std::cell::RefCell;

use poach_memory::{Machine, Memory, Ordering, Word};

thread_local! {
    /// What is done, and before which of the coming accesses of its kind.
    static MEANWHILE: RefCell<Option<Meanwhile>> = const { RefCell::new(None) };
}

#[derive(Clone, Copy, PartialEq)]
#[allow(dead_code, reason = "not every program wants each")]
pub(crate) enum Access {
    Load,
    Exchange,
}

struct Meanwhile {
    access: Access,
    /// How many of these go before.
    left: u32,
    act: Box<dyn FnOnce()>,
}

/// Has `act` done before this thread's next compare-and-swap of a word, or load of one: the first, if `left` is 0.
pub(crate) fn before(access: Access, left: u32, act: impl FnOnce() + 'static) {
    MEANWHILE.set(Some(Meanwhile { access, left, act: Box::new(act) }));
}

fn comes(access: Access) {
    let due = MEANWHILE.with_borrow_mut(|meanwhile| {
        let due = meanwhile.take_if(|it| it.access == access && it.left == 0);
        if let Some(it) = meanwhile.as_mut().filter(|it| it.access == access) {
            it.left -= 1;
        }
        due
    });
    if let Some(due) = due {
        (due.act)();
    }
}

/// The machine's memory, with [`before`].
pub(crate) struct Interrupted;

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

pub(crate) struct InterruptedWord(<Machine as Memory>::Word);

// SAFETY: the machine's; what the test does comes before the access.
unsafe impl Word for InterruptedWord {
    fn new(value: u64) -> Self {
        InterruptedWord(Word::new(value))
    }

    fn load(&self, order: Ordering) -> u64 {
        comes(Access::Load);
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
        comes(Access::Exchange);
        Word::compare_exchange(&self.0, current, new, success, failure)
    }
}
