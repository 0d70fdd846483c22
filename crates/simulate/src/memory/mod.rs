//! The memory: words, pointers and cells whose accesses take simulated time.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use std::panic::Location;

use poach_memory::{Cell, Memory, Ordering, Pointer, Word};

use crate::engine::{with, word_dropped};
use crate::step::{Change, Op};
use fibers::step;

pub(crate) mod fibers;

/// Memory in simulated time. Within a [`Simulation`](crate::Simulation) each access takes what the
/// machine's description says. Outside of one, accesses take effect at once and cost nothing: to
/// make a queue, and to look at what is left.
///
/// A word belongs to the thread of the system that made it; another's use of it panics. The
/// simulated machine is total store order, so orderings change nothing but this: a `SeqCst` store
/// is an exchange, as compilers make it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coherent;

// SAFETY: all uses of a word are on one thread of the system, one after another, in the order of
// the simulation's events. `full` and `heavy` are steps that empty the store buffers in question
// before they return, so they are as strong as their promises; answers never change; waiting and
// `evict` change no content. Nothing unwinds but for a word that is used on a second thread of the
// system.
unsafe impl Memory for Coherent {
    type Word = CoherentWord;
    type Pointer<T> = CoherentPointer<T>;
    type Cell<T> = CoherentCell<T>;

    #[track_caller]
    fn full() {
        step(Op::Fence, Location::caller());
    }

    fn light() {}

    #[track_caller]
    fn heavy() {
        step(Op::Barrier, Location::caller());
    }

    fn asymmetric() -> bool {
        true
    }

    fn total_store_order() -> bool {
        true
    }

    #[track_caller]
    fn pause() {
        step(Op::Pause, Location::caller());
    }

    #[track_caller]
    fn give_way() {
        step(Op::GiveWay, Location::caller());
    }

    #[track_caller]
    fn evict<T>(those: &[T]) {
        for address in lines_of(those.as_ptr().addr(), size_of_val(those)) {
            step(Op::Evict { address }, Location::caller());
        }
    }
}

/// One address on each line of an object.
fn lines_of(address: usize, size: usize) -> impl Iterator<Item = usize> {
    const LINE: usize = 64;
    let first = address / LINE;
    let last = (address + size).div_ceil(LINE).max(first);
    (first..if size == 0 { first } else { last }).map(move |line| line * LINE)
}

/// A word whose accesses take simulated time: as large as a real one.
#[derive(Debug)]
pub struct CoherentWord {
    /// The thread of the system that it belongs to.
    thread: u32,
    /// Its content's place there.
    place: u32,
    not_shared: PhantomData<*const ()>,
}

// SAFETY: another thread's use of the content panics, and dropping the word there does nothing.
unsafe impl Send for CoherentWord {}

// SAFETY: as for `Send`.
unsafe impl Sync for CoherentWord {}

impl Drop for CoherentWord {
    fn drop(&mut self) {
        word_dropped(self.thread, self.place);
    }
}

impl CoherentWord {
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    fn word(&self) -> u32 {
        with(|engine| engine.need(self.thread));
        self.place
    }

    #[track_caller]
    fn change(&self, change: Change) -> u64 {
        let op = Op::Change { word: self.word(), address: self.address(), change };
        step(op, Location::caller())
    }

    #[track_caller]
    fn get(&self) -> u64 {
        step(Op::Load { word: self.word(), address: self.address() }, Location::caller())
    }

    #[track_caller]
    fn put(&self, value: u64, order: Ordering) {
        if order == Ordering::SeqCst {
            self.change(Change::Swap(value));
        } else {
            let op = Op::Store { word: self.word(), address: self.address(), value };
            step(op, Location::caller());
        }
    }
}

fn compared(old: u64, current: u64) -> Result<u64, u64> {
    if old == current { Ok(old) } else { Err(old) }
}

#[track_caller]
fn check_load(order: Ordering) {
    assert!(
        !matches!(order, Ordering::Release | Ordering::AcqRel),
        "a load can be neither Release nor AcqRel"
    );
}

#[track_caller]
fn check_store(order: Ordering) {
    assert!(
        !matches!(order, Ordering::Acquire | Ordering::AcqRel),
        "a store can be neither Acquire nor AcqRel"
    );
}

// SAFETY: each method is one step; under total store order with exchanges for `SeqCst` stores,
// words are as strong as any ordering asks for.
unsafe impl Word for CoherentWord {
    fn new(value: u64) -> Self {
        let (thread, place) = with(|engine| engine.new_word(value));
        CoherentWord { thread, place, not_shared: PhantomData }
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> u64 {
        check_load(order);
        self.get()
    }

    #[track_caller]
    fn store(&self, value: u64, order: Ordering) {
        check_store(order);
        self.put(value, order);
    }

    #[track_caller]
    fn swap(&self, value: u64, _: Ordering) -> u64 {
        self.change(Change::Swap(value))
    }

    #[track_caller]
    fn fetch_add(&self, value: u64, _: Ordering) -> u64 {
        self.change(Change::Add(value))
    }

    #[track_caller]
    fn fetch_sub(&self, value: u64, _: Ordering) -> u64 {
        self.change(Change::Add(value.wrapping_neg()))
    }

    #[track_caller]
    fn fetch_or(&self, value: u64, _: Ordering) -> u64 {
        self.change(Change::Or(value))
    }

    #[track_caller]
    fn fetch_and(&self, value: u64, _: Ordering) -> u64 {
        self.change(Change::And(value))
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        check_load(failure);
        compared(self.change(Change::CompareExchange(current, new)), current)
    }
}

/// A pointer whose accesses take simulated time.
#[derive(Debug)]
pub struct CoherentPointer<T> {
    word: CoherentWord,
    target: PhantomData<fn() -> *mut T>,
}

fn number<T>(pointer: *mut T) -> u64 {
    pointer.expose_provenance() as u64
}

fn pointer<T>(number: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(number as usize)
}

// SAFETY: as for the word; provenance is exposed and taken up again.
unsafe impl<T> Pointer<T> for CoherentPointer<T> {
    fn new(value: *mut T) -> Self {
        CoherentPointer { word: Word::new(number(value)), target: PhantomData }
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> *mut T {
        check_load(order);
        pointer(self.word.get())
    }

    #[track_caller]
    fn store(&self, value: *mut T, order: Ordering) {
        check_store(order);
        self.word.put(number(value), order);
    }

    #[track_caller]
    fn swap(&self, value: *mut T, _: Ordering) -> *mut T {
        pointer(self.word.change(Change::Swap(number(value))))
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        _: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        check_load(failure);
        let (current, new) = (number(current), number(new));
        let old = self.word.change(Change::CompareExchange(current, new));
        compared(old, current).map(pointer).map_err(pointer)
    }
}

/// A cell whose accesses take simulated time: a load or a store of each line that it lies on.
#[derive(Debug)]
pub struct CoherentCell<T>(UnsafeCell<T>);

impl<T> CoherentCell<T> {
    fn lines(&self) -> impl Iterator<Item = usize> + use<T> {
        lines_of(core::ptr::from_ref(self).addr(), size_of::<T>())
    }
}

// SAFETY: an `UnsafeCell`, which lends its one place.
unsafe impl<T> Cell<T> for CoherentCell<T> {
    fn new(value: T) -> Self {
        CoherentCell(UnsafeCell::new(value))
    }

    #[track_caller]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        for address in self.lines() {
            step(Op::Read { address }, Location::caller());
        }
        read(self.0.get())
    }

    #[track_caller]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        for address in self.lines() {
            step(Op::Write { address }, Location::caller());
        }
        write(self.0.get())
    }
}
