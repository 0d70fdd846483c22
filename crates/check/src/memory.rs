//! The memory whose every access is a choice of the search.

use core::cell::{Cell as StdCell, UnsafeCell};
use core::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use poach_memory::{Cell, Freed, Memory, Ordering, Pointer, StoreLoad, Word};

use crate::engine;
use crate::machine::{Access, Change, Loc, MAX_THREADS, Op, Touch};

/// The simulated machine's memory: only to be used inside of [`explore`](crate::explore), and in
/// the execution in which it was made. Used in another execution a word panics.
///
/// TSO orders loads with loads and stores with stores, so there only one ordering argument changes
/// anything: a `SeqCst` store is a store and a full fence, as compilers make it (`xchg`). With
/// [`Consistency::C11`](crate::Consistency::C11) the arguments mean what they say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulated;

// SAFETY: the machine executes one step of one thread at a time. `full` and `heavy` are steps that
// drain the store buffers in question, or fences of C11. The process-wide barrier is always there.
// The memory says whether it is TSO[S].
unsafe impl Memory for Simulated {
    type Word = SimulatedWord;
    type Pointer<T> = SimulatedPointer<T>;
    type Cell<T> = SimulatedCell<T>;

    #[track_caller]
    fn full() {
        engine::step(Op::Full, Location::caller());
    }

    fn light() {}

    #[track_caller]
    fn heavy() {
        engine::step(Op::HeavyStart(u8::MAX), Location::caller());
        engine::step(Op::HeavyFinish, Location::caller());
    }

    fn asymmetric() -> bool {
        true
    }

    fn total_store_order() -> bool {
        !engine::is_weak()
    }

    #[track_caller]
    fn pause() {
        engine::step(Op::Pause, Location::caller());
    }

    fn patience(_looks: u32) -> u32 {
        1
    }

    #[track_caller]
    fn free(object: Freed) {
        engine::free(object, Location::caller());
    }
}

/// The simulated machine without a process-wide barrier: both ends of an asymmetric fence are full.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithoutBarrier;

// SAFETY: the words are the simulated machine's, and so are all steps. It says that it has no
// barrier; what asks for one all the same gets a full fence, as where the system refuses it.
unsafe impl Memory for WithoutBarrier {
    type Word = SimulatedWord;
    type Pointer<T> = SimulatedPointer<T>;
    type Cell<T> = SimulatedCell<T>;

    #[track_caller]
    fn full() {
        Simulated::full();
    }

    fn light() {}

    #[track_caller]
    fn heavy() {
        Simulated::full();
    }

    fn asymmetric() -> bool {
        false
    }

    fn owners_fence() -> bool {
        true
    }

    fn total_store_order() -> bool {
        Simulated::total_store_order()
    }

    #[track_caller]
    fn pause() {
        Simulated::pause();
    }

    fn patience(looks: u32) -> u32 {
        Simulated::patience(looks)
    }

    #[track_caller]
    fn free(object: Freed) {
        Simulated::free(object);
    }
}

/// [`poach_memory::Displaced`] on the simulated machine, whose threads have a processor each. A
/// thief that visits the owner's processor finds the owner switched out, and so at a full fence;
/// the thief passes a full fence itself. No other thread is stopped.
///
/// It is made in a model's set-up. As long as the word of [`until`](Displacing::until) is 0 the
/// kernel refuses the visit.
#[derive(Debug)]
pub struct Displacing {
    thread: usize,
    allowed: Option<Arc<SimulatedWord>>,
}

impl Displacing {
    /// The policy of the owner that is a model's thread of this number, counted from 0 in the order
    /// in which they are [spawned](crate::Threads::spawn).
    ///
    /// # Safety
    ///
    /// The queue's owner is that thread. If another thread is the owner, the queue hands tasks out
    /// twice; a model may do that to see it, if its tasks may be had twice.
    ///
    /// # Panics
    ///
    /// If a model has no such thread.
    pub unsafe fn onto(thread: usize) -> Self {
        assert!(thread < MAX_THREADS, "a model has at most {MAX_THREADS} threads");
        Displacing { thread, allowed: None }
    }

    /// The same, with a kernel that refuses the visit until this word is 1.
    #[must_use]
    pub fn until(self, allowed: Arc<SimulatedWord>) -> Self {
        Displacing { allowed: Some(allowed), ..self }
    }
}

// SAFETY: delta is infinite, so only `resolve` promises anything. After `resolve` the owner
// has executed a full fence, because the policy's maker has promised that the owner is that thread.
// The caller has executed a full fence before and after.
unsafe impl StoreLoad<Simulated> for Displacing {
    fn owner(&self) {
        Simulated::light();
    }

    fn thief(&self) {}

    fn delta(&self) -> u64 {
        u64::MAX
    }

