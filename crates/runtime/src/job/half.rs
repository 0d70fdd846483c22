//! The second half of a join in its slot, where its owner or a thief takes it, and where a thief leaves what it came to.

use std::ptr;

use poach_deque::split::{self, Status, Stolen};
use poach_memory::{Machine, Ordering};

use super::token::Worker;
use super::unwind::{Outcome, catch};

pub(super) type Slot = split::Slot<Machine>;

/// What a thief needs to know of a stolen half. [`foreign`](super::foreign) makes such descriptors in other languages.
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
pub(super) fn descriptor<B, R>() -> *mut ()
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
    // SAFETY: the slot holds what `join` pushed with this descriptor; the claim made it this thread's.
    unsafe { (descriptor.run)(slot, worker) };
    // Release: hands the outcome over to `wait`. It is line P1 of sleep/README.md: the caller wakes the
    // victim. Nobody else writes the word before the victim has seen DONE.
    slot.status().store(Status::DONE, Ordering::Release);
}

/// Moves the second half out of its slot, or out of the frame that its slot points to.
///
/// # Safety
///
/// The slot's payload is the caller's, and is what a `join` with this `B` has pushed. The join does
/// not use the original, which stays where it is.
pub(super) unsafe fn take_half<B>(slot: &Slot) -> B {
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
/// [`run`] with this `R` has put its outcome into the slot, DONE was acquired, and it is taken once.
pub(super) unsafe fn take_outcome<R>(slot: &Slot) -> Outcome<R> {
    if Slot::fits::<Outcome<R>>() {
        // SAFETY: by this function's contract.
        unsafe { slot.take() }
    } else {
        // SAFETY: by this function's contract; what does not fit was boxed.
        let boxed = unsafe { slot.take::<Box<Outcome<R>>>() };
        *boxed
    }
}
