//! The machine's memory, which reports each access to a test of queues or pools before it happens.

use core::marker::PhantomData;

use poach_memory::{Machine, Memory, Ordering, Pointer, Word};

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    /// A read-modify-write, or a full fence.
    Exchange,
    /// The costly end of the asymmetric fence.
    Heavy,
}

/// Is called before each access, in the thread that is about to make it.
pub(crate) trait Watcher: Send + Sync + 'static {
    fn before(kind: Kind);
}

/// With [`Watcher::before`] before each access of a word or pointer and each fence but a light one.
pub(crate) struct Watched<W>(PhantomData<W>);

// SAFETY: the machine's; what a watcher does stands before the accesses.
unsafe impl<W: Watcher> Memory for Watched<W> {
    type Word = WatchedWord<W>;
    type Pointer<T> = WatchedPointer<T, W>;
    type Cell<T> = <Machine as Memory>::Cell<T>;

    fn full() {
        W::before(Kind::Exchange);
        Machine::full();
    }

    fn light() {
        Machine::light();
    }

    fn heavy() {
        W::before(Kind::Heavy);
        Machine::heavy();
    }

    fn asymmetric() -> bool {
        Machine::asymmetric()
    }

    fn pause() {
        Machine::pause();
    }
}

pub(crate) struct WatchedWord<W>(<Machine as Memory>::Word, PhantomData<W>);

// SAFETY: `core`'s atomics; what a watcher does stands before the accesses.
unsafe impl<W: Watcher> Word for WatchedWord<W> {
    fn new(value: u64) -> Self {
        WatchedWord(Word::new(value), PhantomData)
    }

    fn load(&self, order: Ordering) -> u64 {
        W::before(Kind::Load);
        Word::load(&self.0, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        W::before(Kind::Store);
        Word::store(&self.0, value, order);
    }

    fn swap(&self, value: u64, order: Ordering) -> u64 {
        W::before(Kind::Exchange);
        Word::swap(&self.0, value, order)
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        W::before(Kind::Exchange);
        Word::fetch_add(&self.0, value, order)
    }

    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        W::before(Kind::Exchange);
        Word::fetch_sub(&self.0, value, order)
    }

    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        W::before(Kind::Exchange);
        Word::fetch_or(&self.0, value, order)
    }

    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        W::before(Kind::Exchange);
        Word::fetch_and(&self.0, value, order)
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        W::before(Kind::Exchange);
        Word::compare_exchange(&self.0, current, new, success, failure)
    }
}

pub(crate) struct WatchedPointer<T, W>(<Machine as Memory>::Pointer<T>, PhantomData<W>);

// SAFETY: as for the word.
unsafe impl<T, W: Watcher> Pointer<T> for WatchedPointer<T, W> {
    fn new(value: *mut T) -> Self {
        WatchedPointer(Pointer::new(value), PhantomData)
    }

    fn load(&self, order: Ordering) -> *mut T {
        W::before(Kind::Load);
        Pointer::load(&self.0, order)
    }

    fn store(&self, value: *mut T, order: Ordering) {
        W::before(Kind::Store);
        Pointer::store(&self.0, value, order);
    }

    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        W::before(Kind::Exchange);
        Pointer::swap(&self.0, value, order)
    }

    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        W::before(Kind::Exchange);
        Pointer::compare_exchange(&self.0, current, new, success, failure)
    }
}