    #[track_caller]
    fn resolve(&self) -> bool {
        // Acquire: the kernel's answer.
        if self.allowed.as_ref().is_some_and(|allowed| allowed.load(Ordering::Acquire) == 0) {
            return false;
        }
        engine::step(Op::HeavyStart(1 << self.thread), Location::caller());
        engine::step(Op::HeavyFinish, Location::caller());
        true
    }
}

/// A word of the simulated machine.
#[derive(Debug)]
pub struct SimulatedWord {
    loc: Loc,
    /// The execution that alone may use it: elsewhere the same place is another word.
    execution: u64,
}

impl Drop for SimulatedWord {
    fn drop(&mut self) {
        engine::word_dropped(self.loc, self.execution);
    }
}

impl SimulatedWord {
    #[track_caller]
    fn step(&self, op: Op, access: Access) -> u64 {
        engine::step_of(self.execution, op, access, Location::caller())
    }

    #[track_caller]
    fn change(&self, change: Change, order: Ordering) -> u64 {
        self.exchange(change, order, Ordering::Relaxed)
    }

    #[track_caller]
    fn exchange(&self, change: Change, success: Ordering, failure: Ordering) -> u64 {
        self.step(Op::Change(self.loc, change), Access::new(success, failure))
    }

    #[track_caller]
    fn get(&self, order: Ordering) -> u64 {
        self.step(Op::Load(self.loc), Access::new(order, order))
    }

    #[track_caller]
    fn put(&self, value: u64, order: Ordering) {
        match order {
            // Neither this thread nor another can tell an exchange from a store and a fence.
            Ordering::SeqCst if !engine::is_weak() => {
                self.change(Change::Swap(value), order);
            }
            _ => {
                self.step(Op::Store(self.loc, value), Access::new(order, order));
            }
        }
    }
}

fn compared(old: u64, current: u64) -> Result<u64, u64> {
    if old == current { Ok(old) } else { Err(old) }
}

// SAFETY: each method is one step of the machine. Under TSO words are stronger than any ordering
// asks for; else the ordering goes with the step.
unsafe impl Word for SimulatedWord {
    #[track_caller]
    fn new(value: u64) -> Self {
        let (loc, execution) = engine::new_word(value, Location::caller());
        SimulatedWord { loc, execution }
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> u64 {
        check_load(order);
        self.get(order)
    }

    #[track_caller]
    fn store(&self, value: u64, order: Ordering) {
        check_store(order);
        self.put(value, order);
    }

    #[track_caller]
    fn swap(&self, value: u64, order: Ordering) -> u64 {
        self.change(Change::Swap(value), order)
    }

    #[track_caller]
    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.change(Change::Add(value), order)
    }

    #[track_caller]
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        self.change(Change::Add(value.wrapping_neg()), order)
    }

    #[track_caller]
    fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        self.change(Change::Or(value), order)
    }

    #[track_caller]
    fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
        self.change(Change::And(value), order)
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        check_load(failure);
        compared(self.exchange(Change::CompareExchange(current, new), success, failure), current)
    }
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

/// A pointer of the simulated machine, which keeps a number in its place: the same in every
/// execution in which the threads have come equally far, wherever the object was allocated.
#[derive(Debug)]
pub struct SimulatedPointer<T> {
    word: SimulatedWord,
    target: PhantomData<fn() -> *mut T>,
}

fn number<T>(pointer: *mut T) -> u64 {
    engine::number_of(pointer.expose_provenance() as u64)
}

fn pointer<T>(number: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(engine::address_of(number) as usize)
}

// SAFETY: as for the word; a number stands for one address, and provenance is exposed and taken up
// again.
unsafe impl<T> Pointer<T> for SimulatedPointer<T> {
    #[track_caller]
    fn new(value: *mut T) -> Self {
        SimulatedPointer { word: SimulatedWord::new(number(value)), target: PhantomData }
    }

    #[track_caller]
    fn load(&self, order: Ordering) -> *mut T {
        check_load(order);
        pointer(self.word.get(order))
    }

    #[track_caller]
    fn store(&self, value: *mut T, order: Ordering) {
        check_store(order);
        self.word.put(number(value), order);
    }

    #[track_caller]
    fn swap(&self, value: *mut T, order: Ordering) -> *mut T {
        pointer(self.word.change(Change::Swap(number(value)), order))
    }

    #[track_caller]
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        check_load(failure);
        let (current, new) = (number(current), number(new));
        let old = self.word.exchange(Change::CompareExchange(current, new), success, failure);
        compared(old, current).map(pointer).map_err(pointer)
    }
}

/// A cell whose accesses must be put in order by stores and loads of words.
pub struct SimulatedCell<T> {
    content: UnsafeCell<T>,
    entered: Entered,
}

