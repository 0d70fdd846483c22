//! A join's half for thieves and owners: the worker as a value, which forks it, and the second half
//! in its slot. Its owner or a thief takes it from there, and the thief leaves its outcome there.

use std::marker::PhantomData;
use std::ptr;

use poach_deque::split::{self, Status, Stolen};
use poach_memory::{Machine, Ordering, Word};

use crate::sleep::wake_policy::DequeEvents;
use crate::task::panic::{Outcome, catch};

pub(crate) type Head = split::Head<Machine, DequeEvents>;

/// A worker of a pool, as a value: with it a fork need not look for its worker in a thread-local
/// variable.
///
/// [`worker`](crate::worker()) and [`ThreadPool::run`](crate::ThreadPool::run) call a closure with
/// one. Pass it on by value, it is one machine word; [`join`](Worker::join) gives each half a
/// `Worker` of its own.
///
/// ```
/// # use poach_runtime as poach;
/// use poach::Worker;
///
/// fn fib(mut worker: Worker<'_>, n: u64) -> u64 {
///     if n < 2 {
///         return n;
///     }
///     let (a, b) = worker.join(|w| fib(w, n - 1), |w| fib(w, n - 2));
///     a + b
/// }
///
/// let pool = poach::ThreadPool::builder().num_threads(2).build()?;
/// assert_eq!(pool.run(|worker| fib(worker, 20)), 6765);
/// # Ok::<(), poach::BuildError>(())
/// ```
///
/// A `Worker` belongs to its thread, and to the innermost join. These do not compile:
///
/// ```compile_fail,E0499
/// # use poach_runtime as poach;
/// # fn f(mut outer: poach::Worker<'_>) {
/// outer.join(|_| outer.join(|_| (), |_| ()), |_| ());
/// # }
/// ```
///
/// ```compile_fail,E0277
/// # use poach_runtime as poach;
/// # fn f(worker: poach::Worker<'_>) {
/// std::thread::scope(|s| s.spawn(move || worker));
/// # }
/// ```
#[repr(transparent)]
pub struct Worker<'w> {
    head: Head,
    life: PhantomData<(&'w (), *mut ())>,
}

/// Without any implementation: it exists for its error message.
#[diagnostic::on_unimplemented(
    message = "a `Worker` belongs to its own thread and cannot be captured by a half of a join, or sent elsewhere",
    label = "uses a `Worker` from outside of this closure",
    note = "each half of a join is given a `Worker` of its own: name it, as in `w.join(|w| f(w, 1), |w| f(w, 2))`",
    note = "in a task of a scope, or on another thread, call `worker(|w| ..)` there"
)]
pub trait UsesTheWorkerItIsGiven {}

pub struct OuterWorker<'w>(PhantomData<&'w ()>);

// SAFETY: there is no such implementation: nothing implements the trait. It stands here for its
// message alone.
unsafe impl<'w> Send for Worker<'w> where OuterWorker<'w>: UsesTheWorkerItIsGiven {}

impl Worker<'_> {
    /// The token for the stack of this thread's worker.
    ///
    /// # Safety
    ///
    /// `head` is the topmost head of the stack that the calling thread owns, and the token is not
    /// used while that stack has another top.
    #[inline(always)]
    pub(crate) unsafe fn new<'w>(head: Head) -> Worker<'w> {
        Worker { head, life: PhantomData }
    }

    /// The same token, for as long as this one is not used.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Worker<'_> {
        Worker { head: self.head, life: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// This worker's index in its pool, from 0.
    pub fn index(&self) -> usize {
        // SAFETY: the stack lives as long as the token.
        unsafe { self.head.context() }.index
    }
}

pub(crate) type Slot = split::Slot<Machine>;

