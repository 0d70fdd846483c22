//! A half of a join as a value of two words, for queues that hold values: a pointer to the frame of
//! the join, where the closure is, and later its outcome.
//!
//! # Why it is sound
//!
//! Running a job needs three things:
//!
//! 1. *The worker is of the type that the job was made for.* The compiler checks it: a `Job<K>` is
//!    made by a [`QueueWorker<K>`] and runs on a `QueueWorker<K>`.
//! 2. *The job is run at most once.* A job is neither `Copy` nor `Clone`, and running it consumes
//!    it. A queue that returned a job twice would break this, so a [`Kind`] names a queue that is
//!    [`Exact`](super::exact::Exact).
//! 3. *The frame is still there.* [`fork`] and [`lend`] return after the job has run, and end the
//!    process if they unwind before. A job that is lost makes them wait for ever.
//!
//! The module `on_queue` is private, and so are its queues: no other crate can name a job, take one
//! or push one.
//!
//! ```compile_fail,E0603
//! use poach_bench::fork::on_queue::Job;
//! ```
//!
//! If the joining thread pops the job, the closure and the outcome were never shared. Else the
//! thief owns both until it stores `done`, which releases them to the joining thread.

use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::{self, ManuallyDrop};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use poach_memory::{Machine, Memory, Ordering, Word};

use super::{Kind, QueueWorker};

/// What a closure returned, or what it panicked with.
type Outcome<R> = Result<R, Box<dyn Any + Send>>;

/// A half of a join, until a thread runs it.
pub(crate) struct Job<K: Kind> {
    frame: *const (),
    run: unsafe fn(*const (), &QueueWorker<K>),
}

// SAFETY: a job is made from a closure that is Send, whose result is Send, and its frame stands
// until the job was run.
unsafe impl<K: Kind> Send for Job<K> {}

struct Frame<B, R> {
    closure: UnsafeCell<ManuallyDrop<B>>,
    outcome: UnsafeCell<Option<Outcome<R>>>,
    done: <Machine as Memory>::Word,
}

fn catch<R>(run: impl FnOnce() -> R) -> Outcome<R> {
    panic::catch_unwind(AssertUnwindSafe(run))
}

/// Ends the process if a panic drops it: guards code whose frame a job points to.
struct AbortOnUnwind(&'static str);

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        // A panic in a destructor that a panic runs ends the process, with this message.
        panic!("{}", self.0);
    }
}

impl<K: Kind> Job<K> {
    #[inline]
    pub(super) fn run(self, worker: &QueueWorker<K>) {
        // SAFETY: the job is consumed, and comes once (2); its frame stands (3).
        unsafe { (self.run)(self.frame, worker) };
    }
}

impl<B, R> Frame<B, R> {
    fn new(closure: B) -> Self {
        Frame {
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            outcome: UnsafeCell::new(None),
            done: Word::new(0),
        }
    }

    fn job<K: Kind>(&self) -> Job<K>
    where
        B: FnOnce(&QueueWorker<K>) -> R + Send,
        R: Send,
    {
        Job { frame: ptr::from_ref(self).cast(), run: run_half::<K, B, R> }
    }

    fn is_done(&self) -> bool {
        // Acquire: pairs with the release in `run_half`, and so with the outcome before it.
        self.done.load(Ordering::Acquire) != 0
    }

    fn outcome(self) -> Outcome<R> {
        self.outcome.into_inner().expect("the outcome is asked for after the job is done")
    }
}

/// # Safety
///
/// `frame` is a `Frame<B, R>` that stands until this stores `done`, and this is called once.
unsafe fn run_half<K: Kind, B, R>(frame: *const (), worker: &QueueWorker<K>)
where
    B: FnOnce(&QueueWorker<K>) -> R + Send,
    R: Send,
{
    let frame: *const Frame<B, R> = frame.cast();
    // SAFETY: the frame stands.
    let closure = unsafe { &raw const (*frame).closure };
    // SAFETY: the frame stands.
    let outcome = unsafe { &raw const (*frame).outcome };
    // SAFETY: the closure is this call's alone.
    let closure = unsafe { &mut *UnsafeCell::raw_get(closure) };
    // SAFETY: it is taken once, here.
    let closure = unsafe { ManuallyDrop::take(closure) };
    let result = catch(|| closure(worker));
    // SAFETY: no other thread touches the outcome before `done`.
    unsafe { *UnsafeCell::raw_get(outcome) = Some(result) };
    // SAFETY: the frame stands until the store below.
    let done = unsafe { &(*frame).done };
    // Release: hands the outcome over to the thread that acquires this in `is_done`.
    done.store(1, Ordering::Release);
}

/// Runs `a` here and `b` here or on the thread that stole it, and returns both results.
#[inline]
pub(super) fn fork<K: Kind, A, B, RA, RB>(worker: &QueueWorker<K>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce(&QueueWorker<K>) -> RA,
    B: FnOnce(&QueueWorker<K>) -> RB + Send,
    RB: Send,
{
    let frame = Frame::new(b);
    let guard = AbortOnUnwind("a worker's queue panicked");
    worker.push(frame.job());
    let first = catch(|| a(worker));
    let second = loop {
        match worker.pop() {
            Some(job) if ptr::eq(job.frame, ptr::from_ref(&frame).cast()) => {
                // SAFETY: the job has come back, so no other thread has touched or will touch the
                // closure.
                let closure = unsafe { &mut *frame.closure.get() };
                // SAFETY: it is taken once: `run_half` was not called, and will not be.
                let closure = unsafe { ManuallyDrop::take(closure) };
                break catch(|| closure(worker));
            }
            Some(older) => older.run(worker),
            None => {}
        }
        if frame.is_done() {
            break frame.outcome();
        }
        worker.help();
    };
    mem::forget(guard);
    match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(payload), _) | (_, Err(payload)) => panic::resume_unwind(payload),
    }
}

/// Makes a job of `closure` and hands it to `give`, which must not return before the job is done:
/// if it does, or unwinds, the process ends.
pub(super) fn lend<K: Kind, B, R>(
    closure: B,
    give: impl FnOnce(Job<K>, &dyn Fn() -> bool),
) -> Outcome<R>
where
    B: FnOnce(&QueueWorker<K>) -> R + Send,
    R: Send,
{
    let frame = Frame::new(closure);
    let guard = AbortOnUnwind("a thread stopped waiting for a job in its own frame");
    give(frame.job(), &|| frame.is_done());
    assert!(frame.is_done(), "a job was not waited for");
    mem::forget(guard);
    frame.outcome()
}