struct Entered {
    uses: Uses,
    entry: (u32, u64),
}

/// The uses of a cell are not checked: no thread runs, or none is scheduled.
pub(crate) struct Unasked;

/// The threads that have used a cell, and when each did last.
pub(crate) struct Uses {
    written: StdCell<Option<(usize, Touch)>>,
    read: [StdCell<Option<Touch>>; MAX_THREADS],
}

impl Uses {
    pub(crate) const fn new() -> Self {
        Uses { written: StdCell::new(None), read: [const { StdCell::new(None) }; MAX_THREADS] }
    }

    pub(crate) fn touch(
        &self,
        writes: bool,
        site: &'static Location<'static>,
    ) -> Result<Option<Touch>, Unasked> {
        let (thread, clock) = engine::cell_clock().ok_or(Unasked)?;
        let report = |(time, other): Touch, by: usize, what: &str| {
            if by != thread && clock[by] < time {
                let what_now = if writes { "write" } else { "read" };
                engine::race(format!(
                    "nothing orders the {what_now} at {} and the {what} at {}",
                    crate::trace::place(site),
                    crate::trace::place(other),
                ));
            }
        };
        if let Some((by, touch)) = self.written.get() {
            report(touch, by, "write");
        }
        let before = self.by(thread);
        if writes {
            for (by, read) in self.read.iter().enumerate() {
                if let Some(touch) = read.get() {
                    report(touch, by, "read");
                }
            }
            self.written.set(Some((thread, (clock[thread], site))));
        } else {
            self.read[thread].set(Some((clock[thread], site)));
        }
        Ok(before)
    }

    fn by(&self, thread: usize) -> Option<Touch> {
        let read = self.read[thread].get();
        match self.written.get() {
            Some((by, write)) if by == thread && read.is_none_or(|(time, _)| time < write.0) => {
                Some(write)
            }
            _ => read,
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let (number, execution) = self.entry;
        let by = |thread| self.uses.by(thread);
        engine::cell_dropped(number, execution, || core::array::from_fn(by));
    }
}

impl<T> SimulatedCell<T> {
    fn touch(&self, writes: bool, site: &'static Location<'static>) {
        if let Ok(before) = self.entered.uses.touch(writes, site) {
            engine::use_cell(self.entered.entry.0, writes, before);
        }
    }
}

// SAFETY: an `UnsafeCell`, which lends its one place, and a record of who asked.
unsafe impl<T> Cell<T> for SimulatedCell<T> {
    #[track_caller]
    fn new(value: T) -> Self {
        let entered = Entered { uses: Uses::new(), entry: engine::new_cell(Location::caller()) };
        let cell = SimulatedCell { content: UnsafeCell::new(value), entered };
        if engine::is_weak() {
            // Creation is a write that every read must happen after. TSO guarantees it.
            cell.touch(true, Location::caller());
        }
        cell
    }

    #[track_caller]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.touch(false, Location::caller());
        read(self.content.get())
    }

    #[track_caller]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.touch(true, Location::caller());
        write(self.content.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Threads, Verdict, explore, observe};

    /// Dekker's entry: the owner has no fence, the thief visits a thread. Whether both may miss the
    /// other's store.
    fn both_miss(config: &Config, visited: usize, delayed: bool) -> bool {
        let report = explore(config, &|threads: &mut Threads| {
            let [tail, head, allowed] = [0, 0, u64::from(!delayed)].map(SimulatedWord::new);
            let (words, allowed) = (Arc::new([tail, head]), Arc::new(allowed));
            // SAFETY: the tasks of this model are numbers.
            let fence = unsafe { Displacing::onto(visited) }.until(Arc::clone(&allowed));
            let own = Arc::clone(&words);
            threads.spawn("owner", move || {
                own[0].store(1, Ordering::Relaxed);
                observe(0, own[1].load(Ordering::Relaxed));
            });
            threads.spawn("thief", move || {
                words[1].swap(1, Ordering::Relaxed);
                while !fence.resolve() {
                    Simulated::pause();
                }
                observe(1, words[0].load(Ordering::Relaxed));
            });
            threads.spawn("kernel", move || allowed.store(1, Ordering::Release));
        });
        assert_eq!(report.verdict, Verdict::Clean);
        report.outcomes.contains(&vec![0, 0])
    }

    #[test]
    fn a_visit_is_a_fence_of_the_thread_that_is_visited() {
        for machine in [Config::default(), Config::bounded(1, true), Config::c11()] {
            for delayed in [false, true] {
                assert!(!both_miss(&machine, 0, delayed), "{machine:?}");
                // A visit to another thread's processor stops neither of the two.
                assert!(both_miss(&machine, 2, delayed), "{machine:?}");
            }
        }
    }
}