/// A thief's view of a stolen half. [`foreign`](super::foreign) makes such descriptors in other
/// languages.
#[repr(C, align(8))]
struct Descriptor {
    /// Runs the closure in the slot, and leaves the outcome there.
    /// Of the C ABI, which lets no panic out: see [`unwind`](super::unwind).
    run: unsafe extern "C" fn(&Slot, Worker<'_>),
}

impl Descriptor {
    const fn of<B, R>() -> Descriptor
    where
        B: FnOnce(Worker<'_>) -> R + Send,
        R: Send,
    {
        Descriptor { run: run::<B, R> }
    }
}

#[inline(always)]
pub(crate) fn descriptor<B, R>() -> *mut ()
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    ptr::from_ref(const { &Descriptor::of::<B, R>() }).cast_mut().cast()
}

/// Runs a stolen half on this thread: `worker` is its token.
pub(crate) fn run_stolen(stolen: &Stolen<'_, Machine>, thief: usize, worker: Worker<'_>) {
    let slot = stolen.slot();
    // Relaxed: a hint for leapfrogging. The flags are clear: only this thief sets one.
    slot.status().store((thief as u64 + 1) << Status::THIEF_SHIFT, Ordering::Relaxed);
    // SAFETY: descriptors of these stacks are made by `descriptor` and nothing else.
    let descriptor = unsafe { &*slot.descriptor().cast::<Descriptor>() };
    // SAFETY: the slot holds what `join` pushed with this descriptor; the claim made it this
    // thread's.
    unsafe { (descriptor.run)(slot, worker) };
    // Line P1 of sleep/README.md: the caller wakes the victim. No other thread writes the word
    // before the victim has seen DONE.
    say_done(slot.status());
}

/// Runs a popped task without a result in its slot.
///
/// # Safety
///
/// The calling thread owns the stack, whose top `head` is; a task that was pushed with the
/// descriptor of a closure without a result stands there, and is used no second time.
#[inline(always)]
pub(crate) unsafe fn run_popped(head: Head) -> Outcome<()> {
    // SAFETY: this thread owns the stack.
    let slot = unsafe { head.slot() };
    // SAFETY: descriptors of these stacks are made by `descriptor` and nothing else.
    let descriptor = unsafe { &*slot.descriptor().cast::<Descriptor>() };
    // SAFETY: `head` is the top. The task moves itself out of the slot before it forks.
    let worker = unsafe { Worker::new(head) };
    // SAFETY: the slot holds what was pushed with this descriptor, and by the pop it is this
    // thread's.
    unsafe { (descriptor.run)(slot, worker) };
    // SAFETY: the task has put its outcome there, and what it had pushed it has popped.
    unsafe { take_outcome(slot) }
}

/// Sets the word that says that an outcome stands beside it.
#[inline(always)]
pub(crate) fn say_done<W: Word>(status: &W) {
    // Release: hands the outcome to the thread that acquires this in `is_done`.
    status.store(Status::DONE, Ordering::Release);
}

/// Whether [`say_done`] was called: then the outcome belongs to this thread, which alone waits for
/// it.
#[inline(always)]
pub(crate) fn is_done<W: Word>(status: &W) -> bool {
    // Acquire: pairs with the release in `say_done`.
    status.load(Ordering::Acquire) & Status::DONE != 0
}

/// Moves the second half out of its slot, or out of the frame that its slot points to.
///
/// # Safety
///
/// The slot's payload is the caller's, and is what a `join` with this `B` has pushed. The join does
/// not use the original, which stays where it is.
pub(crate) unsafe fn take_half<B>(slot: &Slot) -> B {
    if Slot::fits::<B>() {
        // SAFETY: the payload is a B, by this function's contract.
        unsafe { slot.take::<B>() }
    } else {
        // SAFETY: the payload is a pointer to a B, by this function's contract.
        let original = unsafe { slot.take::<*const B>() };
        // SAFETY: the frame of the join that made the pointer waits for this task, or unwinds only
        // after it; the B in it is moved out once, here.
        unsafe { original.read() }
    }
}

/// # Safety
///
/// The slot's payload is the caller's, and is what `join::<_, B, _, R>` has pushed.
unsafe extern "C" fn run<B, R>(slot: &Slot, worker: Worker<'_>)
where
    B: FnOnce(Worker<'_>) -> R + Send,
    R: Send,
{
    // SAFETY: by this function's contract.
    let half = unsafe { take_half::<B>(slot) };
    let outcome = catch(|| half(worker));
    if Slot::fits::<Outcome<R>>() {
        // SAFETY: it fits, and the payload is this thief's until it sets DONE.
        unsafe { slot.put(outcome) };
    } else {
        // SAFETY: the payload is this thief's until it sets DONE, and a box fits.
        unsafe { slot.put(Box::new(outcome)) };
    }
}

/// # Safety
///
/// [`run`] with this `R` has put its outcome into the slot, DONE was acquired, and it is taken
/// once.
pub(crate) unsafe fn take_outcome<R>(slot: &Slot) -> Outcome<R> {
    if Slot::fits::<Outcome<R>>() {
        // SAFETY: by this function's contract.
        unsafe { slot.take() }
    } else {
        // SAFETY: by this function's contract; what does not fit was boxed.
        let boxed = unsafe { slot.take::<Box<Outcome<R>>>() };
        *boxed
    }
}

// loom brings its own threads, which Miri cannot run.
#[cfg(all(test, not(miri)))]
mod tests {
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    use super::*;

    #[test]
    fn who_sees_that_it_is_done_has_the_outcome() {
        loom::model(|| {
            let status: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
            let outcome: &'static UnsafeCell<u32> = Box::leak(Box::new(UnsafeCell::new(0)));
            let thief = thread::spawn(move || {
                // As `run_stolen` says who it is.
                status.store(3 << Status::THIEF_SHIFT, Ordering::Relaxed);
                outcome.with_mut(|_| ());
                say_done(status);
            });
            if is_done(status) {
                outcome.with_mut(|_| ());
            }
            thief.join().unwrap();
            assert!(is_done(status));
        });
    }
}
