//! A half of a join as a value of two words, for queues that hold values: a pointer to the frame of
//! the join, where the closure is, and later its outcome.
//!
//! # Who owns the closure
//!
//! The job is pushed once, and the queue hands it out once (the caller's promise; [`crate::on_queue`]
//! admits no other queues). If the joining thread pops it, the closure and the outcome were never
//! shared. Else the thief owns both until it stores `done`, which releases them to the joiner, who
//! acquires it and does not leave the frame before.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::panic;
use std::ptr;

use poach_memory::{Machine, Memory, Word};

use super::half;
use super::unwind::{AbortOnUnwind, Outcome, catch, dispose};

/// A half of a join, until a thread runs it.
pub struct Job {
    frame: *const (),
    run: unsafe fn(*const (), *const ()),
}

// SAFETY: a job is made from a closure that is Send, of a frame that stands until the job was run.
unsafe impl Send for Job {}

/// A worker whose queue holds jobs.
///
/// # Safety
///
/// Whatever job the implementor pops, or passes to [`run`] with itself, was pushed by a host of the
/// same type or lent to one ([`lend`]), and comes but once.
pub(crate) unsafe trait Host {
    /// Puts a job where this worker, or a thief, takes it out again.
    fn push(&self, job: Job);
    /// Takes the job that this worker pushed last, if it is still there.
    fn pop(&self) -> Option<Job>;
    /// Does something useful, or lets some time pass.
    fn help(&self);
}

struct LentHalf<B, R> {
    closure: UnsafeCell<ManuallyDrop<B>>,
    outcome: UnsafeCell<Option<Outcome<R>>>,
    done: <Machine as Memory>::Word,
}

/// Runs a job on `host`.
#[inline]
#[expect(clippy::needless_pass_by_value, reason = "a job is run once: running it uses it up")]
pub(crate) fn run<H: Host>(job: Job, host: &H) {
    let Job { frame, run } = job;
    // SAFETY: the host is of the type that the job was made for, and the job comes once (`Host`); so
    // it has not been run, and its frame stands.
    unsafe { run(frame, ptr::from_ref(host).cast()) };
}

impl<B, R> LentHalf<B, R> {
    fn new(closure: B) -> Self {
        LentHalf {
            closure: UnsafeCell::new(ManuallyDrop::new(closure)),
            outcome: UnsafeCell::new(None),
            done: Word::new(0),
        }
    }

    fn job<H>(&self) -> Job
    where
        H: Host,
        B: FnOnce(&H) -> R + Send,
        R: Send,
    {
        Job { frame: ptr::from_ref(self).cast(), run: run_half::<H, B, R> }
    }

    fn is_done(&self) -> bool {
        // Pairs with `run_half`, and so with the outcome before it.
        half::is_done(&self.done)
    }

    fn outcome(self) -> Outcome<R> {
        self.outcome.into_inner().expect("the outcome is asked for after the job is done")
    }
}

/// # Safety
///
/// `frame` is a `LentHalf<B, R>` that stands until this stores `done`, `host` is an `H`, and this is called
/// once.
unsafe fn run_half<H, B, R>(frame: *const (), host: *const ())
where
    H: Host,
    B: FnOnce(&H) -> R + Send,
    R: Send,
{
    let frame: *const LentHalf<B, R> = frame.cast();
    // SAFETY: the frame stands.
    let closure = unsafe { &raw const (*frame).closure };
    // SAFETY: the frame stands.
    let outcome = unsafe { &raw const (*frame).outcome };
    // SAFETY: the closure is this call's alone.
    let closure = unsafe { &mut *UnsafeCell::raw_get(closure) };
    // SAFETY: it is taken once, here.
    let closure = unsafe { ManuallyDrop::take(closure) };
    // SAFETY: by this function's contract.
    let host = unsafe { &*host.cast::<H>() };
    let result = catch(|| closure(host));
    // SAFETY: nobody else touches the outcome before `done`.
    unsafe { *UnsafeCell::raw_get(outcome) = Some(result) };
    // SAFETY: the frame stands until the store below.
    let done = unsafe { &(*frame).done };
    half::say_done(done);
}

/// Runs `a` here and `b` here or wherever it was taken to, and returns both results.
#[inline]
pub(crate) fn fork<H, A, B, RA, RB>(host: &H, a: A, b: B) -> (RA, RB)
where
    H: Host,
    A: FnOnce(&H) -> RA,
    B: FnOnce(&H) -> RB + Send,
    RB: Send,
{
    let frame = LentHalf::new(b);
    // A host that unwinds here would leave a job behind whose frame is gone.
    let guard = AbortOnUnwind("a worker's queue panicked");
    host.push(frame.job::<H>());
    let first = catch(|| a(host));
    let second = loop {
        match host.pop() {
            Some(job) if ptr::eq(job.frame, ptr::from_ref(&frame).cast()) => {
                // SAFETY: the job has come back, so nobody else has or will touch the closure.
                let closure = unsafe { &mut *frame.closure.get() };
                // SAFETY: it is taken once: `run_half` was not called, and will not be.
                let closure = unsafe { ManuallyDrop::take(closure) };
                break catch(|| closure(host));
            }
            Some(older) => run(older, host),
            None => {}
        }
        if frame.is_done() {
            break frame.outcome();
        }
        host.help();
    };
    guard.disarm();
    match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(payload), second) => {
            dispose(second);
            panic::resume_unwind(payload)
        }
        (Ok(first), Err(payload)) => {
            dispose(first);
            panic::resume_unwind(payload)
        }
    }
}

/// Makes a job of `closure` and hands it to `give`, which must not return before the job is done: if
/// it does, or unwinds, the process ends.
pub(crate) fn lend<H, B, R>(closure: B, give: impl FnOnce(Job, &dyn Fn() -> bool)) -> Outcome<R>
where
    H: Host,
    B: FnOnce(&H) -> R + Send,
    R: Send,
{
    let frame = LentHalf::new(closure);
    let guard = AbortOnUnwind("a thread stopped waiting for a job in its own frame");
    give(frame.job::<H>(), &|| frame.is_done());
    assert!(frame.is_done(), "a job was not waited for");
    guard.disarm();
    frame.outcome()
}
